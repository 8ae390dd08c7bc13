"""Columns that give the target away: found among the first rows, before anything is learnt."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow

from streamlasso._text import listed
from streamlasso.core.base.checks import LARGEST
from streamlasso.data.encoding.columns import Column, column_from
from streamlasso.data.encoding.target import Target

#: Rows that are looked at, columns that together may give the target, and the share of its variance that may remain.
N_ROWS, MOST_COLUMNS, NEXT_TO_NOTHING = 2000, 5, 1e-4
#: For each feature, rows in which the target is not its most frequent value: with fewer, anything fits.
ROWS_PER_FEATURE = 10
#: Columns of which pairs are tried, pairs that are looked at closely, and when two columns are the same.
MOST_PAIRED, MOST_PAIRS, ALIKE = 200, 20, 1e-9
#: The share of rows that need not fit: the first of a difference, say, or a revised value.
EXCEPTIONS = 0.01


def leaking_columns(rows: pyarrow.RecordBatch, target: Target, columns: list[Column]) -> list[str]:
    """The names of a few columns whose features add up to the target, but for rounding; empty if there are none.

    Whether they are known before the target is, only the user can say.

    >>> import pyarrow
    >>> from streamlasso.data.encoding import Target
    >>> from streamlasso.data.encoding.columns import NumberColumn
    >>> from streamlasso.data.encoding.leakage import leaking_columns
    >>> a, b = [i * 7 % 11 for i in range(99)], [i * 5 % 13 for i in range(99)]
    >>> rows = pyarrow.RecordBatch.from_pydict({"a": a, "b": b, "y": [2.0 * i + j for i, j in zip(a, b)]})
    >>> leaking_columns(rows, Target.guess("y", rows["y"], "auto"), [NumberColumn("a"), NumberColumn("b")])
    ['a', 'b']
    """
    rows = rows.slice(0, N_ROWS)
    Y = _responses(rows, target)
    features = {column.name: _features(rows, column) for column in columns}
    # Rows with values beyond that are bad rows.
    there = np.all([np.all(np.abs(values) <= LARGEST, axis=1) for values in (Y, *features.values())], axis=0)
    Y = Y[there]
    groups = {name: _standardised(values[there]) for name, values in features.items()}
    if not len(Y) or not groups or not np.ptp(Y, axis=0).any():
        return []
    unusual = len(Y) - np.unique(Y, axis=0, return_counts=True)[1].max()
    most_features = int(unusual) // ROWS_PER_FEATURE
    return _explaining(Y - Y.mean(axis=0), groups, most_features) or _pair(Y - Y.mean(axis=0), groups, most_features)


def leakage_notes(target: str, columns: list[str]) -> list[str]:
    """A note about such columns, if there are any."""
    if not columns:
        return []
    they = "it is" if len(columns) == 1 else "they are"
    drop = f"--drop {shlex.quote(','.join(columns))}"
    return [f"{target} can be computed from {listed(columns)}: if {they} not known before {target}, use {drop}"]


def _explaining(Y: np.ndarray, groups: dict[str, np.ndarray], most_features: int) -> list[str]:
    """Step by step the column that explains most of the residual, until next to nothing remains; then those of them
    that are needed for it."""
    chosen: list[str] = []
    residual = Y
    while len(chosen) < min(MOST_COLUMNS, len(groups)):
        gains = {name: _explained(Z, residual) for name, Z in groups.items() if name not in chosen}
        chosen.append(max(gains, key=lambda name: gains[name]))
        if sum(groups[name].shape[1] for name in chosen) > most_features:
            break
        residual = _residual(Y, groups, chosen)
        if _is_nothing(residual, Y):
            return _needed(Y, groups, chosen)
    return []


def _pair(Y: np.ndarray, groups: dict[str, np.ndarray], most_features: int) -> list[str]:
    """Two columns of numbers that together explain the target, though neither explains much: a difference, say."""
    numbers = {name: Z for name, Z in groups.items() if Z.shape[1] == 1}
    if most_features < 2 or Y.shape[1] != 1 or not 2 <= len(numbers) <= MOST_PAIRED:
        return []
    Z, names = np.hstack(list(numbers.values())), list(numbers)
    with_target, one_another = (Z.T @ Y)[:, 0], Z.T @ Z
    i, j = np.triu_indices(len(names), 1)
    a, b, r = with_target[i], with_target[j], one_another[i, j]
    explained = (a**2 + b**2 - 2 * r * a * b) / np.maximum(1 - r**2, ALIKE)
    for k in np.argsort(-explained, kind="stable")[:MOST_PAIRS]:
        pair = [names[i[k]], names[j[k]]]
        if _is_nothing(_residual(Y, groups, pair), Y):
            return pair
    return []


def _needed(Y: np.ndarray, groups: dict[str, np.ndarray], chosen: list[str]) -> list[str]:
    for name in chosen:
        others = [other for other in chosen if other != name]
        if others and _is_nothing(_residual(Y, groups, others), Y):
            return _needed(Y, groups, others)
    return chosen


def _residual(Y: np.ndarray, groups: dict[str, np.ndarray], names: list[str]) -> np.ndarray:
    """Of least squares, in which the few rows that fit worst do not count."""
    Z = np.hstack([np.ones((len(Y), 1)), *(groups[name] for name in names)])
    residual = Y - Z @ np.linalg.lstsq(Z, Y, rcond=None)[0]
    usual = _usual(residual)
    return Y - Z @ np.linalg.lstsq(Z[usual], Y[usual], rcond=None)[0]


def _is_nothing(residual: np.ndarray, Y: np.ndarray) -> bool:
    usual = _usual(residual)
    return float(np.sum(residual[usual] ** 2)) <= NEXT_TO_NOTHING * float(np.sum((Y - Y.mean(axis=0))[usual] ** 2))


def _usual(residual: np.ndarray) -> np.ndarray:
    """The rows with the smaller residuals: all but EXCEPTIONS."""
    n_kept = len(residual) - int(EXCEPTIONS * len(residual))
    return np.argsort(np.sum(residual**2, axis=1), kind="stable")[:n_kept]


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
