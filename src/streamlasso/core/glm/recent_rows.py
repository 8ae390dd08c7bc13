# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The rows kept whole, as the minimiser of a likelihood reads them (`newton.py`).

By feature: a column, made when it is first asked for, less the feature's running mean, so that large offsets do not
drown what is summed over it. By response: where these are few, as classes are, rows with the same one are alike to an
empty model, so each row's level is found once.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.lasso.objective import Objective
from cython.cimports.streamlasso.core.linalg.kernels import centred_column


@cython.cclass
class WholeRows:
    """The rows kept whole, oldest first: responses, weights, and by feature x_j less `origin`, its running mean."""

    def __cinit__(self, objective: Objective):
        p: cython.Py_ssize_t = objective.p
        n: cython.Py_ssize_t = max(min(objective.history, objective.ring.capacity), 1)
        self.objective = objective
        self.ring = objective.ring
        self.y = np.zeros(n)
        self.weight = np.zeros(n)
        self.zeros = None if objective.fit_intercept else Doubles(p)
        self.origin = objective.scaler.mean if self.zeros is None else self.zeros.at
        self.level_of = np.zeros(n, dtype=np.intp)
        self.columns = np.zeros((p, n))
        self.there = np.zeros(p, dtype=np.int8)
        self.current = False

    def refresh(self):
        """The rows as they are now; columns are made when they are asked for."""
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.objective.n_whole
        if self.current:
            return
        self.first = self.ring.slot(self.ring.count - n) if n > 0 else 0
        for i in range(n):
            slot = self.first + i if self.first + i < self.ring.capacity else self.first + i - self.ring.capacity
            self.y[i] = self.ring.y[slot]
            self.weight[i] = self.ring.weight[slot]
        if not self._find_two_levels():
            self._find_levels()
        memset(cython.address(self.there[0]), 0, self.there.shape[0])
        self.current = True

    def _find_two_levels(self):
        """`_find_levels` for at most two, without branches: classes come in an order that no processor can predict."""
        i: cython.Py_ssize_t = 0
        level: cython.Py_ssize_t
        next_level: cython.Py_ssize_t
        more: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = self.objective.n_whole
        first: cython.double = self.y[0]
        second: cython.double
        even: cython.double = 0.0
        odd: cython.double = 0.0
        even_second: cython.double = 0.0
        odd_second: cython.double = 0.0
        while i < n and self.y[i] == first:
            i += 1
        second = self.y[i] if i < n else first
        for i in range(0, n - 1, 2):
            level = self.y[i] != first
            next_level = self.y[i + 1] != first
            more += level & (self.y[i] != second) | next_level & (self.y[i + 1] != second)
            self.level_of[i] = level
            self.level_of[i + 1] = next_level
            even += self.weight[i] * (1 - level)
            odd += self.weight[i + 1] * (1 - next_level)
            even_second += self.weight[i] * level
            odd_second += self.weight[i + 1] * next_level
        if n % 2 == 1:
            level = self.y[n - 1] != first
            more += level & (self.y[n - 1] != second)
            self.level_of[n - 1] = level
            even += self.weight[n - 1] * (1 - level)
            even_second += self.weight[n - 1] * level
        self.levels[0] = first
        self.levels[1] = second
        self.level_weight[1] = even_second + odd_second
        self.level_weight[0] = even + odd
        self.n_levels = 0 if n == 0 else 1 if second == first else 2
        return more == 0

    def _find_levels(self):
        """Find the different responses and the one of each row; `n_levels` is 0 if they are more than MOST_LEVELS."""
        i: cython.Py_ssize_t
        level: cython.Py_ssize_t
        self.n_levels = 0
        for level in range(MOST_LEVELS):
            self.level_weight[level] = 0.0
        for i in range(self.objective.n_whole):
            level = self.n_levels > 0 and self.levels[0] != self.y[i]
            while level < self.n_levels and self.levels[level] != self.y[i]:
                level += 1
            if level == MOST_LEVELS:
                self.n_levels = 0
                return
            self.levels[level] = self.y[i]
            self.level_of[i] = level
            self.level_weight[level] += self.weight[i]
            self.n_levels = max(self.n_levels, level + 1)

    def row(self, i):
        slot: cython.Py_ssize_t = self.first + i
        return self.ring.x + (slot if slot < self.ring.capacity else slot - self.ring.capacity) * self.objective.p

    def column(self, j):
        """x_j less its running mean, row by row."""
        out: cython.p_double = cython.address(self.columns[j, 0])
        if not self.there[j]:
            self._make_column(j, out)
        return out

    def before_end(self):
        """The number of rows that lie before the end of the ring; the others are at its beginning."""
        return min(self.objective.n_whole, self.ring.capacity - self.first)

    def _make_column(self, j, out):
        n: cython.Py_ssize_t = self.objective.n_whole
        p: cython.Py_ssize_t = self.objective.p
        first: cython.Py_ssize_t = self.before_end()
        centred_column(first, p, self.ring.x + self.first * p + j, self.origin[j], out)
        centred_column(n - first, p, self.ring.x + j, self.origin[j], out + first)
        self.there[j] = 1
