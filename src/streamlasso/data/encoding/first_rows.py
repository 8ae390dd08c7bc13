"""From the first rows to an encoder: which columns give features, how each is read, and what the target is."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import pyarrow
from pyarrow import types

from streamlasso.data.encoding import reading
from streamlasso.data.encoding.columns import Column, DateColumn, NumberColumn, TextColumn
from streamlasso.data.encoding.detect_formats import detect_formats, format_notes
from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.lags import Lags
from streamlasso.data.encoding.notes import first_row_notes
from streamlasso.data.encoding.reading import is_nested
from streamlasso.data.encoding.suggestions import refuse_unknown, suggestion
from streamlasso.data.encoding.target import Target
from streamlasso.data.encoding.times import dates, spacing
from streamlasso.data.encoding.times.dates import YEARS
from streamlasso.data.encoding.times.joined_times import JoinedTime, joined_time
from streamlasso.data.encoding.times.spacing import is_in_order, is_mostly_forward, season_of


def detect_encoder(
    rows: pyarrow.RecordBatch, target: str, family: str = "auto", *, decimal_comma: bool = False, **options: Any
) -> Encoder:
    """The encoder of a table by its first rows, with notes about what is unusual in them.

    `target` is a column and `family` the name of its family, or "auto"; `decimal_comma`: where both are possible, a
    comma is a decimal mark; the options are those of `encoder_for`.

    >>> import pyarrow
    >>> from streamlasso.data.encoding import detect_encoder
    >>> rows = pyarrow.RecordBatch.from_pydict({"price": ["1,5", "2,25"], "y": ["0,5", "7,5"]})
    >>> encoder = detect_encoder(rows, "y")
    >>> encoder.features, encoder.notes
    (['price'], ["'1,5' is read as 1.5 (columns price and y)"])
    """
    formats = detect_formats(rows, decimal_comma)
    encoder = encoder_for(rows, Target.guess(target, rows[target], family, formats.get(target)), formats, **options)
    encoder.notes += first_row_notes(encoder.with_time(rows), encoder, formats)
    return encoder


def encoder_for(
    rows: pyarrow.RecordBatch,
    target: Target,
    formats: Mapping[str, str] | None = None,
    *,
    keep: Iterable[str] = (),
    drop: Iterable[str] = (),
    lags: Mapping[str, list[int]] | Literal["auto"] | None = None,
    time: str | None = None,
    key: str | None = None,
    needs_features: bool = True,
) -> Encoder:
    """The encoder for a target whose columns are like those of the first rows.

    formats : the number formats of columns that are not plain
    keep, drop : the columns to use, if not all, and those to leave out
    lags : for columns or the target, how many rows back earlier values are features. "auto": of the target the last one
        and that of the last season, where the rows are in the order of time
    time : the column with the time of each row; None takes the first column of dates that never runs back, or the first
    key : the column with the key of each row, which is no feature; lags count the rows of the same key
    needs_features : whether a table that gives none is refused

    >>> import pyarrow
    >>> from streamlasso.data.encoding import Target, encoder_for
    >>> rows = pyarrow.RecordBatch.from_pydict({"a": [1, 2], "b": ["u", "v"], "y": [0.5, 1.5]})
    >>> encoder_for(rows, Target.guess("y", rows["y"], "auto"), drop=["a"], lags={"y": [1]}).features
    ['b = u', 'b = v', 'y lag 1']
    """
    formats, keep, drop = formats or {}, list(keep), list(drop)
    given: Mapping[str, list[int]] = {} if lags is None or lags == "auto" else lags
    _refuse_unknown(rows, {"--keep": keep, "--drop": drop, "--lags": given, "--time": [time] if time else []})
    names = [name for name in (keep or rows.schema.names) if name not in (target.name, key) and name not in drop]
    columns, notes = _usable(rows, names, keep, formats)
    joined = joined_time(rows, columns) if time is None else None
    if joined is not None:
        rows, time = joined.added_to(rows), joined.name
        columns = [detect_column(time, rows[time]), *(column for column in columns if not _within(column, joined))]
    time = time or _time_among(rows, columns)
    # A number that is the time of a row is not a feature.
    columns = [column for column in columns if column.name != time or not column.is_numeric]
    time_column = detect_column(time, rows[time], formats.get(time)) if time else None
    moments = _moments(rows, time_column) if time_column is not None and time_column.is_time else np.empty(0)
    series = [moments] if key is None else _moments_by_key(rows, time_column, key)
    season = season_of(max(series, key=len))
    if lags == "auto":
        given = _lags_in_time(target.name, all(map(is_in_order, series)) or (needs_features and not columns), season)
    encoder = Encoder(
        target,
        columns,
        lags=Lags(given, target, columns),
        time=time,
        time_column=time_column,
        joined=joined,
        season=season,
        in_time=is_mostly_forward(moments),
        key=key,
        notes=notes,
    )
    encoder.add_features(rows)
    if needs_features and not encoder.features:
        raise ValueError(
            f"no feature is left besides the target {target.name!r}: change --keep or --drop, or use its past, "
            f"--lags {shlex.quote(target.name)}:1" + "".join(f"; {note}" for note in notes[:3])
        )
    return encoder


def _within(column: Column, joined: JoinedTime) -> bool:
    """Dates and clocks are in the joined time; numbers, such as the month, stay features."""
    return column.name in joined.columns and not column.is_numeric


def _time_among(rows: pyarrow.RecordBatch, columns: list[Column]) -> str | None:
    """The first column of dates that never runs back; if all do, the first, but not a mere year."""
    moments = {column.name: _moments(rows, column) for column in columns if column.is_time}
    forward = [name for name, values in moments.items() if np.all(values[1:] >= values[:-1])]
    dated = [column.name for column in columns if column.is_time and column.format != YEARS]
    return next(iter([*forward, *dated]), None)


def _moments(rows: pyarrow.RecordBatch, column: Column) -> np.ndarray:
    values, _ = column.read(rows[column.name])
    return values[~column.missing(values)]


def _moments_by_key(rows: pyarrow.RecordBatch, column: Column | None, key: str) -> list[np.ndarray]:
    """Of each key the times of its rows; of keys with one row, which are in any order, none."""
    if column is None or not column.is_time:
        return [np.empty(0)]
    values, _ = column.read(rows[column.name])
    keys = reading.keys(rows[key])
    by_key: dict[str, list[int]] = {}
    for i in np.flatnonzero(~column.missing(values)).tolist():
        by_key.setdefault(keys[i], []).append(i)
    return [values[of_key] for of_key in by_key.values() if len(of_key) > 1] or [np.empty(0)]


def _lags_in_time(target: str, are_known: bool, season: int | None) -> dict[str, list[int]]:
    """The lags of the target that are features: none where the rows before need not be known."""
    return {target: [1, *([season] if season else [])]} if are_known else {}


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
        return f"its text hardly repeats, as that of a name does; --keep {shlex.quote(column.name)} keeps it"
    return ""


def detect_column(name: str, cells: pyarrow.Array, number_format: str | None = None) -> Column:
    """A column of the right kind. The first value that is there stands for those missing before it."""
    column = _column(name, cells, number_format)
    values, _ = column.read(cells)
    there = np.flatnonzero(~column.missing(values))
    if len(there):
        column.last = values[there[0]]
    return column


def _column(name: str, cells: pyarrow.Array, number_format: str | None) -> Column:
    if reading.is_nested(cells):
        raise ValueError(
            f"column {name!r} holds {cells.type}, not numbers, text or dates: leave it out with "
            f"--drop {shlex.quote(name)}"
        )
    if reading.is_temporal(cells):
        return _date_column(name, cells, None)
    if types.is_dictionary(cells.type):
        return TextColumn(name)
    if not reading.is_text(cells) or reading.holds_numbers(cells, number_format):
        since = dates.format_of_numbers(name, cells)
        return NumberColumn(name, format=number_format) if since is None else _date_column(name, cells, since)
    date_format = dates.format_of(cells)
    return TextColumn(name) if date_format is None else _date_column(name, cells, date_format)


def _date_column(name: str, cells: pyarrow.Array, date_format: str | None) -> DateColumn:
    values, _ = dates.parse(cells, date_format)
    values = values[~np.isnat(values)]
    of_day = types.is_time(cells.type) if date_format is None else date_format in dates.TIMES
    parts = ("hour",) if of_day else spacing.parts_of(values)
    return DateColumn(name, format=date_format, parts=parts, start=str(values[0]) if len(values) else "1970-01-01")


#: A name that no column has.
NO_TARGET = "\0 no target"


def without_target(
    rows: pyarrow.RecordBatch,
    *,
    keep: Iterable[str] | None = None,
    drop: Iterable[str] | None = None,
    time: str | None = None,
) -> Encoder:
    """The encoder of a table by its first rows, where there is nothing to predict; the options of `encoder_for`."""
    for option, given in {"keep": keep, "drop": drop}.items():
        if isinstance(given, str):
            raise ValueError(f"{option}={given!r} is not a list: use [{given!r}]")
    keep, drop = list(keep or ()), list(drop or ())
    for option, names in {"keep": keep, "drop": drop, "time": [time] if time else []}.items():
        for name in names:
            if name not in rows.schema.names:
                raise ValueError(f"{option}: {name!r} is not a column: {suggestion(name, rows.schema.names)}")
    formats = detect_formats(rows)
    try:
        encoder = encoder_for(rows, Target(NO_TARGET, "gaussian"), formats, keep=keep, drop=drop, time=time)
    except ValueError as error:
        if NO_TARGET not in str(error):
            raise
        raise ValueError("no column of X gives a feature: all are empty, text that never repeats, or dropped") from None
    numeric = [column.name for column in encoder.columns if column.is_numeric]
    encoder.notes += format_notes(rows, formats, numeric)
    return encoder
