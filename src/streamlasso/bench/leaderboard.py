"""The leaderboard on real streams: run every entry on every task, save each result at once, go on where it stopped.

Loss is averaged over the rows after the 50th and given relative to that of the running mean on the same rows. All
predictions are clipped alike (`clipped`), so that nobody is ruined by one wild row, and nobody gains from it.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.special import xlogy
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from streamlasso._files import write_whole
from streamlasso.bench.entries import METHODS, Entry, entries
from streamlasso.bench.peers import RunningMean, TooSlow, predict_then_learn
from streamlasso.bench.streams import ROWS, TASKS, Task, load_task
from streamlasso.report.page import write_figure

#: Rows that are learnt but not judged.
BURN_IN = 50
#: Seconds of CPU time that an entry may take for a task.
LIMIT = 300.0
#: Probabilities are kept this far from 0 and 1, rates this far from 0.
LEAST_SHARE, LEAST_RATE = 1e-4, 0.1
OK, TOO_SLOW = "ok", "too slow"


@dataclass(frozen=True)
class Result:
    """One line of the table. `rows` has the task, `judged` is how many the loss is over; NaN if the entry failed."""

    task: str
    family: str
    rows: int
    features: int
    method: str
    setting: str
    loss: float
    relative: float
    microseconds: float
    judged: int
    status: str
    version: str


COLUMNS = tuple(field.name for field in fields(Result))
SCHEMA = pyarrow.schema(
    [
        (f.name, {"str": pyarrow.string(), "int": pyarrow.int64(), "float": pyarrow.float64()}[str(f.type)])
        for f in fields(Result)
    ]
)
#: What says which line it is.
Key = tuple[str, str, str]


def run_leaderboard(
    data: Path,
    out: Path,
    *,
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    rows: int = ROWS,
    lagged: bool = False,
    limit: float = LIMIT,
    jobs: int = 1,
    redo: Sequence[str] = (),
    progress: bool | None = None,
) -> pyarrow.Table:
    """Every entry on every task: `out`/leaderboard.csv, with summary.md and leaderboard.png and .svg drawn from it.

    What leaderboard.csv holds already is not run again, except for the methods in `redo`. A method whose package is not
    installed is left out, with a line on standard error; if it was asked for by name, that is an error.

    Parameters
    ----------
    data : Path
        The directory with the streams' folders.
    out : Path
        The directory for the results; made if it is not there.
    tasks, methods : sequences of str, default=None
        Some of `streams.TASKS` and `entries.METHODS`; None is all.
    rows : int, default=5000
        The first rows of each stream.
    lagged : bool, default=False
        Give everyone the previous response as one more feature.
    limit : float, default=300
        Seconds of CPU time for one entry on one task; then it counts as too slow.
    jobs : int, default=1
        Processes at a time; times a row are fair only if there are as many free cores.
    redo : sequence of str
        Methods whose lines are dropped and run again.
    progress : bool, default=None
        A progress bar on standard error; None is one if that is a terminal.
    """
    tasks, methods_asked = _known(tasks, TASKS, "tasks"), _known(methods, METHODS, "methods")
    _known(redo, METHODS, "methods")
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: at least one process is needed")
    present = _present(methods_asked, named=methods is not None)
    out.mkdir(parents=True, exist_ok=True)
    book = Book(out / "leaderboard.csv")
    book.drop(redo)
    planned = [job for name in tasks for job in _jobs(data, name, rows, lagged, limit, present, book)]
    with _bar(len(planned), progress) as advance:
        for result in _results(planned, jobs):
            book.append(result)
            advance(result)
    table = book.table()
    _write_standings(table, out)
    return table


def _known(asked: Sequence[str] | None, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: the {what} are {', '.join(known)}")
    return known if asked is None else tuple(asked)


def _present(methods: Iterable[str], named: bool) -> list[str]:
    """The methods whose packages are installed."""
    packages = {entry.method: entry for entry in entries("gaussian")}
    present = []
    for method in methods:
        entry = packages[method]
        if not entry.missing:
            present.append(method)
            continue
        line = f'{method} needs {entry.package}: pip install "streamlasso[bench]"'
        if named:
            raise ImportError(line)
        print(f"left out: {line}", file=sys.stderr)
    return present


def _write_standings(table: pyarrow.Table, out: Path) -> None:
    from streamlasso.bench.standings import draw_leaderboard, summary

    if not table.num_rows:
        return
    write_whole(out / "summary.md", summary(table).encode())
    write_figure(out / "leaderboard", draw_leaderboard(table))


# --- one entry on one task --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """An entry on a task, by their names: entries themselves cannot go to another process."""

    data: Path
    name: str
    rows: int
    lagged: bool
    limit: float
    method: str
    setting: str


def _jobs(
    data: Path, name: str, rows: int, lagged: bool, limit: float, methods: list[str], book: Book
) -> Iterator[Job]:
    """What is still to be done for a task."""
    task = _task(data, name, rows, lagged)
    book.refuse_other_rows(task)
    for entry in entries(task.family):
        if entry.method in methods and (task.name, entry.method, entry.setting) not in book.done:
            yield Job(data, name, rows, lagged, limit, entry.method, entry.setting)


@lru_cache(maxsize=1)
def _task(data: Path, name: str, rows: int, lagged: bool) -> Task:
    return load_task(name, data, rows, lagged=lagged)


def _results(planned: list[Job], jobs: int) -> Iterator[Result]:
    if jobs == 1:
        yield from map(_run, planned)
        return
    # A fresh interpreter each: a fork of one that has threads can hang.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_run, job) for job in planned]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def _run(job: Job) -> Result:
    task = _task(job.data, job.name, job.rows, job.lagged)
    named = {(entry.method, entry.setting): entry for entry in entries(task.family)}
    with threadpool_limits(1):
        return score(named[job.method, job.setting], task, job.limit)


def score(entry: Entry, task: Task, limit: float = LIMIT) -> Result:
    """The entry's loss and time on the task; trouble on the way is its status.

    >>> from itertools import islice
    >>> import numpy as np
    >>> from streamlasso.bench.entries import entries
    >>> from streamlasso.bench.streams import Task
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
    failed = status.startswith("failed")
    y = task.y[: len(means)]
    naive, _ = predict_then_learn(RunningMean(task.family), task.X[: len(y)], y)
    loss = np.nan if failed else mean_loss(task.family, y, means)
    baseline = np.nan if failed else mean_loss(task.family, y, naive)
    return Result(
        task=task.name,
        family=task.family,
        rows=len(task.y),
        features=task.X.shape[1],
        method=entry.method,
        setting=entry.setting,
        loss=loss,
        relative=loss / baseline,
        microseconds=1e6 * seconds / max(len(y), 1),
        judged=0 if failed else max(len(y) - BURN_IN, 0),
        status=status,
        version=entry.version,
    )


