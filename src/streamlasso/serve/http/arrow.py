"""Arrow streams as rows of plain values. What comes is as large as it looks: nothing is unpacked on trust."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow
from pyarrow import compute, types

from streamlasso.serve.limits import LONGEST_TEXT, MOST_NAMES, MOST_STREAMED, MOST_VALUES
from streamlasso.serve.problems import Problem

#: What a column may hold, besides dates and moments, which become text, and decimals.
PLAIN = (types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_string, types.is_large_string)
TEXT = (types.is_date, types.is_time, types.is_timestamp)


def rows_of_arrow(data: bytes, together: int, largest: int) -> Iterator[list[dict[str, Any]]]:
    """So many rows at a time; NaN is a missing value. Text may be `largest` bytes in each part."""
    try:
        n_rows = 0
        with pyarrow.ipc.open_stream(data) as reader:
            _check(reader.schema)
            _refuse_packed(data, sum(types.is_dictionary(column.type) for column in reader.schema))
            together = min(together, MOST_VALUES // len(reader.schema.names))
            for batch in reader:
                n_rows += batch.num_rows
                if n_rows > MOST_STREAMED:
                    raise Problem(413, f"a stream has at most {MOST_STREAMED:,} rows: go on with another one")
                batch.validate(full=True)
                for start in range(0, batch.num_rows, together):
                    yield _rows(batch.slice(start, together), largest)
    except (pyarrow.ArrowException, OSError, ValueError, struct.error) as error:
        raise Problem(400, f"the body is no Arrow stream: {error}"[:500]) from None


def _check(schema: pyarrow.Schema) -> None:
    if not 0 < len(schema.names) <= MOST_NAMES + 1:
        raise Problem(422, f"the table needs 1 to {MOST_NAMES:,} columns besides the target")
    if len(set(schema.names)) < len(schema.names):
        raise Problem(422, "the table has two columns of the same name: rename one of them")
    for column in schema:
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if not any(holds(kind) for holds in (*PLAIN, *TEXT, types.is_decimal)):
            detail = f"column {column.name[:100]!r} holds {str(column.type)[:100]}, not numbers, text, flags or dates"
            raise Problem(422, f"{detail}: convert it, or leave it out")


def _rows(batch: pyarrow.RecordBatch, largest: int) -> list[dict[str, Any]]:
    n_bytes, columns = 0, []
    for column in batch.columns:
        is_dictionary = types.is_dictionary(column.type)
        kind = column.type.value_type if is_dictionary else column.type
        if types.is_string(kind) or types.is_large_string(kind):
            # Of a dictionary the sizes alone are looked up: one long value may stand in every row.
            sizes = compute.binary_length(column.dictionary if is_dictionary else column)
            sizes = sizes.take(column.indices) if is_dictionary else sizes
            n_bytes += compute.sum(sizes).as_py() or 0
            if n_bytes > largest or (compute.max(sizes).as_py() or 0) > 4 * LONGEST_TEXT:
                raise Problem(413, f"the text of these rows has more than {largest:,} bytes, or a value is too long")
        column = column.dictionary_decode() if is_dictionary else column
        columns.append(_plain(column))
    names = batch.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(column: pyarrow.Array) -> list[Any]:
    if any(holds(column.type) for holds in TEXT):
        return column.cast(pyarrow.string()).to_pylist()
    if types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    if types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), pyarrow.scalar(None, column.type), column)
    return column.to_pylist()


def _refuse_packed(data: bytes, n_dictionaries: int) -> None:
    """Refuse compressed batches, and dictionaries that change: both unpack to any size."""
    n = 0
    for message in pyarrow.ipc.MessageReader.open_stream(data):
        if message.type in ("record batch", "dictionary"):
            n += message.type == "dictionary"
            if _is_compressed(message.metadata.to_pybytes(), message.type == "dictionary"):
                raise Problem(422, "the stream is compressed: send it without compression")
    if n > n_dictionaries:
        raise Problem(422, "a dictionary changes within the stream: send each of them once")


def _is_compressed(metadata: bytes, is_dictionary: bool) -> bool:
    """From the flatbuffer of a message, as Arrow's Message.fbs describes it."""
    (root,) = struct.unpack_from("<I", metadata, 0)
    header = _field(metadata, root, 2)
    if is_dictionary and header is not None:
        header = _field(metadata, header, 1)
    return header is not None and _field(metadata, header, 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where the table is that a field of a table refers to; None if the field is not there."""
    (to_fields,) = struct.unpack_from("<i", data, table)
    fields = table - to_fields
    (size,) = struct.unpack_from("<H", data, fields)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * number)
    if not offset:
        return None
    (reference,) = struct.unpack_from("<I", data, table + offset)
    return table + offset + reference
