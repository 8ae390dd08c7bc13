"""Speed: streamlasso against its peers, on the paper's block design, in one run.

Every comparison has several rounds. In a round each model in turn learns the same 2,000 rows and continues from its
last round; what is measured is the CPU time of the process per row, on one thread. The ratio is the median over the
rounds, and so are the times beside it. The first round is a warm-up, untimed.
"""

import argparse
import gc
import itertools
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from time import process_time_ns

import numpy as np
import psutil
from ondil.estimators import OnlineLasso
from river.linear_model import LinearRegression, LogisticRegression
from scipy.linalg.blas import dsyr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor
from sklearn.linear_model._cd_fast import enet_coordinate_descent_gram
from threadpoolctl import threadpool_limits

import streamlasso.river
from common import batches, report
from streamlasso import RAPRegressor
from streamlasso.tuners import Fixed, LogRMS, Mixture

R = 0.99
LAM = 0.1
MAX_SWEEPS = 10_000
#: Rows per round; fewer for peers that take milliseconds per row.
ROWS, FEW_ROWS = 2_000, 500
TUNERS = {"LogRMS()": LogRMS(), f"Fixed({LAM})": Fixed(LAM)}

Line = dict[str, str]
#: Learns the rows of a round; returns the measured nanoseconds of CPU time.
Contender = Callable[[np.ndarray, np.ndarray], int]


# --- rounds ---------------------------------------------------------------------------------------------------------


def time_both(ours: Contender, theirs: Contender, p: int, rounds: int, n_rows: int = ROWS) -> np.ndarray:
    """Microseconds per row of both, one line per round."""
    stream = batches(p, n_rows)
    times = [[ours(X, y), theirs(X, y)] for X, y in itertools.islice(stream, rounds + 1)]
    return np.array(times[1:]) / n_rows / 1e3


def timed(action: Callable[[], object]) -> int:
    start = process_time_ns()
    action()
    return process_time_ns() - start


def in_batches(model: RAPRegressor) -> Contender:
    """All rows of the round in one call of partial_fit."""
    return lambda X, y: timed(lambda: model.partial_fit(X, y))


def one_at_a_time(model: object) -> Contender:
    """One call of partial_fit per row."""

    def learn(X: np.ndarray, y: np.ndarray) -> None:
        for i in range(len(X)):
            model.partial_fit(X[i : i + 1], y[i : i + 1])

    return lambda X, y: timed(lambda: learn(X, y))


def faster(what: str, p: int, times: np.ndarray, target: float) -> Line:
    """A line for a peer that should be at least `target` times slower."""
    ratio = np.median(times[:, 1] / times[:, 0])
    return line(what, p, times, f"{ratio:.1f} times faster", f">= {target:g}", ratio >= target)


def at_most(what: str, p: int, times: np.ndarray, target: float | None) -> Line:
    """A line for a peer whose cost, times `target`, is our limit; None is no limit."""
    ratio = np.median(times[:, 0] / times[:, 1])
    if target is None:
        return line(what, p, times, f"{ratio:.2f} of its cost")
    return line(what, p, times, f"{ratio:.2f} of its cost", f"<= {target:.3g}", ratio <= target)


def line(what: str, p: int, times: np.ndarray, ratio: str, target: str = "", met: bool | None = None) -> Line:
    ours, theirs = np.median(times, axis=0)
    return {
        "what": what,
        "p": str(p),
        "ours": f"{ours:.2f} us",
        "theirs": f"{theirs:.2f} us",
        "ratio": ratio,
        "target": target,
        "met": "" if met is None else "yes" if met else "NO",
    }


# --- scikit-learn's coordinate descent on the same Gram matrices ----------------------------------------------------


