"""One outlier: what it does to the hundred predictions after it.

At row 500 either the response is 50 standard deviations off, or the feature with the largest coefficient is 1000 of
them too high while the response is unchanged. The loss on the next 100 rows, all clean, is compared with that of the
same learner on the same draw without the outlier.
"""

import argparse
from dataclasses import dataclass, replace

import numpy as np

from common import report
from streamlasso.bench.entries import DEFAULT, OURS, entries_by_name
from streamlasso.bench.losses import half_deviance
from streamlasso.bench.task import Task
from streamlasso.families import Binomial, Gaussian, Poisson
from streamlasso.simulate import SPARSE, simulate

ROW, AFTER = 500, 100
N_FEATURES = 20
REGIMES = {"stationary": [ROW + 1 + AFTER], "changing": [150, 150, 150, 151]}
FAMILIES = {"gaussian": Gaussian(), "binomial": Binomial(), "poisson": Poisson()}
RESPONSE_SD, FEATURE_SD = 50.0, 1000.0
#: Standard deviation and mean of the log rate of counts, which the paper's simulation does not define.
POISSON_SPREAD, POISSON_LEVEL = 0.6, 1.5
LOGRMS = "LogRMS() memory=0.99"
#: Learner -> method and setting on the leaderboard. River's own step size is too large for counts.
LEARNERS = {
    "default": (OURS, DEFAULT),
    LOGRMS: (OURS, LOGRMS),
    "river": ("river", DEFAULT),
    "scikit-learn SGD": ("sklearn-sgd", DEFAULT),
}
RIVER_POISSON = ("river", "lr=0.001 l1=0")
#: Predictions are held within these, so that no loss is infinite, and not otherwise: extreme predictions must count.
BOUNDS = {"gaussian": (-np.inf, np.inf), "binomial": (1e-4, 1 - 1e-4), "poisson": (1e-3, np.inf)}


@dataclass(frozen=True, eq=False)
class Draw:
    """A simulated task, and the feature with the largest coefficient at the outlier."""

    task: Task
    leading: int


def drawn(family, kind, seed):
    rng = np.random.default_rng(seed)
    lengths = REGIMES[kind]
    stream = simulate(rng, n_features=N_FEATURES, lengths=lengths, densities=[SPARSE] * len(lengths))
    eta = np.einsum("ij,ij->i", stream.X, stream.beta)
    if family == "poisson":
        eta = POISSON_LEVEL + POISSON_SPREAD * eta / eta.std()
    y = FAMILIES[family].sample(rng, eta)
    names = [f"x{j}" for j in range(N_FEATURES)]
    return Draw(Task(kind, family, stream.X, y, names), int(np.argmax(np.abs(stream.beta[ROW]))))


def with_outlying_response(draw):
    y = draw.task.y.copy()
    y[ROW] += np.rint(RESPONSE_SD * y.std()) if draw.task.family == "poisson" else RESPONSE_SD * y.std()
    return replace(draw.task, y=y)


def with_outlying_feature(draw):
    X = draw.task.X.copy()
    X[ROW, draw.leading] += FEATURE_SD * X[:, draw.leading].std()
    return replace(draw.task, X=X)


OUTLIERS = {"response": with_outlying_response, "feature": with_outlying_feature}
CASES = [("gaussian", "response"), ("gaussian", "feature"), ("binomial", "feature"), ("poisson", "response")]
CASES += [("poisson", "feature")]


def entry_of(family, learner):
    wanted = RIVER_POISSON if (family, learner) == ("poisson", "river") else LEARNERS[learner]
    return entries_by_name(family).get(wanted)


def loss_after(entry, task):
    """Mean half deviance of the clean rows; infinite for a learner that broke down."""
    try:
        means, _ = entry.run(task, float("inf"))
    except (ValueError, OverflowError):
        return np.inf
    loss = half_deviance(task.family, task.y, np.clip(means, *BOUNDS[task.family]))[ROW + 1 :].mean()
    return loss if np.isfinite(loss) else np.inf


def summarised(clean, spoilt):
    """The change of the mean loss with its 95 % interval over draws, and the worst draw."""
    broken = ~np.isfinite(spoilt)
    if broken.any():
        words = f"breaks down in {broken.sum()} of {len(spoilt)}"
        return {"without": f"{clean.mean():.3f}", "with": words, "change": "", "95 %": "", "worst draw": ""}
    gap = 100 * (spoilt - clean) / clean.mean()
    margin = 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))
    return {
        "without": f"{clean.mean():.3f}",
        "with": f"{spoilt.mean():.4g}",
        "change": f"{gap.mean():+.3g} %",
        "95 %": f"{gap.mean() - margin:+.3g} to {gap.mean() + margin:+.3g}",
        "worst draw": f"{100 * np.max(spoilt / clean - 1):+.3g} %",
    }


def rows(kind, n_draws):
    for family, learner in ((family, learner) for family in FAMILIES for learner in LEARNERS):
        entry = entry_of(family, learner)
        if entry is None:
            continue
        draws = [drawn(family, kind, seed) for seed in range(n_draws)]
        clean = np.array([loss_after(entry, draw.task) for draw in draws])
        for where in (where for of, where in CASES if of == family):
            spoilt = np.array([loss_after(entry, OUTLIERS[where](draw)) for draw in draws])
            yield {"family": family, "stream": kind, "outlier": where, "learner": learner, **summarised(clean, spoilt)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=50)
    n_draws = parser.parse_args().draws
    with np.errstate(over="ignore", invalid="ignore"):
        table = [row for kind in REGIMES for row in rows(kind, n_draws)]
    order = {case: i for i, case in enumerate(CASES)}
    report("outliers", sorted(table, key=lambda row: order[row["family"], row["outlier"]]))


if __name__ == "__main__":
    main()
