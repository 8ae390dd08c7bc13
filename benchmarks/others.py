"""Public streams: the data sets and generators of river and scikit-learn, and a few simulations.

    python benchmarks/others.py [--rows 1000] [--jobs 2] [--peers quick] [--defaults-only]

The default against every peer at its default and at the best of its settings in hindsight, also with the last three
responses among the features (+lags); loss as on the leaderboard: clipped, after the 50th row, relative to the running
mean. "Above" is by what share of our loss the best peer's is above it, ± one paired standard error over blocks of rows;
a stream is a draw where that is less than two. Most of these do not change, many are not linear, some have
almost no noise: they show what the twelve streams of the leaderboard do not.
"""

import argparse
import datetime
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from operator import eq

import numpy as np
from river import datasets as river_data
from river.datasets import synth
from sklearn import datasets as sklearn_data

from common import report
from lags import LAGGED, entries_and_lagged
from streamlasso._jobs import completed
from streamlasso.bench.entries import GROUPS, OURS, Entry
from streamlasso.bench.leaderboard import score
from streamlasso.bench.results import Result
from streamlasso.bench.summary import above_ours
from streamlasso.bench.task import Task

#: Of the grid of scikit-learn's SGD every ninth setting: river's has the same steps and penalties at a tenth of the
#: time.
SGD_STEP = 9
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
    yield as_task("only volatility", "gaussian", rng.normal(size=(n, 10)), volatility * rng.normal(size=n))
    yield lagged("random walk", np.cumsum(rng.normal(size=n)), 5)
    yield lagged("growing sine", np.sin(np.arange(n) / 10) * (1 + t) + 0.1 * rng.normal(size=n), 20)


def tasks(n: int) -> list[Task]:
    return [*river_tasks(n), *generated_tasks(n), *sklearn_tasks(), *simulated_tasks(n)]


def results(task: Task, peers: str, defaults_only: bool) -> dict[str, list[Result]]:
    """The results of each method, the default first."""
    warnings.simplefilter("ignore")
    by_method: dict[str, list[Entry]] = {}
    for entry in entries_and_lagged(task.family):
        if entry.method in GROUPS[peers] or (peers == "all" and entry.method.endswith(LAGGED)):
            by_method.setdefault(entry.method, []).append(entry)
    return {
        method: [score(entry, task, LIMIT) for entry in group[:: len(group) if defaults_only else step(method)]]
        for method, group in by_method.items()
    }


def step(method: str) -> int:
    """Every so many settings of a grid are tried: of ours and of ondil, which is slow, the first one, the default."""
    method = method.removesuffix(LAGGED)
    return 100 if method in (OURS, "ondil") else SGD_STEP if method == "sklearn-sgd" else 1


def best_of(found: dict[str, list[Result]]) -> Result | None:
    """The lowest loss of all; None where there is none."""
    return min(
        (each for group in found.values() for each in group if each.status == "ok"),
        key=lambda each: each.relative,
        default=None,
    )


def compare(task: Task, peers: str, defaults_only: bool) -> dict[str, str]:
    """One line of the table: the default, and the best peers on a stream."""
    found = results(task, peers, defaults_only)
    [ours], [persistence] = found.pop(OURS), found.pop("persistence")
    with_lags = found.pop(OURS + LAGGED, [None])[0]
    del found["running-mean"]
    plain = {method: group for method, group in found.items() if not method.endswith(LAGGED)}
    lagged = {method: group for method, group in found.items() if method.endswith(LAGGED)}
    untuned = {method: group[:1] for method, group in found.items()}
    linear = {method: group for method, group in found.items() if method in GROUPS["quick"]}
    return {
        "stream": task.name,
        "family": task.family,
        "rows x features": " x ".join(map(str, task.X.shape)),
        "default": f"{ours.relative:.3f}",
        "default+lags": "-" if with_lags is None else f"{with_lags.relative:.3f}",
        **columns("linear peer", ours, best_of(linear)),
        **columns("peer", ours, best_of(plain)),
        **columns("peer+lags", ours, best_of(lagged)),
        **columns("of all", ours, best_of(found)),
        **columns("of all at their defaults", ours, best_of(untuned)),
        "persistence": f"{persistence.relative:.3f}",
    }


def columns(title: str, ours: Result, best: Result | None) -> dict[str, str]:
    """The best one, and by how much it is above ours."""
    name = f"best {title}"
    if best is None:
        return {name: "-", f"above, {title}": "-"}
    share, error = above_ours(vars(ours), vars(best))
    return {name: f"{best.relative:.3f} {best.method}", f"above, {title}": f"{100 * share:+.1f} ± {100 * error:.1f} %"}


def count_as_good(table: list[dict[str, str]], title: str) -> str:
    """On how many streams the default is as good, to three digits; and on how many not worse by two standard errors."""
    shown = [line for line in table if line[f"best {title}"] != "-"]
    as_good = sum(float(line["default"]) <= float(line[f"best {title}"].split()[0]) for line in shown)
    pairs = [line[f"above, {title}"].removesuffix(" %").split(" ± ") for line in shown]
    not_worse = sum(float(share) >= -2 * float(error) for share, error in pairs)
    return f"as good as the best {title}: {as_good} of {len(shown)}; not worse by two standard errors: {not_worse}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--peers", choices=GROUPS, default="all")
    parser.add_argument("--defaults-only", action="store_true", help="each method with its default: no grids")
    options = parser.parse_args()
    run = partial(compare, peers=options.peers, defaults_only=options.defaults_only)
    streams = tasks(options.rows)
    table = []
    for n_done, (_, line) in enumerate(completed(run, streams, options.jobs), 1):
        print(f"{n_done} of {len(streams)}:", " | ".join(line.values()), flush=True)
        table.append(line)
    order = [task.name for task in streams]
    table.sort(key=lambda line: order.index(line["stream"]))
    report("others", table)
    for title in ("linear peer", "peer", "peer+lags", "of all", "of all at their defaults"):
        print(count_as_good(table, title))


if __name__ == "__main__":
    main()
