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
So N_SHARES of them run side by side, at no cost but the weights. Each has an average of its own, and they are
themselves weighted by the loss of that: pi_h <- pi_h exp(-l(eta_h)). (The likelihood of a mixture, sum w_h exp(-l),
would be a poorer criterion: where no expert is right, it rewards experts that differ, and their average does not gain.)
An expert's weight in their average, the mixture, is `sum_h pi_h w_hmk`.

**All at once.** Where everything changes at one row, what was learnt before it is worth nothing after it, and shares
are a slow way to leave it. The answer then is that of Bayes for a change with a constant hazard (Adams and MacKay,
2007): a model that begins anew has, at once, the weight `hazard` for each row on which it could have begun. Two of the
shares do this too (HAZARDS), and where they predict better they have the weight. Only a group that predicts from its
first row on, and something else than the mixture, gets weight at once.

**Nothing to learn** is one more hypothesis, beside the mixture: that the first expert, where it is the empty model of
the longest memory, is right for good. No share of its weight goes to others. It takes the mixture some two nats to find
that there is nothing; where events are rare, all rows together have few, and the loss grows by 1 %. With `odds` before
any row and the difference of losses so far,

    d <- min(d + l(eta of the mixture) - l(eta of the empty model), MOST_EVIDENCE),      q = odds e^d / (1 + odds e^d)
    total_mk = (1 - q) sum_h pi_h w_hmk,      total_00 += q

`odds` are DOUBT / I^2, where I = min(1, 4 loss'') is what a row with the mean response says about eta, 4 p (1 - p) for
a class: .3 for numbers and even classes, 49 for events of 2 %. d has an upper limit, so that what begins late is found.

