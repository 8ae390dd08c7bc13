"""Intervals: coverage in all and in stretches, and pinball loss against river's jackknife on the same predictions.

One step ahead, on the numeric development streams, the paper's simulation and noise that changes; the first 50 rows do
not count. Error bars of the ratio: the standard error over 20 blocks of rows.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from river import stats

from common import report
from streamlasso import RAPRegressor
from streamlasso.simulate import SPARSE, simulate
from streams import load_task

BURN, STRETCH, N_BLOCKS = 50, 500, 20
ENDS = {0.8: (0.1, 0.9), 0.9: (0.05, 0.95), 0.95: (0.025, 0.975)}
LEVELS = sorted({level for ends in ENDS.values() for level in ends} | {0.5})


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


def one_step(family: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prediction and quantiles of each row before it is learnt."""
    model, mean, quantiles = RAPRegressor(family), np.full(len(y), np.nan), np.full((len(y), len(LEVELS)), np.nan)
    for t in range(len(y)):
        row = slice(t, t + 1)
        if t > 1:
            mean[t], quantiles[t] = model.predict(X[row])[0], model.predict_quantiles(X[row], LEVELS)[0]
        model.partial_fit(X[row], y[row])
    return mean, quantiles


def jackknife(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The ends of river's `conf.RegressionJackknife` at 90 %, around these predictions."""
    low, high, found = stats.Quantile(0.05), stats.Quantile(0.95), np.full((len(y), 2), np.nan)
    for t in range(2, len(y)):
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
        mean, quantiles = one_step(family, X, y)
        line, y, mean, quantiles = {"stream": name}, y[2:], mean[2:], quantiles[2:]
        for coverage, ends in ENDS.items():
            low, high = (quantiles[:, LEVELS.index(level)] for level in ends)
            inside = ((y >= low) & (y <= high))[BURN:]
            line[f"{coverage:.0%}"] = f"{100 * inside.mean():.1f}"
            if coverage == 0.9:
                parts = [inside[i : i + STRETCH].mean() for i in range(0, len(inside) - STRETCH + 1, STRETCH)]
                line["90% in stretches"] = f"{100 * min(parts):.1f} to {100 * max(parts):.1f}"
        ours = pinball(y, quantiles[:, [LEVELS.index(0.05), LEVELS.index(0.95)]], (0.05, 0.95))[BURN:]
        theirs = pinball(y, jackknife(y, mean), (0.05, 0.95))[BURN:]
        ratio = ours.mean() / theirs.mean()
        blocks = np.array([part.mean() for part in np.array_split(ours - ratio * theirs, N_BLOCKS)])
        line["pinball / jackknife"] = f"{ratio:.3f} +- {blocks.std() / N_BLOCKS**0.5 / theirs.mean():.3f}"
        logs.append(np.log(ratio))
        yield line
    empty = dict.fromkeys(["80%", "90%", "90% in stretches", "95%"], "")
    yield {"stream": "geometric mean", **empty, "pinball / jackknife": f"{np.exp(np.mean(logs)):.3f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with the development streams")
    parser.add_argument("--rows", type=int, default=3000, help="at most, of each stream")
    options = parser.parse_args()
    report("intervals", list(lines(options.data, options.rows)))


if __name__ == "__main__":
    main()
