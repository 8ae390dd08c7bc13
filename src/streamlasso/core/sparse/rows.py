# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A model takes the rows of a CSR matrix one by one."""

import cython
import numpy as np
from cython.cimports.libc.stdint import int64_t
from cython.cimports.streamlasso.core.base.lock import Gate


def learn_each(models, rows, targets, weight, etas):
    """All models learn the rows, each with its own targets; no other thread and no signal comes between two of them.

    A tuner written in Python lets other threads run inside a row: readers and forks wait for the end of the call.
    """
    gate: Gate = cython.cast(SparseRows, models[0]).gate
    starts, columns, values = rows
    gate.begin()
    try:
        for model, y, before in zip(models, targets, etas, strict=True):
            cython.cast(SparseRows, model).learn_rows(starts, columns, values, y, weight, before)
    finally:
        gate.end()


@cython.cclass
class SparseRows:
    """Subclasses take in the non-zeros of a row (`enter`), then learn it (`take`) or only predict (`tell`)."""

    def __cinit__(self, *_, **__):
        self.gate = Gate()

    def learn(self, starts, columns, values, y, weight=None, before=None):
        """Predict, then learn, each row of a CSR matrix in order. `before` takes the etas that were predicted."""
        learn_each([self], (starts, columns, values), [y], weight, [before])

    def learn_rows(self, starts, columns, values, y, weight, before):
        """`learn`, by the thread that owns the gate."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t
        w: cython.double = 1.0
        eta: cython.double
        weights: cython.const[cython.double][::1] = weight
        etas: cython.double[::1] = before
        for i in range(y.shape[0]):
            if weight is not None:
                w = weights[i]
            n = self.enter(starts[i], starts[i + 1], columns, values)
            eta = self.take(n, y[i], w) if w > 0.0 else self.tell(n)
            if before is not None:
                etas[i] = eta
        return 0

    def decide(
        self,
        starts: cython.const[int64_t][::1],
        columns: cython.const[int64_t][::1],
        values: cython.const[cython.double][::1],
    ):
        """eta of each row of a CSR matrix, given what has been learnt."""
        i: cython.Py_ssize_t
        out = np.empty(starts.shape[0] - 1)
        etas: cython.double[::1] = out
        for i in range(etas.shape[0]):
            etas[i] = self.tell(self.enter(starts[i], starts[i + 1], columns, values))
        return out

    def enter(self, start, end, columns, values):
        """How many non-zeros the row has."""
        return 0

    def take(self, n, y, weight):
        """Predict and learn the row; eta as it was predicted."""
        return 0.0

    def tell(self, n):
        """eta of the row; nothing changes."""
        return 0.0
