# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What the last residuals say about the next row: a gated offset to eta.

Errors of a linear model on a stream often come in runs: what is missing from the features changes slowly. With the
residual e_t of the mixture's own prediction (`Family.residual_at`), small regressions predict the next offset to eta:

    short   o = theta z,   z = e_{t-1}                                                                    r = .99
    long    o = theta'z,   z = (e_{t-1}, e_{t-2}, f_{t-1}, level(y_{t-1}) - mean, eta_t - mean)           r = .998

where f is a fading mean of e and `level` the response on the scale of eta. For numbers, counts and positive responses e
is on the scale of eta and is itself what a rule predicts, by recursive least squares in which outliers weigh less
(`Noise.trust`):

    A <- r A + w z z',     B <- r B + w z e,     theta = (A + (PRIOR_ROWS / n) diag A)^{-1} B

with n the rows that a rule remembers: shrunk as by PRIOR_ROWS rows that say nothing. For classes, whose residuals are
differences of probabilities, w is the curvature of the loss at eta + o and e becomes o - loss'/loss'': a Newton step on
the log loss. Rows that were predicted with near certainty have next to no curvature, and theta is a logarithm of odds
ratios, which has a scale of its own: CLASS_PRIOR I is added to A. (The same Newton step for counts is sharper while it
works, and explodes on three of eight simulated streams.)

A gate decides whether any of this is used: the weights of nothing and of the rules (`hedge.py`), which start at
GATE_PRIOR and return to that by GATE_SHARE per row. Where residuals say nothing, the gate stays closed.

The offset is linear in eta, so that the model stays linear: the lags move its intercept, the last feature of a long
rule scales its coefficients (`linear`). For rows further ahead the residuals are not known: `expect` puts their
expectation in, and the offset fades as its own autoregression says.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, sqrt
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import FINITE

from streamlasso.core.base.state import Column, array, complement, numbers

#: Rows before the first offset.
FIRST_OFFSET = cython.declare(cython.Py_ssize_t, 20)
PRIOR_ROWS = cython.declare(cython.double, 20.0)
#: The precision of theta before the first row: its deviation is about 3, a ratio of odds of 20.
CLASS_PRIOR = cython.declare(cython.double, 0.1)
#: Of nothing, short and long.
GATE_PRIOR = (0.8, 0.1, 0.1)
GATE_SHARE = 0.001
SHORT_DECAY = cython.declare(cython.double, 0.99)
LONG_DECAY = cython.declare(cython.double, 0.998)
#: Of f.
MEAN_DECAY = cython.declare(cython.double, 0.9)
LEAST_CURVATURE = cython.declare(cython.double, 1e-6)


def _exchanged(lags):
    """Of two classes: residuals change their sign, and a response of 1 is one of 0."""
    return np.array([-lags[LAST], -lags[BEFORE], -lags[FADING], 1.0 - lags[LEVEL]])


