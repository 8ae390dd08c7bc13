"""A scan in progress: each volume's region means are learnt as they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from streamlasso._text import listed
from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.imaging.arrivals import Arrival
from streamlasso.network.imaging.events import Event
from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.imaging.series import MAX_NAMES
from streamlasso.network.options import Design
from streamlasso.network.results import NODE_COLUMNS, Edges, SubjectResult, mean_over_nodes


@dataclass
class Scan:
    """What has been learnt so far.

    kept, regions : the mask of the atlas regions that are learnt, and their names; fixed by the first volume
    scale : one percent of each region's mean in the first volume, which is the unit of learning
    numbers, latencies : of each volume learnt; latency in seconds, from the complete file to the network on disk
    """

    atlas_names: tuple[str, ...]
    model: StreamingNetwork
    kept: np.ndarray | None = None
    regions: list[str] = field(default_factory=list)
    scale: np.ndarray | None = None
    numbers: list[int] = field(default_factory=list)
    nodes: dict[str, list[np.ndarray]] = field(default_factory=lambda: {name: [] for name in NODE_COLUMNS})
    edges: list[Edges] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def learn(self, arrival: Arrival) -> str:
        """Learn one volume; returns why it cannot be used, or ""."""
        means = arrival.reading.means
        if self.kept is None:
            self._start(means)
        assert self.kept is not None and self.scale is not None
        chosen = means[self.kept]
        if not np.all(np.isfinite(chosen)):
            bad = [name for name, value in zip(self.regions, chosen, strict=True) if not np.isfinite(value)]
            return f"{arrival.path.name}: missing values in {listed(bad, MAX_NAMES)}; the volume is left out"
        # A data frame, so that the saved model knows the names of the regions; pandas comes with nilearn.
        frame = import_fmri("pandas").DataFrame((chosen / self.scale)[None], columns=self.regions)
        trace = self.model.follow(frame)
        self.edges.append(Edges.of(trace.networks, len(self.numbers)))
        for name, values in self.nodes.items():
            values.append(getattr(trace, name)[0])
        self.numbers.append(arrival.number)
        return ""

    def _start(self, means: np.ndarray) -> None:
        """Leave out the regions without a value in the first volume."""
        finite = np.isfinite(means)
        self.regions = [name for name, keep in zip(self.atlas_names, finite, strict=True) if keep]
        if len(self.regions) < 2:
            raise ValueError(
                "fewer than two regions of the atlas have a value in the first volume: is it the right atlas?"
            )
        lost = [name for name, keep in zip(self.atlas_names, finite, strict=True) if not keep]
        if lost:
            self.notes.append(f"{listed(lost, MAX_NAMES)}: no voxels, or missing values, in the first volume; left out")
        self.kept = finite
        self.scale = np.where(means[finite] > 0, means[finite] / 100, 1.0)

    @property
    def network(self) -> np.ndarray:
        """(p, p): after the last volume."""
        return self.edges[-1].at(len(self.numbers) - 1)

    @property
    def mean_lam(self) -> float:
        """The mean over regions after the last volume; nan until there is something to fit."""
        return float(mean_over_nodes(self.nodes["lam"][-1][None], self.nodes["lam_max"][-1][None])[0])

    def clock(self, design: Design) -> np.ndarray:
        """Seconds on the clock of the events; without a tr the numbers of the volumes."""
        t = np.array(self.numbers)
        return t if design.tr is None else design.start + (t - t[0]) * design.tr

    def result(self, subject: str, design: Design, coords: np.ndarray, events: Sequence[Event]) -> SubjectResult:
        return SubjectResult(
            subject,
            tuple(self.regions),
            np.array(self.numbers),
            None if design.tr is None else self.clock(design),
            **{name: np.array(values) for name, values in self.nodes.items()},
            edges=Edges.concatenate(self.edges),
            coords=coords,
            events=tuple(events),
            notes=tuple(self.notes),
        )
