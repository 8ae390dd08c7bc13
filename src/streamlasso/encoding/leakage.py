"""Columns that are the target in other words: found among the first rows, before anything is learnt."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import pyarrow

from streamlasso.encoding.columns import KINDS, carried
from streamlasso.encoding.target import Target

#: Rows that are looked at, columns that together may be the target, and the share of its variance that may remain.
N_ROWS, MOST_COLUMNS, NEXT_TO_NOTHING = 2000, 5, 1e-4
#: Rows in which the target is not what it mostly is, for each feature: with fewer, anything fits.
ROWS_A_FEATURE = 10


def disguise(rows: pyarrow.RecordBatch, target: Target, columns: list[Any]) -> list[str]:
    """The names of few columns of which the target is a sum, but for rounding; none if there are no such.

    The target at the same row counts as known by then: whether it is, only the user can say.

    >>> import pyarrow
    >>> from streamlasso.encoding import Target
    >>> from streamlasso.encoding.columns import Number
    >>> from streamlasso.encoding.leakage import disguise
    >>> a, b = [i * 7 % 11 for i in range(99)], [i * 5 % 13 for i in range(99)]
    >>> rows = pyarrow.RecordBatch.from_pydict({"a": a, "b": b, "y": [2.0 * i + j for i, j in zip(a, b)]})
    >>> disguise(rows, Target.guess("y", rows["y"], "auto"), [Number("a"), Number("b")])
    ['a', 'b']
    """
    rows = rows.slice(0, N_ROWS)
    Y = _responses(rows, target)
    there = ~np.isnan(Y).any(axis=1)
    Y = Y[there]
    groups = {column.name: _centred(_features(rows, column)[there]) for column in columns}
    if not len(Y) or not groups or not np.ptp(Y, axis=0).any():
        return []
    unusual = len(Y) - np.unique(Y, axis=0, return_counts=True)[1].max()
    return _carriers(Y - Y.mean(axis=0), groups, int(unusual) // ROWS_A_FEATURE)


def said(target: str, columns: list[str]) -> list[str]:
    """A sentence about it, if there is anything to say."""
    if not columns:
        return []
    drop = f"--drop {shlex.quote(','.join(columns))}"
    if len(columns) == 1:
        return [f"{columns[0]} gives {target} away, being the same in other words: if not known before, {drop}"]
    named = f"{', '.join(columns[:-1])} and {columns[-1]}"
    return [f"{named} give {target} away, being parts of it: if not known before, {drop}"]


def _carriers(Y: np.ndarray, groups: dict[str, np.ndarray], most_features: int) -> list[str]:
    """Step by step the column that has most to say about what remains, until next to nothing does."""
    chosen: list[str] = []
    residual, total = Y, float(np.sum(Y**2))
    while len(chosen) < min(MOST_COLUMNS, len(groups)):
        gains = {name: _explained(Z, residual) for name, Z in groups.items() if name not in chosen}
        chosen.append(max(gains, key=lambda name: gains[name]))
        Z = np.hstack([groups[name] for name in chosen])
        if Z.shape[1] > most_features:
            break
        residual = Y - Z @ np.linalg.lstsq(Z, Y, rcond=None)[0]
        if np.sum(residual**2) <= NEXT_TO_NOTHING * total:
            return chosen
    return []


def _explained(Z: np.ndarray, residual: np.ndarray) -> float:
    return float(np.max(np.sum((Z.T @ residual) ** 2, axis=1), initial=0.0))


def _responses(rows: pyarrow.RecordBatch, target: Target) -> np.ndarray:
    """(row, class) whether it is this one, or (row, 1) the number; NaN where there is none."""
    cells = target.read(rows[target.name])
    if target.classes is not None:
        known = np.array([label in target.classes for label in cells])
        return np.array([np.where(known, cells == label, np.nan) for label in target.classes], float).T
    return np.array([[np.nan if isinstance(cell, str) else cell] for cell in cells], float)


def _features(rows: pyarrow.RecordBatch, column: Any) -> np.ndarray:
    """Those of one column, whose memory is left alone."""
    column = KINDS[column.kind](**column.state())
    values = carried(column, column.read(rows[column.name])[0])
    names = column.fixed() + [column.feature(level) for level in column.levels_of(values)]
    X = np.zeros((len(values), len(names)))
    column.fill(X, values, {name: j for j, name in enumerate(names)})
    return X


def _centred(X: np.ndarray) -> np.ndarray:
    """Of equal length, without those that never change."""
    Z = X - X.mean(axis=0) if len(X) else X
    length = np.linalg.norm(Z, axis=0)
    return Z[:, length > 0] / length[length > 0]
