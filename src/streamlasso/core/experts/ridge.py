# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Bayesian ridge regression from a few rows, with a prior that the stream has made.

A lasso needs some ten rows before it can choose. A ridge need not choose: right after a change, with fewer rows than
features, it is the better model. One that restarts borrows what the change has not touched from all rows of the stream
(`seen`): the means m_j and the deviations s_j of the features, and for the intercept the eta of the mean response.

    z = (1, x - m),     b ~ N((eta, 0), D^{-1}),     D = kappa diag(1, penalty_factor_j^2 s_j^2)

so the prior is worth kappa rows. P, the inverse of D + sum w z z', follows by recursive least squares:

    q = P z,     v = z'q,     b += q w (y - z'b) / (1 + w v),     P -= q q' w / (1 + w v)

Other families take the implicit step (`implicit.py`): the row is expanded where its own fit puts it, at the root e of
e = z'b - w v loss'(e), and b moves there, by q (e - z'b) / v. A feature that has never varied stays out until the next
restart: s_j is 0, and its P with it.

Which kappa suits a stream depends on its noise, so the groups take turns: each restart has the next kappa. The one with
the first begins at the model of the mixture, b ~ N(model, D^{-1}): a change may leave most coefficients as they are. Of
classes its intercept is almost free, D_00 = LEVEL.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite, sqrt
from cython.cimports.streamlasso.core.experts.base import Experts
from cython.cimports.streamlasso.core.implicit import implicit_step
from cython.cimports.streamlasso.core.kernels import (
    axpy,
    centre_row,
    centred_dot,
    dot,
    symmetric_subtract,
    symmetric_times,
)
from cython.cimports.streamlasso.core.pointers import Doubles, fill
from cython.cimports.streamlasso.core.record import OK
from cython.cimports.streamlasso.core.tape import FINITE, WEIGHT
from cython.cimports.streamlasso.core.values import weight_of

from streamlasso.core.active_set import MOST_SHARED
from streamlasso.core.experts.base import ALWAYS
from streamlasso.core.state import PAIRS, WITH_INTERCEPT, Column, array, n_pairs, numbers

#: Where noise is low a prior worth a hundredth of a row is the best. Where eta is a logit or a logarithm it has a scale
#: of its own: b_j s_j has a prior deviation of 1 / sqrt(3), or of 1 / sqrt(30) around the model of the mixture.
KAPPAS = (1.0, 0.01, 1.0)
KAPPAS_OF_LINKS = (30.0, 3.0, 3.0)
#: Classes come in runs: where the coefficients are as before, the level need not be, and has a prior worth this many
#: rows. (Numbers and counts gain nothing by that.)
LEVEL = cython.declare(cython.double, 0.1)
#: An unpenalised feature has a prior too, worth the square of this.
LEAST_FACTOR = cython.declare(cython.double, 1e-3)


def groups(n_features, settings, memories, starts):
    """As many as the tuner says, where memories may restart."""
    kappas = KAPPAS if settings["family"].quadratic else KAPPAS_OF_LINKS
    n_groups = settings["tuner"].ridges if starts else 0
    scratches = [Doubles(2 * (n_features + 1)) for _ in range(1 if n_features <= MOST_SHARED else n_groups)]
    return [RidgeExperts(n_features, settings, ALWAYS, scratches[i % len(scratches)], kappas) for i in range(n_groups)]


@cython.cclass
class RidgeExperts(Experts):
    """One ridge regression.

    scratch : room for z and q, that of groups that learn one after the other
    """

    STATE = (
        array("P", PAIRS),
        array("b", WITH_INTERCEPT, exchanged=np.negative),
        array("centre", WITH_INTERCEPT),
        numbers("prior", Column("kappa"), Column("rows")),
    )

    kind = "ridge"
    sparse = False

    def __cinit__(self, n_features: cython.Py_ssize_t, settings, memory, scratch: Doubles, kappas):
        n: cython.Py_ssize_t = n_features + 1
        self.p = n_features
        self.n = 1
        self.restarts = True
        self.memory = memory
        self.family = settings["family"]
        self.quadratic = self.family.quadratic
        self.family_has_scale = self.family.has_scale
        self.fit_intercept = settings["fit_intercept"]
        self.standardize = settings["standardize"]
        pairs: cython.Py_ssize_t = n_pairs(n_features)
        self.room = Doubles(pairs + 2 * n)
        self.P = self.room.at
        self.b = self.P + pairs
        self.centre = self.b + n
        self.scratch = scratch
        self.z = scratch.at
        self.q = self.z + n
        self.factors = np.ascontiguousarray(settings["penalty_factor"], dtype=float)
        factors: cython.const[cython.double][::1] = self.factors
        self.penalty_factor = cython.address(factors[0])
        self.n_kappas = len(kappas)
        fill(self.kappas, self.n_kappas, kappas)
        self.kappa = self.rows = 0.0

    def predict(self, x, eta):
        eta[0] = self._eta(x)
        return 0

    def _eta(self, x):
        """b0 + (x - m)'b"""
        return self.b[0] + centred_dot(self.p, x, self.centre + 1, self.b + 1)

    def add_coef(self, weight, model):
        axpy(self.p + 1, weight[0], self.b, model)
        model[0] -= weight[0] * dot(self.p, self.b + 1, self.centre + 1)
        return 0

    def mark(self, weight, used):
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for j in range(self.p if weight[0] > 0.0 else 0):
            if self.b[1 + j] != 0.0 and not used[j]:
                used[j] = True
                n += 1
        return n

    # --- the prior ----------------------------------------------------------------------------------------------

    def restart(self, seen, eta, model, turn):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        at: cython.Py_ssize_t = 0
        n_varied: cython.Py_ssize_t = 0
        common: cython.double = 0.0
        deviation: cython.p_double = self.z + 1
        self.kappa = self.kappas[turn % self.n_kappas]
        self.rows = 0.0
        seen.deviations(deviation)
        for j in range(self.p):
            common += deviation[j] * deviation[j]
            n_varied += deviation[j] > 0.0
        common = sqrt(common / n_varied) if n_varied > 0 else 0.0
        self.z[0] = self._level_precision(turn) if self.fit_intercept else 0.0
        for j in range(self.p):
            deviation[j] = self._precision(j, deviation[j], common)
        for i in range(self.p + 1):
            for j in range(i):
                self.P[at + j] = 0.0
            self.P[at + i] = 1.0 / self.z[i] if self.z[i] > 0.0 else 0.0
            self.b[i] = 0.0
            self.centre[i] = seen.mean[i - 1] if i > 0 and self.fit_intercept else 0.0
            at += i + 1
        self.b[0] = eta if self.fit_intercept else 0.0
        if self.begins_at_model(turn):
            self._begin_at(model)
        return 0

    def begins_at_model(self, turn):
        return turn % self.n_kappas == 0

    def begins_anew(self, turn):
        return not self.begins_at_model(turn)

    def _begin_at(self, model):
        """The mean of the prior is a model, unless that has overflowed."""
        j: cython.Py_ssize_t
        eta: cython.double = model[0] + dot(self.p, model + 1, self.centre + 1)
        if isfinite(eta):
            for j in range(self.p):
                self.b[1 + j] = model[1 + j]
            self.b[0] = eta if self.fit_intercept else 0.0

    def _level_precision(self, turn):
        """Of the prior of the intercept."""
        return self.kappa if self.family_has_scale or self.begins_anew(turn) else LEVEL

    def _precision(self, j, deviation, common):
        """Of the prior of b_j; in its own units, or in those that all features have in common."""
        scale: cython.double = max(self.penalty_factor[j], LEAST_FACTOR) * (deviation if self.standardize else common)
        return self.kappa * scale * scale if deviation > 0.0 else 0.0

    # --- the rows -----------------------------------------------------------------------------------------------

    def learn(self, batch):
        i: cython.Py_ssize_t
        for i in range(batch.n):
            if weight_of(batch.w, i) > 0.0:
                self._take(batch.X + i * self.p, batch.y[i], weight_of(batch.w, i), batch.eta_low, batch.eta_high)
        return 0

    def _take(self, x, y, weight, low, high):
        """The step of the docstring above; for the Gaussian family the implicit one is that of least squares."""
        v: cython.double
        e: cython.double
        eta: cython.double = self.b[0]
        curvature: cython.double
        self.z[0] = 1.0 if self.fit_intercept else 0.0
        eta += centre_row(self.p, x, self.centre + 1, self.b + 1, self.z + 1)
        v = self._spread()
        if self.quadratic:
            e = eta + weight * v * (y - eta) / (1.0 + weight * v)
        else:
            e = implicit_step(self.family, y, eta, weight * v, low, high)
        curvature = weight * self.family.curvature_at(y, e)
        if v > 0.0:
            axpy(self.p + 1, (e - eta) / v, self.q, self.b)
        self._shrink(curvature / (1.0 + curvature * v))
        self.rows += weight
        return 0

    def _spread(self):
        """q = P z; z'q. P is kept as the rows of its lower triangle."""
        return symmetric_times(self.p + 1, self.P, self.z, self.q)

    def _shrink(self, gain):
        """P -= gain q q'"""
        symmetric_subtract(self.p + 1, gain, self.q, self.P)

    # --- what a person wants to see -----------------------------------------------------------------------------

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
        tape.doubles(self.P, (self.p + 1) * (self.p + 2) // 2 + 2 * (self.p + 1), FINITE)
        tape.number(cython.address(self.kappa), WEIGHT)
        tape.number(cython.address(self.rows), WEIGHT)
