"""A scan in progress: each volume's region means are learnt as they arrive, and files are written after each.

series.csv : the region means, on disk before the volume is reported, so that after a crash
    `streamlasso network series.csv` learns the scan again
current.json : the network after the last volume, as a list of edges
volumes.csv : every volume and every problem, with the latency
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from streamlasso._csv import write_row
from streamlasso._files import sync_directory, write_whole
from streamlasso._text import listed
from streamlasso.network.estimator import StreamingNetwork, sorted_edges
from streamlasso.network.imaging.arrivals import Arrival
from streamlasso.network.imaging.events import Event
from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.imaging.series import MAX_NAMES
from streamlasso.network.options import Design
from streamlasso.network.results import NODE_COLUMNS, Edges, SubjectResult, mean_over_nodes

VOLUME_COLUMNS = ("volume", "file", "status", "edges", "mean_lam", "latency_ms")


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


# --- files ------------------------------------------------------------------------------------------------------------


def write_current(out: Path, scan: Scan, arrival: Arrival) -> None:
    """The network after this volume, as current.json.

    Not synced, which would cost some 20 ms: the next volume replaces them, and series.csv is what a crash must leave.
    """
    current = {
        "volume": arrival.number,
        "file": arrival.path.name,
        "learnt": len(scan.numbers),
        "mean_lam": None if np.isnan(scan.mean_lam) else scan.mean_lam,
        "edges": [
            {"source": scan.regions[i], "target": scan.regions[j], "strength": round(float(strength), 6)}
            for i, j, strength in zip(*sorted_edges(scan.network), strict=True)
        ],
    }
    write_whole(out / "current.json", json.dumps(current).encode(), sync=False)


class Log:
    """volumes.csv and series.csv, one line per volume. Those of an earlier scan are renamed, not overwritten.

    Only series.csv is synced to disk for every volume: the operating system may delay a write by half a minute.
    """

    def __init__(self, out: Path) -> None:
        for name in ("volumes", "series"):
            _rename_earlier(out / f"{name}.csv")
        # Open as long as the scan lasts.
        self._volumes, self._series = (
            open(out / f"{name}.csv", "w", newline="", encoding="utf-8")  # noqa: SIM115
            for name in ("volumes", "series")
        )
        self._write(self._volumes, VOLUME_COLUMNS)
        sync_directory(out)

    def start_series(self, regions: Sequence[str]) -> None:
        self._write(self._series, regions)

    def save_means(self, means: np.ndarray) -> None:
        """Append the region means of a volume to series.csv, and sync it."""
        self._write(self._series, [repr(float(value)) for value in means])
        os.fsync(self._series.fileno())

    def volume(self, arrival: Arrival, edges: int, mean_lam: float, latency: float) -> None:
        row = (arrival.number, arrival.path.name, "ok", edges, f"{mean_lam:.6g}", f"{1000 * latency:.1f}")
        self._write(self._volumes, row)

    def problem(self, kind: str, text: str, arrival: Arrival | None) -> None:
        number, name = (arrival.number, arrival.path.name) if arrival else ("", text.split(":")[0])
        self._write(self._volumes, (number, name, kind, "", "", ""))

    @staticmethod
    def _write(file: TextIO, row: Sequence[Any]) -> None:
        write_row(file, row)
        file.flush()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self._volumes.close()
        self._series.close()


def _rename_earlier(path: Path) -> None:
    """Keep the file of an earlier scan as NAME-1, NAME-2, ...: if that scan crashed, series.csv is all there is."""
    if path.exists() and path.stat().st_size:
        number = next(k for k in count(1) if not path.with_stem(f"{path.stem}-{k}").exists())
        path.rename(path.with_stem(f"{path.stem}-{number}"))
