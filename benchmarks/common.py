"""What the benchmarks share: the paper's stream, and a table that is printed and saved."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from streamlasso.simulate import SPARSE, simulate

RESULTS = Path(__file__).parent / "results"
REGIME = 500


def batches(p: int, n_rows: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The paper's simulation, n_rows at a time, without end; new sparse coefficients every REGIME rows."""
    rng = np.random.default_rng(seed)
    n_regimes = n_rows // REGIME
    while True:
        stream = simulate(rng, n_features=p, lengths=[REGIME] * n_regimes, densities=[SPARSE] * n_regimes)
        yield np.ascontiguousarray(stream.X), stream.y


def report(name: str, table: list[dict[str, str]]) -> None:
    """Print the table and save it as results/<name>.csv."""
    width = {column: max(len(column), *(len(row[column]) for row in table)) for column in table[0]}
    for row in [dict(zip(width, width, strict=True)), *table]:
        print("  ".join(row[column].ljust(width[column]) for column in width).rstrip())
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, width)
        writer.writeheader()
        writer.writerows(table)
