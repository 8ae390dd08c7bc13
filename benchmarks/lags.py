"""Earlier responses as features of a task, and methods that have them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from streamlasso.bench.entries import BASELINES, DEFAULT, OURS, Entry, entries
from streamlasso.bench.task import Task

#: How many rows before its own the responses are, and the mark of a method that has them.
LAGS, LAGGED = (1, 2, 3), "+lags"


def entries_and_lagged(family: str) -> Iterator[Entry]:
    """All entries of the leaderboard, and the same with lags; of ours only the default."""
    plain = list(entries(family))
    yield from plain
    for entry in plain:
        if entry.method not in BASELINES and (entry.method != OURS or entry.setting == DEFAULT):
            yield replace(entry, method=entry.method + LAGGED, run=_lagged(entry))


def _lagged(entry: Entry):
    return lambda task, limit: entry.run(with_lags(task), limit)


def with_lags(task: Task, lags: Sequence[int] = LAGS) -> Task:
    """The same task with earlier responses as features: log1p of counts, one column per class if there are several.

    They are known before the row is predicted; where the stream has not begun, they are 0.

    >>> import numpy as np
    >>> from streamlasso.bench.task import Task
    >>> task = Task("visits", "gaussian", np.zeros((3, 1)), np.array([7.0, 8.0, 9.0]), ["x"])
    >>> with_lags(task, lags=[1]).X
    array([[0., 0.],
           [0., 7.],
           [0., 8.]])
    """
    responses, names = _responses(task)
    columns = [np.vstack([np.zeros((lag, responses.shape[1])), responses])[: len(task.y)] for lag in lags]
    added = [f"{name}, {lag} before" for lag in lags for name in names]
    return replace(task, X=np.hstack([task.X, *columns]), names=[*task.names, *added])


def _responses(task: Task) -> tuple[np.ndarray, list[str]]:
    """The responses as columns of features, and what these are called."""
    if task.n_classes > 2:
        numbers = range(task.n_classes)
        return (task.y[:, None] == np.array(numbers)).astype(float), [f"class {k}" for k in numbers]
    return (np.log1p(task.y) if task.family == "poisson" else task.y)[:, None], ["response"]
