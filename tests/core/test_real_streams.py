"""The optimality conditions on real streams: constant columns, collinear sensors, mostly zeros."""

import csv
import gzip

import numpy as np
import pytest

from oracles.replay import Stream, learner, run, violations
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1
from streamlasso.tuners import LogRMS


def table(path, rows):
    with gzip.open(path, "rt") as file:
        reader = csv.DictReader(file)
        return [row for row, _ in zip(reader, range(rows), strict=False)]


def elec2(folder, n):
    rows = table(folder / "elec2" / "elec2.csv.gz", n)
    names = [name for name in rows[0] if name != "class"]
    return Stream([[float(row[name]) for name in names] for row in rows], [row["class"] == "UP" for row in rows])


def air_quality(folder, n):
    rows = table(folder / "air_quality" / "air_quality.csv.gz", 2 * n)
    names = [name for name in rows[0] if name.startswith("PT08") or name in ("T", "RH", "AH")]
    whole = [row for row in rows if all(row[name] for name in [*names, "C6H6(GT)"])][:n]
    return Stream([[float(row[name]) for name in names] for row in whole], [float(row["C6H6(GT)"]) for row in whole])


def flu_counts(folder, n):
    rows = table(folder / "flu_counts" / "flu_counts.csv.gz", n + 1)
    counts = np.array([[float(value) for value in list(row.values())[2:]] for row in rows])
    busiest = counts.sum(axis=0).argmax()
    return Stream(np.log1p(counts[:-1]), counts[1:, busiest])


@pytest.mark.parametrize("memory", [Forgetting(0.97), Window(40)], ids=str)
@pytest.mark.parametrize("source,family", [(air_quality, Gaussian()), (elec2, Binomial()), (flu_counts, Poisson())])
def test_optimal_after_every_row(source, family, memory, shared_data):
    stream = source(shared_data, 150)
    setting = dict(family=family, memory=memory, penalty=L1(), history=30)
    result = run(learner(stream, tuner=LogRMS(), **setting), stream)
    tolerance = 1e-9 if type(family) is Gaussian else 1e-7
    for t, problem, violation in violations(stream, result, **setting):
        assert violation <= tolerance, f"row {t}, {result.status[t]}"
        assert abs(result.lam_max[t] - problem.lam_max) <= tolerance * problem.unit, f"row {t}"
