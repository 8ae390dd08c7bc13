"""Frames, labels, weights and factors as river's users give them, checked and as the engine takes them."""

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from streamlasso.core.base.checks import first_unfit
from streamlasso.core.dict_rows import DictRows, number


def label_of(y: Any) -> Hashable:
    label = y.item() if isinstance(y, np.generic) else y
    if not isinstance(label, Hashable) or label is None or label is pd.NA or label != label:
        raise ValueError(f"y={y!r} is not a class label: use a string, a number or a bool; nothing was learnt.")
    return label


def penalty_factors(factors: Any) -> dict[Hashable, float]:
    if factors is None:
        return {}
    if not isinstance(factors, Mapping):
        raise ValueError(f"penalty_factor={factors!r} is not a dict: use a dict from names to numbers (absent: 1)")
    for name, factor in factors.items():
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 <= float(factor) < np.inf:
            raise ValueError(f"penalty_factor[{name!r}]={factor!r}: use a number, 0 (never penalised) or larger")
    return {name: float(factors[name]) for name in sorted(factors, key=str)}


def names_of(X: Any) -> list[Hashable]:
    if not isinstance(X, pd.DataFrame):
        raise TypeError(f"X: a pandas DataFrame is needed, not {type(X).__name__}; nothing was learnt.")
    if not X.columns.is_unique:
        raise ValueError(f"X has two columns {X.columns[X.columns.duplicated()][0]!r}; nothing was learnt.")
    return list(X.columns)


def rows_of(columns: DictRows, X: pd.DataFrame) -> np.ndarray:
    """The frame as the engine takes it. Values of names without a column are looked at, then left out."""
    rows = np.zeros((len(X), columns.width))
    for name, values in X.items():
        numbers = numbers_of(f"X[{name!r}]", values)
        if name in columns:
            rows[:, columns.place(name)] = numbers
    return rows


def numbers_of(name: str, values: pd.Series) -> np.ndarray:
    if values.dtype.kind in "biuf":
        # In pandas 2 a column of a frame of one array is a part of its rows.
        numbers = np.ascontiguousarray(values.to_numpy(dtype=float, na_value=np.nan))
    else:
        numbers = np.array([number(f"{name}.iloc[{i}]", value) for i, value in enumerate(values)])
    bad = first_unfit(numbers.reshape(-1, 1))
    if bad >= 0:
        number(f"{name}.iloc[{bad}]", values.iloc[bad])
    return numbers


def weights_of(w: Any, X: pd.DataFrame) -> np.ndarray:
    weights = np.full(len(X), number("w", w)) if np.ndim(w) == 0 else numbers_of("w", as_long(w, X, "w"))
    if np.any(weights < 0):
        raise ValueError(f"w={w!r} is negative: use weights of 0 (the row is skipped) or larger; nothing was learnt.")
    return weights


def as_long(values: Any, X: pd.DataFrame, name: str = "y") -> pd.Series:
    series = values if isinstance(values, pd.Series) else pd.Series(values)
    if len(series) != len(X):
        raise ValueError(f"{name} has {len(series)} values for {len(X)} rows of X; nothing was learnt.")
    return series
