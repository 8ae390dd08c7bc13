"""Columns whose cells have many features: text as its words, and formats that name features themselves.

A cell becomes a dict of names and values, or a sentence that says why it cannot be read. A new kind is a class with its
name in KINDS.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from math import isfinite
from typing import Any, ClassVar

from streamlasso._text import shortened
from streamlasso.core.sparse.model import LARGEST_X

#: Words are letters and digits, two or more, as in scikit-learn's vectorisers.
WORD = re.compile(r"\b\w\w+\b")
SPACES = re.compile(r"\s+")
NGRAMS = re.compile(r"(char\s?)?(\d+)(?:-(\d+))?")
MOST_LETTERS = 20
#: An index fits 31 bits, as in every other program.
MOST_INDEX = 2**31 - 1

Features = dict[str, float]


class SparseColumn:
    """A column by its name. `prefix` stands before the names of its features, where other columns have some too."""

    kind: ClassVar[str]
    description: ClassVar[str]

    def __init__(self, name: str, prefix: str = "") -> None:
        self.name, self.prefix = name, prefix

    def read(self, cells: Iterable[str | None]) -> list[Features | str]:
        """The features of each cell; text says why a cell cannot be read."""
        return [self.features(cell) if cell is not None else self.missing() for cell in cells]

    def features(self, cell: str) -> Features | str:
        raise NotImplementedError

    def missing(self) -> Features | str:
        """Of a cell that is empty."""
        return {}

    def state(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "prefix": self.prefix}


class Words(SparseColumn):
    """Text as its n-grams: `1-2` are words and pairs of words, `char3-5` runs of three to five letters.

    The value of a feature is 1, however often it occurs.

    >>> Words("title", ngrams="1-2").features("Cheap pills, cheap!").keys()
    dict_keys(['cheap', 'pills', 'cheap pills', 'pills cheap'])
    """

    kind = "words"

    def __init__(self, name: str, prefix: str = "", ngrams: str = "1-2") -> None:
        super().__init__(name, prefix)
        self.ngrams = ngrams
        self.letters, self.low, self.high = parse_ngrams(ngrams)

    @property
    def description(self) -> str:  # type: ignore[override]
        return f"text, {'characters' if self.letters else 'words'} {self.low} to {self.high}"

    def features(self, cell: str) -> Features:
        pieces = list(SPACES.sub(" ", f" {cell.lower()} ")) if self.letters else WORD.findall(cell.lower())
        join = "".join if self.letters else " ".join
        found: list[str] = []
        for n in range(self.low, self.high + 1):
            found += pieces if n == 1 else map(join, zip(*(pieces[i:] for i in range(n)), strict=False))
        if self.prefix:
            found = [self.prefix + each for each in found]
        return dict.fromkeys(found, 1.0)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "ngrams": self.ngrams}


class Levels(SparseColumn):
    """Text as it is: one feature per level, as many as there are."""

    kind = "levels"
    description = "text, one feature per level"

    def features(self, cell: str) -> Features:
        return {f"{self.name} = {cell}": 1.0}

    def missing(self) -> Features:
        return {f"{self.name} missing": 1.0}


class Pairs(SparseColumn):
    """`index:value` with spaces between, as in svmlight files. Indices may come in any order, but once.

    >>> Pairs("features").features("3:0.5 17:2")
    {'3': 0.5, '17': 2.0}
    >>> Pairs("features").features("3:0.5 3:2")
    'the index 3 is there twice'
    """

    kind = "pairs"
    description = "index:value pairs"

    def features(self, cell: str) -> Features | str:
        found: Features = {}
        for pair in cell.split():
            index, colon, written = pair.partition(":")
            value = as_value(written)
            if not colon or not (index.isascii() and index.isdigit()) or value is None:
                return f"{shortened(pair)!r} is not index:value, a whole number and a finite one"
            if int(index) > MOST_INDEX:
                return f"the index {shortened(index)} is beyond {MOST_INDEX:,}"
            name = self.prefix + index.lstrip("0").rjust(1, "0")
            if name in found:
                return f"the index {shortened(index)} is there twice"
            found[name] = value
        return found


class Namespaces(SparseColumn):
    """`|namespace:scale feature feature:value |...`, as in Vowpal Wabbit's text. A feature that is there twice counts
    twice, as there.

    >>> Namespaces("features").features("|user:2 tom age:0.5 | rain")
    {'user^tom': 2.0, 'user^age': 1.0, 'rain': 1.0}
    """

    kind = "namespaces"
    description = "namespaces of features"

    def features(self, cell: str) -> Features | str:
        found: dict[str, float] = defaultdict(float)
        for part in cell.split("|")[1:]:
            name, _, rest = part.partition(" ")
            space, colon, written = name.partition(":")
            scale = as_value(written) if colon else 1.0
            if scale is None:
                return f"the namespace {shortened(name)!r} has no number after its colon"
            prefix = f"{self.prefix}{space}^" if space else self.prefix
            for feature in rest.split():
                name, colon, written = feature.rpartition(":")
                value = as_value(written) if colon else 1.0
                if value is None or (colon and not name):
                    return f"{shortened(feature)!r} is not a feature, or feature:value with a finite number"
                found[prefix + (name if colon else feature)] += scale * value
        return dict(found)


#: All kinds, by name.
KINDS: dict[str, type[SparseColumn]] = {each.kind: each for each in (Words, Levels, Pairs, Namespaces)}


def column_of(state: dict[str, Any]) -> SparseColumn:
    """The column whose state this is."""
    settings = {name: value for name, value in state.items() if name != "kind"}
    return KINDS[state["kind"]](**settings)


def parse_ngrams(written: str) -> tuple[bool, int, int]:
    """Whether they are of letters, the shortest, and the longest.

    >>> parse_ngrams("1-2"), parse_ngrams("char3-5"), parse_ngrams("1")
    ((False, 1, 2), (True, 3, 5), (False, 1, 1))
    """
    found = NGRAMS.fullmatch(written.strip().lower())
    low, high = (0, 0) if found is None else (int(found[2]), int(found[3] or found[2]))
    if found is None or not 1 <= low <= high <= MOST_LETTERS:
        raise ValueError(f"--ngrams {written} is invalid: use 1-2 for words and pairs of words, or char3-5 for letters")
    return found[1] is not None, low, high


def as_value(written: str) -> float | None:
    """A number that the engine takes, or None."""
    try:
        value = float(written)
    except ValueError:
        return None
    return value if isfinite(value) and abs(value) <= LARGEST_X and "_" not in written else None
