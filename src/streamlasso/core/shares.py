# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The weights of experts, and how fast they change: exponential weights with a share that is learnt.

Expert (m, k) belongs to group m and has the k-th of K penalties; with n groups, and for a share alpha, the weights
after a row with losses l are

    u_mk = w_mk exp(-l_mk) / sum w exp(-l)
    w_mk <- (1 - alpha) u_mk  +  alpha/2 (1/n) sum_m' u_m'k  +  alpha/2 (u_m,k-1 + u_m,k+1)/2

Half of the share goes to the other groups, at the same penalty: the stream may have changed. Half goes to the
neighbouring penalties, with the same memory: lam drifts. An equal share for all (fixed share) would give weight to
experts that have no reason to have any, small penalties on few rows above all. A group of one stands for all
penalties: it counts as u_m / K at each, and has no neighbours,

    w_m <- (1 - alpha/2) u_m  +  alpha/2 (1/n)

The share is the price of weights that can change quickly: too large where nothing changes, too small where much does.
So N_SHARES of them, a factor of four apart, run side by side, at no cost but the weights. Each has an average of its
own, and they are themselves weighted by the loss of that: pi_h <- pi_h exp(-l(eta_h)). (The likelihood of a mixture,
sum w_h exp(-l), would be a poorer criterion: where no expert is right, it rewards experts that differ, and their
average does not gain.) An expert's weight is `total_mk = sum_h pi_h w_hmk`. The experts
of a group lie side by side, from `first[m]` on.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import READ, WEIGHT

from streamlasso.core.state import FIXED, array

#: No share is ruled out for good.
LEAST_PI = cython.declare(cython.double, 1e-200)


@cython.cclass
class Shares(Stateful):
    """The weights of groups of experts; a group may not be there (yet, or any more)."""

    STATE = (
        array("pi", FIXED),
        array("w", FIXED, FIXED),
    )

    def __cinit__(self, sizes):
        self.M = len(sizes)
        self.K = max(sizes)
        self.first = np.cumsum([0, *sizes], dtype=np.intp)
        self.n = self.first[self.M]
        self.alpha = 0.25 ** np.arange(1, N_SHARES + 1)
        self.pi = np.full(N_SHARES, 1.0 / N_SHARES)
        self.w = np.zeros((N_SHARES, self.n))
        self.total = np.zeros(self.n)
        self.likelihood = np.zeros(self.n)
        self.common = np.zeros(self.K)
        self.alive = np.zeros(self.M, dtype=np.int8)
        self.n_alive = 0

    def start(self, prior):
        """The first expert has this weight before any row; all groups that are there have equal parts of the rest."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        for h in range(N_SHARES):
            self._level(h)
            for e in range(self.n):
                self.w[h, e] *= 1.0 - prior
            self.w[h, 0] += prior
        self._add_up()

    def _level(self, h):
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        for m in range(self.M):
            for e in range(self.first[m], self.first[m + 1]):
                self.w[h, e] = self.alive[m] / (self.n_alive * cython.cast(cython.double, self._size(m)))

    def _size(self, m):
        return self.first[m + 1] - self.first[m]

    def enter(self, m):
        """A group joins with weight 0; the share will give it some."""
        self.alive[m] = 1
        self.n_alive += 1

    def leave(self, m):
        """A group leaves; its weight goes to all others in proportion."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        self.alive[m] = 0
        self.n_alive -= 1
        for h in range(N_SHARES):
            for e in range(self.first[m], self.first[m + 1]):
                self.w[h, e] = 0.0
            self._normalise(h)
        self._add_up()

    def _normalise(self, h):
        """The weights of a share add up to 1; equal ones where none is left."""
        e: cython.Py_ssize_t
        kept: cython.double = 0.0
        w: cython.p_double = cython.address(self.w[h, 0])
        for e in range(self.n):
            kept += w[e]
        if not kept > 0.0:
            self._level(h)
            return
        for e in range(self.n):
            w[e] /= kept

    def update(self, loss, share_loss):
        """The rule above, from the losses of the experts and of the shares' averages. The least of each is 0; an
        expert's infinite one takes all weight."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        total: cython.double = 0.0
        w: cython.p_double
        likelihood: cython.p_double = cython.address(self.likelihood[0])
        for e in range(self.n):
            likelihood[e] = exp(-loss[e]) if loss[e] < INFINITY else 0.0
        for h in range(N_SHARES):
            w = cython.address(self.w[h, 0])
            for e in range(self.n):
                w[e] *= likelihood[e]
            self._normalise(h)
            self._share_out(w, 0.5 * self.alpha[h])
            self.pi[h] *= exp(-share_loss[h])
            total += self.pi[h]
        for h in range(N_SHARES):
            self.pi[h] = max(self.pi[h] / total, LEAST_PI) if total > 0.0 else 1.0 / N_SHARES
        self._add_up()

    def _share_out(self, w, half):
        """Half of the share to the other groups, half to the neighbouring penalties."""
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        K: cython.Py_ssize_t = self.K
        before: cython.double
        here: cython.double
        u: cython.p_double
        self._add_groups(w, half / self.n_alive)
        for m in range(self.M):
            u = w + self.first[m]
            if not self.alive[m]:
                continue
            if self._size(m) < K:
                u[0] = (1.0 - half) * u[0] + half / self.n_alive
                continue
            before = u[0]
            for k in range(K):
                here = u[k]
                u[k] = (1.0 - 2.0 * half) * here + self.common[k]
                u[k] += 0.5 * half * (before + (u[k + 1] if k + 1 < K else here))
                before = here

    def _add_groups(self, w, part):
        """common_k: this part of what all groups have at the k-th penalty."""
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        single: cython.double = 0.0
        for k in range(self.K):
            self.common[k] = 0.0
        for m in range(self.M):
            if self._size(m) < self.K:
                single += w[self.first[m]] / self.K
                continue
            for k in range(self.K):
                self.common[k] += w[self.first[m] + k]
        for k in range(self.K):
            self.common[k] = part * (self.common[k] + single)

    def _add_up(self):
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        pi: cython.double
        w: cython.p_double
        total: cython.p_double = cython.address(self.total[0])
        for e in range(self.n):
            total[e] = 0.0
        for h in range(N_SHARES):
            pi = self.pi[h]
            w = cython.address(self.w[h, 0])
            for e in range(self.n):
                total[e] += pi * w[e]

    def weight_of(self, m):
        """The weight of a group."""
        e: cython.Py_ssize_t
        total: cython.double = 0.0
        for e in range(self.first[m], self.first[m + 1]):
            total += self.total[e]
        return total

    def travel(self, tape):
        """Which groups are there, their owner knows."""
        tape.doubles(cython.address(self.pi[0]), N_SHARES, WEIGHT)
        tape.doubles(cython.address(self.w[0, 0]), N_SHARES * self.n, WEIGHT)
        if tape.mode == READ:
            self._add_up()
