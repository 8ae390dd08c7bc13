"""Networks over time -> at most a few hundred frames for the page: the strongest edges, as 16-bit numbers."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from streamlasso.network.estimator import sorted_edges
from streamlasso.network.report.figures import condition_fills
from streamlasso.network.report.group import Group, nan_mean
from streamlasso.network.report.settling import warm_up

#: Limits of a page: frames, edges per frame (for each region, and in all), and bytes of all edges.
MAX_FRAMES, EDGES_PER_REGION, MAX_EDGES, MAX_BYTES = 240, 4, 600, 3 << 20
BYTES_PER_EDGE = 8
#: Strengths are stored as this many parts of the largest.
LEVELS = 32767


def frames(group: Group) -> dict[str, Any]:
    """The data of the page's slider, for JSON: the times, and the edges of each subject and of their mean."""
    times = _times(group)
    longest = group.longest
    clock = group.clock(longest).astype(float)[times]
    views = [_view("mean of all subjects", group, times, None)] if len(group.subjects) > 1 else []
    views += [_view(subject.subject, group, times, k) for k, subject in enumerate(group.subjects)]
    strengths = np.abs(np.concatenate([view["strengths"] for view in views]))
    scale = float(strengths.max(initial=0.0)) or 1.0
    for view in views:
        view["strength"] = _base64(np.round(view.pop("strengths") / scale * LEVELS))
    return {
        "regions": group.regions,
        "moments": [f"{when:.1f} s" if group.timed else f"time point {when:.0f}" for when in clock],
        "clock": clock.round(4).tolist(),
        "span": [float(clock[0]), float(max(clock[-1], clock[0] + 1e-9))],
        "scale": scale,
        "settled": int(np.searchsorted(times, warm_up(len(longest.t)))),
        "subjects": views,
    }


def _edges_per_frame(group: Group) -> int:
    return min(MAX_EDGES, EDGES_PER_REGION * len(group.regions))


def _times(group: Group) -> np.ndarray:
    """The time points that become frames, evenly spaced."""
    n, views = len(group.longest.t), len(group.subjects) + (len(group.subjects) > 1)
    frame_bytes = _edges_per_frame(group) * BYTES_PER_EDGE * views
    return np.unique(np.linspace(0, n - 1, min(n, MAX_FRAMES, max(20, MAX_BYTES // frame_bytes))).round().astype(int))


def _view(name: str, group: Group, times: np.ndarray, subject: int | None) -> dict[str, Any]:
    """The frames of one subject, or of the mean of all; `strengths` is encoded later, on a scale for all views."""
    limit = _edges_per_frame(group)
    edges = [sorted_edges(group.mean_network(_at(group, int(t), subject))) for t in times]
    source, target, strengths = (np.concatenate([frame[k][:limit] for frame in edges]) for k in range(3))
    return {
        "name": name,
        "counts": _base64(np.array([min(len(frame[0]), limit) for frame in edges])),
        "source": _base64(source),
        "target": _base64(target),
        "strengths": strengths,
        # A few early edges can be many times stronger than all others; they are drawn no wider than this.
        "largest": float(np.quantile(np.abs(strengths), 0.99)) if len(strengths) else 1.0,
        "total": [len(frame[0]) for frame in edges],
        "conditions": _conditions(group, times, subject),
        "blocks": _blocks(group, subject),
        "lam": [None if not np.isfinite(value) else float(f"{value:.4g}") for value in _lam(group, times, subject)],
    }


def _at(group: Group, t: int, subject: int | None) -> list[np.ndarray]:
    """Time point t of the subject, or of all subjects (None) that have it."""
    nothing = np.array([], dtype=int)
    return [
        np.array([t]) if subject in (None, k) and t < len(one.t) else nothing for k, one in enumerate(group.subjects)
    ]


def _lam(group: Group, times: np.ndarray, subject: int | None) -> np.ndarray:
    subjects = group.subjects if subject is None else [group.subjects[subject]]
    return nan_mean(group.mean_lam(subjects))[times]


def _conditions(group: Group, times: np.ndarray, subject: int | None) -> list[str]:
    """The condition of each frame: a subject's own, or the one that all share."""
    shown = group.longest if subject is None else group.subjects[subject]
    known = group.conditions(shown).tolist() if subject is not None or group.events else []
    return [known[t] if t < len(known) else "" for t in times]


def _blocks(group: Group, subject: int | None) -> list[list[Any]]:
    events = group.events if subject is None else group.subjects[subject].events
    fills = condition_fills(group.condition_names)
    return [[event.onset, event.end, fills[event.condition][1], event.condition] for event in events]


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values).astype("<i2").tobytes()).decode()
