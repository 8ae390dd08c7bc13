"""Streams of rows over HTTP: JSON lines or Arrow, predicted and learnt in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pyarrow

from streamlasso.serve.live import Entry, as_label
from streamlasso.serve.messages import Row as RowBody
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import ArrowRows, JsonRows, Rows
from streamlasso.serve.service import Service

#: Rows that are learnt together, those of a stream at most, and the longest line.
TOGETHER, MOST_ROWS, LONGEST_LINE = 1000, 1_000_000, 1_000_000

_row = msgspec.json.Decoder(RowBody)


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


_results = msgspec.json.Decoder(_Results)


async def answered(
    service: Service, name: str, body: AsyncIterator[bytes], is_arrow: bool, key: str | None, largest: int
) -> bytes:
    """The answers as JSON lines, when the last row is learnt. Rows are learnt as they come; a Problem tells how many
    were. With a key, parts that were learnt before are not learnt again."""
    target, answers, n_learnt = service.live(name).settings.target, bytearray(), 0
    try:
        parts = arrow_parts(body, target, largest) if is_arrow else json_parts(body, target)
        async for rows in parts:
            id = None if key is None else f"stream:{key}/{n_learnt}"
            entry = Entry(rows, id, as_label(rows, True) if id else "", True)
            (answer,) = await service.learn(name, [entry])
            n_learnt += len(rows)
            answers += b"\n".join(_results.decode(answer).results) + b"\n"
            if n_learnt >= MOST_ROWS:
                raise Problem(413, f"a stream has at most {MOST_ROWS:,} rows: go on with another one")
    except Problem as problem:
        raise Problem(problem.status, problem.detail, **{**problem.more, "n_learnt": n_learnt}) from None
    return bytes(answers)


async def json_parts(body: AsyncIterator[bytes], target: str) -> AsyncIterator[Rows]:
    """So many lines at a time, whichever way they come."""
    rows = JsonRows([], [])
    number, rest = 0, b""
    async for chunk in body:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise Problem(413, f"line {number + len(lines) + 1:,} has more than {LONGEST_LINE:,} bytes")
        for line in lines:
            number += 1
            _add_line(rows, line, number, target)
            if len(rows) == TOGETHER:
                yield rows
                rows = JsonRows([], [])
    _add_line(rows, rest, number + 1, target)
    if len(rows):
        yield rows


def _add_line(rows: JsonRows, line: bytes, number: int, target: str) -> None:
    if not line.strip():
        return
    try:
        row = _row.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Problem(400, f"line {number:,}: {error}") from None
    rows.y.append(row.pop(target, None))
    rows.rows.append(row)


async def arrow_parts(body: AsyncIterator[bytes], target: str, largest: int) -> AsyncIterator[Rows]:
    """A whole Arrow stream, in parts."""
    data = bytearray()
    async for chunk in body:
        data += chunk
        if len(data) > largest:
            raise Problem(413, f"the body has more than {largest:,} bytes: send it in several streams")
    try:
        with pyarrow.ipc.open_stream(bytes(data)) as reader:
            table = reader.read_all()
            table.validate(full=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise Problem(400, f"the body is no Arrow stream: {error}"[:500]) from None
    table = table.combine_chunks()
    for start in range(0, table.num_rows, TOGETHER):
        batch = table.slice(start, TOGETHER).combine_chunks().to_batches()[0]
        yield ArrowRows(batch, target)
