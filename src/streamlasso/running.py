# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sums and last values before each of the next rows, which then count."""

import cython
import numpy as np
from cython.cimports.libc.math import isnan


def values_before(
    y: cython.const[cython.double][::1],
    n: cython.double,
    total: cython.double,
    last: cython.double,
    ahead: cython.double,
):
    """(row, 4) before each value, and once more after them: how many there were, their sum, the last of them, and the
    rows from it to this one. A value that is NaN is missing.

    >>> import numpy as np
    >>> from streamlasso.running import values_before
    >>> values_before(np.array([2.0, np.nan, 5.0]), 0, 0.0, np.nan, 1)
    array([[ 0.,  0., nan,  1.],
           [ 1.,  2.,  2.,  1.],
           [ 1.,  2.,  2.,  2.],
           [ 2.,  7.,  5.,  1.]])
    """
    i: cython.Py_ssize_t
    out = np.empty((y.shape[0] + 1, 4))
    before: cython.double[:, ::1] = out
    for i in range(y.shape[0] + 1):
        before[i, 0], before[i, 1], before[i, 2], before[i, 3] = n, total, last, ahead
        if i == y.shape[0]:
            break
        if isnan(y[i]):
            ahead += 1.0
        else:
            n, total, last, ahead = n + 1.0, total + y[i], y[i], 1.0
    return out


def faded_before(
    losses: cython.const[cython.double][:, ::1],
    counts: cython.const[cython.uchar][::1],
    sums: cython.double[::1],
    n: cython.double,
    decay: cython.double,
    most: cython.const[cython.double][::1],
    few: cython.double,
):
    """(row, column + 1) before each row, and once more after them: the sums S of the losses in each column and their
    weight n,

        S <- decay S + loss,    n <- decay n + 1

    where the row counts. From n >= few on a loss counts at most `most` times the mean S / n, if that is not 0.

    >>> import numpy as np
    >>> from streamlasso.running import faded_before
    >>> rows = np.ones(2, dtype=np.uint8)
    >>> faded_before(np.array([[4.0], [8.0]]), rows, np.zeros(1), 0.0, 0.5, np.full(1, np.inf), 0.0)
    array([[ 0. ,  0. ],
           [ 4. ,  1. ],
           [10. ,  1.5]])
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n_columns: cython.Py_ssize_t = losses.shape[1]
    loss: cython.double
    out = np.empty((losses.shape[0] + 1, n_columns + 1))
    before: cython.double[:, ::1] = out
    for k in range(n_columns):
        before[0, k] = sums[k]
    before[0, n_columns] = n
    for i in range(losses.shape[0]):
        for k in range(n_columns + 1):
            before[i + 1, k] = before[i, k]
        if not counts[i]:
            continue
        n = before[i, n_columns]
        for k in range(n_columns):
            loss = losses[i, k]
            if n >= few and before[i, k] > 0.0 and most[k] * before[i, k] / n < loss:
                loss = most[k] * before[i, k] / n
            before[i + 1, k] = decay * before[i, k] + loss
        before[i + 1, n_columns] = decay * n + 1.0
    return out
