"""Endurance: after a million rows the solution is as exact as at the start, and no memory has grown.

The optimality conditions are checked from the rows themselves, in extended precision: every row whose weight is above
1e-18, summed again. The violation is the largest of all p + 1 conditions (the intercept's is that the residuals have
mean zero), divided by lam_max.
"""

import argparse
import gc
import time
from itertools import islice

import numpy as np
import psutil

from common import batches, report
from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.memories import Forgetting, Window
from streamlasso.tuners import LogRMS

P = 20
START = 1_000
BATCH = 1_000
FORGOTTEN = 1e-18
LONG = 10_000
MEMORIES = [Forgetting(0.9), Forgetting(0.99), Forgetting(0.999), Forgetting(1.0), Window(200)]


def weights(memory: Forgetting | Window, n: int) -> np.ndarray:
    """The weights of the last rows of n, the newest last; those that are forgotten are left out."""
    if isinstance(memory, Window):
        return np.ones(min(n, memory.n))
    if memory.r == 1:
        return np.ones(n)
    age = np.arange(min(n, int(np.log(FORGOTTEN) / np.log(memory.r)) + 1))
    return np.longdouble(memory.r) ** age[::-1]


def violation(model: RAPRegressor, X: np.ndarray, y: np.ndarray) -> float:
    """The largest violation of the lasso's optimality conditions on the rows so far, divided by lam_max."""
    w = weights(model.memory, len(X)).astype(np.longdouble)
    w /= w.sum()
    X, y = X[-len(w) :].astype(np.longdouble), y[-len(w) :].astype(np.longdouble)
    centred = X - w @ X
    scale = np.sqrt(w @ centred**2)
    lam_max = np.max(np.abs((w * (y - w @ y)) @ centred) / scale)
    residual = y - model.intercept_ - X @ model.coef_.astype(np.longdouble)
    gradient = (w * residual) @ centred / scale
    sign = np.sign(model.coef_)
    excess = np.where(sign != 0, np.abs(gradient - model.lambda_ * sign), np.abs(gradient) - model.lambda_)
    return float(max(np.max(excess), abs(w @ residual)) / lam_max)


def magnitudes(model: RAPRegressor) -> tuple[float, float]:
    """The smallest and the largest number that the model holds, zeros left out; nan where one is not finite."""
    held = np.concatenate([np.abs(array, dtype=float).ravel() for array in model.learners_[0].state().values()])
    held = held[held != 0]
    return (held.min(), held.max()) if np.isfinite(held).all() else (np.nan, np.nan)


def resident() -> float:
    """MiB that the process holds."""
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20


def endure(memory: Forgetting | Window, X: np.ndarray, y: np.ndarray) -> dict[str, str]:
    model = RAPRegressor(memory=memory, tuner=LogRMS())
    model.partial_fit(X[:START], y[:START])
    at_start, before = violation(model, X[:START], y[:START]), resident()
    for i in range(START, len(X), BATCH):
        model.partial_fit(X[i : i + BATCH], y[i : i + BATCH])
    after = resident()
    smallest, largest = magnitudes(model)
    return {
        "memory": str(memory),
        "rows": f"{model.n_seen_:,}",
        "violation after 1,000": f"{at_start:.1e}",
        "at the end": f"{violation(model, X, y):.1e}",
        "smallest, largest held": f"{smallest:.1e}, {largest:.1e}",
        "RSS after 1,000": f"{before:.1f} MiB",
        "growth": f"{after - before:.2f} MiB",
    }


def endure_long(name: str, model: RAPRegressor | RAPClassifier, n_rows: int) -> dict[str, str]:
    """A stream that is never whole in memory: time per row and size, of the second piece and of the last."""
    times, sizes, violations = [], [], []
    for X, y in islice(batches(P, LONG), n_rows // LONG):
        begun = time.process_time()
        model.partial_fit(X, y if isinstance(model, RAPRegressor) else y > 0)
        times.append((time.process_time() - begun) / LONG)
        if len(times) == 2 or len(times) == n_rows // LONG:
            sizes.append(resident())
            if isinstance(model, RAPRegressor):
                violations.append(violation(model, X, y))
    return {
        "model": name,
        "rows": f"{model.n_seen_:,}",
        "us per row, after 20,000": f"{1e6 * times[1]:.2f}",
        "last": f"{1e6 * np.median(times[-5:]):.2f}",
        "violation, after 20,000 and last": ", ".join(f"{each:.1e}" for each in violations),
        "RSS": ", ".join(f"{each:.1f}" for each in sizes) + " MiB",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--long", action="store_true", help="ten million rows, and a million of classes by the default")
    given = parser.parse_args()
    n = 100_000 if given.quick else 1_000_000
    if given.long:
        one = RAPRegressor(memory=Forgetting(0.99), tuner=LogRMS())
        table = [endure_long("LogRMS", one, 10 * n), endure_long("default, classes", RAPClassifier(), n)]
        return report("endurance_long", table)
    X, y = next(batches(P, n))
    report("endurance", [endure(memory, X, y) for memory in MEMORIES])


if __name__ == "__main__":
    main()
