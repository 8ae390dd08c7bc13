"""svmlight and libsvm files: one row per line, its label, then `index:value` of what is not 0."""

from __future__ import annotations

import re
from typing import ClassVar

from streamlasso.data.sources.labelled import Labelled, first_lines
from streamlasso.data.sources.lines import is_text

NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
#: A label alone, as of a row without features; and one with a feature.
LABEL = re.compile(rb"%b(?:[ \t]+qid:\d+)?[ \t]*(?:#.*)?" % NUMBER)
BEGINNING = re.compile(rb"%b(?:[ \t]+qid:\d+)?[ \t]+\d+:%b(?:[ \t]|$)" % (NUMBER, NUMBER))
QUERY = re.compile(r"qid:\S+\s*")


class Svmlight(Labelled):
    """The columns are the label and the features."""

    format = "svmlight"
    extensions: ClassVar[tuple[str, ...]] = (".svmlight", ".libsvm", ".svm")
    names: ClassVar[tuple[str, ...]] = ("label", "features")
    sparse: ClassVar[dict[str, str]] = {"features": "pairs"}

    @staticmethod
    def recognises(start: bytes) -> bool:
        if not is_text(start):
            return False
        lines = (line for line in first_lines(start) if not line.startswith(b"#") and not LABEL.fullmatch(line))
        return bool(BEGINNING.match(next(lines, b"")))

    @staticmethod
    def _cells(line: str) -> list[str | None] | None:
        """The label and the features; None for a comment. A query (qid) is left out: rows are learnt one by one."""
        label, _, features = line.partition("#")[0].strip().partition(" ")
        return [label, QUERY.sub("", features.strip(), count=1)] if label else None
