"""Whole lines out of a stream of bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from streamlasso.data.sources.base import BLOCK_BYTES, BadRows

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: A longer line is not a line: a quote was left open.
LONGEST_LINE = 64 << 20


class Bytes(Protocol):
    """What a file, a pipe and a decompressed file have in common."""

    def read1(self, size: int, /) -> bytes: ...


def whole_lines(stream: Bytes, bad_rows: BadRows, *, quoted: bool, live: bool) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line, counted from 1.

    `quoted`: a line break between two quotes does not end the line. `live`: do not wait until a block is full.
    """
    line, length, within = 1, 0, False
    rest: list[bytes] = []
    for piece in _pieces(stream, bad_rows, live):
        stop = _end_of_lines(piece, quoted, within)
        within = within != (quoted and piece.count(b'"') % 2 == 1)
        if stop:
            text = b"".join([*rest, piece[:stop]])
            yield line, text
            line += text.count(b"\n")
            rest, length = [], 0
        rest.append(piece[stop:])
        length += len(piece) - stop
        if length > LONGEST_LINE:
            raise ValueError(f"line {line:,}: it does not end; a quote may have been left open; fix it")
    if length:
        yield line, b"".join(rest)


def _pieces(stream: Bytes, bad_rows: BadRows, live: bool) -> Iterator[bytes]:
    """Pieces of BLOCK_BYTES or, live, as they come; a file that is cut short is read as far as it goes."""
    parts: list[bytes] = []
    damage = ""
    while not damage:
        try:
            part = stream.read1(BLOCK_BYTES)
        except (EOFError, zlib.error) as error:
            part, damage = b"", f"the gzip file is cut short or damaged ({error})"
        parts.append(part)
        if live or not part or sum(map(len, parts)) >= BLOCK_BYTES:
            yield b"".join(parts)
            parts = []
        if not part:
            break
    if damage:
        bad_rows.add("the end", damage)


def _end_of_lines(text: bytes, quoted: bool, within: bool) -> int:
    """Where the last whole line ends; 0 if there is none. within : the text begins between two quotes."""
    last = text.rfind(b"\n") + 1
    if not quoted or (not within and not text.count(b'"', 0, last) % 2):
        return last
    codes = np.frombuffer(text, np.uint8)
    quoting = np.bitwise_xor.accumulate(codes == ord('"')) != within
    ends = np.flatnonzero((codes == ord("\n")) & ~quoting)
    return int(ends[-1]) + 1 if len(ends) else 0


def is_text(start: bytes) -> bool:
    """Whether a file that starts so is text, rather than some binary format."""
    return b"\0" not in start and not start.startswith(b"PK\x03\x04")
