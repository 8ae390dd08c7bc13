# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The features that matter, and one model of these that a person can read.

An average of many models is seldom sparse, and which single one of them predicts best changes every few rows. So
features are selected for their own sake, by the evidence in the sums of one memory (`Sums`).

**Order.** The importance of a feature is |coefficient| x deviation: how far the prediction of the averaged model moves
when the feature rises by a standard deviation. The average is the best model there is, so it is trusted to say which
feature is the next.

**Evidence.** With the features in that order, the k first are the model M_k. Its coefficients have independent normal
priors, each worth one row (the unit information prior of Kass and Wasserman, 1995). Where many features are looked at,
one is more easily large by chance: the prior of a model is C(p, k)^-1/2, halfway between one that is the same for all
models and one that is the same for all sizes (Scott and Berger, 2010), by which all features are as likely as none.
With n rows and d_j = S_jj / n,

    log E_k = -(n - 1)/2 log(R_k / R_0) - 1/2 sum_{j <= k} log(l_j^2 / d_j) - 1/2 log C(p, k)

l_j are the pivots of one Cholesky factor of S + diag(d) in that order, and R_k = R_{k-1} - g_k^2, with g = L^{-1}c, the
residual sum of squares with the prior's. A feature that repeats others adds nothing to the fit, and pays for its
place. Where a row says less than a row can (the sum W of the curvatures of classes is below n), d_j = S_jj / W: the
prior is then that of a coefficient which moves the log odds by one.

**Probability.** A feature matters with the probability of all models that hold it, the sum of E_k^EVIDENCE over those
k that reach it, as a share of all. Probabilities and importances are fading means over the last tenth of the memory: a
memory that has just begun is believed at once, and what is known from thousands of rows does not tremble.

**Support.** A feature enters above ENTERS and leaves below LEAVES: what hovers in between moves nothing, and after a
change of the world evidence passes both within a few rows.

There is a look every p / PER_ROW rows: a factor costs p^3 / 6 multiplications, so that a row costs some p^2, as much as
it takes to add the row to a memory.
"""

import cython
import numpy as np
from cython.cimports.cpython.mem import PyMem_RawMalloc
from cython.cimports.libc.math import INFINITY, exp, fabs, isfinite, log, sqrt
from cython.cimports.streamlasso.core.base.buffers import Doubles, copied
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import WEIGHT
from cython.cimports.streamlasso.core.lasso.moments import Sums
from cython.cimports.streamlasso.core.linalg.kernels import axpy, dot

from streamlasso.core.base.state import FEATURES, Column, array, numbers

#: The evidence counts less than whole: the rows that weigh the models have chosen their order.
EVIDENCE = cython.declare(cython.double, 0.7)
#: A feature enters when it is more likely in than out, and leaves when the odds against it are some six to one.
ENTERS = cython.declare(cython.double, 0.5)
LEAVES = cython.declare(cython.double, 0.15)
#: A look counts as much as the rows since the last one are of a tenth of the memory, but no more than LATEST.
TENTH = cython.declare(cython.double, 0.1)
LATEST = cython.declare(cython.double, 0.6)
#: Features for each row from one look to the next.
PER_ROW = cython.declare(cython.Py_ssize_t, 8)
#: No model leaves less of the response than this.
LEAST_SHARE = cython.declare(cython.double, 1e-12)
#: A feature without a penalty is more important than any other.
UNPENALISED = cython.declare(cython.double, 1e300)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def new_sums(p: cython.Py_ssize_t, sums: cython.pointer[Sums]) -> cython.int:
    """Room for sums and for a factor of p features, which follows the p x p numbers of S; all is freed with S."""
    room: cython.p_void = PyMem_RawMalloc((2 * p + 2) * p * cython.sizeof(cython.double))
    if room == cython.NULL:
        with cython.gil:
            raise MemoryError
    sums.S = cython.cast(cython.p_double, room)
    sums.c = sums.S + 2 * p * p
    sums.mean = sums.c + p
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _prior_rows(sums: cython.pointer[Sums]) -> cython.double:
    """S_jj over this is the prior's precision."""
    return max(min(sums.rows, sums.weight), 1e-300)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _next_row(i: cython.Py_ssize_t, p: cython.Py_ssize_t, L: cython.p_double, row: cython.p_double) -> cython.void:
    """The i-th row of a Cholesky factor, from that of the matrix, but for its last number: that is the pivot's
    square."""
    k: cython.Py_ssize_t
    for k in range(i):
        row[k] = (row[k] - dot(k, row, L + k * p)) / L[k * p + k]
    row[i] -= dot(i, row, row)


