"""Several subjects side by side: what they have in common, and means over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamlasso._text import listed
from streamlasso.network.imaging.events import Event
from streamlasso.network.imaging.series import MAX_NAMES
from streamlasso.network.options import Design
from streamlasso.network.results import SubjectResult

#: Networks drawn without events, as fractions of the scan.
FRACTIONS = (0.25, 0.5, 0.75, 1.0)
#: Conditions whose mean network is drawn, at most.
MAX_PICTURES = 12


@dataclass(frozen=True)
class Group:
    """The results of all subjects; `regions` is the union of theirs."""

    subjects: tuple[SubjectResult, ...]
    design: Design

    @property
    def events(self) -> tuple[Event, ...]:
        """The events, if they are the same for all subjects; else none."""
        first = self.subjects[0].events
        return first if all(subject.events == first for subject in self.subjects) else ()

    @property
    def condition_names(self) -> list[str]:
        """The conditions of any subject."""
        return list(dict.fromkeys(event.condition for subject in self.subjects for event in subject.events))

    @property
    def regions(self) -> list[str]:
        """The regions of any subject, in order of first appearance."""
        return list(dict.fromkeys(region for subject in self.subjects for region in subject.regions))

    @property
    def coords(self) -> np.ndarray | None:
        """(p, 3) in mm; None unless the coordinates of all regions are known."""
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
        """Whether the time of every subject's rows is known."""
        return all(subject.seconds is not None for subject in self.subjects)

    @property
    def longest(self) -> SubjectResult:
        return max(self.subjects, key=lambda subject: len(subject.t))

    def clock(self, subject: SubjectResult) -> np.ndarray:
        """Seconds if all subjects have them, else the numbers of the time points."""
        return subject.seconds if self.timed and subject.seconds is not None else subject.t

    def conditions(self, subject: SubjectResult) -> np.ndarray:
        """The condition of each of the subject's time points, after the haemodynamic delay."""
        return subject.conditions(self.design.delay)

    # --- notes ------------------------------------------------------------------------------------------------------

    @property
    def notes(self) -> list[str]:
        """What was left out or changed; a note that several subjects share is given once, with their names."""
        subjects: dict[str, list[str]] = {}
        for subject in self.subjects:
            for note in subject.notes:
                subjects.setdefault(note, []).append(subject.subject)
        shared = [f"{listed(names, MAX_NAMES)}: {note}" for note, names in subjects.items()]
        return [*shared, *self._region_notes(), *self._condition_notes()]

    def _condition_notes(self) -> list[str]:
        n = len(self.condition_names)
        if n <= MAX_PICTURES:
            return []
        return [f"{n} conditions: the {MAX_PICTURES} longest are drawn; nodes.parquet has all"]

    def _region_notes(self) -> list[str]:
        common = set.intersection(*(set(subject.regions) for subject in self.subjects))
        if not common:
            return ["no region is in all subjects: do their files use the same names?"]
        partial = [region for region in self.regions if region not in common]
        if not partial:
            return []
        return [f"{listed(partial, MAX_NAMES)}: not in all subjects; means are over the subjects that have them"]

    # --- means over subjects ----------------------------------------------------------------------------------------

    def mean_lam(self, subjects: Sequence[SubjectResult]) -> np.ndarray:
        """(subject, time): the mean lam over regions; nan after a subject's last time point."""
        table = np.full((len(subjects), len(self.longest.t)), np.nan)
        for row, subject in zip(table, subjects, strict=True):
            row[: len(subject.t)] = subject.mean_lam
        return table

    def mean_network(self, times: Sequence[np.ndarray]) -> np.ndarray:
        """(p, p): the mean over subjects of each one's mean over its `times`; an edge over those with both regions."""
        p = len(self.regions)
        total, n = np.zeros((p, p)), np.zeros((p, p))
        for subject, chosen in zip(self.subjects, times, strict=True):
            if len(chosen):
                place = self._places(subject)
                total[np.ix_(place, place)] += subject.edges.mean(chosen)
                n[np.ix_(place, place)] += 1
        return total / np.maximum(n, 1)

    def _places(self, subject: SubjectResult) -> np.ndarray:
        """The indices of the subject's regions among all."""
        order = {region: k for k, region in enumerate(self.regions)}
        return np.array([order[region] for region in subject.regions])

    # --- networks to draw -------------------------------------------------------------------------------------------

    def pictures(self) -> dict[str, list[np.ndarray]]:
        """The networks to draw, by title: for each subject the time points that the network is the mean of."""
        by_condition = self._times_by_condition()
        if by_condition:
            return {f"{name}, mean of blocks": times for name, times in by_condition.items()}
        clock = self.clock(self.longest)
        whens = [float(clock[round(fraction * (len(clock) - 1))]) for fraction in FRACTIONS]
        return {self._title(when): self._nearest(when) for when in dict.fromkeys(whens)}

    def mean_pictures(self) -> dict[str, np.ndarray]:
        """The networks to draw, by title."""
        return {title: self.mean_network(times) for title, times in self.pictures().items()}

    def _times_by_condition(self) -> dict[str, list[np.ndarray]]:
        """The time points of the longest conditions, for each subject."""
        times = {
            name: [np.flatnonzero(self.conditions(subject) == name) for subject in self.subjects]
            for name in self.condition_names
        }
        length = {name: sum(map(len, chosen)) for name, chosen in times.items()}
        longest = sorted(filter(length.get, length), key=lambda name: -length[name])[:MAX_PICTURES]
        return {name: chosen for name, chosen in times.items() if name in longest}

    def _title(self, when: float) -> str:
        return f"{round(when, 1):g} s" if self.timed else f"time point {when:.0f}"

    def _nearest(self, when: float) -> list[np.ndarray]:
        """The time point of each subject; none for a subject whose scan was over by then."""
        return [
            np.array([np.argmin(np.abs(clock - when))] if clock[0] <= when <= clock[-1] else [], dtype=int)
            for clock in map(self.clock, self.subjects)
        ]


def nan_mean(table: np.ndarray) -> np.ndarray:
    """The mean of the finite values in each column; nan if there are none."""
    n = np.isfinite(table).sum(axis=0)
    return np.nansum(table, axis=0) / np.where(n > 0, n, np.nan)
