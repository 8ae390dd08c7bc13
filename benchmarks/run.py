"""`streamlasso run`: from start to report on elec2, and on a file far larger than the memory it may take.

    python benchmarks/run.py [--rows 5000000] [--features 20] [--data ../shared/data]

Writes the large file into a temporary directory (1 GB at five million rows), reads it with pyarrow alone, reads it as
`run` does (blocks, kinds, encoding; no learning), then runs the command in a process of its own, whose largest resident
size the operating system reports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pyarrow import csv

from streamlasso.data.encoding import detect_encoder
from streamlasso.data.sources import BadRows, open_source

PIECE = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--data", type=Path, help="the directory with the streams' folders; left out: no elec2")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.data:
            elec2 = arguments.data / "elec2" / "elec2.csv.gz"
            seconds, size = measured(elec2, "class", Path(folder, "elec2"))
            print(f"| elec2, 45,312 rows, start to report | {seconds:.1f} s | {size:.0f} MB |", flush=True)
        large = Path(folder, "large.csv")
        write_large(large, arguments.rows, arguments.features)
        n, megabytes = arguments.rows, large.stat().st_size / 1e6
        print(f"{n:,} rows x {arguments.features} features, {megabytes:,.0f} MB of CSV", flush=True)
        for name, read in (("pyarrow's open_csv alone", read_alone), ("read as run reads", read_as_run)):
            seconds = timed(read, large)
            print(f"| {name} | {seconds:.1f} s | {n / seconds:,.0f} rows per second |", flush=True)
        seconds, size = measured(large, "y", Path(folder, "out"))
        print(f"| run | {seconds:.1f} s | {n / seconds:,.0f} rows per second, at most {size:.0f} MB |", flush=True)


def write_large(path: Path, n_rows: int, n_features: int) -> None:
    """A linear stream whose coefficients change four times."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join([f"x{j}" for j in range(n_features)] + ["y"]) + "\n")
        for start in range(0, n_rows, PIECE):
            X = rng.normal(size=(min(PIECE, n_rows - start), n_features))
            beta = np.where(np.arange(n_features) % 5 == start * 5 // n_rows, 1.0, 0.0)
            np.savetxt(file, np.column_stack([X, X @ beta + rng.normal(size=len(X))]), fmt="%.6f", delimiter=",")


def read_alone(path: Path) -> int:
    return sum(batch.num_rows for batch in csv.open_csv(path, csv.ReadOptions(use_threads=False)))


def read_as_run(path: Path) -> int:
    source = open_source(str(path), BadRows())
    n, encoder = 0, None
    for block in source.blocks():
        if encoder is None:
            encoder = detect_encoder(block.rows, "y")
        cells = encoder.read(block.rows)
        for start in range(0, len(cells), 256):
            n += len(encoder.encode(cells.part(slice(start, min(start + 256, len(cells))))).X)
    return n


def timed(read: object, path: Path) -> float:
    start = time.perf_counter()
    read(path)  # type: ignore[operator]
    return time.perf_counter() - start


def measured(data: Path, target: str, out: Path) -> tuple[float, float]:
    """Seconds, and the largest resident size in megabytes, of the command in its own process."""
    command = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())", "run", str(data)]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--target", target, "--out", str(out), "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the run ended with status {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


if __name__ == "__main__":
    main()