The experts of a group lie side by side, from `first[m]` on, and so do the weights of one expert: N_SHARES of them, so
that a loop over shares is one over whole vectors.
"""

import cython
from cython.cimports.libc.math import exp, isfinite
from cython.cimports.streamlasso.core.kernels import (
    add_eights,
    blur_eights,
    dot_eights,
    likelihoods,
    multiply_eights,
    pool_eights,
    scale_eights,
)
from cython.cimports.streamlasso.core.pointers import Doubles
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import FINITE, READ, WEIGHT

from streamlasso.core.state import Column, array, numbers

#: Of each of the shares that run side by side: alpha, the hazard, and its weight before any row.
ALPHAS = (4.0**-1, 4.0**-2, 4.0**-3, 4.0**-4, 4.0**-5, 4.0**-7, 4.0**-2, 4.0**-4)
HAZARDS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.01)
PRIORS = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2)
#: No share is ruled out for good.
LEAST_PI = cython.declare(cython.double, 1e-200)
#: An expert that has lost more than this in one row has next to no weight left, however much it is.
LARGEST_LOSS = cython.declare(cython.double, 700.0)
#: The most weight that a group can have at once, if so many rows lie between restarts.
MOST_AT_ONCE = cython.declare(cython.double, 0.5)
LEAST_SUM = cython.declare(cython.double, 1e-290)
#: The odds of nothing to learn where a row says as much as it can, and the most evidence for it.
DOUBT = cython.declare(cython.double, 0.3)
MOST_EVIDENCE = cython.declare(cython.double, 3.0)
LEAST_INFORMATION = cython.declare(cython.double, 1e-6)


@cython.cclass
class Shares(Stateful):
    """The weights of groups of experts; a group may not be there (yet, or any more)."""

    STATE = (
        array("pi", N_SHARES),
        array("w", "n", N_SHARES),
        numbers("nothing", Column("odds"), Column("evidence")),
    )

    def __cinit__(self, sizes):
        self.M = len(sizes)
        self.K = max(sizes)
        h: cython.Py_ssize_t
        m: cython.Py_ssize_t
        self.n = sum(sizes)
        self.room = Doubles((self.n + self.K + 3) * N_SHARES + 2 * self.n + (self.M + 1) + (self.M + 7) // 8)
        self.lanes = self.room.at
        self.common = self.lanes + self.n * N_SHARES
        self.half = self.common + self.K * N_SHARES
        self.hazard = self.half + N_SHARES
        self.pi = self.hazard + N_SHARES
        self.total = self.pi + N_SHARES
        self.likelihood = self.total + self.n
        self.first = cython.cast(cython.pointer[cython.Py_ssize_t], self.likelihood + self.n)
        self.alive = cython.cast(cython.pointer[cython.schar], self.first + self.M + 1)
        for m in range(self.M):
            self.first[m + 1] = self.first[m] + sizes[m]
        for h in range(N_SHARES):
            self.half[h] = 0.5 * ALPHAS[h]
            self.hazard[h] = HAZARDS[h]
            self.pi[h] = PRIORS[h]
        self.n_alive = 0
        self.odds = self.evidence = 0.0

    def start(self):
        """All groups that are there have equal weights."""
        h: cython.Py_ssize_t
        for h in range(N_SHARES):
            self._level(h)
        self._add_up()

    def _level(self, h):
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        part: cython.double
        for m in range(self.M):
            part = self.alive[m] / (self.n_alive * cython.cast(cython.double, self._size(m)))
            for e in range(self.first[m], self.first[m + 1]):
                self.lanes[e * N_SHARES + h] = part

    def _size(self, m):
        return self.first[m + 1] - self.first[m]

    def enter(self, m, rows):
        """A group joins with weight 0, and the share will give it some; with a hazard, with that of `rows` rows."""
        e: cython.Py_ssize_t
        h: cython.Py_ssize_t
        part: cython.double
        self.alive[m] = 1
        self.n_alive += 1
        for h in range(N_SHARES):
            part = min(rows * self.hazard[h], MOST_AT_ONCE)
            if part > 0.0:
                for e in range(self.n):
                    self.lanes[e * N_SHARES + h] *= 1.0 - part
                for e in range(self.first[m], self.first[m + 1]):
                    self.lanes[e * N_SHARES + h] = part / self._size(m)
        if rows > 0.0:
            self._add_up()

    def leave(self, m):
        """A group leaves; its weight goes to all others in proportion."""
        e: cython.Py_ssize_t
        kept: cython.double[N_SHARES]
        self.alive[m] = 0
        self.n_alive -= 1
        for e in range(self.n):
            self.likelihood[e] = 0.0 if self.first[m] <= e < self.first[m + 1] else 1.0
        self._reweigh(kept)
        scale_eights(self.n, kept, self.lanes)
        self._add_up()

    def _reweigh(self, kept):
        """The weights times the likelihoods; times `kept` those of a share add up to 1, and are equal ones where none
        is left."""
        h: cython.Py_ssize_t
        multiply_eights(self.n, self.likelihood, self.lanes, kept)
        for h in range(N_SHARES):
            if not kept[h] > 0.0:
                self._level(h)
            if kept[h] < LEAST_SUM:
                self._add_to_one(h)
                kept[h] = 1.0
            kept[h] = 1.0 / kept[h]

    def _add_to_one(self, h):
        """The weights of a share that are so small that the inverse of their sum might not be finite."""
        e: cython.Py_ssize_t
        kept: cython.double = 0.0
        for e in range(self.n):
            kept += self.lanes[e * N_SHARES + h]
        for e in range(self.n):
            self.lanes[e * N_SHARES + h] /= kept if kept > 0.0 else 1.0

    def update(self, loss, share_loss):
        """The rule above, from the losses of the experts and of the shares' averages. The least of each is 0; an
        expert's infinite one takes all weight."""
        h: cython.Py_ssize_t
        total: cython.double = 0.0
        kept: cython.double[N_SHARES]
        likelihoods(self.n, loss, LARGEST_LOSS, self.likelihood)
        self._reweigh(kept)
        self._pool(kept)
        self._share_out()
        for h in range(N_SHARES):
            self.pi[h] *= exp(-share_loss[h])
            total += self.pi[h]
        for h in range(N_SHARES):
            self.pi[h] = max(self.pi[h] / total, LEAST_PI) if total > 0.0 else 1.0 / N_SHARES
        self._add_up()

    def _share_out(self):
        """Half of the share to the other groups, half to the neighbouring penalties."""
        h: cython.Py_ssize_t
        m: cython.Py_ssize_t
        u: cython.p_double
        to_all: cython.double[N_SHARES]
        to_neighbour: cython.double[N_SHARES]
        kept: cython.double[N_SHARES]
        for h in range(N_SHARES):
            to_all[h] = self.half[h] / self.n_alive
            to_neighbour[h] = 0.5 * self.half[h]
            kept[h] = 1.0 - 2.0 * self.half[h]
        for m in range(self.M):
            u = self.lanes + self.first[m] * N_SHARES
            if self.alive[m] and self._size(m) < self.K:
                for h in range(N_SHARES):
                    u[h] = (1.0 - self.half[h]) * u[h] + to_all[h]
            elif self.alive[m]:
                blur_eights(self.K, kept, to_neighbour, self.common, u)

    def _pool(self, kept):
        """common_k: the part of the other groups of what all groups have at the k-th penalty; all weights times
        `kept`."""
        h: cython.Py_ssize_t
        part: cython.double[N_SHARES]
        for h in range(N_SHARES):
            part[h] = self.half[h] / self.n_alive
        pool_eights(
            self.M,
            self.first,
            self.K,
            kept,
            part,
            self.lanes,
            self.common,
        )

    def doubt(self, gain, information):
        """Before `update`: by how much the loss of the average was above that of the first expert, and loss''."""
        information = min(max(4.0 * information, LEAST_INFORMATION), 1.0)
        self.odds = DOUBT / (information * information)
        if isfinite(gain):
            self.evidence = min(self.evidence + gain, MOST_EVIDENCE)

    def averages(self, pulls, out):
        """Each share's average of what the experts predict."""
        h: cython.Py_ssize_t
        sums: cython.double[N_SHARES]
        add_eights(self.n, pulls, self.lanes, sums)
        for h in range(N_SHARES):
            out[h] = sums[h]

    def _add_up(self):
        h: cython.Py_ssize_t
        pi: cython.double[N_SHARES]
        kept: cython.double = 1.0 / (1.0 + self.odds * exp(self.evidence))
        for h in range(N_SHARES):
            pi[h] = kept * self.pi[h]
        dot_eights(self.n, pi, self.lanes, self.total)
        self.total[0] += 1.0 - kept

    def weight_of(self, m):
        """The weight of a group."""
        e: cython.Py_ssize_t
        total: cython.double = 0.0
        for e in range(self.first[m], self.first[m + 1]):
            total += self.total[e]
        return total

    def travel(self, tape):
        """Which groups are there, their owner knows."""
        evidence: cython.double
        tape.doubles(self.pi, N_SHARES, WEIGHT)
        tape.doubles(self.lanes, self.n * N_SHARES, WEIGHT)
        tape.number(cython.address(self.odds), WEIGHT)
        evidence = tape.number(cython.address(self.evidence), FINITE)
        tape.require(evidence <= MOST_EVIDENCE, b"there is more evidence of nothing to learn than there can be")
        if tape.mode == READ:
            self._add_up()
