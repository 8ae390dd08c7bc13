"""Whole lines out of a stream of bytes, as they come."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from streamlasso.sources.base import BLOCK_BYTES, Complaints

#: A line that is longer than this is not a line: a quote was left open.
LONGEST_LINE = 64 << 20


class Bytes(Protocol):
    """What a file, a pipe and an unpacked file have in common."""

    def read1(self, size: int, /) -> bytes: ...


def whole_lines(stream: Bytes, complaints: Complaints, *, quoted: bool, live: bool) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line, counted from 1.

    `quoted`: a line break between two quotes ends no line. `live`: what has come is handed on, not waited for more.
    """
    line, rest = 1, b""
    for piece in _pieces(stream, complaints, live):
        rest += piece
        stop = _end_of_lines(rest, quoted)
        if stop:
            yield line, rest[:stop]
            line += rest.count(b"\n", 0, stop)
            rest = rest[stop:]
        elif len(rest) > LONGEST_LINE:
            raise ValueError(f"line {line:,}: it does not end; a quote may have been left open. Mend it")
    if rest:
        yield line, rest


def _pieces(stream: Bytes, complaints: Complaints, live: bool) -> Iterator[bytes]:
    """Pieces of BLOCK_BYTES or, live, as they come. Of a file that is cut short, what there is."""
    parts: list[bytes] = []
    complaint = ""
    while not complaint:
        try:
            part = stream.read1(BLOCK_BYTES)
        except (EOFError, zlib.error) as error:
            part, complaint = b"", f"the gzip file is cut short or damaged ({error})"
        parts.append(part)
        if live or not part or sum(map(len, parts)) >= BLOCK_BYTES:
            yield b"".join(parts)
            parts = []
        if not part:
            break
    if complaint:
        complaints.about("the end", complaint)


def _end_of_lines(text: bytes, quoted: bool) -> int:
    """Where the last whole line ends; 0 if there is none."""
    last = text.rfind(b"\n") + 1
    if not quoted or not text.count(b'"', 0, last) % 2:
        return last
    codes = np.frombuffer(text, np.uint8)
    within = np.cumsum(codes == ord('"')) % 2 == 1
    ends = np.flatnonzero((codes == ord("\n")) & ~within)
    return int(ends[-1]) + 1 if len(ends) else 0
