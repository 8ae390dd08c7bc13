"""Several subjects -> the tables that figures and the report are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from streamlasso.network.imaging.bids import Event
from streamlasso.network.imaging.series import named
from streamlasso.network.options import Design
from streamlasso.network.results import Followed

#: Networks that are drawn where neither events nor moments are given, as shares of the whole time.
MOMENTS = (0.25, 0.5, 0.75, 1.0)
#: Conditions of which networks are drawn at most.
MOST_PICTURES = 12


@dataclass(frozen=True)
class Group:
    """Subjects side by side: all regions of any of them."""

    subjects: tuple[Followed, ...]
    design: Design

    @property
    def events(self) -> tuple[Event, ...]:
        """Those that all subjects have in common; none if they were shown things at different times."""
        first = self.subjects[0].events
        return first if all(subject.events == first for subject in self.subjects) else ()

    @property
    def shown(self) -> list[str]:
        """The conditions of any of them."""
        return list(dict.fromkeys(event.condition for subject in self.subjects for event in subject.events))

    @property
    def regions(self) -> list[str]:
        """In the order in which subjects have them."""
        return list(dict.fromkeys(region for subject in self.subjects for region in subject.regions))

    @property
    def coords(self) -> np.ndarray | None:
        """(p, 3) of all regions; None unless all are known."""
        known = {
            region: place
            for subject in self.subjects
            if subject.coords is not None
            for region, place in zip(subject.regions, subject.coords, strict=True)
        }
        places = [known.get(region) for region in self.regions]
        if any(place is None or not np.all(np.isfinite(place)) for place in places):
            return None
        return np.array(places)

    @property
    def timed(self) -> bool:
        return all(subject.seconds is not None for subject in self.subjects)

    @property
    def longest(self) -> Followed:
        return max(self.subjects, key=lambda subject: len(subject.t))

    def clock(self, subject: Followed) -> np.ndarray:
        """Seconds if all subjects have them, else numbers of time points."""
        return subject.seconds if self.timed and subject.seconds is not None else subject.t

    @property
    def notes(self) -> list[str]:
        """What had to be left out or mended, in words, once for all whom it concerns."""
        whom: dict[str, list[str]] = {}
        for subject in self.subjects:
            for note in subject.notes:
                whom.setdefault(note, []).append(subject.subject)
        told = [f"{named(names)}: {note}" for note, names in whom.items()]
        return [*told, *self._regions_apart(), *self._too_many_conditions()]

    def _too_many_conditions(self) -> list[str]:
        n = len(self.shown)
        if n <= MOST_PICTURES or self.design.at:
            return []
        return [f"{n} conditions: the {MOST_PICTURES} that lasted longest are drawn; nodes.parquet has all"]

    def _regions_apart(self) -> list[str]:
        common = set.intersection(*(set(subject.regions) for subject in self.subjects))
        some = [region for region in self.regions if region not in common]
        if not common:
            return ["no region is in all subjects: do their files name them alike?"]
        whom = "a mean over subjects is over those that have them"
        return [f"{named(some)}: not in all subjects; {whom}"] if some else []

    def conditions(self, subject: Followed) -> np.ndarray:
        return subject.conditions(self.design.delay)


# --- lam --------------------------------------------------------------------------------------------------------------


def lam_table(group: Group) -> pyarrow.Table:
    """The mean lam at each time point, with its band: of the subjects, or of one subject's regions.

    Several subjects: mean of their mean lams, give or take one standard error. One: quartiles of its regions.
    """
    longest = group.longest
    if len(group.subjects) > 1:
        mean, low, high, n = _over_subjects([subject.mean_lam for subject in group.subjects])
    else:
        mean, n = longest.mean_lam, np.ones(len(longest.t), dtype=int)
        lam = np.where(longest.lam_max > 0, longest.lam, np.nan)
        low, high = (np.array([_quantile(row, q) for row in lam]) for q in (0.25, 0.75))
    seconds = longest.seconds if group.timed else None
    return pyarrow.table(
        {
            "t": longest.t,
            "seconds": pyarrow.nulls(len(mean), pyarrow.float64()) if seconds is None else seconds,
            "condition": pyarrow.array(_common_conditions(group), pyarrow.string()),
            "mean": mean,
            "low": low,
            "high": high,
            "subjects": n,
        }
    )


def _common_conditions(group: Group) -> list[str]:
    longest = group.longest
    return group.conditions(longest).tolist() if group.events else [""] * len(longest.t)


def _over_subjects(curves: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    table = np.full((len(curves), max(map(len, curves))), np.nan)
    for row, curve in zip(table, curves, strict=True):
        row[: len(curve)] = curve
    n = np.isfinite(table).sum(axis=0)
    some = np.where(n > 0, n, np.nan)
    mean = np.nansum(table, axis=0) / some
    spread = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / np.maximum(some - 1, 1))
    error = spread / np.sqrt(some)
    return mean, mean - error, mean + error, n


def _quantile(row: np.ndarray, q: float) -> float:
    row = row[np.isfinite(row)]
    return float(np.quantile(row, q)) if len(row) else float("nan")


# --- networks ---------------------------------------------------------------------------------------------------------


def pictures(group: Group) -> dict[str, list[np.ndarray]]:
    """Which networks are drawn, by title: for each subject the time points that each is the mean of."""
    if group.design.at:
        return {_moment(group, when): _nearest(group, when) for when in group.design.at}
    shown = {name: [np.flatnonzero(group.conditions(s) == name) for s in group.subjects] for name in group.shown}
    lasted = {name: sum(map(len, times)) for name, times in shown.items()}
    longest = sorted(filter(lasted.get, lasted), key=lambda name: -lasted[name])[:MOST_PICTURES]
    shown = {name: times for name, times in shown.items() if name in longest}
    if shown:
        return {f"{name}, mean of blocks": times for name, times in shown.items()}
    clock = group.clock(group.longest)
    whens = [float(clock[round(share * (len(clock) - 1))]) for share in MOMENTS]
    return {_moment(group, when): _nearest(group, when) for when in dict.fromkeys(whens)}


def _moment(group: Group, when: float) -> str:
    return f"{round(when, 1):g} s" if group.timed else f"time point {when:.0f}"


def _nearest(group: Group, when: float) -> list[np.ndarray]:
    """The time point of each subject; none for one whose scan was over by then."""
    return [
        np.array([np.argmin(np.abs(clock - when))] if clock[0] <= when <= clock[-1] else [], dtype=int)
        for clock in map(group.clock, group.subjects)
    ]


def moments_within(at: Sequence[float], clocks: Sequence[np.ndarray], timed: bool) -> tuple[tuple[float, ...], str]:
    """The moments at which at least one scan was under way; words about the others."""
    first, last = min(clock[0] for clock in clocks), max(clock[-1] for clock in clocks)
    inside = tuple(when for when in at if any(clock[0] <= when <= clock[-1] for clock in clocks))
    beyond = [f"{when:g}" for when in at if when not in inside]
    ends = f"lasts from {first:g} to {last:g} s" if np.isfinite(last) else f"begins at {first:g} s"
    lasts = f"the scan {ends}" if timed else f"time points are {first:g} to {last:g}"
    return inside, f"--at {','.join(beyond)}: {lasts}; name moments within" if beyond else ""


def mean_network(group: Group, times: Sequence[np.ndarray]) -> np.ndarray:
    """(p, p) over all regions: the mean of the subjects' means, each edge over those that have both its regions."""
    p = len(group.regions)
    total, n = np.zeros((p, p)), np.zeros((p, p))
    for subject, chosen in zip(group.subjects, times, strict=True):
        if len(chosen):
            place = places_of(group, subject)
            total[np.ix_(place, place)] += subject.edges.mean(chosen)
            n[np.ix_(place, place)] += 1
    return total / np.maximum(n, 1)


