"""Intervals: coverage in all and in stretches, and pinball loss against river's jackknife on the same predictions.

One step ahead, on the development streams, the paper's simulation and noise that changes; the first 50 rows do not
count. Error bars of the ratio: the standard error over 20 blocks of rows. Where the noise is known, also the CRPS over
that of a normal distribution with this noise around the same predictions.

ondil's online distributional regression (a lasso for the mean; normal, and Student's t) is slow, 15 to 200 ms per row,
so it is run on the first --ondil rows of the Gaussian streams: fitted to the first 100, then row by row, without
forgetting and with a factor of .99; the better of both in hindsight counts.

Classes: the expected calibration error (ten bins) and the log loss, beside those of river's logistic regression.
"""

import argparse
import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scoringrules
from river import linear_model, preprocessing, stats
from scipy.stats import norm

from common import report
from streamlasso import RAPRegressor, progressive
from streamlasso.simulate import SPARSE, simulate
from streams import load_task

#: Rows before the first interval, rows that do not count, rows in a stretch.
FIRST, BURN, STRETCH, N_BLOCKS = 2, 50, 500, 20
ENDS = {0.8: (0.1, 0.9), 0.9: (0.05, 0.95), 0.95: (0.025, 0.975)}
LEVELS = sorted({level for ends in ENDS.values() for level in ends} | set(np.arange(1, 20) / 20))
CLASSES = ("elec2", "ozone8h", "usenet1", "senate_101_109")
#: The noise of the simulated stream.
KNOWN = {"the paper's simulation": 1.0}
N_BINS = 10
#: Rows that ondil is fitted to first, and its rates of forgetting.
ONDIL_START, ONDIL_FORGET = 100, (0.0, 0.01)


