"""Networks over time -> a few hundred frames that fit into a page: thinned, the strongest edges, 16 bits a number."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamlasso.network.imaging.bids import Event
from streamlasso.network.report.figures import fills_of, warm_up
from streamlasso.network.report.group import Group, mean_network
from streamlasso.network.results import Followed

#: Frames, edges of a frame for each region, edges of a frame, and bytes of all edges of a page, at most.
MOST_FRAMES, EDGES_A_REGION, MOST_EDGES, MOST_BYTES = 240, 4, 600, 3 << 20
BYTES_AN_EDGE = 8


def frames(group: Group) -> dict[str, Any]:
    """What the page's slider needs, as JSON: the moments, and for each subject and their mean the edges."""
    times = _moments(group)
    longest = group.longest
    clock = (longest.seconds if group.timed and longest.seconds is not None else longest.t.astype(float))[times]
    unit = " s" if group.timed else ""
    label = "" if group.timed else "time point "
    shown = [_packed("mean of all subjects", group, times, None)] if len(group.subjects) > 1 else []
    shown += [_packed(subject.subject, group, times, k) for k, subject in enumerate(group.subjects)]
    strengths = np.abs(np.concatenate([part["strengths"] for part in shown]))
    scale = float(strengths.max(initial=0.0)) or 1.0
    for part in shown:
        part["strength"] = _base64(np.round(part.pop("strengths") / scale * 32767))
    return {
        "regions": group.regions,
        "moments": [f"{label}{moment:.1f}{unit}" if group.timed else f"{label}{moment:.0f}" for moment in clock],
        "clock": clock.round(4).tolist(),
        "span": [float(clock[0]), float(max(clock[-1], clock[0] + 1e-9))],
        "scale": scale,
        "settled": int(np.searchsorted(times, warm_up(len(longest.t)))),
        "subjects": shown,
    }


def _moments(group: Group) -> np.ndarray:
    n, views = len(group.longest.t), len(group.subjects) + (len(group.subjects) > 1)
    a_frame = min(MOST_EDGES, EDGES_A_REGION * len(group.regions)) * BYTES_AN_EDGE * views
    return np.unique(np.linspace(0, n - 1, min(n, MOST_FRAMES, max(20, MOST_BYTES // a_frame))).round().astype(int))


def _packed(name: str, group: Group, times: np.ndarray, subject: int | None) -> dict[str, Any]:
    """One subject's frames, or those of the mean of all; strengths not packed yet, since one scale is for all."""
    most = min(MOST_EDGES, EDGES_A_REGION * len(group.regions))
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    totals = []
    for t in times:
        network = np.triu(mean_network(group, _chosen(group, int(t), subject)), 1)
        i, j = np.nonzero(network)
        totals.append(len(i))
        order = np.argsort(-np.abs(network[i, j]), kind="stable")[:most]
        parts.append((i[order], j[order], network[i[order], j[order]]))
    strengths = np.concatenate([part[2] for part in parts])
    return {
        "name": name,
        "counts": _base64(np.array([len(part[0]) for part in parts])),
        "source": _base64(np.concatenate([part[0] for part in parts])),
        "target": _base64(np.concatenate([part[1] for part in parts])),
        "strengths": strengths,
        # A few early edges can be many times stronger than all others; they are drawn no wider than this.
        "largest": float(np.quantile(np.abs(strengths), 0.99)) if len(strengths) else 1.0,
        "total": totals,
        "conditions": _conditions(group, times, subject),
        "blocks": _blocks(group, group.events if subject is None else group.subjects[subject].events),
        "lam": [None if not np.isfinite(value) else float(f"{value:.4g}") for value in _lam(group, times, subject)],
    }


def _chosen(group: Group, t: int, subject: int | None) -> list[np.ndarray]:
    """The time point t of those subjects that are meant and have it."""
    nothing = np.array([], dtype=int)
    return [
        np.array([t]) if subject in (None, k) and t < len(one.t) else nothing for k, one in enumerate(group.subjects)
    ]


def _lam(group: Group, times: np.ndarray, subject: int | None) -> np.ndarray:
    chosen: list[Followed] = list(group.subjects) if subject is None else [group.subjects[subject]]
    table = np.full((len(chosen), len(group.longest.t)), np.nan)
    for row, one in zip(table, chosen, strict=True):
        row[: len(one.t)] = one.mean_lam
    n = np.isfinite(table).sum(axis=0)
    return (np.nansum(table, axis=0) / np.where(n > 0, n, np.nan))[times]


def _conditions(group: Group, times: np.ndarray, subject: int | None) -> list[str]:
    """What was shown at each frame, to a subject or to all."""
    whom = group.longest if subject is None else group.subjects[subject]
    known = group.conditions(whom).tolist() if subject is not None or group.events else []
    return [known[t] if t < len(known) else "" for t in times]


def _blocks(group: Group, events: Sequence[Event]) -> list[list[Any]]:
    fills = fills_of(group.shown)
    return [[event.onset, event.end, fills[event.condition][1], event.condition] for event in events]


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values).astype("<i2").tobytes()).decode()
