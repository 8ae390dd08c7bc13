"""Rows as they come: objects of JSON, or tables of Arrow; and as the log keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import msgspec
import pyarrow
from pyarrow import types

from streamlasso.data.encoding.reading import is_nested, is_temporal
from streamlasso.data.sources.json_lines import array_of
from streamlasso.serve.problems import Problem

Value = bool | int | float | str | None
Row = dict[str, Value]

#: How rows are kept in the log.
JSON, ARROW = 0, 1


class _Labelled(msgspec.Struct):
    """Rows in the log: the body of a request to learn many, or one that is like it."""

    rows: list[Row]
    y: list[Value]


_labelled = msgspec.json.Decoder(_Labelled)


class Rows(Protocol):
    """Some rows with their labels, None where there is none."""

    kind: int

    def __len__(self) -> int: ...
    def names(self) -> set[str]: ...
    def dicts(self) -> list[Row]: ...
    def labels(self) -> Sequence[Value]: ...
    def table(self, columns: Sequence[str], target: str) -> pyarrow.RecordBatch: ...
    def part(self, start: int, stop: int) -> Self: ...
    def packed(self) -> bytes: ...


class JsonRows:
    """Rows that are objects; `body` is the request that they were in, if it has nothing but them.

    >>> rows = JsonRows([{"a": 1}, {"b": "x"}], [0.5, 2])
    >>> rows.table(["a", "b"], "y").to_pydict()
    {'a': [1, None], 'b': [None, 'x'], 'y': [0.5, 2.0]}
    >>> unpacked(rows.kind, rows.packed()).dicts()
    [{'a': 1}, {'b': 'x'}]
    """

    kind = JSON

    def __init__(self, rows: list[Row], y: list[Value], body: bytes | None = None) -> None:
        self.rows, self.y, self.body = rows, y, body

    def __len__(self) -> int:
        return len(self.y)

    def names(self) -> set[str]:
        return set().union(*self.rows)

    def dicts(self) -> list[Row]:
        return self.rows

    def labels(self) -> list[Value]:
        return self.y

    def table(self, columns: Sequence[str], target: str) -> pyarrow.RecordBatch:
        arrays = [array_of([row.get(name) for row in self.rows]) for name in columns]
        return pyarrow.RecordBatch.from_arrays([*arrays, array_of(self.y)], names=[*columns, target])

    def part(self, start: int, stop: int) -> JsonRows:
        return JsonRows(self.rows[start:stop], self.y[start:stop])

    def packed(self) -> bytes:
        return self.body or msgspec.json.encode(_Labelled(self.rows, self.y))


class ArrowRows:
    """Rows that are a table, with the target among its columns; moments become text."""

    kind = ARROW

    def __init__(self, rows: pyarrow.RecordBatch, target: str) -> None:
        names = rows.schema.names
        if len(set(names)) < len(names):
            raise Problem(422, "the table has two columns of the same name: rename one of them")
        nested = [name for name in names if is_nested(rows[name])]
        if nested:
            raise Problem(422, f"column {nested[0]!r} holds {rows[nested[0]].type}, not numbers, text or dates")
        self.rows = pyarrow.RecordBatch.from_arrays([_plain(column) for column in rows.columns], names=names)
        self.target = target

    def __len__(self) -> int:
        return self.rows.num_rows

    def names(self) -> set[str]:
        return set(self.rows.schema.names) - {self.target}

    def dicts(self) -> list[Row]:
        return self.rows.select([name for name in self.rows.schema.names if name != self.target]).to_pylist()

    def labels(self) -> list[Value]:
        if self.target not in self.rows.schema.names:
            return [None] * len(self)
        return self.rows[self.target].to_pylist()

    def table(self, columns: Sequence[str], target: str) -> pyarrow.RecordBatch:
        here = self.rows.schema.names
        nothing = pyarrow.nulls(len(self))
        cells = [self.rows[name] if name in here else nothing for name in (*columns, target)]
        return pyarrow.RecordBatch.from_arrays(cells, names=[*columns, target])

    def part(self, start: int, stop: int) -> ArrowRows:
        return ArrowRows(self.rows.slice(start, stop - start), self.target)

    def packed(self) -> bytes:
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, self.rows.schema) as writer:
            writer.write_batch(self.rows)
        return msgspec.msgpack.encode((self.target, sink.getvalue().to_pybytes()))


def _plain(column: pyarrow.Array) -> pyarrow.Array:
    """Numbers, flags and text, of which the same can be made from JSON."""
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_temporal(column):
        return column.cast(pyarrow.string())
    return column.cast(pyarrow.float64()) if types.is_decimal(column.type) else column


def unpacked(kind: int, data: bytes) -> Rows:
    """The rows that were packed."""
    if kind == JSON:
        found = _labelled.decode(data)
        return JsonRows(found.rows, found.y)
    target, table = msgspec.msgpack.decode(data, type=tuple[str, bytes])
    with pyarrow.ipc.open_stream(table) as reader:
        return ArrowRows(reader.read_next_batch(), target)


def joined(pieces: list[Rows]) -> Rows:
    """All of them, in order: a table if they are one, else objects."""
    if len(pieces) == 1:
        return pieces[0]
    rows = [row for piece in pieces for row in piece.dicts()]
    return JsonRows(rows, [label for piece in pieces for label in piece.labels()])
