"""Encoders of rows without a target, and copies of them that may run ahead."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import pyarrow

from streamlasso.data.encoding.detect_formats import detect_formats, format_notes
from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.first_rows import encoder_for
from streamlasso.data.encoding.suggestions import suggestion
from streamlasso.data.encoding.target import Target

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


def ahead(encoder: Encoder) -> Encoder:
    """A copy that encodes the next rows while the encoder itself stays where it is."""
    other = copy(encoder)
    other.columns = [copy(column) for column in encoder.columns]
    other.features, other.place, other.notes = list(encoder.features), dict(encoder.place), list(encoder.notes)
    return other