@cython.cclass
class Carry(Stateful):
    """The rules, their gate, and the residuals that the next offset is made of."""

    STATE = (
        array("A", N_RULES, N_FEATURES, N_FEATURES),
        array("B", N_RULES, N_FEATURES),
        array("theta", N_RULES, N_FEATURES),
        array("lags", N_LAGS, exchanged=_exchanged),
        numbers("means", Column("level_mean", complement), Column("eta_mean", np.negative)),
        numbers("seen", Column("n_seen"), dtype=np.int64),
    )

    def __cinit__(self, family):
        self.family = family
        self.scaled = family.has_scale
        self.hedge = Hedge(GATE_PRIOR, 1.0, GATE_SHARE)
        self.gate = self.hedge.used

    # --- the offset ---------------------------------------------------------------------------------------------

    def offset(self, lags, eta):
        """The gated offset to eta, given the residuals before."""
        h: cython.Py_ssize_t
        total: cython.double = 0.0
        z: cython.double[N_FEATURES]
        if self.n_seen < FIRST_OFFSET:
            return 0.0
        self._features(lags, eta, z)
        for h in range(N_RULES):
            total += self.gate[h + 1] * self._rule(h, z)
        return total

    def linear(self, shift, scale):
        """For the next row, eta + offset = shift + scale eta."""
        shift[0] = self.offset(self.lags, 0.0)
        scale[0] = 1.0
        if self.n_seen >= FIRST_OFFSET:
            scale[0] += self.gate[LONG + 1] * self.theta[LONG][N_FEATURES - 1]

    def expect(self, lags, eta):
        """The residuals as they would be after a row whose response is its predicted mean."""
        return self._advance(lags, self.family.mean_at(eta + self.offset(lags, eta)), eta, 1.0)

    def _features(self, lags, eta, z):
        z[0] = lags[LAST]
        z[1] = lags[BEFORE]
        z[2] = lags[FADING]
        z[3] = lags[LEVEL] - self.level_mean
        z[4] = eta - self.eta_mean

    def _rule(self, h, z):
        """The offset of one rule."""
        i: cython.Py_ssize_t
        total: cython.double = 0.0
        for i in range(N_FEATURES if h == LONG else 1):
            total += self.theta[h][i] * z[i]
        return total

    def _advance(self, lags, y, eta, trust):
        """One outlier must not move the predictions after it."""
        residual: cython.double = trust * self.family.residual_at(y, eta)
        lags[BEFORE] = lags[LAST]
        lags[LAST] = residual
        lags[FADING] = MEAN_DECAY * lags[FADING] + (1.0 - MEAN_DECAY) * residual
        lags[LEVEL] = self.family.level_at(y)
        return 0

    # --- learning -----------------------------------------------------------------------------------------------

    def choice(self, h, lags, eta):
        """eta as it would be with nothing (0) or with one of the rules alone."""
        z: cython.double[N_FEATURES]
        if h == 0 or self.n_seen < FIRST_OFFSET:
            return eta
        self._features(lags, eta, z)
        return eta + self._rule(h - 1, z)

    def weigh(self, loss):
        """Update the gate by the losses of the choices, in units of the noise."""
        if self.n_seen >= FIRST_OFFSET:
            self.hedge.update(loss)

    def learn(self, lags, y, eta, weight, trust):
        """A row whose response is y, which the group predicted with eta and these residuals before it; `trust` is
        below 1 for an outlier."""
        h: cython.Py_ssize_t
        residual: cython.double = self.family.residual_at(y, eta)
        z: cython.double[N_FEATURES]
        self._features(lags, eta, z)
        self.n_seen += 1
        for h in range(N_RULES):
            self._learn_rule(h, y, eta, weight * trust, residual, z)
            self._solve(h)
        self._advance(self.lags, y, eta, trust)
        self.level_mean += (self.lags[LEVEL] - self.level_mean) / self.n_seen
        self.eta_mean += (eta - self.eta_mean) / self.n_seen
        return 0

    def _learn_rule(self, h, y, eta, weight, residual, z):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = N_FEATURES if h == LONG else 1
        r: cython.double = LONG_DECAY if h == LONG else SHORT_DECAY
        offset: cython.double = self._rule(h, z)
        curvature: cython.double = 1.0
        target: cython.double = residual
        if not self.scaled:
            curvature = max(self.family.curvature_at(y, eta + offset), LEAST_CURVATURE)
            target = offset - self.family.slope_at(y, eta + offset) / curvature
        for i in range(n):
            for j in range(n):
                self.A[h][i][j] = r * self.A[h][i][j] + weight * curvature * z[i] * z[j]
            self.B[h][i] = r * self.B[h][i] + weight * curvature * target * z[i]
        return 0

    def _solve(self, h):
        """theta = (A + (PRIOR_ROWS / n) diag A)^{-1} B, by Cholesky; a feature that was always 0 has none."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        n: cython.Py_ssize_t = N_FEATURES if h == LONG else 1
        r: cython.double = LONG_DECAY if h == LONG else SHORT_DECAY
        prior: cython.double = 0.0 if self.scaled else CLASS_PRIOR
        lift: cython.double = 1.0 + PRIOR_ROWS / min(cython.cast(cython.double, self.n_seen), 1.0 / (1.0 - r))
        L: cython.double[N_FEATURES][N_FEATURES]
        for i in range(n):
            for j in range(i + 1):
                L[i][j] = lift * self.A[h][i][i] + prior if i == j else self.A[h][i][j]
                for k in range(j):
                    L[i][j] -= L[i][k] * L[j][k]
                if i == j:
                    L[i][i] = sqrt(L[i][i]) if L[i][i] > 0.0 else INFINITY
                else:
                    L[i][j] /= L[j][j]
        for i in range(n):
            self.theta[h][i] = self.B[h][i]
            for k in range(i):
                self.theta[h][i] -= L[i][k] * self.theta[h][k]
            self.theta[h][i] /= L[i][i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                self.theta[h][i] -= L[k][i] * self.theta[h][k]
            self.theta[h][i] /= L[i][i]

    def travel(self, tape):
        tape.doubles(self.A[0][0], N_RULES * N_FEATURES * N_FEATURES, FINITE)
        tape.doubles(self.B[0], N_RULES * N_FEATURES, FINITE)
        tape.doubles(self.theta[0], N_RULES * N_FEATURES, FINITE)
        tape.doubles(self.lags, N_LAGS, FINITE)
        tape.number(cython.address(self.level_mean), FINITE)
        tape.number(cython.address(self.eta_mean), FINITE)
        tape.count(cython.address(self.n_seen))
        self.hedge.travel(tape)

    def parts(self):
        return {"gate/": self.hedge}
