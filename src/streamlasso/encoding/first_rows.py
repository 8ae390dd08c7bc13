"""From the first rows to an encoder: which columns give features, how each is read, and what the target is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow

from streamlasso.encoding.columns import Column
from streamlasso.encoding.detect_columns import detect_column
from streamlasso.encoding.detect_formats import detect_formats
from streamlasso.encoding.encoder import Encoder
from streamlasso.encoding.lags import Lags
from streamlasso.encoding.notes import first_row_notes
from streamlasso.encoding.reading import is_nested
from streamlasso.encoding.suggestions import refuse_unknown
from streamlasso.encoding.target import Target


def detect_encoder(rows: pyarrow.RecordBatch, target: str, family: str = "auto", **options: Any) -> Encoder:
    """The encoder of a table by its first rows, with notes about what is unusual in them.

    `target` is a column and `family` the name of its family, or "auto"; the options are those of `encoder_for`.

    >>> import pyarrow
    >>> from streamlasso.encoding import detect_encoder
    >>> rows = pyarrow.RecordBatch.from_pydict({"price": ["1,5", "2,25"], "y": ["0,5", "7,5"]})
    >>> encoder = detect_encoder(rows, "y")
    >>> encoder.features, encoder.notes
    (['price'], ["'1,5' is read as 1.5 (columns price and y)"])
    """
    formats = detect_formats(rows)
    encoder = encoder_for(rows, Target.guess(target, rows[target], family, formats.get(target)), formats, **options)
    encoder.notes += first_row_notes(rows, encoder, formats)
    return encoder


def encoder_for(
    rows: pyarrow.RecordBatch,
    target: Target,
    formats: Mapping[str, str] | None = None,
    *,
    keep: Iterable[str] = (),
    drop: Iterable[str] = (),
    lags: Mapping[str, list[int]] | None = None,
    time: str | None = None,
) -> Encoder:
    """The encoder for a target whose columns are like those of the first rows.

    formats : the number formats of columns that are not plain
    keep, drop : the columns to use, if not all, and those to leave out
    lags : for columns or the target, how many rows back earlier values are features
    time : the column with the time of each row; None takes the first column of dates

    >>> import pyarrow
    >>> from streamlasso.encoding import Target, encoder_for
    >>> rows = pyarrow.RecordBatch.from_pydict({"a": [1, 2], "b": ["u", "v"], "y": [0.5, 1.5]})
    >>> encoder_for(rows, Target.guess("y", rows["y"], "auto"), drop=["a"], lags={"y": [1]}).features
    ['b = u', 'b = v', 'y lag 1']
    """
    formats, keep, drop = formats or {}, list(keep), list(drop)
    _refuse_unknown(rows, {"--keep": keep, "--drop": drop, "--lags": lags or {}, "--time": [time] if time else []})
    names = [name for name in (keep or rows.schema.names) if name != target.name and name not in drop]
    columns, notes = _usable(rows, names, keep, formats)
    time = time or next((column.name for column in columns if column.is_time), None)
    # A number that is the time of a row is not a feature.
    columns = [column for column in columns if column.name != time or not column.is_numeric]
    time_column = detect_column(time, rows[time], formats.get(time)) if time else None
    encoder = Encoder(
        target, columns, lags=Lags(lags or {}, target, columns), time=time, time_column=time_column, notes=notes
    )
    encoder.add_features(rows)
    if not encoder.features:
        raise ValueError(
            f"no feature is left besides the target {target.name!r}: change --keep or --drop, or use its past, "
            f"--lags {shlex.quote(target.name)}:1" + "".join(f"; {note}" for note in notes[:3])
        )
    return encoder


def _refuse_unknown(rows: pyarrow.RecordBatch, options: Mapping[str, Iterable[str]]) -> None:
    for option, names in options.items():
        for name in names:
            refuse_unknown(option, name, rows.schema.names)


def _usable(
    rows: pyarrow.RecordBatch, names: list[str], keep: list[str], formats: Mapping[str, str]
) -> tuple[list[Column], list[str]]:
    """The columns that give features, and notes on those that are left out."""
    nested = [name for name in names if is_nested(rows[name]) and name not in keep]
    notes = [f"it holds {rows[name].type}, not numbers, text or dates" for name in nested]
    notes = [f"column {name!r} is left out: {why}" for name, why in zip(nested, notes, strict=True)]
    columns = []
    for name in names:
        if name in nested:
            continue
        column = detect_column(name, rows[name], formats.get(name))
        why = _why_not(column, rows[name], name in keep)
        if why:
            notes.append(f"column {name!r} is left out: {why}")
        else:
            columns.append(column)
    return columns, notes


def _why_not(column: Column, cells: pyarrow.Array, kept: bool) -> str:
    """Why a column gives no feature; empty if it does."""
    if column.is_empty:
        return f"it is empty in the first {len(cells):,} rows"
    if not kept and not column.is_useful(cells):
        return f"its text differs in nearly every row; --keep {shlex.quote(column.name)} keeps it"
    return ""
