"""Public streams: the data sets and generators of river and scikit-learn, and a few simulations.

The default against every peer at its default and at the best of its settings in hindsight; loss as on the leaderboard:
clipped, after the 50th row, relative to the running mean. Most of these do not change, many are not linear, some have
almost no noise: they show what the twelve streams of the leaderboard do not.
"""

import argparse
import datetime
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from operator import eq

import numpy as np
from river import datasets as river_data
from river.datasets import synth
from sklearn import datasets as sklearn_data

from common import report
from streamlasso.bench.entries import BASELINES, DEFAULT, OURS, entries
from streamlasso.bench.leaderboard import score
from streamlasso.bench.task import Task

#: CPU seconds for one setting on one stream.
LIMIT = 60.0


def as_task(name: str, family: str, X: np.ndarray, y: np.ndarray) -> Task:
    X = np.asarray(X, dtype=float)
    X = np.ascontiguousarray(X[:, X.std(axis=0) > 0])
    return Task(name, family, X, np.asarray(y, dtype=float), [str(j) for j in range(X.shape[1])])


def numbers(row: dict) -> dict[str, float]:
    """The numbers of a row; a date becomes year, month and day."""
    found = {str(name): float(value) for name, value in row.items() if isinstance(value, (int, float, np.number))}
    for name, value in row.items():
        if isinstance(value, datetime.date):
            found |= {f"{name} year": value.year, f"{name} month": value.month, f"{name} day": value.toordinal()}
    return found


def from_river(name: str, family: str, rows: Iterable, n: int, response: Callable = float) -> Task:
    pairs = [(numbers(x), response(y)) for x, y in islice(rows, n)]
    names = sorted({name for x, _ in pairs for name in x})
    return as_task(name, family, [[x.get(name, 0.0) for name in names] for x, _ in pairs], [y for _, y in pairs])


def from_sklearn(name: str, family: str, load: Callable, response: Callable = lambda y: y, seed: int = 0) -> Task:
    """In an order drawn at random: some of these are sorted by class."""
    data = load()
    order = np.random.default_rng(seed).permutation(len(data.target))
    return as_task(name, family, data.data[order], response(data.target)[order])


def lagged(name: str, y: np.ndarray, n_lags: int) -> Task:
    """The next value from the last ones."""
    return as_task(name, "gaussian", np.lib.stride_tricks.sliding_window_view(y, n_lags)[:-1], y[n_lags:])


def river_tasks(n: int) -> Iterator[Task]:
    passengers = np.array([y for _, y in river_data.AirlinePassengers()], dtype=float)
    yield from_river("TrumpApproval", "gaussian", river_data.TrumpApproval(), n)
    yield from_river("ChickWeights", "gaussian", river_data.ChickWeights(), n)
    yield from_river("AirlinePassengers by date", "gaussian", river_data.AirlinePassengers(), n)
    yield lagged("AirlinePassengers by lags", passengers, 13)
    yield from_river("Phishing", "binomial", river_data.Phishing(), n)
    yield from_river("Bananas", "binomial", river_data.Bananas(), n)
    for kind in ("grass", "brickface"):
        yield from_river(f"ImageSegments, {kind}", "binomial", river_data.ImageSegments(), n, partial(eq, kind))
    yield from_river("SolarFlare", "poisson", river_data.SolarFlare(), n, lambda y: y["c-class-flares"])


