"""The leaderboard: every method with every setting on every task; each result is saved at once.

The loss is the mean over the rows after the 50th of predictions made before each row is learnt, relative to that of the
running mean on the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow

from streamlasso._jobs import completed, job_bar, refuse_processes
from streamlasso._terminal import warn
from streamlasso.bench.entries import DEFAULT, GROUPS, METHODS, Entry, entries, entries_by_name
from streamlasso.bench.losses import BURN_IN, block_losses, mean_loss
from streamlasso.bench.prequential import TooSlow
from streamlasso.bench.results import Result, ResultsFile
from streamlasso.bench.task import Task

#: Seconds of CPU time that an entry may take for a task.
LIMIT = 300.0
OK, TOO_SLOW = "ok", "too slow"


@dataclass(frozen=True)
class Job:
    """An entry on a task; the entry by its names, since entries cannot be sent to another process."""

    task: Task
    method: str
    setting: str
    limit: float


def run_leaderboard(
    tasks: Sequence[Task],
    out: Path,
    *,
    methods: Sequence[str] | None = None,
    peers: str = "quick",
    defaults_only: bool = False,
    limit: float = LIMIT,
    jobs: int = 1,
    progress: bool | None = None,
) -> pyarrow.Table:
    """Every entry on every task: `out`/leaderboard.csv, which is also returned.

    Results that leaderboard.csv holds already are not computed again. A method whose package is not installed is left
    out, with a line on standard error; if it was asked for by name, that is an error.

    Parameters
    ----------
    tasks : sequence of Task
    out : Path
        The directory for the results; made if it is not there.
    methods : sequence of str, default=None
        Some of `entries.METHODS`; None is those of `peers`.
    peers : {"quick", "all"}, default="quick"
        "all" adds forests and boosted trees, and every method with the last responses among its features.
    defaults_only : bool, default=False
        No grids: each method with its default.
    limit : float, default=300
        Seconds of CPU time for one entry on one task; beyond it the entry is too slow.
    jobs : int, default=1
        Processes at a time; the times per row are fair only if there are as many free cores.
    progress : bool, default=None
        A progress bar on standard error; None is one if that is a terminal.
    """
    refuse_unknown(methods or (), METHODS, "methods")
    refuse_processes(jobs)
    chosen = installed(GROUPS[peers] if methods is None else methods, named=methods is not None)
    out.mkdir(parents=True, exist_ok=True)
    file = ResultsFile(out / "leaderboard.csv")
    for task in tasks:
        file.refuse_other_data(task)
    planned = [job for task in tasks for job in _jobs(task, limit, chosen, file)]
    if defaults_only:
        planned = [job for job in planned if job.setting.startswith(DEFAULT)]
    following = [*(f"{job.task.name}, {job.method}, at most {limit:.0f} s" for job in planned), "done"]
    with job_bar(following[0], len(planned), shown=progress) as advance:
        for n_done, (_, result) in enumerate(completed(_run, planned, jobs), 1):
            file.append(result)
            advance(following[n_done])
    return file.table()


def refuse_unknown(asked: Iterable[str], known: Sequence[str], what: str) -> None:
    """An error if a name is not among the known ones."""
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: unknown; the {what} are {', '.join(known)}")


def installed(methods: Iterable[str], named: bool) -> list[str]:
    """The methods whose packages are installed; of the others a line on standard error, or an error if `named`."""
    by_method = {entry.method: entry for entry in entries("gaussian")}
    found = []
    for method in methods:
        entry = by_method[method]
        if not entry.missing:
            found.append(method)
            continue
        advice = f'{method} needs {entry.package}: pip install "streamlasso[bench]"'
        if named:
            raise ImportError(advice)
        warn(f"left out: {advice}")
    return found


def _jobs(task: Task, limit: float, methods: Sequence[str], file: ResultsFile) -> Iterator[Job]:
    """The jobs of a task whose results the file does not have."""
    done = file.done
    for entry in entries(task.family):
        if entry.method in methods and (task.name, entry.method, entry.setting) not in done:
            yield Job(task, entry.method, entry.setting, limit)


def _run(job: Job) -> Result:
    return score(entries_by_name(job.task.family)[job.method, job.setting], job.task, job.limit)


def score(entry: Entry, task: Task, limit: float = LIMIT) -> Result:
    """The entry's loss and time on the task; a failure is its status.

    >>> from itertools import islice
    >>> import numpy as np
    >>> from streamlasso.bench.entries import entries
    >>> from streamlasso.bench.task import Task
    >>> rng = np.random.default_rng(0)
    >>> task = Task("noise", "gaussian", rng.normal(size=(200, 3)), rng.normal(size=200), ["a", "b", "c"])
    >>> [(entry.method, round(score(entry, task).relative, 2)) for entry in islice(entries("gaussian"), 2)]
    [('running-mean', 1.0), ('persistence', 2.13)]
    """
    status = OK
    try:
        means, seconds = entry.run(task, limit)
    except TooSlow as stopped:
        means, seconds, status = stopped.means, stopped.seconds, TOO_SLOW
    except Exception as error:  # a peer may fail in any way: that is its result, and the others go on
        means, seconds, status = np.empty(0), np.nan, f"failed: {type(error).__name__}: {error}"
    if np.isnan(means).any():
        status = f"failed: no number predicted for row {int(np.isnan(means).argmax())}"
    return _result(entry, task, means, seconds, " ".join(status.split()))


def _result(entry: Entry, task: Task, means: np.ndarray, seconds: float, status: str) -> Result:
    failed, n = status.startswith("failed"), len(means)
    loss = np.nan if failed else mean_loss(task.family, task.outcome[:n], means)
    baseline = np.nan if failed else running_mean_loss(task, n)
    blocks = block_losses(task.family, task.outcome, means) if n == len(task.y) and not failed else ()
    return Result(
        task=task.name,
        family=task.family,
        rows=len(task.y),
        features=task.X.shape[1],
        method=entry.method,
        setting=entry.setting,
        loss=loss,
        relative=loss / baseline,
        microseconds=1e6 * seconds / max(n, 1),
        scored=0 if failed else max(n - BURN_IN, 0),
        status=status,
        version=entry.version,
        data=task.fingerprint,
        blocks=" ".join(f"{block:.7g}" for block in blocks),
    )


def running_mean_loss(task: Task, n_rows: int | None = None) -> float:
    """The mean loss of the running mean on the first rows of a task, or on all."""
    running_mean = entries_by_name(task.family)["running-mean", DEFAULT]
    y = task.y[:n_rows]
    means, _ = running_mean.run(replace(task, X=task.X[: len(y)], y=y), float("inf"))
    return mean_loss(task.family, task.outcome[: len(y)], means)
