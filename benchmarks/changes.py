"""Changes: how soon they are found at one false alarm per 10,000 rows, against river's detectors on the same residuals.

    python benchmarks/changes.py             # the table of docs/changes.md
    python benchmarks/changes.py --calibrate # false alarms where nothing changes, of families, tails and widths
    python benchmarks/changes.py --data DIR  # false alarms on real streams whose rows are shuffled

Each of river's detectors sees the absolute residuals, and their squares; the better one counts. Its threshold (of KSWIN
and ADWIN alpha and delta) is the first on a grid with no more than one false alarm per 10,000 rows of a stream that
does not change (`CALIBRATION`); ours has none to set. Delays are counted on streams of other seeds (`REPORT`).

F is that of the named features against those that moved by one deviation of the noise or more per deviation of the
feature, of changes that were found before the next one; `oracle` is that of least squares on both sides of the true
change, with AFTER rows each. `Bayes` knows the row of the change, the noise and how coefficients are drawn on both
sides (the paper's simulation), has all rows before and AFTER rows after, and names what has the largest expected F.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river import drift

from common import report
from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.families import Gamma, Poisson
from streamlasso.simulate import DENSE, SPARSE, _coefficients, _features, simulate
from streamlasso.tuners import LogRMS
from streams import load_task

CALIBRATION, REPORT = 101, 202
#: Rows after a change that its features are named by: the delay, and 64.
AFTER = 73
P, N, AT, DRIFT = 20, 1000, 500, 200
KINDS = (
    "the paper's simulation",
    "one coefficient",
    "one coefficient, correlated",
    "drift of 200 rows",
    "noise doubles",
)
Stream = tuple[np.ndarray, np.ndarray, list[int], int, set[int]]


def stream(kind: str, seed: int, draw: int) -> Stream:
    """X, y, the rows at which it changes, its last row, and the features that move at the first change."""
    rng = np.random.default_rng([seed, KINDS.index(kind), draw])
    if kind == KINDS[0]:
        made = simulate(rng)
        moved = set(np.flatnonzero(np.abs(made.beta[100] - made.beta[99]) >= 1.0).tolist())
        return made.X, made.y, [100, 200], 300, moved
    X = rng.normal(size=(N, P)) if kind == KINDS[1] else _features(rng, N, P)
    before, noise, moved = _coefficients(rng, P, SPARSE), np.ones(N), set()
    beta = np.tile(before, (N, 1))
    if kind in KINDS[1:3]:
        j = int(rng.integers(P))
        beta[AT:, j] += rng.choice([-1.0, 1.0])
        moved = {j}
    elif kind == KINDS[3]:
        share = np.clip((np.arange(N) - AT) / DRIFT, 0.0, 1.0)[:, None]
        beta = (1 - share) * before + share * _coefficients(rng, P, SPARSE)
    else:
        noise[AT:] = 2.0
    return X, (X * beta).sum(axis=1) + noise * rng.normal(size=N), [AT], N, moved


def stationary(n_rows: int) -> Iterator[np.ndarray]:
    """Residuals of the default where nothing changes, 5,000 rows at a time."""
    for draw in range(n_rows // 5000):
        rng = np.random.default_rng([CALIBRATION, draw])
        X = _features(rng, 5000, P)
        y = X @ _coefficients(rng, P, SPARSE) + rng.normal(size=5000)
        yield y - progressive(RAPRegressor(false_alarms=0.0), X, y, progress=False).prediction


# --- river's detectors ----------------------------------------------------------------------------------------------

SIZES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"absolute": np.abs, "squared": np.square}
PEERS: dict[str, tuple[Callable[[float], Any], list[float]]] = {
    "PageHinkley": (lambda h: drift.PageHinkley(threshold=h, mode="up"), [30.0, 40, 50, 70, 90, 120, 160, 220, 300]),
    "ADWIN": (lambda d: drift.ADWIN(delta=d), [1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-13, 1e-16, 1e-20]),
    "KSWIN": (lambda a: drift.KSWIN(alpha=a, seed=0), [1e-3, 1e-4, 1e-5, 1e-6, 1e-7]),
}


def alarms_of(detector: Any, values: np.ndarray) -> list[int]:
    found = []
    for t, value in enumerate(values.tolist()):
        detector.update(value)
        if detector.drift_detected:
            found.append(t)
    return found


def calibrated(name: str, size: str, quiet: list[np.ndarray]) -> tuple[float, float]:
    """The setting, and the false alarms per 10,000 rows that it has."""
    make, grid = PEERS[name]
    rate = np.inf
    for setting in grid:
        found = sum(len(alarms_of(make(setting), SIZES[size](residuals))) for residuals in quiet)
        rate = 1e4 * found / sum(map(len, quiet))
        if rate <= 1.0:
            break
    return setting, rate


# --- the table --------------------------------------------------------------------------------------------------------


def delays(alarms: list[int], changes: list[int], last: int) -> list[float]:
    """Rows until each change was found, without end where it was not before the next."""
    found = []
    for change, following in zip(changes, [*changes[1:], last], strict=True):
        after = [t for t in alarms if change <= t < following]
        found.append(after[0] - change + 1 if after else np.inf)
    return found


def f_of(named: set[int], moved: set[int]) -> float:
    return 2 * len(named & moved) / max(len(named) + len(moved), 1)


def oracle(X: np.ndarray, y: np.ndarray, change: int) -> set[int]:
    """The features whose coefficients by least squares are one deviation of the noise apart or more."""
    sides = []
    for rows in (slice(change - AFTER, change), slice(change, change + AFTER)):
        design = np.column_stack([np.ones(AFTER), X[rows]])
        sides.append(np.linalg.lstsq(design, y[rows], rcond=None)[0][1:])
    return set(np.flatnonzero(np.abs(sides[1] - sides[0]) >= 1.0).tolist())


def sampled(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, density: float, n: int = 300) -> np.ndarray:
    """Coefficients from their posterior by Gibbs sampling: this share of them standard normal, noise 1."""
    gram, products, beta, found = X.T @ X, X.T @ y, np.zeros(X.shape[1]), []
    for i in range(n + 100):
        for j in range(len(beta)):
            beta[j] = 0.0
            variance = 1.0 / (gram[j, j] + 1.0)
            mean = variance * (products[j] - gram[j] @ beta)
            odds = density / (1.0 - density) * np.sqrt(variance) * np.exp(min(0.5 * mean**2 / variance, 500.0))
            if rng.random() * (1.0 + odds) < odds:
                beta[j] = mean + np.sqrt(variance) * rng.normal()
        if i >= 100:
            found.append(beta.copy())
    return np.array(found)


def bayes(X: np.ndarray, y: np.ndarray, change: int) -> set[int]:
    """The features with the largest expected F."""
    rng, after = np.random.default_rng(0), slice(change, change + AFTER)
    before = sampled(rng, X[:change], y[:change], DENSE)
    moved = np.abs(sampled(rng, X[after], y[after], SPARSE) - before) >= 1.0
    order = np.argsort(-moved.mean(axis=0))
    sizes = np.arange(1, len(order) + 1)
    expected = (2 * np.cumsum(moved[:, order], axis=1) / (sizes + moved.sum(axis=1)[:, None])).mean(axis=0)
    return set(order[: int(np.argmax(expected)) + 1].tolist())


def compare(n_draws: int, n_quiet: int) -> list[dict[str, str]]:
    quiet = list(stationary(n_quiet))
    settings = {(name, size): calibrated(name, size, quiet) for name in PEERS for size in SIZES if _differs(name, size)}
    for (name, size), (setting, rate) in settings.items():
        print(f"{name} of {size} residuals: {setting:g}, {rate:.1f} false alarms per 10,000 rows")
    lines = []
    for kind in KINDS:
        ours, f, best_f, bayes_f, false, rows = [], [], [], [], 0, 0
        theirs: dict[tuple[str, str], list[float]] = {key: [] for key in settings}
        for draw in range(n_draws):
            X, y, changes, last, moved = stream(kind, REPORT, draw)
            model = RAPRegressor()
            trace = progressive(model, X, y, progress=False)
            ours += delays([change.detected for change in model.changes_], changes, last)
            false, rows = false + sum(c.detected < changes[0] for c in model.changes_), rows + changes[0]
            first = [c for c in model.changes_ if changes[0] <= c.detected < [*changes, last][1]]
            if moved and first:
                f.append(f_of({int(name[1:]) for name in first[0].features if name != "intercept"}, moved))
                best_f.append(f_of(oracle(X, y, changes[0]), moved))
                bayes_f += [f_of(bayes(X, y, changes[0]), moved)] if kind == KINDS[0] else []
            for (name, size), (setting, _) in settings.items():
                found = alarms_of(PEERS[name][0](setting), SIZES[size](y - trace.prediction))
                theirs[name, size] += delays(found, changes, last)
        best = {name: min((theirs[key] for key in settings if key[0] == name), key=_median) for name in PEERS}
        scores = {"F": f, "oracle": best_f, "Bayes": bayes_f}
        named = {name: f"{np.mean(each):.2f}" if each else "" for name, each in scores.items()}
        line = {"stream": kind, "streamlasso": _words(ours)} | {name: _words(best[name]) for name in PEERS}
        lines.append({**line, **named, "false alarms": f"{1e4 * false / rows:.1f}"})
        print(lines[-1], flush=True)
    return lines


def _differs(name: str, size: str) -> bool:
    """KSWIN looks at ranks, which are those of the absolute residuals."""
    return name != "KSWIN" or size == "absolute"


def _median(found: list[float]) -> tuple[float, float]:
    """Missed ones break ties."""
    return float(np.median(found)), float(np.mean(np.isinf(found)))


def _words(found: list[float]) -> str:
    median, missed = _median(found)
    return f"{'-' if np.isinf(median) else f'{median:.0f}'} ({100 * missed:.0f} % missed)"


# --- false alarms -----------------------------------------------------------------------------------------------------


def quiet_streams() -> Iterator[tuple[str, Any, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]]]:
    def linear(p: int, noise: Callable[[np.random.Generator, int], np.ndarray]) -> Any:
        def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            X = rng.normal(size=(5000, p))
            return X, X @ _coefficients(rng, p, min(4 / p, 1.0)) + noise(rng, 5000)

        return draw

    def sampled(family: Any, scale: float) -> Any:
        def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            X = rng.normal(size=(5000, 10))
            return X, family.sample(rng, scale * (X @ _coefficients(rng, 10, 0.4)))

        return draw

    def classes(above: float) -> Any:
        def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            X = rng.normal(size=(5000, 10))
            return X, X @ _coefficients(rng, 10, 0.4) + rng.logistic(size=5000) > above

        return draw

    def function(of: Callable[[np.random.Generator, np.ndarray], np.ndarray]) -> Any:
        def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
            X = rng.normal(size=(5000, 10))
            return X, of(rng, X)

        return draw

    def levels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        share = 1 / np.arange(1, 31) ** 1.3
        level = rng.choice(30, size=5000, p=share / share.sum())
        y = 2 * rng.normal(size=30)[level] + np.exp(rng.normal(size=30))[level] * rng.normal(size=5000)
        return (level[:, None] == np.arange(30)).astype(float), y

    def normal(rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.normal(size=n)

    for p in (2, 20, 60):
        yield f"normal noise, {p} features", RAPRegressor, linear(p, normal)
    yield "Student t(3)", RAPRegressor, linear(10, lambda rng, n: rng.standard_t(3, size=n))
    yield "Cauchy", RAPRegressor, linear(10, lambda rng, n: rng.standard_cauchy(size=n))
    yield "exponential", RAPRegressor, linear(10, lambda rng, n: rng.exponential(size=n))
    yield (
        "noise that depends on a feature",
        RAPRegressor,
        function(lambda rng, X: X[:, 1] + np.exp(0.7 * X[:, 0]) * rng.normal(size=5000)),
    )
    yield "30 levels, most of them rare", RAPRegressor, levels
    yield "no noise, linear", RAPRegressor, function(lambda _, X: X[:, 0] - 2 * X[:, 1])
    yield "no noise, not linear", RAPRegressor, function(lambda _, X: np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2])
    yield "LogRMS, 20 features", lambda: RAPRegressor(tuner=LogRMS(), false_alarms=1), linear(20, normal)
    yield "classes, 50 %", RAPClassifier, classes(0.0)
    yield "classes, 2 %", RAPClassifier, classes(5.0)
    yield "counts", lambda: RAPRegressor(Poisson()), sampled(Poisson(), 0.4)
    yield (
        "counts, overdispersed",
        lambda: RAPRegressor(Poisson()),
        function(lambda rng, X: rng.poisson(rng.gamma(1.0, np.exp(1 + 0.4 * X[:, 0]))).astype(float)),
    )
    yield "positive", lambda: RAPRegressor(Gamma()), sampled(Gamma(), 0.3)


def false_alarms(n_draws: int) -> list[dict[str, str]]:
    lines = []
    for name, make, draw in quiet_streams():
        found = sum(len(make().fit(*draw(np.random.default_rng([REPORT, i]))).changes_) for i in range(n_draws))
        rate = 1e4 * found / (5000 * n_draws)
        lines.append({"stream": name, "rows": f"{5000 * n_draws:,}", "per 10,000": f"{rate:.1f}"})
        print(lines[-1], flush=True)
    return lines


def shuffled(data: Path, most: int, n_orders: int) -> list[dict[str, str]]:
    """Real streams whose rows have lost their order, several times: nothing changes."""
    lines = []
    for name in ("bike_sharing", "air_quality", "frm_returns", "exchange_rate", "elec2", "flu_counts", "ozone8h"):
        task = load_task(name, data, most)

        def n_alarms(rows: np.ndarray, task: Any = task) -> int:
            model = RAPClassifier() if task.family == "binomial" else RAPRegressor(task.family)
            return len(model.fit(task.X[rows], task.y[rows]).changes_)

        n = len(task.y)
        found = sum(n_alarms(np.random.default_rng([REPORT, i]).permutation(n)) for i in range(n_orders))
        line = {
            "stream": name,
            "rows": f"{n * n_orders:,}",
            "shuffled, per 10,000": f"{1e4 * found / n / n_orders:.1f}",
        }
        lines.append({**line, "in order, per 10,000": f"{1e4 * n_alarms(np.arange(n)) / n:.1f}"})
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--quiet-rows", type=int, default=200_000)
    parser.add_argument("--most", type=int, default=5000, help="rows of a real stream")
    parser.add_argument("--orders", type=int, default=10, help="of its rows")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    if chosen.calibrate:
        report("changes_quiet", false_alarms(chosen.draws // 10))
    elif chosen.data:
        report("changes_shuffled", shuffled(chosen.data, chosen.most, chosen.orders))
    else:
        report("changes", compare(chosen.draws, chosen.quiet_rows))
