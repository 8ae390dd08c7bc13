# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Which numbers a step accepts."""

import cython
from cython.cimports.libc.math import fabs

#: Values and weights beyond this are refused: squares, times a weight, times its unit, would not fit a double.
LARGEST = 1e60


def first_unfit(X: cython.const[cython.double][:, ::1]):
    """The place, counted along the rows, of the first value that is not finite or too large; -1 if there is none."""
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = X.shape[0] * X.shape[1]
    largest: cython.double = LARGEST
    bad: cython.Py_ssize_t = 0
    x: cython.pointer[cython.const[cython.double]]
    if n == 0:
        return -1
    x = cython.address(X[0, 0])
    for i in range(n):
        bad += not fabs(x[i]) <= largest
    if bad == 0:
        return -1
    i = 0
    while fabs(x[i]) <= largest:
        i += 1
    return i