class CoordinateDescent:
    """`enet_coordinate_descent_gram`, warm-started after each row; its Gram matrix is not timed.

    `model` learns the same stream, untimed, and gives the lam of each row.
    """

    def __init__(self, model: RAPRegressor, p: int) -> None:
        self.model = model
        self.beta = np.zeros(p)
        self.rng = np.random.RandomState(0)
        self.omega = 0.0
        self.mean = np.zeros(p + 1)
        self.scatter = np.zeros((p + 1, p + 1))

    def __call__(self, X: np.ndarray, y: np.ndarray) -> int:
        lams = self._lams(X, y)
        total = 0
        for row, lam in zip(np.column_stack([X, y]), lams, strict=True):
            self._take(row)
            scale, Q, q, spread = self._problem()
            beta = self.beta * scale
            start = process_time_ns()
            beta, _, _, _ = enet_coordinate_descent_gram(beta, lam, 0.0, Q, q, spread, MAX_SWEEPS, 1e-7, self.rng)
            total += process_time_ns() - start
            self.beta = beta / scale
        return total

    def _lams(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """lam after each row."""
        lams = []
        for i in range(len(X)):
            lams.append(self.model.partial_fit(X[i : i + 1], y[i : i + 1]).lambda_)
        return np.nan_to_num(lams)

    def _take(self, row: np.ndarray) -> None:
        self.omega = R * self.omega + 1
        d = row - self.mean
        self.mean += d / self.omega
        self.scatter = R * self.scatter + (1 - 1 / self.omega) * np.outer(d, d)

    def _problem(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Scales, standardised Gram matrix, its right-hand side, and a "y" of the right length."""
        S = self.scatter / self.omega
        scale = np.sqrt(np.diag(S)[:-1])
        scale[scale == 0] = 1
        Q = np.ascontiguousarray(S[:-1, :-1] / np.outer(scale, scale))
        return scale, Q, S[:-1, -1] / scale, np.sqrt(S[-1:, -1])

    def furthest(self) -> float:
        """The largest difference between coefficients of the two solutions."""
        return float(np.max(np.abs(self.beta - self.model.coef_)))


def against_coordinate_descent(rounds: int) -> Iterator[Line]:
    for p, target in ((20, 30), (100, 25)):
        for name, tuner in TUNERS.items():
            theirs = CoordinateDescent(RAPRegressor(memory=R, tuner=tuner), p)
            times = time_both(in_batches(RAPRegressor(memory=R, tuner=tuner)), theirs, p, rounds)
            assert theirs.furthest() < 1e-4, "the two do not solve the same problem"
            yield faster(f"{name} vs enet_coordinate_descent_gram", p, times, target)


# --- the others -----------------------------------------------------------------------------------------------------


def rank_one_update(p: int) -> Contender:
    """BLAS dsyr alone, in place, called from Python."""
    S = np.zeros((p, p), order="F")

    def learn(X: np.ndarray, y: np.ndarray) -> None:
        for x in X:
            dsyr(1.0, x, a=S, overwrite_a=1)

    return lambda X, y: timed(lambda: learn(X, y))


def against_rank_one_update(rounds: int) -> Iterator[Line]:
    for p, target in ((100, 4), (400, 6)):
        for name, tuner in TUNERS.items():
            times = time_both(in_batches(RAPRegressor(memory=R, tuner=tuner)), rank_one_update(p), p, rounds)
            yield at_most(f"{name} vs dsyr alone", p, times, target)


def on_dicts(model: object, predict: str = "predict_one") -> Contender:
    """Predict a row, then learn it."""

    def learn(dicts: list[dict[str, float]], y: list[float]) -> None:
        predict_one = getattr(model, predict)
        for x, target in zip(dicts, y, strict=True):
            predict_one(x)
            model.learn_one(x, target)

    def contest(X: np.ndarray, y: np.ndarray) -> int:
        names = [f"x{j}" for j in range(X.shape[1])]
        dicts = [dict(zip(names, row, strict=True)) for row in X.tolist()]
        targets = y.tolist()
        return timed(lambda: learn(dicts, targets))

    return contest


def against_river(rounds: int) -> Iterator[Line]:
    ours = on_dicts(streamlasso.river.RAPRegressor(memory=R, tuner=LogRMS()))
    times = time_both(ours, on_dicts(LinearRegression(l1=LAM)), 20, rounds)
    yield at_most("river face vs river's LinearRegression(l1)", 20, times, 1 / 6)


def against_sgd(rounds: int) -> Iterator[Line]:
    ours = one_at_a_time(RAPRegressor(memory=R, tuner=LogRMS()))
    times = time_both(ours, one_at_a_time(SGDRegressor(penalty="l1", alpha=LAM)), 20, rounds, FEW_ROWS)
    yield at_most("one row per call vs SGDRegressor.partial_fit", 20, times, 1 / 3)


class Ondil:
    """ondil's online lasso, one row at a time: it chooses lam from a path of 100 by an information criterion."""

    def __init__(self) -> None:
        self.model = OnlineLasso(forget=1 - R)
        self.fitted = False

    def __call__(self, X: np.ndarray, y: np.ndarray) -> int:
        if not self.fitted:
            self.model.fit(X, y)
            self.fitted = True
            X, y = X[:5], y[:5]  # it compiles at its first update: in the warm-up
        return timed(lambda: [self.model.update(X[i : i + 1], y[i : i + 1]) for i in range(len(X))])


def against_ondil(rounds: int) -> Iterator[Line]:
    times = time_both(in_batches(RAPRegressor(memory=R, tuner=LogRMS())), Ondil(), 20, rounds, FEW_ROWS)
    yield faster("batches vs ondil OnlineLasso", 20, times, 500)


# --- growth ---------------------------------------------------------------------------------------------------------


def cost_against_p(rounds: int) -> Iterator[Line]:
    for p in (10, 20, 50, 100, 200, 500, 1000):
        times = time_both(in_batches(RAPRegressor(memory=R, tuner=LogRMS())), rank_one_update(p), p, rounds)
        yield at_most("cost against p: LogRMS() vs dsyr alone", p, times, None)


#: Memories and penalties alone, and the default.
MIXTURES = {
    "Mixture(runs=0): 4 memories x 7 lams": (Mixture(runs=0), {20: None, 100: None}),
    "Mixture(), the default": (Mixture(), {20: 8.0, 100: None}),
}


def mixtures(rounds: int) -> Iterator[Line]:
    """Against one plain step."""
    for name, (tuner, targets) in MIXTURES.items():
        for p, target in targets.items():
            plain = in_batches(RAPRegressor(memory=R, tuner=LogRMS()))
            times = time_both(in_batches(RAPRegressor(tuner=tuner)), plain, p, rounds)
            yield at_most(f"{name} vs LogRMS()", p, times, target)


def default_against_rank_one_update(rounds: int) -> Iterator[Line]:
    for p, target in ((100, 30), (200, 35)):
        times = time_both(in_batches(RAPRegressor()), rank_one_update(p), p, rounds, FEW_ROWS)
        yield at_most("Mixture(), the default, vs dsyr alone", p, times, target)


def as_classes(learn: Contender) -> Contender:
    """The same rows, with the sign of the response as the class."""
    return lambda X, y: learn(X, (y > 0).astype(float))


def classes(rounds: int) -> Iterator[Line]:
    for p in (20, 100):
        theirs = on_dicts(LogisticRegression(l1=LAM), "predict_proba_one")
        ours = on_dicts(streamlasso.river.RAPClassifier(), "predict_proba_one")
        times = time_both(as_classes(ours), as_classes(theirs), p, rounds, FEW_ROWS)
        yield at_most("the default for classes vs river's LogisticRegression(l1)", p, times, 1.5)
    one, gaussian = (in_batches(RAPRegressor(family, memory=R, tuner=LogRMS())) for family in ("binomial", "gaussian"))
    times = time_both(as_classes(one), gaussian, 20, rounds)
    yield at_most("one logistic LogRMS() vs the Gaussian one", 20, times, 8)


def state(p: int = 100) -> Iterator[Line]:
    """What a checkpoint of the default holds."""
    X, y = next(batches(p, FEW_ROWS))
    model = RAPRegressor().partial_fit(X, y)
    n_bytes = len(model.learners_[0].pack())
    yield size("state of the default vs p^2 doubles", p, n_bytes, 8 * p * p, 8.0)


def memory(n_rows: int) -> Iterator[Line]:
    for p in (20, 100, 400, 1000):
        model = RAPRegressor(memory=R, tuner=LogRMS())
        budget = 8 * (3 * p * p + model.history * p)
        yield size("memory, at its peak, vs 3 p^2 + history p doubles", p, peak_of(model, p), budget, 1.0)
    model = RAPRegressor(memory=R, tuner=LogRMS())
    start = resident_after(model, 10_000)
    end = resident_after(model, n_rows - 10_000)
    yield size(f"RSS of the process, after {n_rows:,} rows vs after 10,000", 20, end, start, 1.001)


def peak_of(model: RAPRegressor, p: int) -> int:
    """The largest number of bytes that building the model and learning some rows take, without the rows."""
    X, y = next(batches(p, FEW_ROWS))
    gc.collect()
    tracemalloc.start()
    model.partial_fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def resident_after(model: RAPRegressor, n_rows: int) -> int:
    """Bytes that the process holds after n_rows more."""
    X, y = next(batches(20, FEW_ROWS))
    for _ in range(n_rows // FEW_ROWS):
        model.partial_fit(X, y)
    gc.collect()
    return psutil.Process().memory_info().rss


def size(what: str, p: int, ours: int, reference: int, target: float) -> Line:
    return {
        "what": what,
        "p": str(p),
        "ours": f"{ours / 2**20:.3f} MiB",
        "theirs": f"{reference / 2**20:.3f} MiB",
        "ratio": f"{ours / reference:.3f}",
        "target": f"<= {target:g}",
        "met": "yes" if ours <= target * reference else "NO",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, fewer rows")
    quick = parser.parse_args().quick
    rounds = 3 if quick else 11
    warnings.simplefilter("ignore", ConvergenceWarning)  # scikit-learn, on the rare row that needs MAX_SWEEPS
    gc.disable()  # it would run at random, in one model's turn
    with threadpool_limits(1):
        table = [
            *against_coordinate_descent(rounds),
            *against_rank_one_update(rounds),
            *against_river(rounds),
            *against_sgd(rounds),
            *against_ondil(rounds),
            *cost_against_p(rounds),
            *mixtures(rounds),
            *default_against_rank_one_update(rounds),
            *classes(rounds),
            *state(),
            *memory(100_000 if quick else 1_000_000),
        ]
    report("speed", table)


if __name__ == "__main__":
    main()
