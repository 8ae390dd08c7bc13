# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One ridge regression, with a prior that the stream has made.

A lasso needs some rows before it can choose. A ridge need not choose: right after a change, with fewer rows than
features, it is the better model. It borrows the means m_j and deviations s_j of the features from all rows of the
stream:

    z = (1, x - m),     b | sigma^2 ~ N((eta, 0), sigma^2 D^{-1}),     sigma^2 ~ IG(shape, spread)

with D = kappa diag(penalty_factor_j^2 s_j^2), so the prior is worth kappa rows. P, the inverse of D + sum w z z',
follows by recursive least squares:

    q = P z,    v = z'q,    b += q w (y - z'b) / (1 + w v),    P -= q q' w / (1 + w v)

and the response of the next row is Student's t around z'b with variance (spread / shape) (1 + v). Other families take
the implicit step (`implicit.py`), and their loss in units of the noise is the logarithm of their density.

**Which prior** suits a stream depends on its noise. If features explain `signal` times as much as noise adds, kappa is
the number of features that vary over `signal`. That is SIGNAL, but there is another one of EXACT_SIGNAL: some streams
have next to no noise, and there a prior that is worth a row costs most of what can be known.

**The first rows.** What features and responses look like is not known before them. So a ridge that begins with the
first row has a prior from second moments about zero, and when its rows double, until there are RENEWED, its prior is
exchanged for what is known by then: rank-one steps that add the difference of the precisions, which leave what it has
learnt as it is.

**Drift.** Coefficients that move from row to row are b_t = b_{t-1} + N(0, sigma^2 part (D^{-1} - P_{t-1})), the step of
a Kalman filter of which the prior is the limit, so that nothing grows in a direction without rows:

    P <- (1 - part) P + part D^{-1}
