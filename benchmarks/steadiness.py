"""What is shown: F of the features of `selected_`, how often one enters or leaves, and whether `inclusion_` is right.

    python benchmarks/steadiness.py --data ../shared/data [--draws 40] [--seed 1000]

The paper's simulation with three regimes of random length (60 to 150 rows), its sparse regimes alone, the same with
classes, and 500 rows where 2 of 20 features matter: F of each row from row 20 on; features that enter or leave per
1,000 rows within a regime after its first 50; the Brier score and the log loss of `inclusion_`. Means over draws with
standard errors. Of the bicycle rentals only how often features enter or leave, and how many there are.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common import report
from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.families import Binomial, Gaussian
from streamlasso.simulate import DENSE, SPARSE, Stream, f_score, simulate
from streams import load_task

FIRST_ROW, FIRST_ROWS = 20, 50


def followed(family: str, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """After each row but the first: which features are selected, and how probable it is that each matters."""
    classes = {"classes": [0.0, 1.0]} if family == "binomial" else {}
    model = RAPClassifier() if classes else RAPRegressor(family)
    learner = model.partial_fit(X[:1], y[:1], **classes).learners_[0]
    chosen, probability = [], []
    for t in range(1, len(y)):
        learner.learn(X[t : t + 1], y[t : t + 1])
        chosen.append(learner.selected().coef != 0)
        probability.append(learner.inclusion())
    return np.array(chosen), np.array(probability)


def moves(chosen: np.ndarray, counted: np.ndarray | None = None) -> float:
    """Per 1,000 rows."""
    changed = np.sum(chosen[1:] != chosen[:-1], axis=1)
    return 1000 * float(np.mean(changed if counted is None else changed[counted]))


def scores(stream: Stream) -> list[float]:
    """F, F of sparse regimes, moves, features, Brier score and log loss."""
    chosen, probability = followed(stream.family.name, stream.X, stream.y)
    beta, regime = stream.beta[1:], stream.regime[1:]
    age = np.arange(1, len(beta) + 1) - np.searchsorted(stream.regime, regime)
    f, truth = f_score(chosen, beta), beta != 0
    rows = np.arange(1, len(beta) + 1) >= FIRST_ROW
    sparse = rows & (truth.mean(axis=1) <= SPARSE)
    likely = np.clip(probability, 0.01, 0.99)
    return [
        f[rows].mean(),
        f[sparse].mean(),
        moves(chosen, (age[1:] > FIRST_ROWS) & (regime[1:] == regime[:-1])),
        chosen[rows].sum(axis=1).mean(),
        np.mean((probability - truth)[rows] ** 2),
        -np.mean(np.log(np.where(truth, likely, 1 - likely))[rows]),
    ]


def drawn(n_draws: int, first: int) -> Iterator[tuple[str, list[Stream]]]:
    orders = ((DENSE, SPARSE, DENSE), (SPARSE, DENSE, SPARSE))
    for name, family in (("the paper's simulation", Gaussian()), ("the same, classes", Binomial())):
        streams = []
        for seed in range(n_draws):
            rng = np.random.default_rng(first + seed)
            streams.append(simulate(rng, lengths=rng.integers(60, 151, 3), densities=orders[seed % 2], family=family))
        yield name, streams
    few = dict(lengths=[500], densities=[0.1])
    yield "2 of 20 matter, 500 rows", [simulate(first + seed, **few) for seed in range(n_draws)]


NAMES = ("F", "F, sparse", "moves", "features", "Brier", "log loss")


def lines(data: Path | None, n_draws: int, first: int, most: int) -> Iterator[dict[str, str]]:
    for name, streams in drawn(n_draws, first):
        found = np.array([scores(stream) for stream in streams])
        error = found.std(axis=0, ddof=1) / len(found) ** 0.5
        yield {"stream": name} | {
            what: f"{mean:.3f} ± {e:.3f}" for what, mean, e in zip(NAMES, found.mean(axis=0), error, strict=True)
        }
    if data is not None:
        task = load_task("bike_sharing", data, most)
        chosen, _ = followed("poisson", task.X, task.y)
        yield dict.fromkeys(NAMES, "") | {
            "stream": "bike_sharing",
            "moves": f"{moves(chosen):.0f}",
            "features": f"{chosen.sum(axis=1).mean():.1f} of {chosen.shape[1]}",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with the development streams")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1000, help="of the first draw")
    parser.add_argument("--rows", type=int, default=3000, help="at most, of bike_sharing")
    options = parser.parse_args()
    report("steadiness", list(lines(options.data, options.draws, options.seed, options.rows)))


if __name__ == "__main__":
    main()
