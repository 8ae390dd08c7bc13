"""Steadiness: how often a feature enters or leaves the set that is shown, per 1,000 rows, and F of the true support.

`selected_` is the model of the leading expert, `relevant_` the steady list. The paper's simulation (300 rows, 16 of 20
features matter, then 4, then 16), four stretches of 500 rows with few features each, and the bike rentals. Means over
draws, with standard errors of the differences.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common import report
from streamlasso import RAPRegressor
from streamlasso.simulate import SPARSE, simulate
from streams import load_task


def sets_of(family: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row, feature) of both sets, after each row but the first."""
    model = RAPRegressor(family).partial_fit(X[:1], y[:1])
    learner, selected, relevant = model.learners_[0], [], []
    for t in range(1, len(y)):
        learner.learn(X[t : t + 1], y[t : t + 1])
        selected.append(learner.selected().coef != 0)
        relevant.append(learner.relevant())
    return np.array(selected), np.array(relevant)


def moves(sets: np.ndarray) -> float:
    return 1000 * float(np.sum(sets[1:] != sets[:-1])) / len(sets)


def f_score(sets: np.ndarray, truth: np.ndarray) -> float:
    return 2 * float(np.sum(sets & truth)) / float(sets.sum() + truth.sum())


def drawn(n_draws: int) -> Iterator[tuple[str, list]]:
    yield "the paper's simulation", [simulate(np.random.default_rng(100 + seed)) for seed in range(n_draws)]
    few = dict(lengths=[500] * 4, densities=[SPARSE] * 4)
    yield "few features, 4 x 500 rows", [simulate(np.random.default_rng(s), **few) for s in range(max(n_draws // 5, 2))]


def lines(data: Path | None, n_draws: int, most: int) -> Iterator[dict[str, str]]:
    for name, streams in drawn(n_draws):
        found = []
        for stream in streams:
            both = sets_of("gaussian", stream.X, stream.y)
            truth = stream.beta[1:] != 0
            found.append([*map(moves, both), *(f_score(each, truth) for each in both)])
        yield line(name, np.array(found))
    if data is not None:
        task = load_task("bike_sharing", data, most)
        yield line("bike_sharing", np.array([[*map(moves, sets_of("poisson", task.X, task.y))]]))


def line(name: str, found: np.ndarray) -> dict[str, str]:
    mean = found.mean(axis=0)
    said = {"stream": name, "selected_": f"{mean[0]:.0f}", "relevant_": f"{mean[1]:.0f}"}
    said["ratio"] = f"{mean[1] / mean[0]:.2f}"
    if len(mean) == 2:
        return {**said, "F of selected_": "", "F of relevant_": "", "difference": ""}
    apart = found[:, 3] - found[:, 2]
    error = apart.std(ddof=1) / len(apart) ** 0.5
    said |= {"F of selected_": f"{mean[2]:.3f}", "F of relevant_": f"{mean[3]:.3f}"}
    return {**said, "difference": f"{apart.mean():+.3f} +- {error:.3f}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with the development streams")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3000, help="at most, of bike_sharing")
    options = parser.parse_args()
    report("steadiness", list(lines(options.data, options.draws, options.rows)))


if __name__ == "__main__":
    main()
