"""What a user should know about the first rows before anything is learnt."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow

from streamlasso.encoding import reading
from streamlasso.encoding.dates import SINCE_1970
from streamlasso.encoding.detect_formats import format_notes
from streamlasso.encoding.encoder import Encoder
from streamlasso.encoding.leakage import leakage_notes, leaking_columns
from streamlasso.encoding.placeholders import placeholder_notes


def first_row_notes(rows: pyarrow.RecordBatch, encoder: Encoder, formats: Mapping[str, str]) -> list[str]:
    """Unusual number formats, placeholders for missing values, times that are numbers, columns that give the target."""
    target, columns = encoder.target, encoder.columns
    numbers = {column.name: column.read(rows[column.name])[0] for column in columns if column.is_numeric}
    if target.classes is None:
        numbers[target.name] = reading.numbers(rows[target.name], target.format)[0]
    return [
        *format_notes(rows, formats, numbers),
        *placeholder_notes(numbers),
        *(f"{column.name} is read as {column.format} since 1970" for column in columns if column.format in SINCE_1970),
        *leakage_notes(target.name, leaking_columns(rows, target, columns)),
    ]