def places_of(group: Group, subject: Followed) -> np.ndarray:
    """Where the subject's regions stand among all."""
    order = {region: k for k, region in enumerate(group.regions)}
    return np.array([order[region] for region in subject.regions])


def edge_table(group: Group) -> pyarrow.Table:
    """The edges of every picture, strongest first."""
    parts: list[dict[str, Any]] = []
    names = np.array(group.regions, dtype=object)
    for title, times in pictures(group).items():
        network = np.triu(mean_network(group, times))
        i, j = np.nonzero(network)
        order = np.argsort(-np.abs(network[i, j]), kind="stable")
        for a, b in zip(i[order], j[order], strict=True):
            strength = float(network[a, b])
            sign = "+" if strength > 0 else "-"
            parts.append(dict(picture=title, source=names[a], target=names[b], sign=sign, strength=abs(strength)))
    schema = pyarrow.schema(
        [(name, pyarrow.string()) for name in ("picture", "source", "target", "sign")]
        + [("strength", pyarrow.float64())]
    )
    return pyarrow.Table.from_pylist(parts, schema)


def matrix_of(edges: pyarrow.Table, picture: str, regions: Sequence[str]) -> np.ndarray:
    """(p, p): one picture of the table."""
    order = {region: k for k, region in enumerate(regions)}
    matrix = np.zeros((len(regions), len(regions)))
    for row in edges.to_pylist():
        if row["picture"] == picture:
            i, j = order[row["source"]], order[row["target"]]
            matrix[i, j] = matrix[j, i] = row["strength"] * (1 if row["sign"] == "+" else -1)
    return matrix
