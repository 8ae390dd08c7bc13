"""Recorded subjects: every file is read and learnt, several in parallel; then the report is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.files import write_run
from streamlasso.network.group import Group, times_within
from streamlasso.network.imaging.events import read_events
from streamlasso.network.imaging.series import subject_of
from streamlasso.network.options import Design, Images, Model
from streamlasso.network.results import NODE_COLUMNS, SubjectResult, follow_sparse
from streamlasso.network.subjects import Subject, find_files, open_atlas, read_subject, unused_files

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The group, the files that could not be used, with the reason, and those of the folders that are no data."""

    group: Group
    failures: dict[str, str]
    unused: list[str]


def run_network(
    data: Sequence[Path],
    out: Path,
    images: Images = Images(),  # noqa: B008 (frozen)
    design: Design = Design(),  # noqa: B008
    model: Model = Model(),  # noqa: B008
    jobs: int = 1,
    progress: bool = False,
) -> Outcome:
    """Learn the network of every subject, and write tables, figures and report.html to `out`.

    A subject that cannot be read does not stop the others; if none can be, that is an error.
    """
    if jobs < 1:
        raise ValueError(f"--jobs {jobs} is too few: use 1 or more")
    other = [images.atlas, images.labels, images.coords, design.events]
    paths = find_files(data, other)
    atlas = open_atlas(paths, images)
    if design.events is not None:
        read_events(design.events)
    jobs = min(jobs, len(paths))
    read = partial(read_subject, images=images, design=design, atlas=atlas, standardize=model.family == "gaussian")
    # All are read before any is learnt, so that wrong options are known early.
    subjects, unread = _each("read", paths, read, jobs, progress)
    _check_times(design, list(subjects.values()))
    n_jobs = 1 if jobs > 1 else None
    results, unlearnt = _each(
        "learnt", list(subjects), lambda path: _learn(subjects[path], design, model.build(n_jobs)), jobs, progress
    )
    failures = unread | unlearnt
    if not results:
        raise ValueError(next(iter(failures.values())))
    group = Group(tuple(results.values()), design)
    unused = unused_files(data, paths, other, images)
    write_run(out, group, model, {"data": [str(path) for path in paths], "failures": failures, "unused": unused})
    return Outcome(group, failures, unused)


def _learn(subject: Subject, design: Design, model: StreamingNetwork) -> SubjectResult:
    series = subject.series
    trace, edges = follow_sparse(model, series.values)
    return SubjectResult(
        series.subject,
        series.regions,
        subject.t,
        subject.seconds(design.start),
        **{name: getattr(trace, name) for name in NODE_COLUMNS},
        edges=edges,
        coords=series.coords,
        events=subject.events,
        notes=series.notes,
    )


def _check_times(design: Design, subjects: Sequence[Subject]) -> None:
    if subjects and design.at:
        seconds = [known for subject in subjects if (known := subject.seconds(design.start)) is not None]
        timed = len(seconds) == len(subjects)
        _, problem = times_within(design.at, seconds if timed else [subject.t for subject in subjects], timed)
        if problem:
            raise ValueError(problem)


# --- in parallel ------------------------------------------------------------------------------------------------------


def _each(
    done: str, paths: Sequence[Path], work: Callable[[Path], T], jobs: int, progress: bool
) -> tuple[dict[Path, T], dict[str, str]]:
    """The results of the work on each path, in order; and the reasons of those that failed."""
    results: dict[Path, T] = {}
    failures: dict[str, str] = {}
    shown = progress and sys.stderr.isatty()
    with Progress(console=Console(stderr=True), disable=not shown) as bar:
        task = bar.add_task(f"subjects {done}", total=len(paths))
        for path, result in _results(paths, work, jobs):
            if isinstance(result, Exception):
                failures[str(path)] = _reason(path, result)
            else:
                results[path] = result
            bar.advance(task)
    return {path: results[path] for path in paths if path in results}, failures


def _results(paths: Sequence[Path], work: Callable[[Path], T], jobs: int) -> Iterator[tuple[Path, T | Exception]]:
    if jobs == 1:
        for path in paths:
            yield path, _attempt(work, path)
        return
    # Threads are enough: the compiled core releases the GIL while it learns.
    with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_attempt, work, path): path for path in paths}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _attempt(work: Callable[[Path], T], path: Path) -> T | Exception:
    """The result, or the error that the input caused."""
    try:
        return work(path)
    except (ValueError, OSError) as error:
        return error


def _reason(path: Path, error: Exception) -> str:
    """The message of an error, with the file that it is about."""
    if isinstance(error, OSError):
        return f"{os.fspath(error.filename or path)}: {error.strerror or error}"
    text = str(error)
    return text if str(path) in text or text.startswith(f"{subject_of(path)}:") else f"{path}: {text}"
