"""Networks: the cost of a time point, and how well the edges of a changing graph are recovered.

Speed: `StreamingNetwork` against p separate `RAPRegressor`s with the same result, against scikit-learn's
`GraphicalLassoCV` on the last 60 time points, and against a repetition time of .72 s; wall-clock time on all cores, the
median of several rounds in which all learn the same points.

Recovery: graphs of 20 or 30 nodes that change twice; F of the edges, averaged over all time points or over the last 30
of each regime, and how many points after a change F needs to come within a tenth of its final level.
`GraphicalLassoCV` knows the regimes and is fitted to each as a whole: one network per regime.
"""

import argparse
import itertools
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
from sklearn.covariance import GraphicalLassoCV

from common import report
from streamlasso import RAPRegressor
from streamlasso.network import StreamingNetwork
from streamlasso.tuners import LogRMS

R, TR, WINDOW = 0.95, 0.72, 60
NODES = (20, 94, 333)
POINTS, ROUNDS = 100, 5
#: GraphicalLassoCV takes minutes for more nodes than this.
MAX_GLASSO_NODES = 94
#: Nodes, edges per node, and rows in each of three regimes.
GRAPHS = ((20, 3, 150), (20, 3, 300), (30, 2, 200))
SETTLED = 30


# --- graphs -----------------------------------------------------------------------------------------------------------


def precision(rng: np.random.Generator, p: int, degree: float) -> np.ndarray:
    """A random graph with weights of either sign, made positive definite by its diagonal, scaled to unit diagonal."""
    upper = np.triu_indices(p, 1)
    edges = rng.choice(len(upper[0]), int(degree * p / 2), replace=False)
    K = np.zeros((p, p))
    K[upper[0][edges], upper[1][edges]] = rng.uniform(0.3, 0.6, len(edges)) * rng.choice([-1, 1], len(edges))
    K += K.T
    K += np.diag(np.abs(K).sum(axis=1) + 0.1)
    scale = 1 / np.sqrt(np.diag(K))
    return K * np.outer(scale, scale)


def points(rng: np.random.Generator, K: np.ndarray, n: int) -> np.ndarray:
    return rng.multivariate_normal(np.zeros(len(K)), np.linalg.inv(K), n)


# --- speed ------------------------------------------------------------------------------------------------------------


def timed(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def one_by_one(models: list, X: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> Callable[[], None]:
    def learn() -> None:
        for t in range(len(X)):
            for model, (others, node) in zip(models, pairs, strict=True):
                model.partial_fit(others[t : t + 1], node[t : t + 1])

    return learn


def speeds(p: int) -> list[dict[str, str]]:
    rng = np.random.default_rng(0)
    K = precision(rng, p, 3)
    ours_single, ours_many = StreamingNetwork(memory=R), StreamingNetwork(memory=R)
    single, many = ([RAPRegressor(memory=R, tuner=LogRMS()) for _ in range(p)] for _ in range(2))
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS + 1):
        X = points(rng, K, POINTS)
        pairs = [(np.ascontiguousarray(np.delete(X, i, 1)), np.ascontiguousarray(X[:, i])) for i in range(p)]
        tasks = {
            "network, point by point": lambda X=X: [ours_single.partial_fit(x) for x in X],
            "network, all at once": lambda X=X: ours_many.partial_fit(X),
            "p RAPRegressors, point by point": one_by_one(single, X, pairs),
            "p RAPRegressors, all at once": lambda pairs=pairs: [
                model.partial_fit(*pair) for model, pair in zip(many, pairs, strict=True)
            ],
        }
        for name, learn in tasks.items():
            times.setdefault(name, []).append(timed(learn) / POINTS)
    if p <= MAX_GLASSO_NODES:
        times["GraphicalLassoCV, last 60"] = [timed(lambda: GraphicalLassoCV().fit(X[-WINDOW:])) for _ in range(2)]
    return [
        line(p, name, np.array(seconds[1:]), np.array(times["network, " + kind_of(name)][1:]))
        for name, seconds in times.items()
    ]


def kind_of(name: str) -> str:
    return "all at once" if name.endswith("all at once") else "point by point"


def line(p: int, name: str, seconds: np.ndarray, ours: np.ndarray) -> dict[str, str]:
    typical = float(np.median(seconds))
    return {
        "nodes": str(p),
        "model": name,
        "ms per point": f"{1e3 * typical:.3g}",
        "relative to the network": f"{typical / np.median(ours):.3g}",
        "of a TR of .72 s": f"{100 * typical / TR:.2g} %",
    }


# --- recovery ---------------------------------------------------------------------------------------------------------


def f_score(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """F of the edges, above the diagonal."""
    upper = np.triu_indices(truth.shape[-1], 1)
    a, b = found[..., *upper], truth[..., *upper]
    return 2 * (a & b).sum(-1) / np.maximum(a.sum(-1) + b.sum(-1), 1)


def recovery(p: int, degree: float, n: int, draws: int) -> list[dict[str, str]]:
    scores: dict[str, list[np.ndarray]] = {}
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        graphs = [precision(rng, p, degree) for _ in range(3)]
        X = np.vstack([points(rng, K, n) for K in graphs])
        truth = np.repeat([K != 0 for K in graphs], n, axis=0)
        for r, rule in itertools.product((0.95, 0.98, 0.99), ("and", "or")):
            networks = StreamingNetwork(memory=r, rule=rule).fit_transform(X)
            scores.setdefault(f"StreamingNetwork({r}, {rule!r})", []).append(f_score(networks != 0, truth))
        scores.setdefault("GraphicalLassoCV, known regimes", []).append(np.repeat(graphical_lasso(X, graphs), n))
    return [summarise(p, degree, n, name, np.array(found)) for name, found in scores.items()]


def graphical_lasso(X: np.ndarray, graphs: list[np.ndarray]) -> list[float]:
    """F in each regime."""
    fits = [GraphicalLassoCV().fit(rows).precision_ for rows in np.split(X, len(graphs))]
    return [float(f_score(np.abs(fit) > 1e-8, K != 0)) for fit, K in zip(fits, graphs, strict=True)]


def summarise(p: int, degree: float, n: int, name: str, scores: np.ndarray) -> dict[str, str]:
    by_regime = scores.mean(axis=0).reshape(3, n)
    late = by_regime[:, -SETTLED:].mean(axis=1)
    delays = [np.argmax(by_regime[k] >= 0.9 * late[k]) for k in (1, 2)]
    error = scores.mean(axis=1).std(ddof=1) / np.sqrt(len(scores))
    return {
        "graph": f"{p} nodes, degree {degree}, {n} points per regime",
        "model": name,
        "F, all points": f"{scores.mean():.3f} +- {error:.3f}",
        "F, last 30 per regime": f"{late.mean():.3f}",
        "points after a change": f"{np.mean(delays):.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", choices=("speed", "recovery"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only != "recovery":
        report("network-speed", [found for p in NODES for found in speeds(p)])
    if options.only != "speed":
        report("network-recovery", [found for graph in GRAPHS for found in recovery(*graph, options.draws)])


if __name__ == "__main__":
    main()
