# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The weights of experts, and how fast they change: exponential weights with a share that is learnt.

Expert (m, k) has memory m and the k-th penalty. For a share alpha, the weights after a row with losses l are

    u_mk = w_mk exp(-l_mk) / sum w exp(-l)
    w_mk <- (1 - alpha) u_mk  +  alpha/2 (1/M) sum_m' u_m'k  +  alpha/2 (u_m,k-1 + u_m,k+1)/2

Half of the share goes to the other memories, at the same penalty: the stream may have changed. Half goes to the
neighbouring penalties, with the same memory: lam drifts. An equal share for all (fixed share) would give weight to
experts that have no reason to have any, small penalties on few rows above all.

The share is the price of weights that can change quickly: too large where nothing changes, too small where much does.
So N_SHARES of them, a factor of four apart, run side by side, at no cost but the weights. Each has an average of its
own, and they are themselves weighted by the loss of that: pi_h <- pi_h exp(-l(eta_h)). (The likelihood of a mixture,
sum w_h exp(-l), would be a poorer criterion: where no expert is right, it rewards experts that differ, and their
average does not gain.) An expert's weight is `total_mk = sum_h pi_h w_hmk`.
"""

import cython
import numpy as np
from cython.cimports.libc.math import exp
from cython.cimports.streamlasso.core.state import Stateful

from streamlasso.core.state import FIXED, WEIGHT, array, below

#: No share is ruled out for good.
LEAST_PI = cython.declare(cython.double, 1e-200)


@cython.cclass
class Shares(Stateful):
    """The weights of n_memories x n_penalties experts; a memory may not be there (yet, or any more)."""

    STATE = (
        array("pi", FIXED, range=WEIGHT),
        array("w", FIXED, FIXED, range=WEIGHT),
        array("alive", FIXED, range=below(2), dtype=np.int64),
    )

    def __cinit__(self, n_memories: cython.Py_ssize_t, n_penalties: cython.Py_ssize_t):
        self.M = n_memories
        self.K = n_penalties
        self.alpha = 0.25 ** np.arange(1, N_SHARES + 1)
        self.pi = np.full(N_SHARES, 1.0 / N_SHARES)
        self.w = np.zeros((N_SHARES, self.M * self.K))
        self.total = np.zeros(self.M * self.K)
        self.likelihood = np.zeros(self.M * self.K)
        self.common = np.zeros(self.K)
        self.alive = np.zeros(self.M, dtype=np.int8)
        self.n_alive = 0

    def start(self):
        """Equal weights for all memories that are there."""
        h: cython.Py_ssize_t
        for h in range(N_SHARES):
            self._level(h)
        self._add_up()

    def _level(self, h):
        e: cython.Py_ssize_t
        for e in range(self.M * self.K):
            self.w[h, e] = 1.0 / (self.n_alive * self.K) if self.alive[e // self.K] else 0.0

    def enter(self, m):
        """A memory joins with weight 0; the share will give it some."""
        self.alive[m] = 1
        self.n_alive += 1

    def leave(self, m):
        """A memory leaves; its weight goes to all others in proportion."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        kept: cython.double
        self.alive[m] = 0
        self.n_alive -= 1
        for h in range(N_SHARES):
            kept = 0.0
            for e in range(m * self.K, (m + 1) * self.K):
                self.w[h, e] = 0.0
            for e in range(self.M * self.K):
                kept += self.w[h, e]
            if not kept > 0.0:
                self._level(h)
                continue
            for e in range(self.M * self.K):
                self.w[h, e] /= kept
        self._add_up()

    def update(self, loss, share_loss):
        """The rule above, from the losses of the experts and of the shares' averages. The least of each is 0; an
        expert's infinite one takes all weight."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        kept: cython.double
        total: cython.double = 0.0
        for e in range(self.M * self.K):
            self.likelihood[e] = exp(-loss[e]) if self.alive[e // self.K] else 0.0
        for h in range(N_SHARES):
            kept = 0.0
            for e in range(self.M * self.K):
                self.w[h, e] *= self.likelihood[e]
                kept += self.w[h, e]
            if kept > 0.0:
                for e in range(self.M * self.K):
                    self.w[h, e] /= kept
            else:
                self._level(h)
            self._share_out(h)
            self.pi[h] *= exp(-share_loss[h])
            total += self.pi[h]
        for h in range(N_SHARES):
            self.pi[h] = max(self.pi[h] / total, LEAST_PI) if total > 0.0 else 1.0 / N_SHARES
        self._add_up()

    def _share_out(self, h):
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        K: cython.Py_ssize_t = self.K
        half: cython.double = 0.5 * self.alpha[h]
        here: cython.double
        before: cython.double
        w: cython.p_double
        for k in range(K):
            self.common[k] = 0.0
        for m in range(self.M):
            for k in range(K):
                self.common[k] += self.w[h, m * K + k]
        for m in range(self.M):
            if not self.alive[m]:
                continue
            w = cython.address(self.w[h, m * K])
            before = w[0]
            for k in range(K):
                here = w[k]
                w[k] = (1.0 - 2.0 * half) * here + half * self.common[k] / self.n_alive
                w[k] += 0.5 * half * (before + (w[k + 1] if k + 1 < K else here))
                before = here

    def _add_up(self):
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        for e in range(self.M * self.K):
            self.total[e] = 0.0
        for h in range(N_SHARES):
            for e in range(self.M * self.K):
                self.total[e] += self.pi[h] * self.w[h, e]

    def memory_weight(self, m):
        """The weight of a memory."""
        e: cython.Py_ssize_t
        total: cython.double = 0.0
        for e in range(m * self.K, (m + 1) * self.K):
            total += self.total[e]
        return total

    def leader(self, m):
        """The penalty with the largest weight, with this memory."""
        k: cython.Py_ssize_t
        best: cython.Py_ssize_t = 0
        for k in range(1, self.K):
            if self.total[m * self.K + k] > self.total[m * self.K + best]:
                best = k
        return best

    def _filled(self):
        self.n_alive = np.count_nonzero(self.alive)
        self._add_up()