def streams(data: Path | None, most: int) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    n = most // 500
    stream = simulate(rng, lengths=[500] * n, densities=[SPARSE] * n)
    yield "the paper's simulation", "gaussian", stream.X, stream.y
    eta = (stream.X * stream.beta).sum(axis=1)
    size = 2.0 ** (np.arange(len(eta)) // 500 % 3)
    yield "noise that doubles", "gaussian", stream.X, eta + size * rng.normal(size=len(eta))
    yield "heavy tails (t2)", "gaussian", stream.X, eta + rng.standard_t(2, size=len(eta))
    for name in ("bike_sharing", "air_quality", "frm_returns", "exchange_rate") if data else ():
        task = load_task(name, data, most)
        yield name, "gaussian", task.X, task.y
    for name in ("bike_sharing", "flu_counts") if data else ():
        task = load_task(name, data, most)
        yield f"{name}, counts", "poisson", task.X, task.y
    mean = np.exp(0.3 * stream.X[:, :3].sum(axis=1))
    yield "counts of mean 1", "poisson", stream.X, rng.poisson(mean).astype(float)


def one_step(family: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prediction, quantiles and intervals of each row before it is learnt."""
    model, mean, quantiles = RAPRegressor(family), np.full(len(y), np.nan), np.full((len(y), len(LEVELS)), np.nan)
    ends = np.full((len(y), len(ENDS), 2), np.nan)
    for t in range(len(y)):
        row = slice(t, t + 1)
        if t > FIRST:
            mean[t], quantiles[t] = model.predict(X[row])[0], model.predict_quantiles(X[row], LEVELS)[0]
            ends[t] = [model.predict_interval(X[row], coverage)[0] for coverage in ENDS]
        model.partial_fit(X[row], y[row])
    return mean, quantiles, ends


def jackknife(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The ends of river's `conf.RegressionJackknife` at 90 %, around these predictions."""
    low, high, found = stats.Quantile(0.05), stats.Quantile(0.95), np.full((len(y), 2), np.nan)
    for t in range(len(y)):
        found[t] = mean[t] + np.array([low.get() or 0.0, high.get() or 0.0])
        low.update(y[t] - mean[t])
        high.update(y[t] - mean[t])
    return found


def pinball(y: np.ndarray, quantiles: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    error = y[:, None] - quantiles
    return np.where(error > 0, np.array(levels) * error, (np.array(levels) - 1) * error).mean(axis=1)


def lines(data: Path | None, most: int) -> Iterator[dict[str, str]]:
    logs = []
    for name, family, X, y in streams(data, most):
        mean, quantiles, intervals = (values[FIRST + 1 :] for values in one_step(family, X, y))
        line, y = {"stream": name}, y[FIRST + 1 :]
        for k, coverage in enumerate(ENDS):
            inside = ((y >= intervals[:, k, 0]) & (y <= intervals[:, k, 1]))[BURN:]
            line[f"{coverage:.0%}"] = f"{100 * inside.mean():.1f}"
            if coverage == 0.9:
                parts = [inside[i : i + STRETCH].mean() for i in range(0, len(inside) - STRETCH + 1, STRETCH)]
                line["90% in stretches"] = f"{100 * min(parts):.1f} to {100 * max(parts):.1f}" if parts else ""
        ours = pinball(y, quantiles[:, [LEVELS.index(0.05), LEVELS.index(0.95)]], (0.05, 0.95))[BURN:]
        theirs = pinball(y, jackknife(y, mean), (0.05, 0.95))[BURN:]
        ratio = ours.mean() / theirs.mean()
        blocks = np.array([part.mean() for part in np.array_split(ours - ratio * theirs, N_BLOCKS)])
        line["pinball / jackknife"] = f"{ratio:.3f} +- {blocks.std() / N_BLOCKS**0.5 / theirs.mean():.3f}"
        logs.append(np.log(ratio))
        line["CRPS / known noise"] = against_known(name, y, mean, quantiles)
        yield line
    empty = dict.fromkeys(["80%", "90%", "90% in stretches", "95%", "CRPS / known noise"], "")
    yield {"stream": "geometric mean", **empty, "pinball / jackknife": f"{np.exp(np.mean(logs)):.3f}"}


def ondil_quantiles(distribution: Any, forget: float, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The ends at 90 % of each row after the first ONDIL_START; features that do not vary in these make it all NaN."""
    from ondil.estimators import OnlineDistributionalRegression

    X = X[:, np.ptp(X[:ONDIL_START], axis=0) > 0]
    model = OnlineDistributionalRegression(distribution=distribution, method="lasso", forget=forget)
    found = np.full((len(y), 2), np.nan)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        model.fit(X[:ONDIL_START], y[:ONDIL_START])
        for t in range(ONDIL_START, len(y)):
            row = slice(t, t + 1)
            found[t] = np.ravel(model.predict_quantile(X[row], np.array([0.05, 0.95])))
            model.update(X[row], y[row])
    return found


def ondil_lines(data: Path | None, most: int) -> Iterator[dict[str, str]]:
    """The pinball loss of our ends at 90 % over ondil's."""
    from ondil.distributions import Normal, StudentT

    for name, family, X, y in streams(data, max(most, 1000)):
        if family != "gaussian":
            continue
        X, y = X[:most], y[:most]
        scored = slice(ONDIL_START + BURN, None)
        quantiles = one_step(family, X, y)[1][scored][:, [LEVELS.index(0.05), LEVELS.index(0.95)]]
        ours, line = pinball(y[scored], quantiles, (0.05, 0.95)).mean(), {"stream": name}
        for label, distribution in (("normal", Normal), ("Student's t", StudentT)):
            line[label] = _best_ratio(ours, distribution, X, y, scored)
        yield line


def _best_ratio(ours: float, distribution: Any, X: np.ndarray, y: np.ndarray, scored: slice) -> str:
    found = []
    for forget in ONDIL_FORGET:
        try:
            ends = ondil_quantiles(distribution(), forget, X, y)[scored]
        except (ArithmeticError, RuntimeError, ValueError):
            continue
        found.append(pinball(y[scored], ends, (0.05, 0.95)).mean())
    found = [loss for loss in found if np.isfinite(loss)]
    return f"{ours / min(found):.3f}" if found else "fails"


def against_known(name: str, y: np.ndarray, mean: np.ndarray, quantiles: np.ndarray) -> str:
    """The CRPS over that of a normal distribution with the known noise around the same predictions."""
    if name not in KNOWN:
        return ""
    known = mean[:, None] + KNOWN[name] * norm.ppf(LEVELS)
    ours, theirs = (scoringrules.crps_quantile(y, each, np.array(LEVELS))[BURN:].mean() for each in (quantiles, known))
    return f"{ours / theirs:.3f}"


def calibration_error(y: np.ndarray, p: np.ndarray) -> float:
    bins = np.minimum((N_BINS * p).astype(int), N_BINS - 1)
    return float(np.abs(np.bincount(bins, y - p, N_BINS)).sum() / len(y))


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    return float(-np.log(np.clip(np.where(y > 0, p, 1 - p), 1e-12, 1)).mean())


def logistic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probabilities by river's logistic regression, each before its row."""
    model, found = preprocessing.StandardScaler() | linear_model.LogisticRegression(), np.empty(len(y))
    for t, row in enumerate(X.tolist()):
        x = dict(enumerate(row))
        found[t] = model.predict_proba_one(x).get(True, 0.5)
        model.learn_one(x, bool(y[t]))
    return found


def class_lines(data: Path, most: int) -> Iterator[dict[str, str]]:
    for name in CLASSES:
        task = load_task(name, data, most)
        y, ours = task.y[1:], progressive(RAPRegressor("binomial"), task.X, task.y)["prediction"][1:]
        theirs = logistic(task.X, task.y)[1:]
        errors = [calibration_error(y, p) for p in (ours, theirs)]
        numbers = [*errors, errors[0] / errors[1], log_loss(y, ours), log_loss(y, theirs)]
        names = ("calibration error", "river's", "ratio", "log loss", "river's log loss")
        yield {"stream": name, "rows": f"{len(y):,}", **{k: f"{v:.3f}" for k, v in zip(names, numbers, strict=True)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with the development streams")
    parser.add_argument("--rows", type=int, default=3000, help="at most, of each stream")
    parser.add_argument("--ondil", type=int, default=0, help="rows of each stream for ondil; 0: it is not run")
    options = parser.parse_args()
    if options.ondil:
        return report("against ondil", list(ondil_lines(options.data, options.ondil)))
    report("intervals", list(lines(options.data, options.rows)))
    if options.data is not None:
        report("calibration", list(class_lines(options.data, 2 * options.rows + 100)))


if __name__ == "__main__":
    main()
