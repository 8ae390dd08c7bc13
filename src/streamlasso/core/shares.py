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
And what is a good criterion for one stream is a bad one for another. So N_SHARES rules run side by side, at no cost but
the weights:

- by loss, in units of the noise that all experts share: safe, but slow to leave what was good for long;
- the same for the sparse experts alone: where these are right, dense ones are a distraction;
- by evidence (`evidence.py`), and an expert that restarts alone enters with ENTRY of all weight. Experts that know how
  large their own errors are replace each other within a few rows; where errors come in bursts, they do so for nothing;
- the empty model, whatever happens: where there is nothing to learn, all others cost.

Each has an average of its own, and they are themselves weighted by the loss of that: pi_h <- pi_h exp(-l(eta_h)). (The
likelihood of a mixture, sum w_h exp(-l), would be a poorer criterion: where no expert is right, it rewards experts that
differ, and their average does not gain.) So a criterion that fails on a stream has no say there after some rows. The
empty model begins with EMPTY_PRIOR, the three criteria with equal parts of the rest: that there is nothing to learn is
one hypothesis, that there is something another. An expert's weight is `total_mk = sum_h pi_h w_hmk`. The experts of a
group lie side by side, from `first[m]` on.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import READ, WEIGHT

from streamlasso.core.state import FIXED, array

#: The shares of each criterion; the empty model has none.
ALPHAS = (0.25 ** np.arange(1, 8), 0.25 ** np.array([1, 2, 4, 6]), 0.25 ** np.array([2, 4, 6]), np.zeros(1))
#: The weight with which the rule of the empty model begins.
EMPTY_PRIOR = 0.5
#: The weight with which a group of one that restarts enters the rules by evidence.
ENTRY = cython.declare(cython.double, 0.02)
#: No share is ruled out for good.
LEAST_PI = cython.declare(cython.double, 1e-200)


@cython.cclass
class Shares(Stateful):
    """The weights of groups of experts; a group may not be there (yet, or any more)."""

    STATE = (
        array("pi", FIXED),
        array("w", FIXED, FIXED),
    )

    def __cinit__(self, sizes, sparse, has_empty):
        """`sizes` of the groups; which are `sparse`, the first among them; and whether its first expert is empty."""
        self.M = len(sizes)
        self.K = max(sizes)
        self.first = np.cumsum([0, *sizes], dtype=np.intp)
        self.n = self.first[self.M]
        self.alpha = np.concatenate(ALPHAS)
        shares = [len(alphas) for alphas in ALPHAS]
        self.criterion = np.repeat(np.arange(N_CRITERIA + 1, dtype=np.intc), shares)
        empty = EMPTY_PRIOR if has_empty else 0.0
        prior = [(1.0 - empty) / N_CRITERIA] * N_CRITERIA + [empty]
        self.pi = np.repeat(np.array(prior) / shares, shares)
        self.least = np.where(np.asarray(self.pi) > 0.0, LEAST_PI, 0.0)
        first = np.arange(self.M) == 0
        self.allowed = np.array([np.ones(self.M), sparse, np.ones(self.M), first], dtype=np.int8)
        self.w = np.zeros((N_SHARES, self.n))
        self.total = np.zeros(self.n)
        self.likelihood = np.zeros(self.n)
        self.common = np.zeros(self.K)
        self.alive = np.zeros(self.M, dtype=np.int8)
        self.n_alive = np.zeros(N_CRITERIA + 1, dtype=np.intp)

    def start(self):
        """All groups that are there have equal weights before any row."""
        h: cython.Py_ssize_t
        for h in range(N_SHARES):
            self._level(h)
        self._add_up()

    def count(self):
        """How many groups each criterion has."""
        c: cython.Py_ssize_t
        m: cython.Py_ssize_t
        for c in range(N_CRITERIA + 1):
            self.n_alive[c] = 0
            for m in range(self.M):
                self.n_alive[c] += self.alive[m] and self.allowed[c, m]

    def has(self, h, m):
        """Is group m there, and does the h-th rule give it weight?"""
        return self.alive[m] and self.allowed[self.criterion[h], m]

    def _level(self, h):
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        n_alive: cython.double = self.n_alive[self.criterion[h]]
        for m in range(self.M):
            for e in range(self.first[m], self.first[m + 1]):
                self.w[h, e] = self.has(h, m) / (n_alive * self._size(m))
        if self.criterion[h] == EMPTY:
            for e in range(self.n):
                self.w[h, e] = e == 0

    def _size(self, m):
        return self.first[m + 1] - self.first[m]

    def enter(self, m):
        """A group joins with weight 0; the share will give it some. By evidence a group of one begins with ENTRY."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        self.alive[m] = 1
        self.count()
        if self._size(m) > 1 or self.K == 1:
            return
        for h in range(N_SHARES):
            if self.criterion[h] == BY_EVIDENCE:
                for e in range(self.n):
                    self.w[h, e] *= 1.0 - ENTRY
                self.w[h, self.first[m]] = ENTRY
        self._add_up()

    def leave(self, m):
        """A group leaves; its weight goes to all others in proportion."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        self.alive[m] = 0
        self.count()
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
        kept = 1.0 / kept
        for e in range(self.n):
            w[e] *= kept

    def update(self, loss, share_loss):
        """The rule above, from the losses of the experts (by loss, by evidence) and of the rules' averages. The least
        of each is 0; an expert's infinite one takes all weight."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        total: cython.double = 0.0
        w: cython.p_double
        likelihood: cython.p_double = cython.address(self.likelihood[0])
        self._likelihoods(cython.address(loss[0, 0]))
        for h in range(N_SHARES):
            self.pi[h] *= exp(-share_loss[h])
            total += self.pi[h]
            if self.criterion[h] == EMPTY:
                continue
            if self.criterion[h] == BY_EVIDENCE and self.criterion[h - 1] != BY_EVIDENCE:
                self._likelihoods(cython.address(loss[1, 0]))
            w = cython.address(self.w[h, 0])
            for e in range(self.n):
                w[e] *= likelihood[e]
            self._normalise(h)
            self._share_out(h)
        for h in range(N_SHARES):
            self.pi[h] = max(self.pi[h] / total, self.least[h]) if total > 0.0 else 1.0 / N_SHARES
        self._add_up()

    def _likelihoods(self, loss):
        e: cython.Py_ssize_t
        for e in range(self.n):
            self.likelihood[e] = exp(-loss[e]) if loss[e] < INFINITY else 0.0

    def _share_out(self, h):
        """Half of the share to the other groups, half to the neighbouring penalties."""
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        K: cython.Py_ssize_t = self.K
        before: cython.double
        here: cython.double
        u: cython.p_double
        half: cython.double = 0.5 * self.alpha[h]
        part: cython.double = half / self.n_alive[self.criterion[h]]
        self._add_groups(cython.address(self.w[h, 0]), part)
        for m in range(self.M):
            u = cython.address(self.w[h, self.first[m]])
            if not self.has(h, m):
                continue
            if self._size(m) < K:
                u[0] = (1.0 - half) * u[0] + part
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
