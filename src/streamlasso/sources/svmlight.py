"""svmlight and libsvm files: one row per line, its label, then `index:value` of what is not 0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from streamlasso.sources.base import FIRST_ROWS, FIRST_ROWS_OF_PIPE, BadRows, Block
from streamlasso.sources.labelled import blocks_of, first_lines
from streamlasso.sources.lines import Bytes, is_text, whole_lines

NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
#: A label alone, as of a row without features; and one with a feature.
LABEL = re.compile(rb"%b(?:[ \t]+qid:\d+)?[ \t]*(?:#.*)?" % NUMBER)
BEGINNING = re.compile(rb"%b(?:[ \t]+qid:\d+)?[ \t]+\d+:%b(?:[ \t]|$)" % (NUMBER, NUMBER))
QUERY = re.compile(r"qid:\S+\s*")


class Svmlight:
    """The columns are the label and, as text, the features, which an encoder reads (`encoding/sparse_columns.py`).

    target, sparse : the column that is predicted if none is named; columns of many features, and how they are written
    """

    format = "svmlight"
    extensions: ClassVar[tuple[str, ...]] = (".svmlight", ".libsvm", ".svm")
    target: ClassVar[str] = "label"
    sparse: ClassVar[dict[str, str]] = {"features": "pairs"}

    def __init__(self, stream: Bytes, bad_rows: BadRows, *, live: bool = False) -> None:
        self.columns = ["label", "features"]
        self.n_first = FIRST_ROWS_OF_PIPE if live else FIRST_ROWS
        self._lines = whole_lines(stream, bad_rows, quoted=False, live=live)

    @staticmethod
    def recognises(start: bytes) -> bool:
        if not is_text(start):
            return False
        lines = (line for line in first_lines(start) if not line.startswith(b"#") and not LABEL.fullmatch(line))
        return bool(BEGINNING.match(next(lines, b"")))

    def blocks(self) -> Iterator[Block]:
        return blocks_of(self._lines, self.columns, _cells)


def _cells(line: str) -> list[str | None] | None:
    """The label and the features; None for a comment. A query (qid) is left out: rows are learnt one by one."""
    label, _, features = line.partition("#")[0].strip().partition(" ")
    return [label, QUERY.sub("", features.strip(), count=1)] if label else None
