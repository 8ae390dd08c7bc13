"""A scanner's folder: each volume becomes region means, is learnt, and the network as it is now is written out.

In `out`, after every volume: a line in series.csv (the region means), on the disk before anyone hears of the volume:
should the machine go down, `streamlasso network series.csv` learns all of it again. Then current.json (the network as a
list of edges) and current.npy (as a matrix), each whole or not at all; a line in volumes.csv (what came when, and how
long it took). At the end: what a recorded run leaves.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from streamlasso._files import write_whole
from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.imaging.arrivals import Arrival, Arrivals, FolderWatch, Notice, arrivals_of
from streamlasso.network.imaging.atlas import load_atlas, read_coords
from streamlasso.network.imaging.bids import Event, doubts_about, never_seen, read_events, within
from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.imaging.regions import RegionReader
from streamlasso.network.imaging.series import named
from streamlasso.network.imaging.volumes import VOLUME_SUFFIXES
from streamlasso.network.options import Design, Images, Model
from streamlasso.network.recorded import described, write_group
from streamlasso.network.report.group import Group, moments_within
from streamlasso.network.results import NODE_COLUMNS, Edges, Followed, mean_over_nodes
from streamlasso.run.interruption import Interruption

#: Complaints of one kind that are told word by word.
MOST_COMPLAINTS = 10
VOLUME_COLUMNS = ("volume", "file", "status", "edges", "mean_lam", "latency_ms")


@dataclass(frozen=True)
class Watching:
    """When to stop: after so many volumes, or so many seconds without one. patience : as of `Arrivals`."""

    volumes: int | None = None
    idle: float | None = None
    patience: float = 5.0
    pattern: str = "*"

    def __post_init__(self) -> None:
        if self.volumes is not None and self.volumes < 1:
            raise ValueError(f"--volumes {self.volumes}: a number of volumes, 1 or more")
        for name, value in (("--idle", self.idle), ("--patience", self.patience)):
            if value is not None and value <= 0:
                raise ValueError(f"{name} {value:g}: seconds, more than 0")


@dataclass
class Scan:
    """What was learnt so far, volume by volume.

    regions, kept : those that are learnt, and which of the atlas they are; decided by the first volume
    """

    atlas_names: tuple[str, ...]
    model: StreamingNetwork
    out: Path
    kept: np.ndarray | None = None
    regions: list[str] = field(default_factory=list)
    scale: np.ndarray | None = None
    numbers: list[int] = field(default_factory=list)
    nodes: dict[str, list[np.ndarray]] = field(default_factory=lambda: {name: [] for name in NODE_COLUMNS})
    edges: list[Edges] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    complaints: Counter[str] = field(default_factory=Counter)

    def learn(self, arrival: Arrival) -> str:
        """Take one volume in; words of complaint if it is of no use."""
        means = arrival.reading.means
        if self.kept is None:
            self._begin(means)
        assert self.kept is not None and self.scale is not None
        chosen = means[self.kept]
        if not np.all(np.isfinite(chosen)):
            bad = [name for name, value in zip(self.regions, chosen, strict=True) if not np.isfinite(value)]
            return f"{arrival.path.name}: not a number in {named(bad)}; the volume is left out"
        # A frame, so that the model that is saved knows the regions by name; pandas comes with nilearn.
        frame = needs_fmri("pandas").DataFrame((chosen / self.scale)[None], columns=self.regions)
        trace = self.model.follow(frame)
        self.edges.append(Edges.of(trace.networks, len(self.numbers)))
        for name, values in self.nodes.items():
            values.append(getattr(trace, name)[0])
        self.numbers.append(arrival.number)
        return ""

    def _begin(self, means: np.ndarray) -> None:
        """Regions without voxels, or without a number in the first volume, are left out. Units: percent of it."""
        finite = np.isfinite(means)
        self.regions = [name for name, stays in zip(self.atlas_names, finite, strict=True) if stays]
        if len(self.regions) < 2:
            raise ValueError(
                "fewer than two regions of the atlas have a value in the first volume; is it the right one?"
            )
        lost = [name for name, stays in zip(self.atlas_names, finite, strict=True) if not stays]
        if lost:
            self.notes.append(f"{named(lost)}: no voxel, or not a number, in the first volume; left out")
        self.kept = finite
        self.scale = np.where(means[finite] > 0, means[finite] / 100, 1.0)

    @property
    def network(self) -> np.ndarray:
        return self.edges[-1].at(len(self.numbers) - 1)

    @property
    def mean_lam(self) -> float:
        """nan until there is something to fit."""
        return float(mean_over_nodes(self.nodes["lam"][-1][None], self.nodes["lam_max"][-1][None])[0])

    def clock(self, design: Design) -> np.ndarray:
        """Seconds, on the clock of the events; without a tr the numbers of the volumes."""
        t = np.array(self.numbers)
        return t if design.tr is None else design.start + (t - t[0]) * design.tr

    def followed(self, subject: str, design: Design, coords: np.ndarray, events: Sequence[Event]) -> Followed:
        columns = {name: np.array(values) for name, values in self.nodes.items()}
        return Followed(
            subject,
            tuple(self.regions),
            np.array(self.numbers),
            None if design.tr is None else self.clock(design),
            **columns,
            edges=Edges.joined(self.edges),
            coords=coords,
            events=tuple(events),
            notes=tuple(self.notes),
        )


class View:
    """A line a volume on a stream, say standard error."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def say(self, words: str) -> None:
        print(words, file=self.stream, flush=True)


