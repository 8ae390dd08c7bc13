"""Recorded subjects, from their files to tables, figures and a report; several in parallel."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from streamlasso import __version__
from streamlasso.networks.files import REPORT, write_settings, write_tables
from streamlasso.networks.following import Followed, follow
from streamlasso.networks.options import Design, Images, Model
from streamlasso.networks.subjects import find_files, open_atlas, read_subject
from streamlasso.networks.summary import Group, edge_table, lam_table
from streamlasso.sources.atlas import Atlas
from streamlasso.sources.bids import read_events
from streamlasso.sources.series import subject_of


@dataclass(frozen=True)
class _Task:
    """All that it takes to follow one subject."""

    path: Path
    images: Images
    design: Design
    model: Model
    atlas: Atlas | None
    threads: int | None

    def run(self) -> Followed:
        continuous = self.model.family == "gaussian"
        subject = read_subject(self.path, self.images, self.design, self.atlas, standardize=continuous)
        series = subject.series
        trace, edges = follow(self.model.build(self.threads), series.values)
        t = np.arange(len(series.values))
        return Followed(
            series.subject,
            series.regions,
            t,
            None if series.tr is None else self.design.start + t * series.tr,
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
    threads = 1 if min(jobs, len(paths)) > 1 else None
    tasks = [_Task(path, images, design, model, atlas, threads) for path in paths]
    found, failures = _followed(tasks, min(jobs, len(paths)), progress)
    if not found:
        raise ValueError(next(iter(failures.values())))
    group = Group(tuple(found), design)
    write_group(out, group, {**described(model), "data": [str(path) for path in paths], "failures": failures})
    return Outcome(group, failures)


def described(model: Model) -> dict[str, Any]:
    """The settings, for run.json and the report."""
    return {"model": asdict(model), "streamlasso": __version__}


def write_group(out: Path, group: Group, settings: dict[str, Any]) -> None:
    """Tables, figures drawn from them, and the report."""
    from streamlasso.networks.drawing import write_figures
    from streamlasso.networks.page import write_network_page

    lam, edges = lam_table(group), edge_table(group)
    out.mkdir(parents=True, exist_ok=True)
    settings = {**settings, "design": {**asdict(group.design), "events": str(group.design.events or "")}}
    write_tables(out, group, lam, edges)
    figures = write_figures(out, lam, edges, group)
    write_network_page(out / REPORT, group, edges, figures, settings)
    write_settings(out, group, settings)


# --- side by side -----------------------------------------------------------------------------------------------------


def _followed(tasks: list[_Task], jobs: int, progress: bool) -> tuple[list[Followed], dict[str, str]]:
    """What came of each task, in their order, and which failed why."""
    found: dict[int, Followed] = {}
    failures: dict[str, str] = {}
    shown = progress and sys.stderr.isatty()
    with Progress(console=Console(stderr=True), disable=not shown) as bar:
        going = bar.add_task("subjects", total=len(tasks))
        for k, result in _results(tasks, jobs):
            if isinstance(result, Exception):
                failures[str(tasks[k].path)] = _words(tasks[k].path, result)
            else:
                found[k] = result
            bar.advance(going)
    return [found[k] for k in sorted(found)], failures


def _results(tasks: list[_Task], jobs: int) -> Any:
    if jobs == 1:
        for k, task in enumerate(tasks):
            yield k, _attempted(task)
        return
    # Threads do: the compiled core lets others run while it learns.
    with threadpool_limits(1), ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_attempted, task): k for k, task in enumerate(tasks)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _attempted(task: _Task) -> Any:
    """What came of it, or the complaint about its input."""
    try:
        return task.run()
    except (ValueError, OSError) as error:
        return error


def _words(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{os.fspath(error.filename or path)}: {error.strerror or error}"
    words = str(error)
    told = (f"{path}:", f"{subject_of(path)}:")
    return words if words.startswith(told) else f"{path}: {words}"
