"""Rows by key."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np


class Groups(NamedTuple):
    """The rows of each key: those of `keys[g]` are `order[first[g]:first[g + 1]]`, in the order that they came in."""

    keys: list[Hashable]
    first: np.ndarray
    order: np.ndarray

    def some(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`first` and `order` of these keys alone."""
        sizes = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        starts = np.repeat(self.first[:-1][chosen] - first[:-1], sizes)
        return first, self.order[starts + np.arange(first[-1], dtype=np.intp)]


def groups_of(keys: Any, n_rows: int) -> Groups:
    """Keys as the user gave them, one for each row."""
    labels = _labels(keys, n_rows)
    codes, unique = _codes(labels)
    order = np.argsort(codes, kind="stable").astype(np.intp, copy=False)
    counts = np.bincount(codes, minlength=len(unique))
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
    return Groups(unique, first, order)


def _labels(keys: Any, n_rows: int) -> np.ndarray:
    if isinstance(keys, str) or not hasattr(keys, "__len__"):
        raise ValueError(f"keys={keys!r} is not a list: use one key for each row")
    if len(keys) != n_rows:
        raise ValueError(f"keys: {len(keys)} of them for {n_rows} rows: use one key for each row. No row was learnt.")
    if hasattr(keys, "dtype") and np.ndim(keys) == 1 and getattr(keys.dtype, "kind", "O") in "biuUM":
        return np.asarray(keys)
    labels = np.empty(n_rows, dtype=object)
    labels[:] = list(keys)
    return labels


def _codes(labels: np.ndarray) -> tuple[np.ndarray, list[Hashable]]:
    """A number for each key, and the keys by number, as they came. A key that is missing is refused."""
    if labels.dtype.kind != "O":
        if labels.dtype.kind == "M" and np.isnat(labels).any():
            raise _missing(int(np.flatnonzero(np.isnat(labels))[0]))
        unique, index, codes = np.unique(labels, return_index=True, return_inverse=True)
        came = np.argsort(index)
        return np.argsort(came)[codes], unique[came].tolist()
    numbers: dict[Hashable, int] = {}
    codes = np.empty(len(labels), dtype=np.intp)
    for i, key in enumerate(labels):
        if key is None or key != key:
            raise _missing(i)
        try:
            codes[i] = numbers.setdefault(key, len(numbers))
        except TypeError:
            raise ValueError(f"keys[{i}]={key!r} cannot be a key: use text, numbers or tuples of them") from None
    return codes, list(numbers)


def _missing(i: int) -> ValueError:
    return ValueError(f"keys[{i}] is missing: every row needs a key. No row was learnt.")