@cython.cclass
class Selection(Stateful):
    """Which features matter, how probable that is, and since when the same do."""

    STATE = (
        array("probability", FEATURES),
        array("held", FEATURES),
        array("importance", FEATURES),
        numbers("rows", Column("rows")),
        numbers("selected", Column("since"), dtype=np.int64),
    )

    def __cinit__(self, p: cython.Py_ssize_t, penalty_factor):
        self.p = p
        self.every = (p + PER_ROW - 1) // PER_ROW
        self.factors = np.ascontiguousarray(penalty_factor, dtype=float)
        factors: cython.const[cython.double][::1] = self.factors
        self.penalty_factor = cython.address(factors[0])
        self.room = Doubles(7 * p + 1)
        self.probability = self.room.at
        self.held = self.probability + p
        self.importance = self.held + p
        self.now = self.importance + p
        self.row = self.now + p
        self.evidence = self.row + p
        self.order = cython.cast(cython.pointer[cython.Py_ssize_t], self.evidence + p + 1)
        self.since = 0
        self.rows = 0.0

    def is_due(self, before, after):
        """Whether there is a look after these rows."""
        return after // self.every > before // self.every

    def look(self, sums, model, n_seen):
        """By the sums of a memory, behind which there is room for a factor, and b of the averaged model."""
        k: cython.Py_ssize_t
        rate: cython.double = self._rate(sums.rows)
        if not (sums.rows > 1.0 and sums.target_scatter > 0.0 and isfinite(sums.target_scatter)):
            return 0
        k = self._sort(sums, model, rate)
        if self._weigh(sums, k, sums.S + self.p * self.p) == 0:
            self._spread(sums, k)
            self._settle(rate, n_seen)
        return 0

    def look_at(self, model, n_seen):
        """Where no memory keeps sums: every feature that the averaged model uses."""
        j: cython.Py_ssize_t
        for j in range(self.p):
            self.now[j] = 1.0 if model[j] != 0.0 else 0.0
        self._settle(1.0, n_seen)

    def measure(self, sums, model, importance):
        """How far a prediction moves with each feature, by its deviation in a memory."""
        j: cython.Py_ssize_t
        for j in range(self.p):
            importance[j] = fabs(model[j]) * sqrt(max(sums.S[j * self.p + j], 0.0) / sums.weight)

    def _sort(self, sums, model, rate):
        """The features that vary and have a coefficient, the most important first, those without a penalty before
        them; how many these are."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        self.measure(sums, model, self.now)
        for j in range(self.p):
            self.importance[j] += rate * (self.now[j] - self.importance[j])
        for j in range(self.p):
            if self.penalty_factor[j] == 0.0:
                self.importance[j] = UNPENALISED
            if not (self.importance[j] > 0.0 and sums.S[j * self.p + j] > 0.0):
                continue
            i = n
            n += 1
            while i > 0 and self.importance[self.order[i - 1]] < self.importance[j]:
                self.order[i] = self.order[i - 1]
                i -= 1
            self.order[i] = j
        return n

    def _weigh(self, sums, n, L):
        """The evidence for each of the nested models of n features; -1 where numbers overflow."""
        k: cython.Py_ssize_t
        j: cython.Py_ssize_t
        m: cython.Py_ssize_t
        d: cython.double
        spread: cython.double = 0.0
        choices: cython.double = 0.0
        residual: cython.double = sums.target_scatter
        n_free: cython.Py_ssize_t = 0
        n_penalised: cython.double = self._n_penalised(sums)
        p: cython.Py_ssize_t = self.p
        row: cython.p_double
        self.evidence[0] = 0.0
        for k in range(n):
            j = self.order[k]
            d = sums.S[j * p + j] / _prior_rows(sums)
            row = L + k * p
            for m in range(k):
                row[m] = sums.S[max(j, self.order[m]) * p + min(j, self.order[m])]
            row[k] = sums.S[j * p + j] + d
            _next_row(k, p, L, row)
            if not row[k] > 0.0:
                return -1
            spread += 0.5 * log(row[k] / d)
            row[k] = sqrt(row[k])
            self.row[k] = (sums.c[j] - dot(k, row, self.row)) / row[k]
            residual -= self.row[k] * self.row[k]
            if self.penalty_factor[j] == 0.0:
                n_free += 1
            else:
                choices += 0.5 * log((n_penalised - (k - n_free)) / (k + 1 - n_free))
            self.evidence[k + 1] = -0.5 * (sums.rows - 1.0) * log(max(residual / sums.target_scatter, LEAST_SHARE))
            self.evidence[k + 1] -= spread + choices
            if not isfinite(self.evidence[k + 1]):
                return -1
        for k in range(n_free):
            self.evidence[k] = -INFINITY
        return 0

    def _n_penalised(self, sums):
        """The features that may be chosen."""
        j: cython.Py_ssize_t
        n: cython.double = 0.0
        for j in range(self.p):
            n += sums.S[j * self.p + j] > 0.0 and self.penalty_factor[j] > 0.0
        return n

    def _spread(self, sums, k):
        """The probability of each feature, `now`, from the evidence for the k + 1 nested models."""
        i: cython.Py_ssize_t
        largest: cython.double = -INFINITY
        total: cython.double = 0.0
        above: cython.double = 0.0
        for i in range(k + 1):
            largest = max(largest, self.evidence[i])
        for i in range(k + 1):
            self.evidence[i] = exp(EVIDENCE * (self.evidence[i] - largest))
            total += self.evidence[i]
        for i in range(self.p):
            self.now[i] = 0.0 if sums.S[i * self.p + i] > 0.0 else self.probability[i]
        for i in range(k, 0, -1):
            above += self.evidence[i]
            self.now[self.order[i - 1]] = above / total

    def _rate(self, rows):
        """How much a look at a memory of so many rows counts; it takes a few looks to leave a longer one behind."""
        self.rows += LATEST * (rows - self.rows)
        return min(LATEST, self.every / (TENTH * max(rows, self.rows)))

    def _settle(self, rate, n_seen):
        j: cython.Py_ssize_t
        there: cython.bint
        for j in range(self.p):
            self.probability[j] += rate * (self.now[j] - self.probability[j])
            there = self.probability[j] > (LEAVES if self.held[j] > 0.0 else ENTERS)
            if there != (self.held[j] > 0.0):
                self.since = n_seen
            self.held[j] = there

    def refit(self, sums, model):
        """(b0, b) with the support alone, by least squares with the same prior. `model` is the averaged one before,
        whose coefficients are kept where a feature does not vary in this memory."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t = 0
        m: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.p
        L: cython.p_double = sums.S + p * p
        row: cython.p_double
        model[0] = sums.target_mean
        for j in range(p):
            if self.held[j] > 0.0 and not sums.S[j * p + j] > 0.0:
                model[0] -= sums.mean[j] * model[1 + j]
                continue
            model[1 + j] = 0.0
            if not self.held[j] > 0.0:
                continue
            row = L + k * p
            for m in range(k):
                row[m] = sums.S[j * p + self.order[m]]
            row[k] = sums.S[j * p + j] * (1.0 + 1.0 / _prior_rows(sums))
            _next_row(k, p, L, row)
            if not row[k] > 0.0:
                continue
            row[k] = sqrt(row[k])
            self.row[k] = (sums.c[j] - dot(k, row, self.row)) / row[k]
            self.order[k] = j
            k += 1
        for i in range(k - 1, -1, -1):
            self.row[i] /= L[i * p + i]
            axpy(i, -self.row[i], L + i * p, self.row)
            model[1 + self.order[i]] = self.row[i]
            model[0] -= sums.mean[self.order[i]] * self.row[i]

    def probabilities(self):
        return copied(self.probability, self.p)

    def support(self):
        """Which features are in it."""
        return copied(self.held, self.p) > 0.0

    def travel(self, tape):
        since: cython.Py_ssize_t
        tape.doubles(self.probability, 3 * self.p, WEIGHT)
        tape.number(cython.address(self.rows), WEIGHT)
        since = tape.count(cython.address(self.since))
        tape.require(since <= tape.n_seen, b"the support holds since a row that is to come")
