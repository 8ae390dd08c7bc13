# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The one rule by which predictions are weighted: exponential weights that leak back to their prior.

    w_k <- (1 - share) w_k exp(-rate l_k) / sum_j w_j exp(-rate l_j)  +  share prior_k

Losses are in units of one dispersion (`core/mixture/dispersion.py`), so a rate of 1 is Bayes' rule for a likelihood,
and smaller rates trust one row less. `share` lets an expert come back that was out of favour: these are the posterior
weights of a chain that draws a new expert from the prior with this probability per row (fixed share; Herbster and
Warmuth, 1998).

What is averaged are the weights less LEAKED times what leaks back per row, `used`: one that is wrong by a thousand
deviations would otherwise cost one of them, for ever, by what it is given to begin anew with.

**Regret.** Let `m_t = -log(sum_k w_k exp(-rate l_tk)) / rate` be the mix loss of row t. Against any sequence of experts
k_1, ..., k_T that changes S times,

    sum_t m_t  <=  sum_t l_t,k_t
                   + (1/rate) [ -log prior_k1 - sum_changes log(share prior_k) - (T - S) log(1 - share) ]

and where losses are exp-concave at this rate, as squared errors in units of their dispersion within a band are, the
loss of the averaged prediction is at most m_t.
"""

import cython
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.streamlasso.core.base.buffers import Doubles, copied, fill
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import READ, WEIGHT
from cython.cimports.streamlasso.core.linalg.kernels import dot, likelihoods

from streamlasso.core.base.state import array

#: A loss that is larger than the least by more than this leaves no weight in doubles.
LARGEST_LOSS = cython.declare(cython.double, 700.0)
LEAKED = cython.declare(cython.double, 2.0)
#: The weights of a state add up to 1 but for this.
ROUNDING = cython.declare(cython.double, 1e-9)


@cython.cclass
class Hedge(Stateful):
    """Weights of n predictions.

    prior : the weights that they leak back to, which add up to 1
    rate, share : as above
    start : the weights before the first row, by default the prior
    """

    STATE = (array("w", "n"),)

    def __cinit__(self, prior, rate: cython.double = 1.0, share: cython.double = 0.0, start=None):
        self.n = len(prior)
        self.rate = rate
        self.share = share
        self.room = Doubles(4 * self.n)
        self.w = self.room.at
        self.prior = self.w + self.n
        self.factor = self.prior + self.n
        self.used = self.factor + self.n if share > 0.0 else self.w
        fill(self.w, self.n, prior if start is None else start)
        fill(self.prior, self.n, prior)
        self._use()

    def update(self, loss):
        """After a row; an infinite loss leaves no weight but its share. Where all are infinite nothing changes."""
        k: cython.Py_ssize_t
        least: cython.double = INFINITY
        total: cython.double = 0.0
        w: cython.p_double = self.w
        for k in range(self.n):
            if w[k] > 0.0:
                least = min(least, loss[k])
        if not least < INFINITY:
            return
        for k in range(self.n):
            self.factor[k] = self.rate * (loss[k] - least)
        likelihoods(self.n, self.factor, LARGEST_LOSS, self.factor)
        for k in range(self.n):
            w[k] *= self.factor[k]
            total += w[k]
        for k in range(self.n):
            w[k] = (1.0 - self.share) * w[k] / total + self.share * self.prior[k]
        self._use()

    def admit(self, k, weight):
        """Prediction k begins to compete, with this weight."""
        j: cython.Py_ssize_t
        left: cython.double = (1.0 - weight) / max(1.0 - self.w[k], 1e-300)
        for j in range(self.n):
            self.w[j] *= left
        self.w[k] = weight
        self._use()

    def _use(self):
        """Where nothing leaks, all is used."""
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        least: cython.double = LEAKED * self.share
        if self.used == self.w:
            return
        for k in range(self.n):
            self.used[k] = max(self.w[k] - least * self.prior[k], 0.0)
            total += self.used[k]
        for k in range(self.n):
            self.used[k] = self.used[k] / total if total > 0.0 else self.w[k]

    def average(self, x):
        return dot(self.n, self.used, x)

    def travel(self, tape):
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        w: cython.pointer[cython.const[cython.double]] = tape.doubles(self.w, self.n, WEIGHT)
        for k in range(self.n):
            total += w[k]
        tape.require(fabs(total - 1.0) < ROUNDING, b"weights do not add up to 1")
        if tape.mode == READ:
            self._use()

    # --- in Python ----------------------------------------------------------------------------------------------

    @property
    def weights(self):
        return copied(self.w, self.n)

    def learn(self, loss):
        """`update`, with an array."""
        numbers: cython.const[cython.double][::1] = loss
        if numbers.shape[0] != self.n:
            raise ValueError(f"{numbers.shape[0]} losses for {self.n} weights")
        self.update(cython.address(numbers[0]))
