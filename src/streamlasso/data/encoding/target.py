"""The column to predict: a number of some family, or classes, which may appear late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow

from streamlasso._text import listed
from streamlasso.core.base.checks import LARGEST
from streamlasso.data.encoding import reading
from streamlasso.data.encoding.columns import Column, NumberColumn, TextColumn
from streamlasso.families import FAMILIES, Family
from streamlasso.settings import as_family

#: The most classes; whole numbers of so few different values may be classes.
MOST_CLASSES, FEW = 20, 10
CLASSES = "--family binomial"


class Target:
    """What is to be predicted. Values are numbers, NaN where missing; for classes the place among `classes`, or -1.

    family : its name
    classes : the labels so far, or None
    guessed : whether the family was guessed from the first rows
    format : how numbers are written (`reading.py`)
    maybe_classes : the values, where the guess was numbers and they may be classes
    n_first : the number of classes in the first rows

    >>> import pyarrow
    >>> from streamlasso.data.encoding import Target
    >>> Target.guess("visits", pyarrow.array([0, 3, 1, 7]), "auto").family
    'poisson'
    >>> Target.guess("kind", pyarrow.array(["spam", "ham"]), "auto").classes
    ['ham', 'spam']
    """

    def __init__(
        self,
        name: str,
        family: str,
        classes: list[Any] | None = None,
        guessed: bool = False,
        format: str | None = None,
        n_first: int | None = None,
    ) -> None:
        self.name, self.family, self.classes, self.guessed, self.format = name, family, classes, guessed, format
        self.n_first = len(classes or []) if n_first is None else n_first
        self.maybe_classes: list[int] = []

    @classmethod
    def guess(cls, name: str, cells: pyarrow.Array, family: str, number_format: str | None = None) -> Target:
        """The target of the given family or, for "auto", of the family that fits its first rows."""
        if reading.is_nested(cells):
            raise ValueError(f"the target {name!r} holds {cells.type}, not numbers or text: use another --target")
        values, unfit = reading.finite_numbers(cells, number_format)
        known = values[~np.isnan(values)]
        if not len(known) and not unfit.any():
            raise ValueError(f"the target {name!r} has no value in the first {len(cells):,} rows: use another --target")
        is_text = not reading.holds_numbers(cells, number_format)
        if is_text and family not in ("auto", "binomial"):
            cell = cells[int(np.flatnonzero(unfit)[0])].as_py()
            raise ValueError(
                f"the target {name!r} holds {cell!r}, but --family {family} needs numbers: for classes use {CLASSES}"
            )
        found = _family_of(known, is_text) if family == "auto" else family
        classes = _labels(name, cells, values, is_text) if found == "binomial" else None
        target = cls(name, found, classes, family == "auto", None if is_text else number_format)
        if target.guessed and classes is None:
            target.maybe_classes = _few_whole(known)
        return target

    @property
    def has_text(self) -> bool:
        """Whether the labels are text."""
        return self.classes is not None and any(isinstance(label, str) for label in self.classes)

    @property
    def may_grow(self) -> bool:
        """Whether new classes may appear: not where two numbers were guessed to be classes."""
        return self.has_text or (self.classes is not None and not self.guessed)

    # --- values -------------------------------------------------------------------------------------------------------

    def read(self, cells: pyarrow.Array) -> np.ndarray:
        """The cells: numbers or, as objects, labels and what is neither."""
        if self.has_text:
            return reading.texts(cells)
        values, unfit = reading.numbers(cells, self.format)
        if self.classes is None and not unfit.any():
            return values
        labels = np.array([None if np.isnan(value) else _whole_or_float(value) for value in values], dtype=object)
        labels[unfit] = reading.texts(cells)[unfit]
        return labels

    def missing(self, n_rows: int) -> np.ndarray:
        """As `read`, of rows without a target."""
        return np.full(n_rows, np.nan) if self.classes is None else np.full(n_rows, None)

    def values(self, labels: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
        """The values, and for each bad row the reason. New labels become classes."""
        if self.classes is None:
            return self._numbers(labels)
        places = {label: self._place(label) for label in dict.fromkeys(labels.tolist())}
        bad = {i: self._not_a_class(label) for i, label in enumerate(labels) if places[label] is None}
        values = np.array([places[label] if places[label] is not None else -1 for label in labels], dtype=np.int64)
        return values, bad

    def _numbers(self, cells: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
        texts = [i for i, cell in enumerate(cells) if isinstance(cell, str)] if cells.dtype == object else []
        bad = {i: f"the target {self.name!r} is {cells[i]!r}, not a number" for i in texts}
        values = np.array([np.nan if i in bad else cell for i, cell in enumerate(cells)], float) if texts else cells
        values = values.astype(float)
        family, there = self._family, ~np.isnan(values)
        if family.check_target(values[there]) is not None:
            for i in np.flatnonzero(there):
                reason = family.check_target(values[i : i + 1])
                if reason:
                    bad[int(i)] = f"the target {self.name!r}: {reason} ({self.family}){self._advice}"
        for i in np.flatnonzero(there & (np.abs(values) > LARGEST)):
            bad[int(i)] = f"the target {self.name!r} is {values[i]}, which is beyond +-{LARGEST:g}"
        return values, bad

    def _place(self, label: Any) -> int | None:
        """-1 for a missing label, None for one that cannot be a class."""
        assert self.classes is not None
        if label is None:
            return -1
        if label in self.classes:
            return self.classes.index(label)
        if not self.has_text and not self._may_be_class(label):
            return None
        if len(self.classes) >= MOST_CLASSES:
            raise ValueError(
                f"the target {self.name!r} has more than {MOST_CLASSES} classes: it looks like a name or free text; "
                "use another --target"
            )
        self.classes.append(label)
        return len(self.classes) - 1

    def _may_be_class(self, label: Any) -> bool:
        """Of labels that are numbers: the second, and every whole one if classes were asked for."""
        assert self.classes is not None
        return not isinstance(label, str) and (len(self.classes) < 2 or (self.may_grow and isinstance(label, int)))

    def _not_a_class(self, label: Any) -> str:
        known = f"{'two classes' if self.guessed else 'the classes'}, {listed(list(map(str, self.classes or [])))}"
        more = f" (for more classes, {CLASSES})" if self.guessed and isinstance(label, int) else ""
        return f"the target {self.name!r} is {label!r}, where there were {known}{self._advice}{more}"

    @property
    def _advice(self) -> str:
        if not self.guessed:
            return ""
        return "; the family was guessed from the first rows: give the right one with --family"

    # --- earlier values as features -----------------------------------------------------------------------------------

    @property
    def _family(self) -> Family:
        return as_family(self.family)

    def labels(self, values: np.ndarray) -> np.ndarray:
        """The values as text for classes, None where missing; numbers stay numbers."""
        if self.classes is None:
            return values
        return np.array([*map(str, self.classes), None], dtype=object)[values]

    def column(self, name: str, last: Any = None) -> Column:
        """A column for the labels."""
        return NumberColumn(name, last) if self.classes is None else TextColumn(name, last)

    def lagged(self, labels: np.ndarray) -> np.ndarray:
        """Earlier labels as a feature."""
        return self._family.lagged(labels)

    @property
    def lagged_name(self) -> str:
        return self._family.lagged_name(self.name)

    def state(self) -> dict[str, Any]:
        found = {"name": self.name, "family": self.family, "classes": self.classes, "guessed": self.guessed}
        return {**found, "n_first": self.n_first, **({"format": self.format} if self.format else {})}


# --- the first rows ---------------------------------------------------------------------------------------------------


def _family_of(values: np.ndarray, is_text: bool) -> str:
    """Text is classes; numbers are of the first family they look like, or just numbers."""
    if is_text:
        return "binomial"
    return next((name for name, family in FAMILIES.items() if family().looks_like(values)), "gaussian")


def _few_whole(values: np.ndarray) -> list[int]:
    """The different values, if they are whole and few enough to be classes."""
    different = np.unique(values)
    whole = 2 < len(different) <= FEW and bool(np.all(different == np.round(different)))
    return [int(value) for value in different] if whole else []


def _labels(name: str, cells: pyarrow.Array, values: np.ndarray, is_text: bool) -> list[Any]:
    """The classes in the first rows, sorted."""
    if is_text:
        labels: list[Any] = sorted({label for label in reading.texts(cells) if label is not None})
    else:
        labels = [_whole_or_float(value) for value in np.unique(values[~np.isnan(values)])]
    n, where = len(labels), f"in the first {len(cells):,} rows"
    if not is_text and n > 2 and not all(isinstance(label, int) for label in labels):
        raise ValueError(
            f"{CLASSES}: the target {name!r} holds {n:,} different numbers {where}, and not all are whole; classes "
            "must be text or whole numbers"
        )
    if not is_text and n > MOST_CLASSES:
        raise ValueError(
            f"{CLASSES}: the target {name!r} holds {n:,} different numbers {where}, and there may be {MOST_CLASSES} "
            "classes at most: use --family auto, or another --target"
        )
    if n > MOST_CLASSES:
        raise ValueError(
            f"the target {name!r} has {n:,} different texts {where}, such as {labels[0]!r}: it looks like a name or "
            "free text; use another --target, or numbers like 1234.5"
        )
    return labels


def _whole_or_float(value: float) -> Any:
    return int(value) if np.isfinite(value) and value == int(value) else float(value)
