# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The features that matter, and one model of these that a person can read.

An average of many models is seldom sparse, and which single one of them predicts best changes every few rows. So
features are selected for their own sake, by the evidence in the sums of one memory (`Sums`).

**Evidence.** The coefficients of a set of k features have independent normal priors, each worth one row (the unit
information prior of Kass and Wasserman, 1995). All sizes k are as likely, and so are all sets of one size (Scott and
Berger, 2010): one more feature has to explain a lot where few matter, and little where most do. With n rows,
d_j = S_jj / n and L the Cholesky factor of S + diag(d) for the features of the set,

    log E = -(n - 1)/2 log(R / R_0) - 1/2 sum_j log(L_jj^2 / d_j) - log C(p, k),     R = R_0 - |L^{-1} c|^2

R is the residual sum of squares with the prior's. A feature that repeats others adds nothing to the fit, and pays for
its place. Where a row says less than a row can (the sum W of the curvatures of classes is below n), d_j = S_jj / W: the
prior is then that of a coefficient which moves the log odds by one.

**Probability.** Features enter one by one, each time the one that leaves least, until there are as many as rows. A
feature matters with the probability of the sets on this path that hold it. The set of those with more than 1/2 is the
best for predictions (the median model of Barbieri and Berger, 2004).

**Support.** A set is shown until the best one has more evidence by LEAD, all at once: features that take each other's
place cannot be judged one by one. Where there are fewer than ROWS rows less is needed, in proportion: what is shown
after a change of the world is to be right soon, and then to stay.

