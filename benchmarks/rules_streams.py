"""The streams on which two builds of the default are compared (`rules.py`), or one with parts of itself (`ablate.py`).

A stream is a dict: its kind and name, family, X and y. Simulated ones also have `beta`, `regime` and the `floor`, the
loss of each row under the true coefficients. `follow` asks for the support of `selected_` after each row, `settings`
are those of the estimator, and `views` name the columns of each view of `Mixture(views=...)`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lags import with_lags
from streamlasso.bench.losses import BURN_IN, half_deviance
from streamlasso.bench.task import Task
from streamlasso.families import Binomial, Family, Gaussian, Poisson
from streamlasso.simulate import DENSE, SPARSE, Stream, simulate

#: The first rows of each real stream; draws of the Gaussian simulations; at most so many with nothing to learn.
ROWS, DRAWS, NULLS = 3000, 200, 20
#: A numeric feature has at least so many values, and bends at these quantiles of the rows whose loss does not count.
LEAST_VALUES, KNOTS = 10, (0.25, 0.5, 0.75)
#: Coefficients of counts: with those of the paper's simulation a count may be a million.
COUNTED = 0.25
#: Coefficients that drift are drawn anew after so many rows, and are on the line between two draws elsewhere.
DRIFT_ROWS, DRIFTS = 100, 4

# --- real ones --------------------------------------------------------------------------------------------------------


def tasks(data: Path, rows: int) -> Iterator[Task]:
    """The twelve development streams, and those of the folder `more`."""
    from streams import TASKS, load_task

    for name in TASKS:
        yield load_task(name, data, rows)
    for path in sorted((data / "more").glob("*.npz")):
        held = np.load(path)
        yield Task(path.stem, str(held["family"]), held["X"][:rows], held["y"][:rows].astype(float), [])


def as_given(data: Path, rows: int) -> Iterator[dict]:
    for task in tasks(data, rows):
        yield dict(name=task.name, family=task.family, X=task.X, y=task.y)


def with_views(data: Path, rows: int) -> Iterator[dict]:
    """Gaussian streams; the features as given, then lagged responses, then hinges."""
    for task in tasks(data, rows):
        if task.family == "gaussian":
            lagged, bent = with_lags(task).X, hinges(task.X)
            p, q = task.X.shape[1], lagged.shape[1]
            views = {"lags": list(range(p, q))}
            if bent.shape[1]:
                views["curves"] = list(range(q, q + bent.shape[1]))
            yield dict(name=task.name, family=task.family, X=np.hstack([lagged, bent]), y=task.y, views=views)


def hinges(X: np.ndarray) -> np.ndarray:
    """max(x - knot, 0). The knots are of the first rows, which no loss is taken of, so no prediction looks ahead."""
    columns = []
    for x, first in zip(X.T, X[:BURN_IN].T, strict=True):
        if len(np.unique(first)) > LEAST_VALUES:
            columns += [np.maximum(x - knot, 0.0) for knot in np.unique(np.quantile(first, KNOTS))]
    return np.column_stack(columns) if columns else np.empty((len(X), 0))


def from_others() -> Iterator[dict]:
    from others import tasks

    for task in tasks(2000):
        yield dict(name=task.name, family=task.family, X=task.X, y=task.y)


def bicycles(data: Path, rows: int) -> Iterator[dict]:
    from streams import load_task

    task = load_task("bike_sharing", data, rows)
    yield dict(name=task.name, family=task.family, X=task.X, y=task.y, follow=True)


# --- simulated ones ---------------------------------------------------------------------------------------------------


def simulated(name: str, stream: Stream, **more: object) -> dict:
    eta = np.einsum("ij,ij->i", stream.X, stream.beta)
    kept = dict(name=name, family=stream.family.name, X=stream.X, y=stream.y, beta=stream.beta, regime=stream.regime)
    return {**kept, "floor": half_deviance(stream.family.name, stream.y, stream.family.mean(eta)), **more}


def abrupt(draws: int, family: Family, **more: object) -> Iterator[dict]:
    """The paper's simulation with regimes of random length, in both orders."""
    orders = ((DENSE, SPARSE, DENSE), (SPARSE, DENSE, SPARSE))
    for seed in range(draws):
        rng = np.random.default_rng(1000 + seed)
        lengths = rng.integers(60, 151, 3)
        stream = simulate(rng, lengths=lengths, densities=orders[seed % 2], family=family)
        if family.name == "poisson":
            stream = redrawn(rng, stream, COUNTED * stream.beta)
        yield simulated(str(seed), stream, **more)