def generated_tasks(n: int) -> Iterator[Task]:
    drift = partial(synth.ConceptDriftStream, position=n // 2, width=50, seed=1)
    yield from_river("FriedmanDrift", "gaussian", synth.FriedmanDrift("gra", (n // 3, 2 * n // 3), seed=1), n)
    yield from_river("Mv", "gaussian", synth.Mv(seed=1), n)
    yield from_river("Planes2D", "gaussian", synth.Planes2D(seed=1), n)
    plane = synth.Hyperplane(seed=1, n_features=20, n_drift_features=10, mag_change=0.01)
    yield from_river("Hyperplane", "binomial", plane, n)
    yield from_river("SEA", "binomial", drift(synth.SEA(0, seed=1), synth.SEA(3, seed=2)), n)
    yield from_river("Agrawal", "binomial", drift(synth.Agrawal(0, seed=1), synth.Agrawal(4, seed=1)), n)
    centres = synth.RandomRBFDrift(1, 1, n_centroids=10, change_speed=0.01, n_drift_centroids=5)
    yield from_river("RandomRBFDrift", "binomial", centres, n)
    yield from_river("Waveform, 0", "binomial", synth.Waveform(seed=1, has_noise=True), n, partial(eq, 0))
    digits = synth.LEDDrift(seed=1, noise_percentage=0.1, irrelevant_features=True, n_drift_features=4)
    yield from_river("LEDDrift, 3", "binomial", digits, n, partial(eq, 3))
    yield from_river("STAGGER", "binomial", synth.STAGGER(seed=1), n)


def sklearn_tasks() -> Iterator[Task]:
    yield from_sklearn("diabetes", "gaussian", sklearn_data.load_diabetes)
    yield from_sklearn("breast cancer", "binomial", sklearn_data.load_breast_cancer)
    yield from_sklearn("digits, 3", "binomial", sklearn_data.load_digits, partial(eq, 3))
    yield from_sklearn("wine, 1", "binomial", sklearn_data.load_wine, partial(eq, 1))


def simulated_tasks(n: int) -> Iterator[Task]:
    rng = np.random.default_rng(5)
    t = np.arange(n) / n
    X = rng.normal(size=(n, 30))
    eta = X[:, 0] * np.sin(6 * t) + X[:, 1] * (1 - 2 * t) + X[:, 2] * (t > 0.5)
    yield as_task("smooth drift, t noise", "gaussian", X, eta + rng.standard_t(3, n))
    yield as_task("smooth drift, counts", "poisson", X, rng.poisson(np.exp(0.5 + 0.5 * eta)))
    X = rng.standard_t(3, size=(n, 50))
    yield as_task("t features", "gaussian", X, X[:, :5].sum(axis=1) + 3 * rng.normal(size=n))
    volatility = np.exp(np.cumsum(0.05 * rng.normal(size=n)))
    yield as_task("nothing but volatility", "gaussian", rng.normal(size=(n, 10)), volatility * rng.normal(size=n))
    yield lagged("random walk", np.cumsum(rng.normal(size=n)), 5)
    yield lagged("growing sine", np.sin(np.arange(n) / 10) * (1 + t) + 0.1 * rng.normal(size=n), 20)


def tasks(n: int) -> list[Task]:
    return [*river_tasks(n), *generated_tasks(n), *sklearn_tasks(), *simulated_tasks(n)]


def compare(task: Task) -> dict[str, str]:
    """One line of the table: the default, and the best peers on a stream."""
    warnings.simplefilter("ignore")
    losses: dict[str, dict[str, float]] = {}
    for entry in entries(task.family):
        if entry.method not in (OURS, "ondil") or entry.setting == DEFAULT:
            losses.setdefault(entry.method, {})[entry.setting] = score(entry, task, LIMIT).relative
    ours = losses.pop(OURS)[DEFAULT]
    persistence = [losses.pop(method) for method in BASELINES][-1][DEFAULT]
    best = {method: np.nanmin(list(found.values())) for method, found in losses.items()}
    untuned = {method: next(iter(found.values())) for method, found in losses.items()}
    best_tuned, best_untuned = min(best, key=best.get), min(untuned, key=untuned.get)
    return {
        "stream": task.name,
        "family": task.family,
        "rows x features": " x ".join(map(str, task.X.shape)),
        "default": f"{ours:.3f}",
        "best peer in hindsight": f"{best[best_tuned]:.3f} {best_tuned}",
        "best peer at its default": f"{untuned[best_untuned]:.3f} {best_untuned}",
        "persistence": f"{persistence:.3f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    table = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(compare, tasks(options.rows)):
            print("done:", " | ".join(line.values()), flush=True)
            table.append(line)
    report("others", table)


if __name__ == "__main__":
    main()
