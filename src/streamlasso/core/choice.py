# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The expert that is selected, as one model that a person can read.

The candidate is the sparse expert with the largest weight, or rather, in its group, the largest penalty that has at
least half of that: of two models that predict about as well, the sparser. A model that is not sparse is the candidate
where its weight is DENSE_MARGIN times that of all sparse ones together.

**It is held on to while no other is better by more than noise.** Weights are likelihoods, so a ratio of two of them is
a ratio of evidence, and one below HOLD is hardly worth mentioning (Jeffreys, 1961): two experts that predict alike
exchange the lead every few rows, by chance. So the selected expert stays until

- another has more than HOLD times its weight,
- or the candidate is a sparser one of the same memory with no less weight: nothing speaks for the larger model,
- or its memory restarts.

One that is not sparse stays as long as it has DENSE_MARGIN / HOLD times the weight of all sparse ones.
"""

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.streamlasso.core.state import Stateful

from streamlasso.core.state import Column, numbers

HOLD = cython.declare(cython.double, 3.0)
DENSE_MARGIN = cython.declare(cython.double, 100.0)


@cython.cclass
class Choice(Stateful):
    """Which of the experts with these weights is selected; `sparse` says of each group whether its models are."""

    STATE = (numbers("selected", Column("held"), dtype=np.int64),)

    def __cinit__(self, shares, sparse):
        self.shares = shares
        self.sparsity = bytes(map(bool, sparse))
        self.sparse = cython.cast(cython.pointer[cython.schar], PyBytes_AS_STRING(self.sparsity))
        self.held = -1
        self.update()

    def update(self):
        """After a row, by the weights that there are now."""
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        g: cython.Py_ssize_t
        best: cython.Py_ssize_t[2]
        most: cython.double[2]
        all_sparse: cython.double = 0.0
        best[0] = best[1] = -1
        most[0] = most[1] = -1.0
        for m in range(self.shares.M):
            g = self.sparse[m]
            for e in range(self.shares.first[m], self.shares.first[m + 1] if self.shares.alive[m] else 0):
                all_sparse += self.shares.total[e] if g else 0.0
                if self.shares.total[e] > most[g]:
                    most[g] = self.shares.total[e]
                    best[g] = m
        g = best[1] >= 0 and most[0] <= DENSE_MARGIN * all_sparse
        e = self.shares.first[best[g]]
        while self.shares.total[e] < 0.5 * most[g]:
            e += 1
        if not self._holds(best[g], e, most[g], all_sparse):
            self.held = e

    def _holds(self, m, candidate, most, all_sparse):
        weight: cython.double
        mine: cython.Py_ssize_t
        if self.held < 0:
            return False
        weight = self.shares.total[self.held]
        mine = self.group_of(self.held)
        if self.sparse[mine] != self.sparse[m]:
            return not self.sparse[mine] and HOLD * weight > DENSE_MARGIN * all_sparse
        if m == mine and candidate < self.held and self.shares.total[candidate] >= weight:
            return False
        return most <= HOLD * weight

    def forget(self, m):
        """A group that restarts; an update follows."""
        if self.held >= 0 and self.group_of(self.held) == m:
            self.held = -1

    def group_of(self, e):
        m: cython.Py_ssize_t = 0
        while self.shares.first[m + 1] <= e:
            m += 1
        return m

    def selected(self):
        """The group of the selected expert, and its place in it."""
        m: cython.Py_ssize_t = self.group_of(self.held)
        return m, self.held - self.shares.first[m]

    def travel(self, tape):
        self.travelled = self.group_of(tape.index(cython.address(self.held), self.shares.n))