# --- loss -------------------------------------------------------------------------------------------------------------


def mean_loss(family: str, y: np.ndarray, means: np.ndarray) -> float:
    """Half squared error, log loss or Poisson deviance of the clipped predictions, over the rows after the 50th.

    >>> import numpy as np
    >>> y = np.arange(60.0)
    >>> mean_loss("gaussian", y, y - 2)
    2.0
    """
    if len(y) <= BURN_IN:
        return float("nan")
    means = clipped(family, y, means)
    if family == "gaussian":
        loss = (y - means) ** 2 / 2
    elif family == "binomial":
        loss = -np.where(y > 0, np.log(means), np.log1p(-means))
    else:
        loss = 2 * (xlogy(y, y / means) - y + means)
    return float(loss[BURN_IN:].mean())


def clipped(family: str, y: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Predictions within the range of the responses before, widened by half on each side.

    Rates are at least 0.1 and at most twice the largest count plus one; probabilities are in [1e-4, 1 - 1e-4].

    >>> import numpy as np
    >>> clipped("gaussian", np.array([0.0, 2.0, 0.0]), np.array([0.0, 9.0, 9.0]))
    array([0., 0., 3.])
    """
    if family == "binomial":
        return np.clip(means, LEAST_SHARE, 1 - LEAST_SHARE)
    highest, lowest = _before(np.maximum.accumulate(y)), _before(np.minimum.accumulate(y))
    if family == "poisson":
        return np.clip(means, LEAST_RATE, 2 * highest + 1)
    half = (highest - lowest) / 2
    return np.clip(means, lowest - half, highest + half)


def _before(values: np.ndarray) -> np.ndarray:
    """0 before the first row."""
    return np.concatenate([[0.0], values[:-1]])


# --- the table on disk ------------------------------------------------------------------------------------------------


class Book:
    """leaderboard.csv: a line is appended, whole, as soon as its entry is done; a line cut short by a kill is dropped.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Book(Path(folder) / "leaderboard.csv").table().num_rows
    0
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = self._read() if path.exists() else []
        self._rewrite()

    @property
    def done(self) -> set[Key]:
        return {(result.task, result.method, result.setting) for result in self.results}

    def append(self, result: Result) -> None:
        with open(self.path, "a", newline="") as file:
            csv.writer(file).writerow(asdict(result).values())
            file.flush()
            os.fsync(file.fileno())
        self.results.append(result)

    def drop(self, methods: Sequence[str]) -> None:
        self.results = [result for result in self.results if result.method not in methods]
        self._rewrite()

    def refuse_other_rows(self, task: Task) -> None:
        others = {result.rows for result in self.results if result.task == task.name} - {len(task.y)}
        if others:
            raise ValueError(
                f"{self.path}: it has {task.name} over {others.pop()} rows, now it would be {len(task.y)}; "
                "name another directory with --out"
            )

    def table(self) -> pyarrow.Table:
        return pyarrow.Table.from_pylist([asdict(result) for result in self.results], SCHEMA)

    def _read(self) -> list[Result]:
        text = self.path.read_text()
        header, *lines = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1]))) or [list(COLUMNS)]
        if tuple(header) != COLUMNS:
            raise ValueError(f"{self.path}: not a leaderboard of this version; move it away, or name another directory")
        return [_parsed(line) for line in lines]

    def _rewrite(self) -> None:
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerows([COLUMNS, *(asdict(result).values() for result in self.results)])
        write_whole(self.path, text.getvalue().encode())


def _parsed(line: list[str]) -> Result:
    kinds = {"str": str, "int": int, "float": float}
    return Result(*(kinds[str(field.type)](value) for field, value in zip(fields(Result), line, strict=True)))


@contextmanager
def _bar(n_jobs: int, progress: bool | None) -> Iterator[Callable[[Result], None]]:
    """Something to call after each entry; a bar on standard error if that is wanted."""
    if not n_jobs or not (sys.stderr.isatty() if progress is None else progress):
        yield lambda result: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        all_jobs = bar.add_task("leaderboard", total=n_jobs)
        yield lambda result: bar.update(all_jobs, advance=1, description=f"{result.task}, {result.method}")
