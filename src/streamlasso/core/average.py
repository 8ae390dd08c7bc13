# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The averaged model of a mixture: the coefficients of its experts, times their weights.

Averaging eta is averaging coefficients, so the mixture is one linear model at every moment. To add up the models of all
experts takes a while, and most have next to no weight. Those who look at the model after every row look at an outline,
which leaves them out; the whole is made when it is asked for.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.experts.base import Experts
from cython.cimports.streamlasso.core.pointers import Doubles, Pointers
from cython.cimports.streamlasso.core.shares import Shares
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import FINITE, READ, WRITE

from streamlasso.core.state import WITH_INTERCEPT, array

#: An outline leaves out experts with less than this share of the largest weight.
OUTLINE = cython.declare(cython.double, 1e-3)


@cython.cclass
class Average(Stateful):
    """The models of groups of experts, averaged by their shares."""

    STATE = (array("model", WITH_INTERCEPT, exchanged=np.negative),)

    def __cinit__(self, p: cython.Py_ssize_t, each: Pointers, shares: Shares):
        self.p = p
        self.each = each
        self.shares = shares
        self.room = Doubles(p + 1 + shares.n + (p + 7) // 8)
        self.model = self.room.at
        self.weights = self.model + p + 1
        self.used = cython.cast(cython.pointer[cython.schar], self.weights + shares.n)
        self.is_whole = True

    def outline(self):
        """The model of the experts that matter."""
        e: cython.Py_ssize_t
        most: cython.double = 0.0
        total: cython.double = 0.0
        weights: cython.p_double = self.weights
        shares: cython.p_double = self.shares.total
        for e in range(self.shares.n):
            most = max(most, shares[e])
        most *= OUTLINE
        for e in range(self.shares.n):
            weights[e] = 0.0
            if shares[e] >= most:
                weights[e] = shares[e]
                total += shares[e]
        for e in range(self.shares.n):
            if weights[e] > 0.0:
                weights[e] /= total
        self.is_whole = False
        return self._add_models(weights)

    def whole(self):
        """The model of all experts."""
        if self.is_whole:
            return 0
        self.is_whole = True
        return self._add_models(self.shares.total)

    def _add_models(self, weights):
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        used: cython.bint
        memset(self.model, 0, (self.p + 1) * cython.sizeof(cython.double))
        for m in range(self.each.n):
            used = False
            for e in range(self.shares.first[m], self.shares.first[m + 1]):
                used = used or weights[e] > 0.0
            if used and self.shares.alive[m]:
                cython.cast(Experts, self.each.at[m]).add_coef(weights + self.shares.first[m], self.model)
        return 0

    def n_active(self):
        """Features that an expert uses. The ridges, which use all that vary, come last."""
        m: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        memset(self.used, 0, self.p)
        for m in range(self.each.n - 1, -1, -1):
            if self.shares.alive[m] and n < self.p:
                n += cython.cast(Experts, self.each.at[m]).mark(self.shares.total + self.shares.first[m], self.used)
        return n

    def inclusion(self):
        """Of the experts that choose features, the share that uses each: a ridge uses them all, and says nothing."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        weight: cython.double
        choosing: cython.double = 0.0
        found = np.zeros(self.p)
        total: cython.double[::1] = found
        only: cython.double[::1] = np.zeros(self.shares.n)
        model: cython.double[::1] = np.zeros(self.p + 1)
        for m, group in enumerate(self.each.objects):
            for k in range(group.n if self.shares.alive[m] and group.sparse else 0):
                weight = self.shares.total[self.shares.first[m] + k]
                if not weight > 0.0:
                    continue
                choosing += weight
                self._write_model_of(m, k, cython.address(only[0]), cython.address(model[0]))
                for j in range(self.p):
                    total[j] += weight if model[1 + j] != 0.0 else 0.0
        return np.clip(found / max(choosing, 1e-300), 0.0, 1.0)

    def model_of(self, m: cython.Py_ssize_t, k: cython.Py_ssize_t):
        """(b0, b) of one expert."""
        only: cython.double[::1] = np.zeros(self.shares.n)
        found = np.zeros(self.p + 1)
        model: cython.double[::1] = found
        self._write_model_of(m, k, cython.address(only[0]), cython.address(model[0]))
        return found

    def _write_model_of(self, m, k, only, model):
        """`only` are zeros, one per expert, before and after."""
        memset(model, 0, (self.p + 1) * cython.sizeof(cython.double))
        only[k] = 1.0
        cython.cast(Experts, self.each.at[m]).add_coef(only, model)
        only[k] = 0.0
        return 0

    def travel(self, tape):
        """The whole model; what is read is that."""
        if tape.mode == WRITE:
            self.whole()
        tape.doubles(self.model, self.p + 1, FINITE)
        if tape.mode == READ:
            self.is_whole = True
