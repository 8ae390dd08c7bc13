"""Vowpal Wabbit's text: `label weight 'tag |namespace feature feature:value |...`, one row per line."""

from __future__ import annotations

import re
from typing import ClassVar

from streamlasso.data.sources.labelled import Labelled, first_lines
from streamlasso.data.sources.lines import is_text
from streamlasso.data.sources.svmlight import NUMBER

#: Before the first bar: numbers, then maybe a tag that touches the bar or begins with a quote.
LABELLED = re.compile(rb"%b(?:[ \t]+%b){0,2}[ \t]+(?:'?[^\s|:]*|'[^\s|]*[ \t]+)\|[^\s|]*(?:[ \t]|$)" % (NUMBER, NUMBER))
#: Without a label; not a table that somebody drew with bars.
UNLABELLED = re.compile(rb"(?:'\S*[ \t]*)?\|[^\s|]*[ \t](?!.*[ \t]\|[ \t])[^|]*[^|\s]")


class Vowpal(Labelled):
    """The columns are the label, the weight of the row, and the features from the first bar on.

    weight : the column of weights
    """

    format = "Vowpal Wabbit text"
    extensions: ClassVar[tuple[str, ...]] = (".vw",)
    names: ClassVar[tuple[str, ...]] = ("label", "weight", "features")
    weight: ClassVar[str] = "weight"
    sparse: ClassVar[dict[str, str]] = {"features": "namespaces"}

    @staticmethod
    def recognises(start: bytes) -> bool:
        if not is_text(start):
            return False
        line = next(first_lines(start), b"")
        return bool(LABELLED.match(line) or UNLABELLED.match(line))

    @staticmethod
    def _cells(line: str) -> list[str | None]:
        """Label, weight and features. A tag is left out; a third number, the prediction to start from, is in the
        weight, which then is no number."""
        head, bar, features = line.partition("|")
        words = head.split()
        tagged = words and (words[-1].startswith("'") or not head[-1:].isspace())
        words = words[:-1] if tagged else words
        return [words[0] if words else None, " ".join(words[1:]) or None, bar + features]