def watch(
    folder: Path,
    out: Path,
    images: Images,
    design: Design,
    model: Model,
    watching: Watching,
    view: View,
) -> Scan:
    """Follow the volumes that come into `folder` until it is time to stop, or Ctrl-C; then write everything down."""
    if model.family != "gaussian":
        raise ValueError(f"--family {model.family}: the means of a volume's regions are gaussian; leave it out")
    if images.atlas is None:
        raise ValueError("volumes need a label atlas to become regions: --atlas ATLAS.nii.gz")
    if not folder.is_dir():
        raise ValueError(f"--watch {folder}: there is no such folder; make it before the scanner writes to it")
    events = read_events(design.events) if design.events else []
    if events and design.tr is None:
        raise ValueError(
            f"{design.events}: events are in seconds, and nobody says how far volumes are apart; give --tr"
        )
    _check_moments(design, watching)
    reader = RegionReader(load_atlas(images.atlas, images.labels))
    coords = None if images.coords is None else read_coords(images.coords, reader.atlas.names)
    out.mkdir(parents=True, exist_ok=True)
    scan = Scan(reader.atlas.names, model.build(), out)
    arrivals = Arrivals(folder.absolute(), reader, watching.patience, watching.pattern, came=reader.stacks.came)
    with FolderWatch(folder.absolute()) as woken, Log(out) as log:
        view.say(f"watching {folder}; stop with Ctrl-C")
        for doubt in doubts_about(design.events, events) if design.events else []:
            _complain("events", doubt, scan, log, view)
        for coming in until(arrivals_of(arrivals, woken), watching, scan):
            _deal_with(coming, scan, reader, log, view)
    told = len(scan.notes)
    if reader.stacks.n_waiting:
        scan.notes.append(f"{reader.stacks.n_waiting} slices came that are part of no whole volume")
    if not scan.numbers:
        raise ValueError(f"--watch {folder}: no volume came that could be learnt; {_why_none(folder, watching, scan)}")
    finish(folder, scan, reader, coords, events, design, model)
    for note in scan.notes[told:]:
        view.say(f"! {note}")
    return scan


def _why_none(folder: Path, watching: Watching, scan: Scan) -> str:
    others = [path.name for path in sorted(folder.iterdir()) if path.is_file()] if folder.is_dir() else []
    names = f"volumes are called {watching.pattern} and end in {', '.join(VOLUME_SUFFIXES)}"
    return "; ".join(scan.notes) or (f"none of {named(others, 3)}: {names}" if others else "the folder is empty")


def _check_moments(design: Design, watching: Watching) -> None:
    """Those that a scan of so many volumes cannot have; without a tr they are numbers, which may start anywhere."""
    if not design.at or design.tr is None:
        return
    ends = np.inf if watching.volumes is None else design.start + (watching.volumes - 1) * design.tr
    _, words = moments_within(design.at, [np.array([design.start, ends])], timed=True)
    if words:
        raise ValueError(words)


def until(coming: Iterator[Arrival | Notice | None], watching: Watching, scan: Scan) -> Iterator[Arrival | Notice]:
    """What comes, until there are volumes enough, or there was none for too long, or Ctrl-C; a volume is finished."""
    last = time.monotonic()
    with Interruption() as interruption:
        while not interruption.came:
            try:
                interruption.waiting = True
                item = next(coming)
            except KeyboardInterrupt:
                return
            finally:
                interruption.waiting = False
            if item is not None:
                last = time.monotonic()
                yield item
            if watching.volumes is not None and len(scan.numbers) >= watching.volumes:
                return
            if watching.idle is not None and time.monotonic() - last > watching.idle:
                return


def _deal_with(coming: Arrival | Notice, scan: Scan, reader: RegionReader, log: Log, view: View) -> None:
    if isinstance(coming, Notice):
        _complain(coming.kind, coming.words, scan, log, view)
        return
    first, told = not scan.numbers, len(scan.notes)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        words = scan.learn(coming)
    news = [*reader.notes, *scan.notes[told:]]
    for warning in warned:
        _complain("warning", f"volume {coming.number}: {warning.message}", scan, log, view, coming)
    if words:
        _complain("not a number", words, scan, log, view, coming)
        return
    if first:
        scan.notes[:0] = reader.notes
        for note in news:
            view.say(f"! {note}")
        log.begin(scan.regions)
    log.keep(coming.reading.means[scan.kept])
    write_current(scan, coming)
    latency = time.monotonic() - coming.complete
    scan.latencies.append(latency)
    n_edges = int(scan.edges[-1].counts()[-1])
    log.volume(coming, n_edges, scan.mean_lam, latency)
    after = f"{1000 * latency:.0f} ms after it was whole"
    lam = "no lam yet" if np.isnan(scan.mean_lam) else f"mean lam {scan.mean_lam:.3g}"
    view.say(f"volume {coming.number}: {n_edges} edges, {lam}, {after}")