def redrawn(rng: np.random.Generator, stream: Stream, beta: np.ndarray) -> Stream:
    """The same rows with responses of other coefficients."""
    y = stream.family.sample(rng, np.einsum("ij,ij->i", stream.X, beta))
    return Stream(stream.X, y, beta, stream.regime, stream.family)


def drifting(draws: int) -> Iterator[dict]:
    """Every coefficient goes on a line from one draw to the next; which are not 0 stays."""
    for seed in range(draws):
        rng = np.random.default_rng(2000 + seed)
        stream = simulate(rng, lengths=(DRIFT_ROWS * DRIFTS,), densities=((DENSE, SPARSE)[seed % 2],))
        corners = rng.normal(size=(DRIFTS + 1, stream.X.shape[1])) * (stream.beta[0] != 0)
        part, row = np.divmod(np.arange(len(stream.y)), DRIFT_ROWS)
        share = (row / DRIFT_ROWS)[:, None]
        beta = (1 - share) * corners[part] + share * corners[part + 1]
        yield simulated(str(seed), redrawn(rng, stream, beta))


def stationary(draws: int, n: int, densities: Sequence[float], **more: object) -> Iterator[dict]:
    for seed in range(draws):
        density = densities[seed % len(densities)]
        stream = simulate(np.random.default_rng(3000 + seed), lengths=(n,), densities=(density,))
        yield simulated(str(seed), stream, **more)


def nothing_to_learn(kind: str, draws: int, n: int = 2000) -> Iterator[dict]:
    for seed in range(min(draws, NULLS)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 15))
        flags = (rng.random((n, 15)) < 0.05).astype(float)
        rare = dict(family="binomial", X=flags, y=(rng.random(n) < 0.02).astype(float))
        normal = dict(family="gaussian", X=X, y=rng.normal(size=n))
        heavy = dict(family="gaussian", X=X, y=rng.standard_t(2, n))
        yield dict({"rare events": rare, "normal noise": normal, "heavy tails": heavy}[kind], name=str(seed))


# --- all of them ------------------------------------------------------------------------------------------------------

BARE = {"fit_intercept": False, "standardize": False}


def makers(data: Path | None, draws: int, rows: int) -> dict[str, Callable[[], Iterator[dict]]]:
    """What makes the streams of each kind; without data there are no real ones."""
    few = (draws + 1) // 2
    real = {
        "as given": partial(as_given, data, rows),
        "with views": partial(with_views, data, rows),
        "bike_sharing": partial(bicycles, data, rows),
    }
    made = {
        "simulation": partial(abrupt, draws, Gaussian(), follow=True),
        "simulation, bare": partial(abrupt, draws, Gaussian(), settings=BARE),
        "simulation, classes": partial(abrupt, few, Binomial(), follow=True),
        "simulation, counts": partial(abrupt, few, Poisson()),
        "drifting": partial(drifting, few),
        "stationary": partial(stationary, few, 400, (DENSE, SPARSE)),
        "2 of 20": partial(stationary, few, 500, (0.1,), follow=True),
        **{kind: partial(nothing_to_learn, kind, few) for kind in ("rare events", "normal noise", "heavy tails")},
    }
    return {**(real if data else {}), **made, "others": from_others}


#: All kinds but the last, which are asked for by name.
KINDS = tuple(makers(Path(), 1, 1))
USUAL = KINDS[:-1]


def all_streams(kinds: Sequence[str], data: Path | None, draws: int = DRAWS, rows: int = ROWS) -> list[dict]:
    found = [
        dict(stream, kind=kind)
        for kind, make in makers(data, draws, rows).items()
        if kind in kinds
        for stream in make()
    ]
    return [dict(stream, X=np.ascontiguousarray(stream["X"], dtype=float)) for stream in found]