There is a look when RENEWED of the rows in the memory are new since the last one, or as many as that one had: what a
short memory has shown does not stay for long where a longer one leads again. Fewer rows than features that are shown
say nothing of these. A look takes p n^2 / 2 multiplications where there are fewer rows than features, and else p^3 / 6:
no more for each row than it takes to add one to a memory.
"""

import cython
import numpy as np
from cython.cimports.cpython.mem import PyMem_RawMalloc
from cython.cimports.libc.math import INFINITY, exp, fabs, isfinite, log, sqrt
from cython.cimports.streamlasso.core.base.buffers import Doubles, copied
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import WEIGHT
from cython.cimports.streamlasso.core.lasso.moments import Sums
from cython.cimports.streamlasso.core.linalg.kernels import dot

from streamlasso.core.base.state import FEATURES, Column, array, numbers

#: "Very strong" evidence of one set against another (Kass and Raftery, 1995) from so many rows on.
LEAD = cython.declare(cython.double, 5.0)
ROWS = cython.declare(cython.double, 150.0)
#: With fewer new rows the evidence hardly changes.
RENEWED = cython.declare(cython.double, 0.2)
#: No model leaves less of the response than this, which is rounding.
LEAST_SHARE = cython.declare(cython.double, 1e-12)


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


@cython.cclass
class Selection(Stateful):
    """Which features matter, how probable that is, and since when the same do."""

    STATE = (
        array("probability", FEATURES),
        array("held", FEATURES),
        numbers("memory", Column("rows")),
        numbers("selected", Column("since"), Column("looked"), dtype=np.int64),
    )

    def __cinit__(self, p: cython.Py_ssize_t, penalty_factor):
        j: cython.Py_ssize_t
        self.p = p
        self.factors = np.ascontiguousarray(penalty_factor, dtype=float)
        factors: cython.const[cython.double][::1] = self.factors
        self.penalty_factor = cython.address(factors[0])
        self.room = Doubles(6 * p + 1)
        self.probability = self.room.at
        self.held = self.probability + p
        self.pivot = self.held + p
        self.left = self.pivot + p
        self.evidence = self.left + p
        self.order = cython.cast(cython.pointer[cython.Py_ssize_t], self.evidence + p + 1)
        self.since = self.looked = 0
        self.rows = 0.0
        for j in range(p):
            self.probability[j] = self.held[j] = 1.0 if self.penalty_factor[j] == 0.0 else 0.0

    def is_due(self, rows, n_seen):
        """Whether enough of the rows in a memory are new, and they are not fewer than the features that are shown."""
        j: cython.Py_ssize_t
        n: cython.double = 0.0
        if n_seen - self.looked < min(RENEWED * rows, self.rows):
            return False
        for j in range(self.p):
            n += self.held[j]
        return n <= rows

    def look(self, sums, n_seen):
        """By the sums of a memory, behind which there is room for a factor."""
        n: cython.Py_ssize_t
        shown: cython.double
        self.looked = n_seen
        self.rows = sums.rows
        if not (sums.rows > 1.0 and sums.target_scatter > 0.0 and isfinite(sums.target_scatter)):
            return
        n = self._path(sums, True)
        shown = self.evidence[n] if n >= 0 else INFINITY
        n = self._path(sums, False)
        if n >= 0 and self._spread(sums, n) - shown > LEAD * min(1.0, sums.rows / ROWS):
            self._settle(n_seen)

    def look_at(self, model, n_seen):
        """Where no memory keeps sums: every feature that the averaged model uses."""
        j: cython.Py_ssize_t
        self.looked = n_seen
        for j in range(self.p):
            self.probability[j] = 1.0 if model[j] != 0.0 else 0.0
        self._settle(n_seen)

    def measure(self, sums, model, importance):
        """How far a prediction moves with each feature, by its deviation in a memory."""
        j: cython.Py_ssize_t
        for j in range(self.p):
            importance[j] = fabs(model[j]) * sqrt(max(sums.S[j * self.p + j], 0.0) / sums.weight)

    def _path(self, sums, held):
        """The order in which features enter a model, and the evidence for each of these models; how many features
        enter, -1 where numbers overflow. Those without a penalty come first, others enter while there are rows; or
        those that are held, however many these are."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.p
        d: cython.double
        gain: cython.double
        root: cython.double
        L: cython.p_double = sums.S + p * p
        costs: cython.double = 0.0
        residual: cython.double = sums.target_scatter
        n_chosen: cython.double = 0.0
        n_penalised: cython.double = self._begin(sums, held)
        self.evidence[0] = 0.0
        for k in range(p):
            j = self._next()
            if j < 0 or not (held or k < sums.rows):
                return k
            self.order[k] = j
            d = sums.S[j * p + j] / _prior_rows(sums)
            root = sqrt(self.pivot[j])
            gain = self.left[j] / root
            costs += log(root) - 0.5 * log(d)
            residual -= gain * gain
            if self.penalty_factor[j] == 0.0:
                self.evidence[k] = -INFINITY
            else:
                costs += log((n_penalised - n_chosen) / (n_chosen + 1.0))
                n_chosen += 1.0
            self.evidence[k + 1] = -0.5 * (sums.rows - 1.0) * log(max(residual / sums.target_scatter, LEAST_SHARE))
            self.evidence[k + 1] -= costs
            if not isfinite(self.evidence[k + 1]):
                return -1
            self.pivot[j] = 0.0
            L[j * p + k] = root
            self.left[j] = gain
            for i in range(p):
                if self.pivot[i] > 0.0:
                    L[i * p + k] = (sums.S[max(i, j) * p + min(i, j)] - dot(k, L + i * p, L + j * p)) / root
                    self.pivot[i] -= L[i * p + k] * L[i * p + k]
                    self.left[i] -= L[i * p + k] * gain
        return p

    def _begin(self, sums, held):
        """Pivots of the features that may enter, 0 for others; how many with a penalty vary."""
        j: cython.Py_ssize_t
        varies: cython.bint
        n: cython.double = 0.0
        for j in range(self.p):
            varies = sums.S[j * self.p + j] > 0.0 and self.penalty_factor[j] < INFINITY
            n += varies and self.penalty_factor[j] > 0.0
            self.pivot[j] = 0.0
            if varies and (self.held[j] > 0.0 or not held):
                self.pivot[j] = sums.S[j * self.p + j] * (1.0 + 1.0 / _prior_rows(sums))
                self.left[j] = sums.c[j]
        return n

    def _next(self):
        """The feature that leaves least of the response; -1 where none is left."""
        j: cython.Py_ssize_t
        best: cython.Py_ssize_t = -1
        share: cython.double
        most: cython.double = -1.0
        for j in range(self.p):
            if self.pivot[j] > 0.0:
                if self.penalty_factor[j] == 0.0:
                    return j
                share = self.left[j] * self.left[j] / self.pivot[j]
                if share > most:
                    most = share
                    best = j
        return best

    def _spread(self, sums, n):
        """The probability of each feature that varies, from the evidence for the n + 1 nested models; the evidence for
        the median one."""
        k: cython.Py_ssize_t
        median: cython.Py_ssize_t = 0
        largest: cython.double = -INFINITY
        total: cython.double = 0.0
        above: cython.double = 0.0
        for k in range(n + 1):
            largest = max(largest, self.evidence[k])
        for k in range(n + 1):
            total += exp(self.evidence[k] - largest)
        for k in range(self.p):
            if sums.S[k * self.p + k] > 0.0:
                self.probability[k] = 0.0
        for k in range(n, 0, -1):
            above += exp(self.evidence[k] - largest)
            self.probability[self.order[k - 1]] = above / total
            if median == 0 and above / total > 0.5:
                median = k
        return self.evidence[median]

    def _settle(self, n_seen):
        """Show the features that are more likely in than out."""
        j: cython.Py_ssize_t
        there: cython.bint
        for j in range(self.p):
            there = self.probability[j] > 0.5
            if there != (self.held[j] > 0.0):
                self.since = n_seen
            self.held[j] = there

    def refit(self, sums, model):
        """(b0, b) with the support alone, by least squares with the same prior. `model` is the averaged one before,
        whose coefficients are kept where a feature does not vary in this memory."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.p
        row: cython.p_double
        model[0] = sums.target_mean
        for j in range(p):
            if self.held[j] > 0.0 and not sums.S[j * p + j] > 0.0:
                model[0] -= sums.mean[j] * model[1 + j]
            else:
                model[1 + j] = 0.0
        for i in range(self._path(sums, True) - 1, -1, -1):
            j = self.order[i]
            row = sums.S + (p + j) * p
            model[1 + j] = self.left[j] / row[i]
            model[0] -= sums.mean[j] * model[1 + j]
            for k in range(i):
                self.left[self.order[k]] -= row[k] * model[1 + j]

    def probabilities(self):
        return copied(self.probability, self.p)

    def support(self):
        """Which features are in it."""
        return copied(self.held, self.p) > 0.0

    def travel(self, tape):
        since: cython.Py_ssize_t
        looked: cython.Py_ssize_t
        tape.doubles(self.probability, 2 * self.p, WEIGHT)
        tape.number(cython.address(self.rows), WEIGHT)
        since = tape.count(cython.address(self.since))
        looked = tape.count(cython.address(self.looked))
        tape.require(since <= looked <= tape.n_seen, b"the support holds since a row that is to come")
