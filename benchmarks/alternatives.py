"""Two alternatives to forgetting: an interaction as a feature, and boosted trees that are refitted.

    python benchmarks/alternatives.py --data ../shared/data

On bike_sharing the hour of a working day as 24 more features; on bike_sharing and elec2 scikit-learn's histogram
gradient boosting at its defaults, refitted every 250 rows to all rows so far. Loss as on the leaderboard, relative to
the running mean.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from common import report
from streamlasso.bench.entries import DEFAULT, OURS, entries_by_name
from streamlasso.bench.leaderboard import running_mean_loss, score
from streamlasso.bench.losses import mean_loss
from streams import load_task

EVERY = 250
NEVER_FORGETS = "LogRMS() memory=1"


def with_interaction(task):
    """The hour one-hot, times whether it is a working day."""
    hours = [name.startswith("hr=") for name in task.names]
    working = task.X[:, [task.names.index("workingday")]]
    return replace(task, X=np.hstack([task.X, task.X[:, hours] * working]))


def trees(task):
    """The relative loss of boosted trees; the running mean before the first fit."""
    means, _ = entries_by_name(task.family)["running-mean", DEFAULT].run(task, float("inf"))
    for start in range(EVERY, len(task.y), EVERY):
        past, next_rows = slice(start), slice(start, start + EVERY)
        if task.family == "binomial":
            model = HistGradientBoostingClassifier().fit(task.X[past], task.y[past])
            means[next_rows] = model.predict_proba(task.X[next_rows])[:, 1]
        else:
            model = HistGradientBoostingRegressor(loss="poisson").fit(task.X[past], task.y[past])
            means[next_rows] = model.predict(task.X[next_rows])
    return mean_loss(task.family, task.y, means) / running_mean_loss(task)


def compare(name, task):
    """One line of the table."""
    ours = {setting: score(entries_by_name(task.family)[OURS, setting], task) for setting in (DEFAULT, NEVER_FORGETS)}
    losses = [ours[DEFAULT].relative, ours[NEVER_FORGETS].relative, trees(task)]
    cells = zip(("default", NEVER_FORGETS, "boosted trees"), losses, strict=True)
    return {"stream": name, **{column: f"{loss:.3f}" for column, loss in cells}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the directory with the streams' folders")
    data = parser.parse_args().data
    bikes = load_task("bike_sharing", data)
    streams = {
        "bike_sharing": bikes,
        "bike_sharing, with the interaction": with_interaction(bikes),
        "elec2": load_task("elec2", data),
    }
    report("alternatives", [compare(name, task) for name, task in streams.items()])


if __name__ == "__main__":
    main()
