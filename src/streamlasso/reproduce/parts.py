"""Studies in parts: each is run once, in any process, and saved whole; a study that was stopped goes on from there."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Protocol

import pyarrow
from pyarrow import parquet
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from streamlasso import __version__
from streamlasso._files import write_whole

#: Draws that are run in one go and saved together.
BLOCK = 10
#: Parts differ in length: the time that remains is told from all that were done within so many seconds.
SPEED_PERIOD = 1800.0

Tables = dict[str, pyarrow.Table]


class Job(Protocol):
    """What makes one part: it can go to another process, and its result depends on nothing but itself."""

    @property
    def start(self) -> int:
        """Its first draw."""

    @property
    def stem(self) -> str:
        """The name of the part, unlike any other of the study."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of its tables."""

    def run(self) -> Tables:
        """A table of each kind."""


#: A job and the directory of its study.
Planned = tuple[Path, Job]


def blocks(n: int) -> Iterator[tuple[int, int]]:
    """The draws 0 to n-1, `BLOCK` at a time.

    >>> list(blocks(25))
    [(0, 10), (10, 20), (20, 25)]
    """
    return ((start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def refuse_numbers(n: int, jobs: int) -> None:
    """Too few draws or processes."""
    if n < 2:
        raise ValueError(f"n={n}: two draws or more are needed for a standard error")
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: at least one process is needed")


def claim(folder: Path, **study: Any) -> None:
    """A directory holds one study, made by one version: parts of two would be mixed up."""
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    path, study = folder / "study.json", {**study, "streamlasso": __version__}
    saved = _read_json(path) if path.exists() else study
    for name in study.keys() | saved.keys():
        if saved.get(name) != study.get(name):
            raise ValueError(
                f"{folder} holds a study with {name}={saved.get(name)}, not {study.get(name)}; "
                "name another directory, or remove this one"
            )
    write_whole(path, (json.dumps(study) + "\n").encode())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text())
    except ValueError:
        saved = None
    if not isinstance(saved, dict):
        raise ValueError(f"{path}: not a study of streamlasso; name another directory")
    return saved


def run_jobs(planned: Sequence[Planned], jobs: int, progress: bool | None = None, title: str = "") -> None:
    """Run and save what is not saved yet, `jobs` processes at a time; a bar on standard error (None: if a terminal)."""
    left = [(folder, job) for folder, job in planned if not _is_saved(folder, job)]
    hidden = not left or not (sys.stderr.isatty() if progress is None else progress)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("parts,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(
        *columns, console=Console(stderr=True), disable=hidden, speed_estimate_period=SPEED_PERIOD, refresh_per_second=2
    ) as bar:
        task = bar.add_task(title, total=len(planned), completed=len(planned) - len(left))
        for (folder, job), tables in _results(left, jobs):
            for kind in job.kinds:
                write_table(_part(folder, job, kind), tables[kind])
            bar.advance(task)


def gathered(folder: Path, jobs: Sequence[Job], kind: str) -> pyarrow.Table:
    """The tables of one kind, one after another."""
    return pyarrow.concat_tables([_read_part(_part(folder, job, kind)) for job in jobs])


def write_table(path: Path, table: pyarrow.Table) -> None:
    """As Parquet, whole or not at all."""
    written = io.BytesIO()
    parquet.write_table(table, written)
    write_whole(path, written.getvalue())


def as_csv(lines: Sequence[Any]) -> str:
    """Records of one kind, every digit, under the names of their fields.

    >>> from dataclasses import make_dataclass
    >>> as_csv([make_dataclass("Point", ["x", "y"])(1, 0.5)])
    'x,y\\r\\n1,0.5\\r\\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(field.name for field in fields(lines[0]))
    writer.writerows(asdict(line).values() for line in lines)
    return text.getvalue()


def _part(folder: Path, job: Job, kind: str) -> Path:
    return folder / "parts" / f"{job.stem}.{kind}.parquet"


def _is_saved(folder: Path, job: Job) -> bool:
    return all(_part(folder, job, kind).exists() for kind in job.kinds)


def _read_part(path: Path) -> pyarrow.Table:
    try:
        return parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path}: this part is damaged; remove it, and run the command again") from error


# --- processes --------------------------------------------------------------------------------------------------------


def _results(left: Sequence[Planned], jobs: int) -> Iterator[tuple[Planned, Tables]]:
    if jobs == 1:
        yield from (((folder, job), _run(job)) for folder, job in left)
        return
    others = multiprocessing.active_children()
    # A fresh interpreter each: a fork of one that has threads can hang.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_be_a_child) as pool:
        futures = {pool.submit(_run, job): (folder, job) for folder, job in left}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            # A part takes many seconds: whoever interrupts does not want to wait for it.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()
            raise


def _be_a_child() -> None:
    """An interrupt from the keyboard reaches all processes, and the first one deals with it; if that is gone, end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(job: Job) -> Tables:
    with threadpool_limits(1):
        return job.run()
