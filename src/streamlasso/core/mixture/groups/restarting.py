# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Change points: ridge regressions that began at different rows, weighted by how likely the present began there.

These are the posterior probabilities of Adams and MacKay (2007). Every EVERY rows a ridge (`ridge.py`) begins, with the
prior probability HAZARD per row that the stream has changed there; none while all responses are the same, when a
density depends on their unit. After a row each weight is multiplied by the density that the ridge gave to the response:
w_r is the posterior probability of the row at which the present began. As many as there is room for are kept; the one
of the lowest weight makes room, but for those too young to be judged. One ridge in OTHER_EVERY has the other prior.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.base.buffers import Doubles, Pointers
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.tape import READ
from cython.cimports.streamlasso.core.mixture.groups.base import Group
from cython.cimports.streamlasso.core.mixture.groups.ridge import RENEWED, Ridge

from streamlasso.core.base.state import array
from streamlasso.core.mixture.groups.ridge import ridges_of

#: Of the group, and before the first row, where nothing else predicts.
PRIOR, START = 0.4, 3.0
#: A change about once in a hundred rows, and a start every second row.
HAZARD = cython.declare(cython.double, 0.01)
EVERY = cython.declare(cython.Py_ssize_t, 2)
OTHER_EVERY = cython.declare(cython.Py_ssize_t, 3)


def join(parts):
    """As many ridges as the tuner says, where experts may restart."""
    n = parts.tuner.runs if parts.restarts and parts.tuner.competes else 0
    if n > 0:
        first, ridges = parts.n, ridges_of(parts, n)
        parts.groups.append(Restarting("restarting", first, n, PRIOR, parts.carry(), ridges, parts.family))


@cython.cclass
class Restarting(Group):
    """Ridges that began at different rows."""

    STATE = (array("began", "n", dtype=np.int64),)

    def __cinit__(self, name, first, n, prior, carry, ridges, family):
        k: cython.Py_ssize_t
        self.start = START
        self.waits = True
        self.p = ridges[0].p
        self.ridges = Pointers(ridges)
        self.quadratic = family.quadratic
        self.hedge = Hedge(np.eye(n)[0], 1.0, 0.0)
        self.more = Doubles(2 * self.n)
        self.began = cython.cast(cython.pointer[cython.Py_ssize_t], self.more.at)
        self.w = self.more.at + self.n
        self._show(0)
        for k in range(n):
            self.began[k] = -1

    def evaluate(self, row, eta, noise):
        """The evidence of a row; for the Gaussian family a ridge knows it when it learns the row."""
        k: cython.Py_ssize_t
        if not self.quadratic:
            for k in range(self.n):
                self.regret[k] += row.loss[self.first + k]
        return 0

    def begin_group(self, stream):
        """Before the first row is learnt, which `stream` has seen."""
        cython.cast(Ridge, self.ridges.at[0]).begin_uncentred(stream)
        self.began[0] = 0
        return 0

    def see(self, stream, eta, n_seen):
        if n_seen <= RENEWED and (n_seen & (n_seen - 1)) == 0 and n_seen > 1:
            cython.cast(Ridge, self.ridges.at[0]).renew(stream)
        self._follow()
        if n_seen % EVERY == 0 and (not self.quadratic or stream.y_scatter > 0.0):
            self._begin(stream, eta, n_seen)
        self._show(n_seen)
        return 0

    def _show(self, n_seen):
        """The weights for averages: a ridge that has had no row yet would bring nothing but its prior."""
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        for k in range(self.n):
            self.w[k] = self.hedge.w[k] if self.began[k] < n_seen else 0.0
            total += self.w[k]
        for k in range(self.n):
            self.w[k] = self.w[k] / total if total > 0.0 else self.hedge.w[k]

    def _follow(self):
        """The posterior."""
        k: cython.Py_ssize_t
        for k in range(self.n):
            self.regret[k] -= cython.cast(Ridge, self.ridges.at[k]).evidence
            cython.cast(Ridge, self.ridges.at[k]).evidence = 0.0
        self.hedge.update(self.regret)
        memset(self.regret, 0, self.n * cython.sizeof(cython.double))

    def _begin(self, stream, eta, n_seen):
        """One of the ridges begins anew."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t = self._least(n_seen)
        total: cython.double = 0.0
        w: cython.p_double = self.hedge.w
        w[k] = 0.0
        for j in range(self.n):
            total += w[j]
        for j in range(self.n):
            w[j] *= (1.0 - HAZARD * EVERY) / total if total > 0.0 else 0.0
        w[k] = HAZARD * EVERY if total > 0.0 else 1.0
        self.began[k] = n_seen
        cython.cast(Ridge, self.ridges.at[k]).begin(stream, eta, n_seen // EVERY % OTHER_EVERY == 1)
        return 0

    def _least(self, n_seen):
        """One that has not begun, or the one of the lowest weight that is not too young."""
        k: cython.Py_ssize_t
        least: cython.Py_ssize_t = 0
        for k in range(self.n):
            if self.began[k] < 0:
                return k
            if n_seen - self.began[k] > 2 * EVERY and (
                self.hedge.w[k] < self.hedge.w[least] or n_seen - self.began[least] <= 2 * EVERY
            ):
                least = k
        return least

    def beginnings(self):
        return [self.began[k] for k in range(self.n)]

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def travel(self, tape):
        began: cython.pointer[cython.const[cython.Py_ssize_t]]
        began = tape.indices(self.began, self.n, -1, tape.n_seen + 1)
        tape.require(began[0] >= 0 or tape.n_seen == 0, b"the ridge of the first row is not there")
        Group.travel(self, tape)
        if tape.mode == READ:
            memset(self.regret, 0, self.n * cython.sizeof(cython.double))
            self._show(tape.n_seen)