def _complain(kind: str, words: str, scan: Scan, log: Log, view: View, arrival: Arrival | None = None) -> None:
    """Every time in volumes.csv; in words only the first few times: a folder full of slices is one complaint."""
    log.trouble(kind, words, arrival)
    scan.complaints[kind] += 1
    if scan.complaints[kind] > MOST_COMPLAINTS:
        return
    if scan.complaints[kind] == MOST_COMPLAINTS:
        words += f". More of this kind ({kind}) are only noted in volumes.csv"
    scan.notes.append(words)
    view.say(f"! {words}")


# --- files ------------------------------------------------------------------------------------------------------------


def write_current(scan: Scan, arrival: Arrival) -> None:
    """The network as it is now."""
    network = scan.network
    i, j = np.nonzero(np.triu(network))
    order = np.argsort(-np.abs(network[i, j]), kind="stable")
    current = {
        "volume": arrival.number,
        "file": arrival.path.name,
        "learnt": len(scan.numbers),
        "mean_lam": None if np.isnan(scan.mean_lam) else scan.mean_lam,
        "edges": [
            {
                "source": scan.regions[i[k]],
                "target": scan.regions[j[k]],
                "strength": round(float(network[i[k], j[k]]), 6),
            }
            for k in order
        ],
    }
    matrix = io.BytesIO()
    np.save(matrix, network.astype(np.float32))
    write_whole(scan.out / "current.npy", matrix.getvalue())
    write_whole(scan.out / "current.json", json.dumps(current).encode())


class Log:
    """volumes.csv and series.csv: a line a volume, written before the next is looked at; earlier ones are put aside.

    The system may keep what was written to itself for half a minute. volumes.csv can wait; series.csv is the scan.
    """

    def __init__(self, out: Path) -> None:
        for name in ("volumes", "series"):
            _put_aside(out / f"{name}.csv")
        self.volumes = open(out / "volumes.csv", "w", newline="")  # noqa: SIM115 (open as long as the scan lasts)
        self.series = open(out / "series.csv", "w", newline="")  # noqa: SIM115
        self._write(self.volumes, VOLUME_COLUMNS)
        _onto_disk(out)

    def begin(self, regions: Sequence[str]) -> None:
        self._write(self.series, regions)

    def keep(self, means: np.ndarray) -> None:
        """The region means of a volume, for good."""
        self._write(self.series, [repr(float(value)) for value in means])
        os.fsync(self.series.fileno())

    def volume(self, arrival: Arrival, edges: int, mean_lam: float, latency: float) -> None:
        row = (arrival.number, arrival.path.name, "ok", edges, f"{mean_lam:.6g}", f"{1000 * latency:.1f}")
        self._write(self.volumes, row)

    def trouble(self, kind: str, words: str, arrival: Arrival | None) -> None:
        number, name = (arrival.number, arrival.path.name) if arrival else ("", words.split(":")[0])
        self._write(self.volumes, (number, name, kind, "", "", ""))

    @staticmethod
    def _write(file: TextIO, row: Sequence[Any]) -> None:
        csv.writer(file).writerow(row)
        file.flush()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.volumes.close()
        self.series.close()


def _onto_disk(folder: Path) -> None:
    """The names in a folder, where a system can do that: a file without its name is lost too."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _put_aside(path: Path) -> None:
    """A scan that ended badly may have nothing but its series.csv."""
    if path.exists() and path.stat().st_size:
        number = next(k for k in count(1) if not path.with_stem(f"{path.stem}-{k}").exists())
        path.rename(path.with_stem(f"{path.stem}-{number}"))


def finish(
    folder: Path,
    scan: Scan,
    reader: RegionReader,
    coords: np.ndarray | None,
    events: list[Event],
    design: Design,
    model: Model,
) -> None:
    """What a recorded run leaves, and the model, to be continued."""
    assert reader.fitted is not None and scan.kept is not None
    places = reader.fitted.centres if coords is None else coords
    kept: list[Event] = []
    if design.tr is not None:
        length = (scan.numbers[-1] - scan.numbers[0] + 1) * design.tr
        kept, words = within(events, design.start, design.start + length)
        scan.notes += [words] if words else []
        scan.notes += never_seen(kept, scan.clock(design), design.delay, design.tr)
    scan.model.save(scan.out / "model.safetensors")
    # A scan that was shorter than someone thought is no reason to lose its report.
    at, words = moments_within(design.at, [scan.clock(design)], design.tr is not None)
    scan.notes += [words] if words else []
    design = replace(design, at=at)
    followed = scan.followed(folder.absolute().name, design, places[scan.kept], kept)
    write_group(scan.out, Group((followed,), design), {**described(model), "watched": str(folder)})
