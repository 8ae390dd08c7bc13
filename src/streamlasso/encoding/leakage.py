"""Columns that give the target away: found among the first rows, before anything is learnt."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow

from streamlasso._text import listed
from streamlasso.encoding.columns import Column, column_from
from streamlasso.encoding.target import Target

#: Rows that are looked at, columns that together may give the target, and the share of its variance that may remain.
N_ROWS, MOST_COLUMNS, NEXT_TO_NOTHING = 2000, 5, 1e-4
#: For each feature, rows in which the target is not its most frequent value: with fewer, anything fits.
ROWS_PER_FEATURE = 10


def leaking_columns(rows: pyarrow.RecordBatch, target: Target, columns: list[Column]) -> list[str]:
    """The names of a few columns whose features add up to the target, but for rounding; empty if there are none.

    Whether they are known before the target is, only the user can say.

    >>> import pyarrow
    >>> from streamlasso.encoding import Target
    >>> from streamlasso.encoding.columns import NumberColumn
    >>> from streamlasso.encoding.leakage import leaking_columns
    >>> a, b = [i * 7 % 11 for i in range(99)], [i * 5 % 13 for i in range(99)]
    >>> rows = pyarrow.RecordBatch.from_pydict({"a": a, "b": b, "y": [2.0 * i + j for i, j in zip(a, b)]})
    >>> leaking_columns(rows, Target.guess("y", rows["y"], "auto"), [NumberColumn("a"), NumberColumn("b")])
    ['a', 'b']
    """
    rows = rows.slice(0, N_ROWS)
    Y = _responses(rows, target)
    there = ~np.isnan(Y).any(axis=1)
    Y = Y[there]
    groups = {column.name: _standardised(_features(rows, column)[there]) for column in columns}
    if not len(Y) or not groups or not np.ptp(Y, axis=0).any():
        return []
    unusual = len(Y) - np.unique(Y, axis=0, return_counts=True)[1].max()
    return _explaining(Y - Y.mean(axis=0), groups, int(unusual) // ROWS_PER_FEATURE)


def leakage_notes(target: str, columns: list[str]) -> list[str]:
    """A note about such columns, if there are any."""
    if not columns:
        return []
    they = "it is" if len(columns) == 1 else "they are"
    drop = f"--drop {shlex.quote(','.join(columns))}"
    return [f"{target} can be computed from {listed(columns)}: if {they} not known before {target}, use {drop}"]


def _explaining(Y: np.ndarray, groups: dict[str, np.ndarray], most_features: int) -> list[str]:
    """Step by step the column that explains most of the residual, until next to nothing remains."""
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
    """(row, class) whether it is this class, or (row, 1) the number; NaN where missing."""
    cells = target.read(rows[target.name])
    if target.classes is not None:
        known = np.array([label in target.classes for label in cells])
        return np.array([np.where(known, cells == label, np.nan) for label in target.classes], float).T
    return np.array([[np.nan if isinstance(cell, str) else cell] for cell in cells], float)


def _features(rows: pyarrow.RecordBatch, column: Column) -> np.ndarray:
    """Those of one column; its last value is left alone."""
    column = column_from(column.state())
    values = column.filled(column.read(rows[column.name])[0])
    names = [*column.fixed_features(), *map(column.level_feature, column.levels_of(values))]
    X = np.zeros((len(values), len(names)))
    column.fill(X, values, {name: j for j, name in enumerate(names)})
    return X


def _standardised(X: np.ndarray) -> np.ndarray:
    """Centred and of equal length, without those that never change."""
    Z = X - X.mean(axis=0) if len(X) else X
    length = np.linalg.norm(Z, axis=0)
    return Z[:, length > 0] / length[length > 0]
