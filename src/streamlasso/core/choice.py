# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The expert that is selected, as one model that a person can read.

**First: does any feature matter?** None does where the models without features have, over all memories, more than half
of all weight, or NOTHING times that of the lassos at each other penalty. Then the one with the largest weight is the
candidate; elsewhere none of them is. The largest weight of a single lasso would be a poor criterion: it may be that of
a model without features where it is certain that features matter, but not which. After a change most of the weight is
with ridges, and of the lassos that are left the one that predicts the mean may have lost the least.

**Then by its support.** Weights are likelihoods, so a ratio of two of them is a ratio of evidence, and one below CLOSE
is hardly worth mentioning (Jeffreys, 1961). Experts within CLOSE of the largest weight predict alike, and what a person
reads is their support A. The candidate is the one that agrees best with the features that matter in the average of all
experts, ridges included: those whose effect (coefficient times deviation) is at least MATTERS times the largest, k of
them, n of these in A.

    agreement = 2 n / (|A| + k)

An average is a better witness than one expert: where many models predict alike, the best one includes what most of the
weight includes (the median probability model, Barbieri and Berger, 2004).

**It is held on to while no other is better by more than noise.** The selected expert stays until

- another has more than HOLD times its weight,
- or the candidate's agreement is larger by more than BETTER,
- or features begin, or cease, to matter,
- or its memory restarts.

A model that is not sparse is selected where its weight is DENSE_MARGIN times that of all sparse ones together. It stays
as long as it has DENSE_MARGIN / CLOSE times that.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.experts.base import Experts
from cython.cimports.streamlasso.core.pointers import Doubles, Pointers
from cython.cimports.streamlasso.core.state import Stateful

from streamlasso.core.state import Column, numbers

NOTHING = cython.declare(cython.double, 3.0)
CLOSE = cython.declare(cython.double, 3.0)
MATTERS = cython.declare(cython.double, 0.2)
HOLD = cython.declare(cython.double, 5.0)
BETTER = cython.declare(cython.double, 0.2)
DENSE_MARGIN = cython.declare(cython.double, 1000.0)


@cython.cclass
class Choice(Stateful):
    """Which of these groups' experts, with these weights, is selected."""

    STATE = (numbers("selected", Column("held"), dtype=np.int64),)

    def __cinit__(self, shares, groups, p: cython.Py_ssize_t):
        self.shares = shares
        m: cython.Py_ssize_t
        M: cython.Py_ssize_t = len(groups)
        self.each = Pointers(groups)
        self.p = p
        self.room = Doubles(self.shares.K + (2 * M + 2 * p + 7) // 8)
        self.only = self.room.at
        self.sparse = cython.cast(cython.pointer[cython.schar], self.only + self.shares.K)
        self.begins_empty = self.sparse + M
        self.matters = self.begins_empty + M
        self.used = self.matters + p
        for m in range(M):
            self.sparse[m] = groups[m].sparse
            self.begins_empty[m] = groups[m].first_is_empty
        self.has_empty = any(group.first_is_empty for group in groups)
        self.n_matter = 0
        self.held = -1
        effect: Doubles = Doubles(p)
        self.update(effect.at)

    def update(self, effect):
        """After a row, by the weights that there are now and the sizes of the effects in the average."""
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        largest: cython.Py_ssize_t = -1
        densest: cython.Py_ssize_t = -1
        most: cython.double = -1.0
        most_dense: cython.double = -1.0
        all_sparse: cython.double = 0.0
        total: cython.p_double = self.shares.total
        nothing: cython.bint = self._nothing_matters()
        for m in range(self.shares.M):
            for e in range(self.shares.first[m], self.shares.first[m + 1] if self.shares.alive[m] else 0):
                if not self.sparse[m]:
                    if total[e] > most_dense:
                        most_dense = total[e]
                        densest = e
                    continue
                all_sparse += total[e]
                if total[e] > most and self._is_empty(m, e) == nothing:
                    most = total[e]
                    largest = e
        if largest < 0 or most_dense > DENSE_MARGIN * all_sparse:
            if self.held < 0 or self._is_sparse(self.held) or most_dense > HOLD * self.shares.total[self.held]:
                self.held = densest
            return 0
        if self.held >= 0 and not self._is_sparse(self.held):
            if CLOSE * self.shares.total[self.held] > DENSE_MARGIN * all_sparse:
                return 0
            self.held = -1
        if nothing:
            if not self._holds(nothing, most):
                self.held = largest
            return 0
        self._note(effect)
        return self._by_support(most)

    def _nothing_matters(self):
        """Have the models without features half of all weight, or NOTHING times that of each other penalty?"""
        k: cython.Py_ssize_t
        empty: cython.double = self._weight_at(0)
        if not self.has_empty:
            return False
        if empty > 0.5:
            return True
        for k in range(1, self.shares.K):
            if empty < NOTHING * self._weight_at(k):
                return False
        return True

    def _weight_at(self, k):
        """Of the k-th penalty, over all memories of lassos that begin with a model without features."""
        m: cython.Py_ssize_t
        weight: cython.double = 0.0
        for m in range(self.shares.M):
            if self.begins_empty[m] and self.shares.alive[m]:
                weight += self.shares.total[self.shares.first[m] + k]
        return weight

    def _is_empty(self, m, e):
        return self.begins_empty[m] and e == self.shares.first[m]

    def _is_sparse(self, e):
        return self.sparse[self.group_of(e)]

    def _holds(self, nothing, most):
        """Whether the one that is held may stay, as far as its weight says."""
        if self.held < 0 or self._is_empty(self.group_of(self.held), self.held) != nothing:
            return False
        return most <= HOLD * self.shares.total[self.held]

    def _note(self, effect):
        """The features that matter in the average."""
        j: cython.Py_ssize_t
        largest: cython.double = 0.0
        self.n_matter = 0
        for j in range(self.p):
            largest = max(largest, effect[j])
        for j in range(self.p):
            self.matters[j] = largest > 0.0 and effect[j] >= MATTERS * largest
            self.n_matter += self.matters[j]

    def _by_support(self, most):
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        candidate: cython.Py_ssize_t = -1
        weight: cython.double
        agreement: cython.double
        best: cython.double = -1.0
        own: cython.double = -1.0 - BETTER
        if self._holds(False, most):
            own = self._agreement(self.group_of(self.held), self.held)
        for m in range(self.shares.M):
            if not self.sparse[m] or not self.shares.alive[m]:
                continue
            for e in range(self.shares.first[m], self.shares.first[m + 1]):
                weight = self.shares.total[e]
                if CLOSE * weight < most or self._is_empty(m, e):
                    continue
                agreement = self._agreement(m, e)
                if agreement > best or (agreement == best and weight > self.shares.total[candidate]):
                    best = agreement
                    candidate = e
        if best > own + BETTER:
            self.held = candidate
        return 0

    def _agreement(self, m, e):
        """That of the support of the e-th expert, which is of group m."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t = e - self.shares.first[m]
        size: cython.Py_ssize_t
        both: cython.int = 0
        used: cython.pointer[cython.schar] = self.used
        matters: cython.pointer[cython.schar] = self.matters
        memset(used, 0, self.p)
        self.only[k] = 1.0
        size = cython.cast(Experts, self.each.at[m]).mark(self.only, used)
        self.only[k] = 0.0
        for j in range(self.p):
            both += used[j] & matters[j]
        return 2.0 * both / max(size + self.n_matter, 1)

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