"""

import cython
import numpy as np
from cython.cimports.cpython.mem import PyMem_RawFree, PyMem_RawMalloc
from cython.cimports.libc.math import INFINITY, lgamma, log, log1p, sqrt
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.base.checks import weight_of
from cython.cimports.streamlasso.core.base.record import OK
from cython.cimports.streamlasso.core.base.tape import FINITE, READ, WEIGHT
from cython.cimports.streamlasso.core.glm.implicit import implicit_step
from cython.cimports.streamlasso.core.linalg.kernels import (
    axpy,
    centre_row,
    centred_dot,
    dot,
    symmetric_subtract,
    symmetric_times,
)
from cython.cimports.streamlasso.core.mixture.groups.base import Experts

from streamlasso.core.base.state import FEATURES, PAIRS, WITH_INTERCEPT, Column, array, n_pairs, numbers
from streamlasso.memories import Forgetting

#: Signal to noise: of most streams, and of those that are exact.
SIGNAL = cython.declare(cython.double, 9.0)
EXACT_SIGNAL = cython.declare(cython.double, 9e5)
#: Where eta is a logit or a logarithm it has a scale of its own: the prior of b_j s_j has the variance 1 / kappa. There
#: the other prior is more cautious.
KAPPA_OF_LINKS = cython.declare(cython.double, 3.0)
CAUTIOUS_KAPPA = cython.declare(cython.double, 30.0)
#: What of the signal the level may be.
LEVEL = cython.declare(cython.double, 0.05)
#: And in the first row, when nothing is known of it.
FIRST_LEVEL = cython.declare(cython.double, 3.0)
#: In the first RENEWED rows a feature's scale is taken to be like that of others, but no more than so many times its
#: own: it may have a unit of its own.
MOST_POOLED = cython.declare(cython.double, 1e4)
#: A scatter that is less of its prior than this has been lost in it.
ROUNDING = cython.declare(cython.double, 1e-9)
#: An unpenalised feature has a prior too, worth the square of this.
LEAST_FACTOR = cython.declare(cython.double, 1e-3)
#: Ridges forget nothing but when they begin, or drift.
NEVER = Forgetting(1.0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def inverse(n: cython.Py_ssize_t, P: cython.p_double, A: cython.p_double) -> cython.bint:
    """A, n x n, the inverse of a symmetric P of which the rows of the lower triangle are kept; what is 0 in P stays 0.
    Whether P could be inverted: by a Cholesky factor L, whose inverse's columns are multiplied with one another."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    row: cython.p_double
    for i in range(n):
        row = A + i * n
        for j in range(i + 1):
            row[j] = P[i * (i + 1) // 2 + j]
        if row[i] == 0.0:
            continue
        for j in range(i):
            row[j] = (row[j] - dot(j, row, A + j * n)) / A[j * n + j] if A[j * n + j] > 0.0 else 0.0
        row[i] -= dot(i, row, row)
        if not row[i] > 0.0:
            return False
        row[i] = sqrt(row[i])
    # Above the diagonal, row j becomes column j of the inverse of L.
    for j in range(n):
        if A[j * n + j] > 0.0:
            A[j * n + j] = 1.0 / A[j * n + j]
        for i in range(j + 1, n):
            A[j * n + i] = 0.0
            if A[i * n + i] > 0.0:
                for k in range(j, i):
                    A[j * n + i] -= A[i * n + k] * A[j * n + k]
                A[j * n + i] /= A[i * n + i]
    for i in range(n):
        for j in range(i + 1):
            A[i * n + j] = dot(n - i, A + j * n + i, A + i * n + i)
    for i in range(n):
        for j in range(i):
            A[j * n + i] = A[i * n + j]
    return True


@cython.cclass
class Ridge(Experts):
    """One ridge regression on some columns, those in no view.

    scratch : room for z, q and two more rows, that of experts that learn one after the other
    """

    STATE = (
        array("P", PAIRS),
        array("b", WITH_INTERCEPT, exchanged=np.negative),
        array("centre", WITH_INTERCEPT),
        array("precision", FEATURES),
        numbers(
            "prior",
            Column("kappa"),
            Column("rows"),
            Column("shape"),
            Column("spread"),
            Column("level"),
            Column("noise"),
            Column("worth"),
        ),
    )

    kind = "ridge"
    sparse = False

    def __cinit__(self, columns, settings, scratch: Doubles):
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(columns) + 1
        self.p = len(columns)
        self.n = 1
        self.memory = NEVER
        self.family = settings["family"]
        self.quadratic = self.family.quadratic
        self.fit_intercept = settings["fit_intercept"]
        self.standardize = settings["standardize"]
        pairs: cython.Py_ssize_t = n_pairs(self.p)
        self.room = Doubles(pairs + 4 * n)
        self.P = self.room.at
        self.b = self.P + pairs
        self.centre = self.b + n
        self.precision = self.centre + n
        self.column = cython.cast(cython.pointer[cython.Py_ssize_t], self.precision + n)
        for j in range(self.p):
            self.column[j] = columns[j]
        self.whole = list(columns) == list(range(len(settings["penalty_factor"])))
        self.scratch = scratch
        self.z = scratch.at
        self.q = self.z + n
        self.row = self.q + 2 * n
        self.n_columns = len(settings["penalty_factor"])
        self.factors = np.append(np.asarray(settings["penalty_factor"], dtype=float)[list(columns)], 1.0)
        factors: cython.const[cython.double][::1] = self.factors
        self.penalty_factor = cython.address(factors[0])
        self.worth = self.kappa = self.rows = self.shape = self.spread = self.level = self.noise = self.evidence = 0.0

    def predict(self, x, eta):
        eta[0] = self._eta(x)
        return 0

    def _eta(self, x):
        """b0 + (x - m)'b"""
        j: cython.Py_ssize_t
        eta: cython.double = self.b[0]
        if self.whole:
            return eta + centred_dot(self.p, x, self.centre + 1, self.b + 1)
        for j in range(self.p):
            eta += (x[self.column[j]] - self.centre[1 + j]) * self.b[1 + j]
        return eta

    def add_coef(self, weight, model):
        j: cython.Py_ssize_t
        model[0] += weight[0] * (self.b[0] - dot(self.p, self.b + 1, self.centre + 1))
        for j in range(self.p):
            model[1 + self.column[j]] += weight[0] * self.b[1 + j]
        return 0

    def mark(self, weight, used):
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for j in range(self.p if weight[0] > 0.0 else 0):
            if self.b[1 + j] != 0.0 and not used[self.column[j]]:
                used[self.column[j]] = True
                n += 1
        return n

    # --- the prior ----------------------------------------------------------------------------------------------

    def begin(self, stream, eta, other):
        """Forget all rows; the intercept is eta. The prior is that of most streams, or the `other`."""
        signal: cython.double = EXACT_SIGNAL if other else SIGNAL
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        at: cython.Py_ssize_t = 0
        self.worth = 1.0 / signal if self.quadratic else CAUTIOUS_KAPPA if other else KAPPA_OF_LINKS
        self.rows = 0.0
        self.shape = 1.0
        self.spread = self.noise = max(stream.y_scatter, 0.0) / (max(stream.weight, 1.0) * (1.0 + signal))
        self._precisions(stream, False, self.precision)
        for i in range(self.p + 1):
            for j in range(i):
                self.P[at + j] = 0.0
            if i > 0:
                self._set_precision(i - 1)
            self.b[i] = 0.0
            self.centre[i] = stream.mean[self.column[i - 1]] if i > 0 and self.fit_intercept else 0.0
            at += i + 1
        if self.fit_intercept:
            self.P[0] = self._level()
            self.b[0] = eta
        return 0

    def _level(self):
        """The variance of the level in the prior."""
        return (LEVEL if self.quadratic else 1.0) / self.worth

    def _precisions(self, stream, raw, out):
        """kappa, and the precisions of the priors, kappa v_j^2 in units of their own or of all; `raw` about zero."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        common: cython.double = 0.0
        factor: cython.double
        rows: cython.double = max(stream.weight, 1.0)
        for j in range(self.p):
            i = self.column[j]
            out[j] = max(stream.scatter[i], 0.0) / rows + (stream.mean[i] * stream.mean[i] if raw else 0.0)
            if not self.penalty_factor[j] < INFINITY:
                out[j] = 0.0
            common += out[j]
            n += out[j] > 0.0
        common /= max(n, 1)
        self.kappa = self.worth * n if self.quadratic else self.worth
        for j in range(self.p):
            factor = max(self.penalty_factor[j], LEAST_FACTOR)
            if out[j] > 0.0:
                # Few rows say little about the scale of one feature: it is taken to be like that of others.
                if not self.standardize:
                    out[j] = common
                elif rows < RENEWED:
                    out[j] = min((rows * out[j] + common) / (rows + 1.0), MOST_POOLED * out[j])
                out[j] *= self.kappa * factor * factor

    def begin_uncentred(self, stream):
        """Begin with the first row: the prior is about zero."""
        j: cython.Py_ssize_t
        self.begin(stream, 0.0, False)
        self.spread = self.noise = stream.y_mean * stream.y_mean / (1.0 + SIGNAL)
        self.level = FIRST_LEVEL
        if self.fit_intercept:
            self.P[0] = FIRST_LEVEL
        memset(self.centre, 0, (self.p + 1) * cython.sizeof(cython.double))
        self._precisions(stream, True, self.precision)
        for j in range(self.p):
            self._set_precision(j)
        return 0

    def _set_precision(self, j):
        """Of a coefficient of which nothing is known yet."""
        i: cython.Py_ssize_t = j + 1
        self.P[i * (i + 1) // 2 + i] = 1.0 / self.precision[j] if self.precision[j] > 0.0 else 0.0

    def renew(self, stream):
        """Exchange the prior of an uncentred ridge for what is known by now. A feature that has not varied leaves."""
        j: cython.Py_ssize_t
        own: cython.double
        change: cython.double
        column: cython.p_double = self.q
        now: cython.p_double = self.q + self.p + 1
        self._precisions(stream, True, now)
        for j in range(self.p):
            own = self._column(j + 1, column)
            change = now[j] - self.precision[j]
            if not stream.scatter[self.column[j]] > 0.0:
                now[j] = 0.0
                if own > 0.0:
                    self._add_precision(j + 1, 1.0 / own, column)
                    self._leave(j + 1)
            elif own > 0.0 and self.precision[j] > 0.0:
                self._add_precision(j + 1, change / (1.0 + change * own), column)
            self.precision[j] = now[j]
            if not own > 0.0:
                self._set_precision(j)
        if self.quadratic and self.fit_intercept and stream.y_scatter > 0.0:
            self._renew_level(stream)
        return 0

    def _renew_level(self, stream):
        """The same for the level, whose square is that of the mean less what chance adds, and for the noise."""
        delta: cython.double
        rows: cython.double = stream.weight
        noise: cython.double = stream.y_scatter * (rows + 1.0) / (rows * rows * (1.0 + SIGNAL))
        chance: cython.double = stream.y_scatter / (rows * max(rows - 1.0, 1.0))
        level: cython.double = max(stream.y_mean * stream.y_mean - chance, 0.0) / noise + LEVEL * SIGNAL
        delta = 1.0 / level - 1.0 / self.level
        self._add_precision(0, delta / (1.0 + delta * self._column(0, self.q)), self.q)
        self.level = level
        self.spread += noise - self.noise
        self.noise = noise

    def _column(self, i, out):
        """Column i of P; its diagonal."""
        k: cython.Py_ssize_t
        for k in range(self.p + 1):
            out[k] = self.P[i * (i + 1) // 2 + k] if k <= i else self.P[k * (k + 1) // 2 + i]
        return out[i]

    def _leave(self, i):
        """What rounding has left of a coefficient that is 0 for certain."""
        k: cython.Py_ssize_t
        self.b[i] = 0.0
        for k in range(self.p + 1):
            self.P[i * (i + 1) // 2 + k if k <= i else k * (k + 1) // 2 + i] = 0.0

    def _add_precision(self, i, gain, column):
        """P^{-1} gains delta at (i, i), with gain = delta / (1 + delta P_ii)."""
        axpy(self.p + 1, -gain * self.b[i], column, self.b)
        symmetric_subtract(self.p + 1, gain, column, self.P)

    def drift(self, stream, part, of_level):
        """Between two rows what is known loses a part of its weight to the prior; of the level, another part."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range((self.p + 1) * (self.p + 2) // 2):
            self.P[i] *= 1.0 - part
        self._precisions(stream, False, self.precision)
        for j in range(self.p):
            i = j + 1
            if self.precision[j] > 0.0:
                self.P[i * (i + 1) // 2 + i] += part / self.precision[j]
        if self.fit_intercept:
            self.P[0] += of_level * self._level()
        self.rows *= 1.0 - part
        return 0

    # --- the rows -----------------------------------------------------------------------------------------------

    def learn(self, batch):
        i: cython.Py_ssize_t
        for i in range(batch.n):
            if self.worth > 0.0 and weight_of(batch.w, i) > 0.0:
                self._gather(batch.X + i * self.n_columns)
                self._take(self.row, batch.y[i], weight_of(batch.w, i), batch.eta_low, batch.eta_high)
        return 0

    def _gather(self, x):
        """Its own columns of a row."""
        j: cython.Py_ssize_t
        for j in range(self.p):
            self.row[j] = x[self.column[j]]

    def _take(self, x, y, weight, low, high):
        """The step of the docstring above; for the Gaussian family the implicit one is that of least squares."""
        v: cython.double
        e: cython.double
        eta: cython.double = self.b[0]
        curvature: cython.double
        self.z[0] = 1.0 if self.fit_intercept else 0.0
        eta += centre_row(self.p, x, self.centre + 1, self.b + 1, self.z + 1)
        v = symmetric_times(self.p + 1, self.P, self.z, self.q)
        if self.quadratic:
            e = eta + weight * v * (y - eta) / (1.0 + weight * v)
            self._judge(y - eta, weight, v)
        else:
            e = implicit_step(self.family, y, eta, weight * v, low, high)
        curvature = weight * self.family.curvature_at(y, e)
        if v > 0.0:
            axpy(self.p + 1, (e - eta) / v, self.q, self.b)
        symmetric_subtract(self.p + 1, curvature / (1.0 + curvature * v), self.q, self.P)
        self.rows += weight
        return 0

    def _judge(self, error, weight, v):
        """The logarithm of the density of the response, and what it says of sigma^2."""
        square: cython.double = error * error / (1.0 + v)
        if self.spread > 0.0:
            self.evidence += weight * (
                lgamma(self.shape + 0.5)
                - lgamma(self.shape)
                - 0.5 * log(2.0 * self.spread * (1.0 + v))
                - (self.shape + 0.5) * log1p(0.5 * square / self.spread)
            )
        self.shape += 0.5 * weight
        self.spread += 0.5 * weight * square

    # --- what a person wants to see -----------------------------------------------------------------------------

    def keeps_sums(self):
        """Of all columns, and of responses: the targets of links are not kept, nor the rows where certainty is lost."""
        return self.whole and self.quadratic and not self.drifts and self.rows > 0.0

    def write_sums(self, sums):
        """The rows are in P^{-1}, and the prior of the level as some more. There are none where P has no inverse."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.p
        n: cython.Py_ssize_t = p + 1
        share: cython.double
        level: cython.double
        A: cython.p_double = cython.cast(cython.p_double, PyMem_RawMalloc(n * (n + 1) * cython.sizeof(cython.double)))
        h: cython.p_double = A + n * n
        sums.rows = 0.0
        if A == cython.NULL:
            return
        if inverse(n, self.P, A):
            for j in range(n):
                h[j] = dot(n, A + j * n, self.b)
            level = A[0] if A[0] > 0.0 else 1.0
            sums.rows = self.rows
            sums.weight = A[0] if A[0] > 0.0 else self.rows
            sums.target_mean = h[0] / level
            sums.target_scatter = 2.0 * (self.spread - self.noise)
            for j in range(p):
                share = A[(j + 1) * n] / level
                sums.mean[j] = self.centre[1 + j] + share
                sums.c[j] = h[1 + j] - share * h[0]
                sums.target_scatter += self.b[1 + j] * sums.c[j]
                for k in range(j + 1):
                    sums.S[j * p + k] = A[(j + 1) * n + 1 + k] - share * A[(k + 1) * n]
                sums.S[j * p + j] -= self.precision[j]
                if sums.S[j * p + j] < ROUNDING * self.precision[j]:
                    sums.S[j * p + j] = 0.0
        PyMem_RawFree(A)

    def lam_of(self, k):
        """The prior as a penalty on the mean loss."""
        return self.kappa / max(self.rows, 1.0)

    def lam_max_of(self):
        """A ridge is never empty."""
        return self.lam_of(0)

    def size_of(self):
        return self.rows

    def code_of(self, k):
        return OK

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def travel(self, tape):
        tape.doubles(self.P, (self.p + 1) * (self.p + 2) // 2 + 3 * self.p + 2, FINITE)
        tape.number(cython.address(self.kappa), WEIGHT)
        tape.number(cython.address(self.rows), WEIGHT)
        tape.number(cython.address(self.shape), WEIGHT)
        tape.number(cython.address(self.spread), WEIGHT)
        tape.number(cython.address(self.level), WEIGHT)
        tape.number(cython.address(self.noise), WEIGHT)
        tape.number(cython.address(self.worth), WEIGHT)
        if tape.mode == READ:
            self.evidence = 0.0


def ridges_of(parts, n):
    """As many as that, on the columns in no view; they learn one after the other, in one room."""
    columns = parts.views.common()
    scratch = Doubles(4 * (len(columns) + 1))
    ridges = [Ridge(columns, parts.settings, scratch) for _ in range(n)]
    for ridge in ridges:
        parts.add(ridge)
    return ridges
