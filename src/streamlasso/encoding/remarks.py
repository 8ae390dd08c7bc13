"""What a user should hear of the first rows before anything is learnt."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow

from streamlasso.encoding import codes, forms, leakage, reading
from streamlasso.encoding.columns import Calendar, Number
from streamlasso.encoding.dates import SINCE_1970
from streamlasso.encoding.encoder import Encoder


def remarks(rows: pyarrow.RecordBatch, encoder: Encoder, written: Mapping[str, str]) -> list[str]:
    """Numbers that are written oddly (`written`: in which form) or stand for none, times, and who is the target."""
    target, columns = encoder.target, encoder.columns
    numbers = {column.name: column.read(rows[column.name])[0] for column in columns if isinstance(column, Number)}
    if target.classes is None:
        numbers[target.name] = reading.numbers(rows[target.name], target.form)[0]
    times = [column for column in columns if isinstance(column, Calendar) and column.form in SINCE_1970]
    return [
        *forms.said(rows, written, numbers),
        *codes.said(numbers),
        *(f"{column.name} is read as {column.form} since 1970" for column in times),
        *leakage.said(target.name, leakage.disguise(rows, target, columns)),
    ]
