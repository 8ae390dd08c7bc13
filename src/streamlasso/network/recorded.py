"""Recorded subjects, from their files to tables, figures and a report; several in parallel."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from streamlasso import __version__
from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.imaging.bids import read_events
from streamlasso.network.imaging.series import subject_of
from streamlasso.network.options import Design, Images, Model
from streamlasso.network.report.files import REPORT, write_settings, write_tables
from streamlasso.network.report.group import Group, edge_table, lam_table, moments_within
from streamlasso.network.results import Followed, follow
from streamlasso.network.subjects import Subject, find_files, open_atlas, read_subject

T = TypeVar("T")


def learn(subject: Subject, design: Design, model: StreamingNetwork) -> Followed:
    """One subject, from its first time point to its last."""
    series = subject.series
    trace, edges = follow(model, series.values)
    return Followed(
        series.subject,
        series.regions,
        subject.t,
        subject.seconds(design.start),
        trace.lam,
        trace.lam_max,
        trace.loss,
        trace.n_active,
        edges,
        series.coords,
        subject.events,
        series.notes,
    )


@dataclass(frozen=True)
class Outcome:
    """What came of a run: the group, and the files that could not be read, with the reason."""

    group: Group
    failures: dict[str, str]


def run_network(
    data: Sequence[Path],
    out: Path,
    images: Images = Images(),  # noqa: B008 (frozen)
    design: Design = Design(),  # noqa: B008
    model: Model = Model(),  # noqa: B008
    jobs: int = 1,
    progress: bool = False,
) -> Outcome:
    """Follow every subject, and write tables, figures and report.html to `out`; made if it is not there.

    A subject that cannot be read does not keep the others from being learnt; if none can, that is an error.
    """
    if jobs < 1:
        raise ValueError(f"--jobs {jobs}: at least one thread is needed")
    paths = find_files(data, [images.atlas, images.labels, images.coords, design.events])
    atlas = open_atlas(paths, images)
    if design.events is not None:
        read_events(design.events)
    jobs = min(jobs, len(paths))
    threads = 1 if jobs > 1 else None
    continuous = model.family == "gaussian"
    read = partial(read_subject, images=images, design=design, atlas=atlas, standardize=continuous)
    # All are read before any is learnt: what is wrong with the command is known early then.
    subjects, failures = _each("read", paths, read, jobs, progress)
    _check_moments(design, list(subjects.values()))
    found, unlearnt = _each(
        "learnt", list(subjects), lambda path: learn(subjects[path], design, model.build(threads)), jobs, progress
    )
    failures |= unlearnt
    if not found:
        raise ValueError(next(iter(failures.values())))
    group = Group(tuple(found.values()), design)
    write_group(out, group, {**described(model), "data": [str(path) for path in paths], "failures": failures})
    return Outcome(group, failures)


def described(model: Model) -> dict[str, Any]:
    """The settings, for run.json and the report."""
    return {"model": asdict(model), "streamlasso": __version__}


def write_group(out: Path, group: Group, settings: dict[str, Any]) -> None:
    """Tables, figures drawn from them, and the report."""
    from streamlasso.network.report.figures import write_figures
    from streamlasso.network.report.page import write_network_page

    lam, edges = lam_table(group), edge_table(group)
    out.mkdir(parents=True, exist_ok=True)
    settings = {**settings, "design": {**asdict(group.design), "events": str(group.design.events or "")}}
    write_tables(out, group, lam, edges)
    figures = write_figures(out, lam, edges, group)
    write_network_page(out / REPORT, group, edges, figures, settings)
    write_settings(out, group, settings)


def _check_moments(design: Design, subjects: Sequence[Subject]) -> None:
    if subjects and design.at:
        seconds = [known for subject in subjects if (known := subject.seconds(design.start)) is not None]
        timed = len(seconds) == len(subjects)
        _, words = moments_within(design.at, seconds if timed else [subject.t for subject in subjects], timed)
        if words:
            raise ValueError(words)


# --- side by side -----------------------------------------------------------------------------------------------------


def _each(
    done: str, paths: Sequence[Path], work: Callable[[Path], T], jobs: int, progress: bool
) -> tuple[dict[Path, T], dict[str, str]]:
    """What came of the work on each path, in their order, and which failed why."""
    found: dict[Path, T] = {}
    failures: dict[str, str] = {}
    shown = progress and sys.stderr.isatty()
    with Progress(console=Console(stderr=True), disable=not shown) as bar:
        going = bar.add_task(f"subjects {done}", total=len(paths))
        for path, result in _results(paths, work, jobs):
            if isinstance(result, Exception):
                failures[str(path)] = _words(path, result)
            else:
                found[path] = result
            bar.advance(going)
    return {path: found[path] for path in paths if path in found}, failures


def _results(paths: Sequence[Path], work: Callable[[Path], T], jobs: int) -> Iterator[tuple[Path, T | Exception]]:
    if jobs == 1:
        for path in paths:
            yield path, _attempted(work, path)
        return
    # Threads do: the compiled core lets others run while it learns.
    with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_attempted, work, path): path for path in paths}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _attempted(work: Callable[[Path], T], path: Path) -> T | Exception:
    """What came of it, or the complaint about its input."""
    try:
        return work(path)
    except (ValueError, OSError) as error:
        return error


def _words(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{os.fspath(error.filename or path)}: {error.strerror or error}"
    words = str(error)
    told = (f"{path}:", f"{subject_of(path)}:")
    return words if words.startswith(told) else f"{path}: {words}"
