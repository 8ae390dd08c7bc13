"""Recorded subjects: every file is read and learnt, then the report is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

from streamlasso.families import FAMILIES
from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.files import write_run
from streamlasso.network.group import Group
from streamlasso.network.imaging.events import read_events
from streamlasso.network.imaging.series import subject_of
from streamlasso.network.options import Design, Images, Model
from streamlasso.network.results import NODE_COLUMNS, SubjectResult, follow_sparse
from streamlasso.network.subjects import Subject, find_files, open_atlas, read_subject

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The group, and the files that could not be used, with the reason."""

    group: Group
    failures: dict[str, str]


def run_network(
    data: Sequence[Path],
    out: Path,
    images: Images = Images(),  # noqa: B008 (frozen)
    design: Design = Design(),  # noqa: B008
    model: Model = Model(),  # noqa: B008
    progress: bool = False,
) -> Outcome:
    """Learn the network of every subject, and write tables, figures and report.html to `out`.

    A subject that cannot be read does not stop the others; if none can be, that is an error.
    """
    other = [images.atlas, images.labels, images.coords, design.events]
    paths = find_files(data, other)
    atlas = open_atlas(paths, images)
    if design.events is not None:
        read_events(design.events)
    numbers = FAMILIES[model.family]().quadratic
    read = partial(read_subject, images=images, design=design, atlas=atlas, standardize=numbers)
    # All are read before any is learnt, so that wrong options are known early.
    subjects, unread = _each("read", paths, read, progress)
    results, unlearnt = _each(
        "learnt", list(subjects), lambda path: _learn(subjects[path], design, model.build()), progress
    )
    failures = unread | unlearnt
    if not results:
        raise ValueError(next(iter(failures.values())))
    group = Group(tuple(results.values()), design)
    write_run(out, group, model, {"data": [str(path) for path in paths], "failures": failures})
    return Outcome(group, failures)


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


def _each(
    done: str, paths: Sequence[Path], work: Callable[[Path], T], progress: bool
) -> tuple[dict[Path, T], dict[str, str]]:
    """The results of the work on each path; and the reasons of those whose input made it fail."""
    results: dict[Path, T] = {}
    failures: dict[str, str] = {}
    shown = progress and sys.stderr.isatty()
    with Progress(console=Console(stderr=True), disable=not shown) as bar:
        for path in bar.track(paths, description=f"subjects {done}"):
            try:
                results[path] = work(path)
            except (ValueError, OSError) as error:
                failures[str(path)] = _reason(path, error)
    return results, failures


def _reason(path: Path, error: Exception) -> str:
    """The message of an error, with the file that it is about."""
    if isinstance(error, OSError):
        return f"{os.fspath(error.filename or path)}: {error.strerror or error}"
    text = str(error)
    return text if str(path) in text or text.startswith(f"{subject_of(path)}:") else f"{path}: {text}"
