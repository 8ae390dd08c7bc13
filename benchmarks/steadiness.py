"""Steadiness: how often a feature enters or leaves the set that is shown, per 1,000 rows, and F of the true support.

`lead` is the sparse model with the largest weight (of penalties with half of that, the largest), `selected_` holds on
to its choice, `relevant_` is the steady list. The paper's simulation (300 rows, 16 of 20
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

SETS = ("lead", "selected_", "relevant_")


def sets_of(family: str, X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """(row, feature) of each set, after each row but the first."""
    model = RAPRegressor(family).partial_fit(X[:1], y[:1])
    learner = model.learners_[0]
    sparse = np.array([[group.sparse] for group in learner.experts])
    found: list[list[np.ndarray]] = [[], [], []]
    for t in range(1, len(y)):
        learner.learn(X[t : t + 1], y[t : t + 1])
        weights = np.where(sparse, learner.weights, 0.0)
        m = int(np.argmax(weights.max(axis=1)))
        k = int(np.argmax(weights[m] >= 0.5 * weights[m].max()))
        found[0].append(learner.expert(m, k)[2][1:] != 0)
        found[1].append(learner.selected().coef != 0)
        found[2].append(learner.relevant())
    return [np.array(each) for each in found]


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
            sets = sets_of("gaussian", stream.X, stream.y)
            truth = stream.beta[1:] != 0
            found.append([*map(moves, sets), *(f_score(each, truth) for each in sets)])
        yield line(name, np.array(found))
    if data is not None:
        task = load_task("bike_sharing", data, most)
        yield line("bike_sharing", np.array([[*map(moves, sets_of("poisson", task.X, task.y))]]))


def line(name: str, found: np.ndarray) -> dict[str, str]:
    """Columns of `found`: moves of the three sets, then their F."""
    mean = found.mean(axis=0)
    said = {"stream": name, **{f"moves, {each}": f"{mean[k]:.0f}" for k, each in enumerate(SETS)}}
    said["relevant_ / lead"] = f"{mean[2] / mean[0]:.2f}"
    for k, each in enumerate(SETS):
        said[f"F, {each}"] = _with_error(found[:, 3 + k], found[:, 3], k > 0) if len(mean) > 3 else ""
    return said


def _with_error(scores: np.ndarray, lead: np.ndarray, compared: bool) -> str:
    """The mean; with the standard error of its difference from that of the lead."""
    error = (scores - lead).std(ddof=1) / len(scores) ** 0.5
    return f"{scores.mean():.3f}" + (f" ({scores.mean() - lead.mean():+.3f} +- {error:.3f})" if compared else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder with the development streams")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3000, help="at most, of bike_sharing")
    options = parser.parse_args()
    report("steadiness", list(lines(options.data, options.draws, options.rows)))


if __name__ == "__main__":
    main()
