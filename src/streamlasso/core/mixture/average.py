# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The averaged model of a mixture: the coefficients of its experts, times their weights.

Averaging eta is averaging coefficients, and what the last residuals say is linear in eta too (`residuals.py`), so the
mixture is one linear model at every moment:

    b  =  sum_g gate_g [ shift_g + scale_g sum_e w_ge b_e ]

The weight of the hypothesis that there is nothing to learn is multiplied by `doubt`, 1 or more: rows of a rare class
say little, and what they say against a model takes long to be heard. While all responses are the same, as after the
first row, nobody knows where zero is, and the ridges count for nothing.

The model is added up when it is asked for.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.base.buffers import Doubles, Pointers, copied
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.record import WAITING
from cython.cimports.streamlasso.core.mixture.groups.base import Experts, Group


@cython.cclass
class Average:
    """The models of experts, averaged by their groups and by a gate over these."""

    def __cinit__(self, p: cython.Py_ssize_t, each: Pointers, groups: Pointers, hedge: Hedge):
        m: cython.Py_ssize_t
        self.p = p
        self.each = each
        self.groups = groups
        self.hedge = hedge
        self.n = sum(experts.n for experts in each.objects)
        self.nothing = next((g for g, group in enumerate(groups.objects) if group.name == "nothing"), -1)
        self.room = Doubles(each.n + 1 + 2 * self.n + groups.n + p + 1 + (p + 7) // 8)
        self.first = cython.cast(cython.pointer[cython.Py_ssize_t], self.room.at)
        self.total = self.room.at + each.n + 1
        self.scaled = self.total + self.n
        self.gate = self.scaled + self.n
        self.model = self.gate + groups.n
        self.used = cython.cast(cython.pointer[cython.schar], self.model + p + 1)
        for m in range(each.n):
            self.first[m + 1] = self.first[m] + each.objects[m].n
        self.is_current = self.is_summarised = False
        self.doubt = 1.0
        self.is_constant = False

    def add_up(self):
        """The weights of all experts, from those of the groups and their own in these."""
        g: cython.Py_ssize_t
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        self.is_current = self.is_summarised = False
        for g in range(self.groups.n):
            self.gate[g] = self.hedge.used[g] * (self.doubt if g == self.nothing else 1.0)
            if self.is_constant and cython.cast(Group, self.groups.at[g]).waits:
                self.gate[g] = 0.0
            total += self.gate[g]
        for g in range(self.groups.n):
            self.gate[g] /= total
        memset(self.total, 0, self.n * cython.sizeof(cython.double))
        for g in range(self.groups.n):
            for k in range(cython.cast(Group, self.groups.at[g]).n):
                self.total[cython.cast(Group, self.groups.at[g]).first + k] += (
                    self.gate[g] * cython.cast(Group, self.groups.at[g]).w[k]
                )

    def add_models(self):
        """(b0, b) of the average, into `model`."""
        e: cython.Py_ssize_t
        g: cython.Py_ssize_t
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        used: cython.bint
        weight: cython.double
        shift: cython.double
        scale: cython.double
        if self.is_current:
            return 0
        self.is_current = True
        memset(self.scaled, 0, self.n * cython.sizeof(cython.double))
        memset(self.model, 0, (self.p + 1) * cython.sizeof(cython.double))
        for g in range(self.groups.n):
            shift, scale = 0.0, 1.0
            weight = self.gate[g]
            if cython.cast(Group, self.groups.at[g]).carry is not None:
                cython.cast(Group, self.groups.at[g]).carry.linear(cython.address(shift), cython.address(scale))
            self.model[0] += weight * shift
            for k in range(cython.cast(Group, self.groups.at[g]).n):
                e = cython.cast(Group, self.groups.at[g]).first + k
                self.scaled[e] += weight * scale * cython.cast(Group, self.groups.at[g]).w[k]
        for m in range(self.each.n):
            used = False
            for e in range(self.first[m], self.first[m + 1]):
                used = used or self.scaled[e] != 0.0
            if used:
                cython.cast(Experts, self.each.at[m]).add_coef(self.scaled + self.first[m], self.model)
        return 0

    def gates(self):
        """The weights of the groups."""
        return copied(self.gate, self.groups.n)

    def weight_of(self, m):
        """Of all experts that share a memory."""
        e: cython.Py_ssize_t
        weight: cython.double = 0.0
        for e in range(self.first[m], self.first[m + 1]):
            weight += self.total[e]
        return weight

    def summarise(self, n_seen):
        """Average lam, lam_max and size over the experts; the status is that of the expert with the largest weight."""
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        weight: cython.double
        most: cython.double = 0.0
        if self.is_summarised:
            return 0
        self.is_summarised = True
        self.lam = self.lam_max = self.size = 0.0
        self.code = WAITING
        for m in range(self.each.n if n_seen > 0 else 0):
            weight = self.weight_of(m)
            self.lam_max += weight * cython.cast(Experts, self.each.at[m]).lam_max_of()
            self.size += weight * cython.cast(Experts, self.each.at[m]).size_of()
            self.lam += cython.cast(Experts, self.each.at[m]).sum_lam(self.total + self.first[m])
            for e in range(self.first[m], self.first[m + 1]):
                if self.total[e] > most:
                    most = self.total[e]
                    self.code = cython.cast(Experts, self.each.at[m]).code_of(e - self.first[m])
        return 0

    def n_active(self):
        """Features that an expert uses. The ridges, which use all that vary, come last."""
        m: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        memset(self.used, 0, self.p)
        for m in range(self.each.n - 1, -1, -1):
            if n < self.p:
                n += cython.cast(Experts, self.each.at[m]).mark(self.total + self.first[m], self.used)
        return n

    def model_of(self, m: cython.Py_ssize_t, k: cython.Py_ssize_t):
        """(b0, b) of one expert."""
        only: cython.double[::1] = np.zeros(self.n)
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
