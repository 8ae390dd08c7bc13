"""What a matrix must be for the sparse engine, and as what it takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from streamlasso.core.sparse.model import LARGEST_X
from streamlasso.estimators.validation import checked_array, refuse_forged, refuse_value

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
    bad = np.flatnonzero(~(np.abs(X.data) <= LARGEST_X))
    if len(bad):
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        refuse_value("X", X, row, int(X.indices[bad[0]]), most=LARGEST_X)
    rows = X.indptr.astype(np.int64), X.indices.astype(np.int64), np.ascontiguousarray(X.data), X.shape[0]
    return rows, labels
