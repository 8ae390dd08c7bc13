"""A scanner's folder: every volume is learnt when it arrives, and the network is written; at the end the report."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from streamlasso._interruption import Interruption
from streamlasso._text import listed
from streamlasso.families import FAMILIES
from streamlasso.network.files import write_run
from streamlasso.network.group import Group
from streamlasso.network.imaging.arrivals import Arrival, Arrivals, Notice
from streamlasso.network.imaging.atlas import load_atlas, read_coords
from streamlasso.network.imaging.events import Event, clip_events, read_events, suspicious_events, unobserved_conditions
from streamlasso.network.imaging.folder_watch import FolderWatch, watch_arrivals
from streamlasso.network.imaging.regions import RegionReader
from streamlasso.network.imaging.volumes import VOLUME_SUFFIXES
from streamlasso.network.options import Design, Images, Model, Watching
from streamlasso.network.scan import Log, Scan, write_current

#: Problems of one kind that are printed; the others are only in volumes.csv.
MAX_PRINTED = 10


def watch(
    folder: Path,
    out: Path,
    images: Images,
    design: Design,
    model: Model,
    watching: Watching,
    show: Callable[[str], None],
) -> Scan:
    """Learn the volumes that arrive in `folder` until it is time to stop, or Ctrl-C; then write the report to `out`.

    show : prints a line
    """
    events = read_events(design.events) if design.events else []
    if images.atlas is None:
        raise ValueError("volumes need a label atlas: add --atlas ATLAS.nii.gz")
    _check_options(folder, design, model, events)
    reader = RegionReader(load_atlas(images.atlas, images.labels))
    coords = None if images.coords is None else read_coords(images.coords, reader.atlas.names)
    out.mkdir(parents=True, exist_ok=True)
    scan = Scan(reader.atlas.names, model.build())
    with Log(out) as log:
        session = _Session(scan, reader, out, log, show)
        show(f"watching {folder}; stop with Ctrl-C")
        for note in suspicious_events(design.events, events) if design.events else []:
            session.problem("events", note)
        _follow_folder(folder.absolute(), watching, session)
    n_notes = len(scan.notes)
    if not scan.numbers:
        raise ValueError(f"--watch {folder}: no volume could be learnt: {_reason(folder, watching, scan)}")
    scan.model.save(out / "model.safetensors")
    events = _events_within(scan, design, events)
    result = scan.result(folder.absolute().name, design, _places(scan, reader, coords), events)
    write_run(out, Group((result,), design), model, {"watched": str(folder)})
    for note in scan.notes[n_notes:]:
        show(f"! {note}")
    return scan


# --- before the scan --------------------------------------------------------------------------------------------------


def _check_options(folder: Path, design: Design, model: Model, events: Sequence[Event]) -> None:
    if not FAMILIES[model.family]().quadratic:
        raise ValueError(f"--family {model.family} is not for images, whose region means are gaussian: omit it")
    if not folder.is_dir():
        raise ValueError(f"--watch {folder}: no such folder: create it before the scanner writes to it")
    if events and design.tr is None:
        raise ValueError(f"{design.events}: events are in seconds, but the time between volumes is unknown: add --tr")


def _reason(folder: Path, watching: Watching, scan: Scan) -> str:
    """Why no volume was learnt."""
    others = [path.name for path in sorted(folder.iterdir()) if path.is_file()] if folder.is_dir() else []
    if scan.notes:
        return "; ".join(scan.notes)
    if not others:
        return "the folder is empty"
    suffixes = listed(VOLUME_SUFFIXES)
    return f"no file matches among {listed(others, 3)}: volumes are named {watching.pattern} and end in {suffixes}"


# --- during the scan --------------------------------------------------------------------------------------------------


def _follow_folder(folder: Path, watching: Watching, session: _Session) -> None:
    reader = session.reader
    arrivals = Arrivals(folder, reader, watching.patience, watching.pattern)
    with FolderWatch(folder) as folder_watch:
        for item in _until_stop(watch_arrivals(arrivals, folder_watch), watching, session.scan):
            session.handle(item)


def _until_stop(items: Iterator[Arrival | Notice | None], watching: Watching, scan: Scan) -> Iterator[Arrival | Notice]:
    """What arrives, until there are enough volumes, or none for too long, or Ctrl-C; a volume is always finished."""
    last = time.monotonic()
    with Interruption() as interruption:
        while not interruption.came:
            try:
                interruption.waiting = True
                item = next(items)
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


class _Session:
    """Learns, writes and prints what arrives."""

    def __init__(self, scan: Scan, reader: RegionReader, out: Path, log: Log, show: Callable[[str], None]) -> None:
        self.scan, self.reader, self.out, self.log, self.show = scan, reader, out, log, show
        self._counts: Counter[str] = Counter()

    def handle(self, item: Arrival | Notice) -> None:
        if isinstance(item, Notice):
            self.problem(item.kind, item.text)
        elif self._learn(item):
            self._write(item)

    def _learn(self, arrival: Arrival) -> bool:
        first, n_notes = not self.scan.numbers, len(self.scan.notes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reason = self.scan.learn(arrival)
        new_notes = self.scan.notes[n_notes:]
        for warning in caught:
            self.problem("warning", f"volume {arrival.number}: {warning.message}", arrival)
        if reason:
            self.problem("not a number", reason, arrival)
            return False
        if first:
            self.scan.notes[:0] = self.reader.notes
            for note in (*self.reader.notes, *new_notes):
                self.show(f"! {note}")
            self.log.start_series(self.scan.regions)
        return True

    def _write(self, arrival: Arrival) -> None:
        scan = self.scan
        self.log.save_means(arrival.reading.means[scan.kept])
        write_current(self.out, scan, arrival)
        latency = time.monotonic() - arrival.complete
        scan.latencies.append(latency)
        n_edges = int(scan.edges[-1].counts()[-1])
        self.log.volume(arrival, n_edges, scan.mean_lam, latency)
        lam = "no lam yet" if np.isnan(scan.mean_lam) else f"mean lam {scan.mean_lam:.3g}"
        self.show(
            f"volume {arrival.number}: {n_edges} edges, {lam}, {1000 * latency:.0f} ms after its file was complete"
        )

    def problem(self, kind: str, text: str, arrival: Arrival | None = None) -> None:
        """Log every problem, but print only the first few of a kind."""
        self.log.problem(kind, text, arrival)
        self._counts[kind] += 1
        if self._counts[kind] > MAX_PRINTED:
            return
        if self._counts[kind] == MAX_PRINTED:
            text += f". More problems of this kind ({kind}) are only listed in volumes.csv"
        self.scan.notes.append(text)
        self.show(f"! {text}")


# --- after the scan ---------------------------------------------------------------------------------------------------


def _events_within(scan: Scan, design: Design, events: Sequence[Event]) -> list[Event]:
    """The events that lie within the scan; a note on the others, not an error."""
    if design.tr is None:
        return []
    length = (scan.numbers[-1] - scan.numbers[0] + 1) * design.tr
    kept, clipped = clip_events(events, design.start, design.start + length)
    scan.notes += [clipped] if clipped else []
    scan.notes += unobserved_conditions(kept, scan.clock(design), design.delay, design.tr)
    return kept


def _places(scan: Scan, reader: RegionReader, coords: np.ndarray | None) -> np.ndarray:
    """The coordinates of the regions that were learnt: those given, else their centres."""
    assert reader.fitted is not None and scan.kept is not None
    return (reader.fitted.centres if coords is None else coords)[scan.kept]
