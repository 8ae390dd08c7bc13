"""The column to predict: a number of some family, or classes that appear as they come."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow

from streamlasso.core.values import LARGEST
from streamlasso.encoding import reading
from streamlasso.families import FAMILIES
from streamlasso.settings import as_family

#: More classes than this are no classes; whole numbers of so few different values may be some.
MOST_CLASSES, FEW = 20, 10
CLASSES = "--family binomial"


class Target:
    """What is to be predicted. Values are numbers, NaN where missing; for classes the place among `classes`, or -1.

    family : its name
    classes : the labels so far, or None
    guessed : whether the family was read off the first rows
    form : how numbers are written (`notation.py`)
    few : the values, where a guess took them for numbers and they may be classes

    >>> import pyarrow
    >>> from streamlasso.encoding import Target
    >>> Target.guess("visits", pyarrow.array([0, 3, 1, 7]), "auto").family
    'poisson'
    >>> Target.guess("verdict", pyarrow.array(["spam", "ham"]), "auto").classes
    ['ham', 'spam']
    """

    def __init__(
        self,
        name: str,
        family: str,
        classes: list[Any] | None = None,
        guessed: bool = False,
        form: str | None = None,
    ) -> None:
        self.name, self.family, self.classes, self.guessed, self.form = name, family, classes, guessed, form
        self.few: list[int] = []

    @classmethod
    def guess(cls, name: str, cells: pyarrow.Array, family: str, form: str | None = None) -> Target:
        """The target as its first rows show it, of the given family or, for "auto", of the one that fits."""
        if reading.is_nested(cells):
            raise ValueError(f"the target {name!r} holds {cells.type}, no number or text; name another --target")
        values, unfit = reading.numbers(cells, form)
        known = values[~np.isnan(values)]
        if not len(known) and not unfit.any():
            raise ValueError(
                f"the target {name!r} has no value in the first {len(cells):,} rows; name another --target"
            )
        words = not reading.holds_numbers(cells, form)
        if words and family not in ("auto", "binomial"):
            cell = cells[int(np.flatnonzero(unfit)[0])].as_py()
            raise ValueError(
                f"the target {name!r} holds {cell!r}: --family {family} needs numbers; for classes, --family binomial"
            )
        found = _family_of(known, words) if family == "auto" else family
        classes = _labels(name, cells, values, words) if found == "binomial" else None
        target = cls(name, found, classes, family == "auto", None if words else form)
        if target.guessed and classes is None:
            target.few = _few_whole(known)
        return target

    @property
    def as_words(self) -> bool:
        """Are the labels text?"""
        return self.classes is not None and any(isinstance(label, str) for label in self.classes)

    @property
    def may_grow(self) -> bool:
        """May new classes appear? Not where two numbers were only guessed to be classes."""
        return self.as_words or (self.classes is not None and not self.guessed)

    def read(self, cells: pyarrow.Array) -> np.ndarray:
        """The cells as they are: numbers and, as objects, labels and what is neither."""
        if self.as_words:
            return reading.words(cells)
        values, unfit = reading.numbers(cells, self.form)
        if self.classes is None and not unfit.any():
            return values
        labels = np.array([None if np.isnan(value) else _plain(value) for value in values], dtype=object)
        labels[unfit] = reading.words(cells)[unfit]
        return labels

    def values(self, labels: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
        """The values, and what is wrong with the rows that are unfit. New labels become classes."""
        if self.classes is None:
            return self._numbers(labels)
        places = {label: self._place(label) for label in dict.fromkeys(labels.tolist())}
        wrong = {i: self._complaint(label) for i, label in enumerate(labels) if places[label] is None}
        values = np.array([places[label] if places[label] is not None else -1 for label in labels], dtype=np.int64)
        return values, wrong

    def _numbers(self, cells: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
        texts = [i for i, cell in enumerate(cells) if isinstance(cell, str)] if cells.dtype == object else []
        wrong = {i: f"the target {self.name!r} is {cells[i]!r}, no number" for i in texts}
        values = np.array([np.nan if i in wrong else cell for i, cell in enumerate(cells)], float) if texts else cells
        values = values.astype(float)
        family, there = as_family(self.family), ~np.isnan(values)
        if family.check_target(values[there]) is not None:
            for i in np.flatnonzero(there):
                complaint = family.check_target(values[i : i + 1])
                if complaint:
                    wrong[int(i)] = f"the target {self.name!r}: {complaint} ({self.family}){self._advice}"
        for i in np.flatnonzero(there & (np.abs(values) > LARGEST)):
            wrong[int(i)] = f"the target {self.name!r} is {values[i]}: beyond +-{LARGEST:g}"
        return values, wrong

    def _place(self, label: Any) -> int | None:
        """-1 for a missing label, None for one that cannot be."""
        assert self.classes is not None
        if label is None:
            return -1
        if label in self.classes:
            return self.classes.index(label)
        if not self.as_words and not self._may_be_class(label):
            return None
        if len(self.classes) >= MOST_CLASSES:
            raise ValueError(
                f"the target {self.name!r} has more than {MOST_CLASSES} classes: it looks like a name or free text; "
                "name another --target"
            )
        self.classes.append(label)
        return len(self.classes) - 1

    def _may_be_class(self, label: Any) -> bool:
        """Of labels that are numbers: the second, and where classes were asked for, every whole one."""
        assert self.classes is not None
        return not isinstance(label, str) and (len(self.classes) < 2 or (self.may_grow and isinstance(label, int)))

    def _complaint(self, label: Any) -> str:
        there = f"{'two classes' if self.guessed else 'the classes'}, {' and '.join(map(str, self.classes or []))}"
        more = f" (for more classes, {CLASSES})" if self.guessed and isinstance(label, int) else ""
        return f"the target {self.name!r} is {label!r}, where there were {there}{self._advice}{more}"

    @property
    def _advice(self) -> str:
        return (
            "; the family was guessed from the first rows, so give the right one with --family" if self.guessed else ""
        )

    def lagged(self, values: np.ndarray) -> np.ndarray:
        """Earlier values as a feature."""
        return as_family(self.family).lagged(values)

    @property
    def lagged_name(self) -> str:
        return as_family(self.family).lagged_name(self.name)

    def state(self) -> dict[str, Any]:
        form = {"form": self.form} if self.form else {}
        return {"name": self.name, "family": self.family, "classes": self.classes, "guessed": self.guessed, **form}


def _family_of(values: np.ndarray, words: bool) -> str:
    """Text is classes; numbers are what the families take them for, or just numbers."""
    if words:
        return "binomial"
    return next((name for name, family in FAMILIES.items() if family().looks_like(values)), "gaussian")


def _few_whole(values: np.ndarray) -> list[int]:
    """The different values, if they are whole and few enough to be classes."""
    different = np.unique(values)
    whole = 2 < len(different) <= FEW and bool(np.all(different == np.round(different)))
    return [int(value) for value in different] if whole else []


def _labels(name: str, cells: pyarrow.Array, values: np.ndarray, words: bool) -> list[Any]:
    """The classes among the first rows, in their own order."""
    if words:
        labels: list[Any] = sorted({label for label in reading.words(cells) if label is not None})
    else:
        labels = [_plain(value) for value in np.unique(values[~np.isnan(values)])]
    n, where = len(labels), f"in the first {len(cells):,} rows"
    if not words and n > 2 and not all(isinstance(label, int) for label in labels):
        raise ValueError(
            f"{CLASSES}: the target {name!r} holds {n:,} different numbers {where}, and not all are whole; classes are "
            "text or whole numbers"
        )
    if not words and n > MOST_CLASSES:
        raise ValueError(
            f"{CLASSES}: the target {name!r} holds {n:,} different numbers {where}, and there may be {MOST_CLASSES} "
            "classes at most; leave the family to be guessed, or name another --target"
        )
    if n > MOST_CLASSES:
        raise ValueError(
            f"the target {name!r} has {n:,} different texts {where}, such as {labels[0]!r}: it looks like a name or "
            "free text; name another --target, or write numbers like 1234.5"
        )
    return labels


def _plain(value: float) -> Any:
    return int(value) if value == int(value) else float(value)


def nearest(name: str, columns: list[str]) -> str:
    """Did you mean ...?"""
    if len(columns) == 1:
        return f"the only one is {columns[0]!r}; columns are told apart by a comma, a semicolon, a tab or |"
    lower = {column.lower(): column for column in reversed(columns)}
    close = get_close_matches(name.lower(), lower, n=1)
    shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"the columns are {shown}" + ("; a first line with their names is needed" if _are_values(columns) else "")


def _are_values(names: list[str]) -> bool:
    """Is it rather a row than a line of names?"""
    values, unfit = reading.numbers(pyarrow.array(names))
    return bool(np.mean(unfit) < 0.5 and np.any(np.mod(values[~unfit], 1) != 0))
