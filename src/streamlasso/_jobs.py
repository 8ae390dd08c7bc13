"""Jobs in processes of their own, with a bar that shows how many are done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

#: Jobs differ in length: the remaining time is estimated from all that ended within so many seconds.
SPEED_PERIOD = 1800.0

Job = TypeVar("Job")
Result = TypeVar("Result")


def refuse_processes(jobs: int) -> None:
    """An error if there is no process to run anything in."""
    if jobs < 1:
        raise ValueError(f"jobs={jobs} is too few: at least one process is needed")


def completed(run: Callable[[Job], Result], jobs: Sequence[Job], n_processes: int = 1) -> Iterator[tuple[Job, Result]]:
    """Each job with its result as soon as it is done, on one thread each; one process is this one.

    >>> list(completed(abs, [-1, 2]))
    [(-1, 1), (2, 2)]
    """
    if n_processes == 1:
        yield from ((job, _on_one_thread(run, job)) for job in jobs)
        return
    others = multiprocessing.active_children()
    # Spawned, not forked: a fork of a process that has threads can hang.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=spawn, initializer=_start_worker) as pool:
        futures = {pool.submit(_on_one_thread, run, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            # A job takes many seconds: after an interruption nobody waits for it.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()
            raise


def _on_one_thread(run: Callable[[Job], Result], job: Job) -> Result:
    with threadpool_limits(1):
        return run(job)


def _start_worker() -> None:
    """Ctrl-C reaches all processes, and the parent handles it; a worker whose parent is gone ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def job_bar(title: str, n_jobs: int, n_done: int = 0, shown: bool | None = None) -> Iterator[Callable[[str], None]]:
    """A progress bar on standard error; call what it gives after each job, with a description of the job.

    shown : None shows the bar if standard error is a terminal
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jobs,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    hidden = n_done == n_jobs or not (sys.stderr.isatty() if shown is None else shown)
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, disable=hidden, speed_estimate_period=SPEED_PERIOD, refresh_per_second=2
    ) as bar:
        task = bar.add_task(title, total=n_jobs, completed=n_done)
        yield lambda description: bar.update(task, advance=1, description=description)
