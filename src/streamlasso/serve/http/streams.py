"""Streams of rows: lines of JSON or CSV, or Arrow, predicted and learnt in parts."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from streamlasso.serve.http.access import ARROW, CSV
from streamlasso.serve.http.arrow import rows_of_arrow
from streamlasso.serve.http.bodies import checked_rows, row_of_line
from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.limits import LONGEST_LINE, MOST_STREAMED
from streamlasso.serve.problems import Problem
from streamlasso.serve.service import Service
from streamlasso.serve.store.log import Entry

#: Rows that are learnt together, and bytes of their lines.
TOGETHER, TOGETHER_BYTES = 1_000, 4_000_000


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


_results = msgspec.json.Decoder(_Results).decode


async def learnt_stream(
    service: Service, name: str, body: AsyncIterator[bytes], kind: str, key: str | None, largest: int
) -> bytes:
    """The answers as JSON lines, when the last row is learnt. Rows are learnt as they come; a Problem says how many
    were. With a key, parts that were learnt before are not learnt again."""
    target, answers, n_learnt = service.model(name).settings.target, bytearray(), 0
    try:
        async for rows in _parts(body, kind, target, largest):
            if n_learnt + len(rows) > MOST_STREAMED:
                raise Problem(413, f"a stream has at most {MOST_STREAMED:,} rows: go on with another one")
            id = None if key is None else f"stream:{key}/{n_learnt}"
            (answer,) = await service.learn(name, [Entry(id, rows.y, rows.rows, is_batch=True)])
            n_learnt += len(rows)
            answers += b"\n".join(_results(answer).results) + b"\n"
    except Problem as problem:
        raise Problem(problem.status, problem.detail, **{**problem.more, "n_learnt": n_learnt}) from None
    return bytes(answers)


async def _parts(body: AsyncIterator[bytes], kind: str, target: str, largest: int) -> AsyncIterator[Rows]:
    """So many rows at a time."""
    if kind == ARROW:
        for part in rows_of_arrow(await _whole(body, largest), TOGETHER, largest):
            yield _checked(part, target)
        return
    read: Callable[[bytes], dict[str, Any] | None] = CsvLines() if kind == CSV else row_of_line
    rows: list[dict[str, Any]] = []
    n = n_bytes = 0
    async for line in _lines(body):
        n += 1
        if not line.strip():
            continue
        try:
            row = read(line)
        except (msgspec.DecodeError, ValueError, RecursionError, csv.Error) as error:
            raise Problem(400, f"line {n:,}: {error}"[:500]) from None
        if row is not None:
            rows.append(row)
            n_bytes += len(line)
        if len(rows) == TOGETHER or n_bytes > TOGETHER_BYTES:
            yield _checked(rows, target)
            rows, n_bytes = [], 0
    if rows:
        yield _checked(rows, target)


def _checked(rows: list[dict[str, Any]], target: str) -> Rows:
    try:
        return checked_rows(rows, target)
    except msgspec.ValidationError as error:
        raise Problem(422, str(error)[:500]) from None


async def _whole(body: AsyncIterator[bytes], largest: int) -> bytes:
    data = bytearray()
    async for chunk in body:
        data += chunk
        if len(data) > largest:
            raise Problem(413, f"the body has more than {largest:,} bytes: send it in several streams")
    return bytes(data)


async def _lines(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whichever way they come."""
    rest = b""
    async for chunk in body:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > LONGEST_LINE:
            raise Problem(413, f"a line has more than {LONGEST_LINE:,} bytes")
    yield rest


class CsvLines:
    """Reads lines of CSV; the first one has the names. Cells that are numbers become numbers, empty ones are missing.

    >>> read = CsvLines()
    >>> read(b"heat,city,y"), read(b"1.5,Rome,3")
    (None, {'heat': 1.5, 'city': 'Rome', 'y': 3})
    """

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, line: bytes) -> dict[str, Any] | None:
        (cells,) = csv.reader([line.decode("utf-8-sig" if not self.names else "utf-8").rstrip("\r")], strict=True)
        if not self.names:
            if len(set(cells)) < len(cells):
                raise ValueError("two columns have the same name")
            self.names = cells
            return None
        if len(cells) != len(self.names):
            raise ValueError(f"there are {len(cells):,} cells and {len(self.names):,} names")
        return {name: _value(cell) for name, cell in zip(self.names, cells, strict=True)}


def _value(cell: str) -> Any:
    if not cell:
        return None
    try:
        return msgspec.json.decode(cell, type=int | float)
    except (msgspec.DecodeError, ValueError):
        return cell
