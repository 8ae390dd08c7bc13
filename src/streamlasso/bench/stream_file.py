"""A file of rows -> a task: read and encoded as by `streamlasso run`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso._text import count
from streamlasso.bench.losses import BURN_IN, LOSS_NAMES
from streamlasso.bench.task import Task
from streamlasso.data.encoding import Encoder, Target, detect_encoder
from streamlasso.data.encoding.suggestions import refuse_unknown
from streamlasso.families import FAMILIES
from streamlasso.model.start import MOST_MIXED
from streamlasso.run.data import Data

#: Rows that are read by default, and the fewest that can be compared on.
ROWS, FEWEST_ROWS = 5000, 2 * BURN_IN


@dataclass(frozen=True)
class StreamFile:
    """What to read, and how; `data` is a path, or "-" for standard input. The options are those of `streamlasso run`.

    rows : the number of rows to read
    """

    data: str
    target: str
    family: str = "auto"
    rows: int = ROWS
    time: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    lags: dict[str, list[int]] = field(default_factory=dict)
    on_error: str = "stop"

    def __post_init__(self) -> None:
        if self.family not in ("auto", *LOSS_NAMES):
            raise ValueError(f"--family {self.family} has no peers: use auto, {', '.join(LOSS_NAMES)}")
        if self.rows < FEWEST_ROWS:
            raise ValueError(
                f"--rows {self.rows} is too few: the first {BURN_IN} rows are not scored; use {FEWEST_ROWS} or more"
            )

    @property
    def name(self) -> str:
        """What the stream is called in tables."""
        return "standard input" if self.data == "-" else Path(self.data).name.split(".")[0]


def read_task(file: StreamFile) -> tuple[Task, list[str]]:
    """The first rows with a target as a task, and notes about how they were read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamlasso.bench.stream_file import StreamFile, read_task
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.csv")
    ...     _ = path.write_text("rain,visits\\n" + "".join(f"{i % 7},{i * 5 % 11}\\n" for i in range(120)))
    ...     task, notes = read_task(StreamFile(str(path), "visits"))
    >>> task.name, task.family, task.X.shape, task.names
    ('visits', 'poisson', (120, 1), ['rain'])
    """
    data = Data(file.data, file.on_error)
    first = data.first_rows()
    refuse_unknown("--target", file.target, data.columns)
    columns: dict[str, Any] = {"keep": file.keep, "drop": file.drop, "lags": file.lags, "time": file.time}
    encoder = detect_encoder(first, file.target, file.family, decimal_comma=data.decimal_comma, **columns)
    X, y, all_read = _rows(file, encoder, data)
    _refuse(file, X, y)
    varies = np.ptp(X, axis=0) > 0
    names = [name for name, kept in zip(encoder.features, varies, strict=True) if kept]
    task = _task(file.name, encoder.target, np.ascontiguousarray(X[:, varies]), y, names)
    return task, [*_introduction(task, encoder.target), *encoder.notes, *_left_out(file, data, all_read)]


def _task(name: str, target: Target, X: np.ndarray, y: np.ndarray, names: list[str]) -> Task:
    if target.classes is None:
        return Task(name, target.family, X, y, names)
    classes, numbers = np.unique(y, return_inverse=True)
    return Task(name, target.family, X, numbers.astype(float), names, len(classes))


# --- reading ----------------------------------------------------------------------------------------------------------


def _rows(file: StreamFile, encoder: Encoder, data: Data) -> tuple[np.ndarray, np.ndarray, bool]:
    """The rows with a target (and, where lags were asked for, with a past), their targets, and whether that is all."""
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    n_rows, classes = 0, encoder.target.classes is not None
    for rows, _ in data.encoded(encoder):
        usable = rows.target >= 0 if classes else ~np.isnan(rows.target)
        if encoder.lags.steps and not n_rows and usable.any():
            usable[np.argmax(usable)] = False
        parts.append((rows.X[usable], rows.target[usable].astype(float)))
        n_rows += int(usable.sum())
        if n_rows > file.rows:
            break
    # A feature that appeared late was 0 until then.
    X = np.vstack([np.pad(X, [(0, 0), (0, len(encoder.features) - X.shape[1])]) for X, _ in parts])
    y = np.concatenate([y for _, y in parts])
    return X[: file.rows], y[: file.rows], n_rows <= file.rows


# --- errors and notes -------------------------------------------------------------------------------------------------


def _refuse(file: StreamFile, X: np.ndarray, y: np.ndarray) -> None:
    """Streams on which nothing can be compared."""
    if len(y) < FEWEST_ROWS:
        raise ValueError(
            f"{file.data} has {count(len(y), 'row')} with a target, which is too few: the first {BURN_IN} are not "
            f"scored; {FEWEST_ROWS} or more are needed"
        )
    if np.ptp(y[BURN_IN:]) == 0:
        raise ValueError(f"--target {file.target} is always the same after row {BURN_IN}: there is nothing to predict")
    n_features = int(np.count_nonzero(np.ptp(X, axis=0)))
    if not n_features:
        raise ValueError(f"no feature of {file.data} varies in the first {len(y):,} rows: there is nothing to learn")
    if n_features > MOST_MIXED:
        raise ValueError(
            f"{n_features:,} features are too many for the default of streamlasso ({MOST_MIXED:,}): choose columns "
            "with --keep or --drop"
        )


def _introduction(task: Task, target: Target) -> list[str]:
    kind = FAMILIES[task.family].response if target.classes is None else f"{task.n_classes} classes"
    how = "guessed from the first rows; --family overrides it" if target.guessed else "as given"
    n_rows, n_features = count(len(task.y), "row"), count(task.X.shape[1], "feature")
    return [f"{task.name}: {n_rows}, {n_features}; target {target.name}: {kind} ({how})"]


def _left_out(file: StreamFile, data: Data, all_read: bool) -> list[str]:
    notes = [] if all_read else [f"the file has more rows: --rows N reads the first N instead of {file.rows:,}"]
    if data.n_bad:
        notes.append(f"{count(data.n_bad, 'unreadable row')} left out, the first: {data.bad_examples[0]}")
    return notes
