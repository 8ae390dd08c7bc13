"""What a matrix must be for the sparse engine, and as what it takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from streamlasso.core.sparse.model import LARGEST_X
from streamlasso.estimators.validation import checked_array, refuse_forged

#: Columns have 31 bits.
MOST_COLUMNS = 2**31 - 1


def rows_of(
    estimator: Any, X: Any, *, reset: bool
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, int], dict[str, Any] | None]:
    """X as the engine takes it, where rows start, columns, values, and the number of rows; and what is to be noted of
    the columns of a new model."""
    if sparse.issparse(X):
        refuse_forged(X)
    checks: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": False, "order": "C"}
    X, labels = checked_array(estimator, X, reset=reset, **checks)
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"X has {X.shape[1]:,} columns, and an index of a column has 31 bits: hash names into at most 2^31 - 1 "
            "columns; no row was learnt."
        )
    if sparse.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        X = sparse.csr_array(X)
    _refuse_values(X)
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int64), np.ascontiguousarray(X.data), X.shape[0]
    return rows, labels


def _refuse_values(X: Any) -> None:
    """Name the first value that is not finite, or too large."""
    bad = np.flatnonzero(~(np.abs(X.data) <= LARGEST_X))
    if not len(bad):
        return
    k = int(bad[0])
    row = int(np.searchsorted(X.indptr, k, side="right")) - 1
    place = f"X[{row}, {X.indices[k]}] = {X.data[k]}"
    if np.isnan(X.data[k]):
        raise ValueError(f"Input X contains NaN: {place}. Fill in or drop missing values; no row was learnt.")
    if np.isinf(X.data[k]):
        raise ValueError(f"Input X contains infinity: {place}; no row was learnt.")
    raise ValueError(f"{place}: values lie within +-{LARGEST_X:g}, rescale it; no row was learnt.")
