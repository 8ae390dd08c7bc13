"""What is written after every volume of a scan in progress.

series.csv : the region means, on disk before the volume is reported, so that after a crash
    `streamlasso network series.csv` learns the scan again
current.json : the network after the last volume, as a list of edges
volumes.csv : every volume and every problem, with the latency
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from streamlasso._csv import write_row
from streamlasso._files import sync_directory, write_whole
from streamlasso.network.estimator import sorted_edges
from streamlasso.network.imaging.arrivals import Arrival
from streamlasso.network.scan import Scan

VOLUME_COLUMNS = ("volume", "file", "status", "edges", "mean_lam", "latency_ms")


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
