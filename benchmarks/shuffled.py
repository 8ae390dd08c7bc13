"""Streams with their rows shuffled: nothing changes, so it is best to forget nothing.

The default, which learns each row once, against a cross-validated fit to all rows so far, every 100 rows (a lasso; for
counts a ridge, since scikit-learn has no Poisson lasso). Loss as on the leaderboard: clipped, after the 50th row,
relative to the running mean. The goal is a loss at most 3 % above that of the refit.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from common import report
from streamlasso.bench.entries import DEFAULT, OURS, entries_by_name
from streamlasso.bench.leaderboard import running_mean_loss
from streamlasso.bench.losses import mean_loss
from streamlasso.bench.prequential import TooSlow
from streams import TASKS, load_task

REFIT = ("refit", "all rows")


def shuffled(task, seed):
    """The same rows in another order."""
    order = np.random.default_rng(seed).permutation(len(task.y))
    return replace(task, X=np.ascontiguousarray(task.X[order]), y=task.y[order])


def predicted(task, method, setting, limit):
    """The means of all rows, or of those within the limit, and microseconds per row."""
    try:
        means, seconds = entries_by_name(task.family)[method, setting].run(task, limit)
    except TooSlow as stopped:
        means, seconds = stopped.means, stopped.seconds
    return means, 1e6 * seconds / len(means)


def compared(task, limit):
    """A row of the table: both on the rows that the refit reached within the limit."""
    refit, refit_time = predicted(task, *REFIT, limit)
    ours, our_time = predicted(task, OURS, DEFAULT, float("inf"))
    n = len(refit)
    refit_loss, our_loss = (mean_loss(task.family, task.y[:n], means[:n]) for means in (refit, ours))
    baseline = running_mean_loss(task, n)
    return {
        "stream": task.name,
        "family": task.family,
        "rows": str(n),
        "features": str(task.X.shape[1]),
        "refit": f"{refit_loss / baseline:.4f}",
        "default": f"{our_loss / baseline:.4f}",
        "default / refit": f"{our_loss / refit_loss:.3f}",
        "refit, us per row": f"{refit_time:.0f}",
        "default, us per row": f"{our_time:.0f}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the directory with the streams' folders")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of CPU time for the refit on a stream")
    arguments = parser.parse_args()
    table = []
    for name in arguments.tasks:
        table.append(compared(shuffled(load_task(name, arguments.data), arguments.seed), arguments.limit))
        print("done:", " ".join(table[-1].values()), flush=True)
    report("shuffled", table)


if __name__ == "__main__":
    main()
