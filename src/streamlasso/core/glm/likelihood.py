# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Families for which no finite sum is sufficient: the newest rows whole, the older ones as a quadratic.

**The fold.** A row that leaves the newest `history` is replaced by its second-order expansion at the current
minimiser: a row of weighted least squares with weight `w loss''(eta)` and target `eta - loss'(eta)/loss''(eta)`,
which `Moments` takes in like any other. Value, slope and curvature agree there, so the fold itself moves neither the
minimiser nor its derivative.

**The minimiser** (`newton.py`) is exact for the rows kept whole and the quadratic together, from a warm start.

**One response only.** Where all responses are equal there is nothing to explain, and the coefficients are zero. If the
intercept then has no finite optimum (a class not yet seen, counts all zero), it is penalised by |b0| / (2 (omega + 1))
until they differ: for one class this is the estimate of Krichevsky and Trofimov, (k + 1/2)/(omega + 1).
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.streamlasso.core.base.record import OK
from cython.cimports.streamlasso.core.base.tape import FINITE, READ
from cython.cimports.streamlasso.core.glm.newton import Newton
from cython.cimports.streamlasso.core.glm.recent_rows import WholeRows
from cython.cimports.streamlasso.core.lasso.active_set import ActiveSets
from cython.cimports.streamlasso.core.lasso.moments import Moments
from cython.cimports.streamlasso.core.lasso.objective import Objective

from streamlasso.core.base.state import Column, numbers

#: A condition holds if it holds to this share of lam_max, in the units of its feature.
LIKELIHOOD_TOLERANCE = cython.declare(cython.double, 1e-10)
#: What rounding leaves of a sum, as a share of the sum of its absolute terms.
ROUNDING = cython.declare(cython.double, 1e-14)
#: Slopes this small mean that an unpenalised feature separates the responses; the way to infinity ends here.
SATURATED = cython.declare(cython.double, 1e-30)


@cython.cclass
class Likelihood(Objective):
    """Any family but the Gaussian."""

    STATE = (
        *Objective.STATE,
        numbers("null_intercept", Column("null_intercept", np.negative)),
    )

    def __cinit__(self, problem):
        self.local = Moments(self.p, self.fit_intercept)
        self.null_local = Moments(self.p, self.fit_intercept) if self.n_free > 0 else self.local
        self.rows = WholeRows(self)
        self.main = Newton(self, self.rows)
        self.null = Newton(self, self.rows)
        self.signal = 0.0
        self.tolerance = LIKELIHOOD_TOLERANCE
        self.active = self.main.active
        self.actives = ActiveSets([self.active])
        self.active.has_ridge = self.l1_ratio < 1.0

    # --- the rows -----------------------------------------------------------------------------------------------

    def _admit(self, x, y, weight):
        if self.n_whole == self.history:
            self.fold_oldest()
        self.ring.push(x, y, weight)
        self.n_whole += 1
        self._rows_changed()
        return 0

    def _rows_changed(self):
        """The rows are new: nothing that was evaluated for the old ones may be used."""
        self.rows.current = self.main.point.evaluated = self.null.point.evaluated = False

    def fold_oldest(self):
        """Replace the oldest whole row by its second-order expansion at the current minimiser."""
        slot: cython.Py_ssize_t = self.ring.slot(self.ring.count - self.n_whole)
        x: cython.p_double = self.ring.x + slot * self.p
        eta: cython.double = self.predict(x)
        slope: cython.double = self.family.slope_at(self.ring.y[slot], eta)
        curvature: cython.double = self.curvature_at(self.ring.y[slot], eta)
        self.ring.curvature[slot] = self.ring.weight[slot] * curvature
        self.ring.target[slot] = eta - slope / curvature
        self.moments.add(x, self.ring.target[slot], self.ring.curvature[slot])
        self.n_whole -= 1
        if self.window == 0:
            self.ring.forget_oldest()
        self._rows_changed()
        return 0

    # --- the derivative -----------------------------------------------------------------------------------------

    def differentiate(self, lam):
        first: cython.Py_ssize_t = self._first_to_enter(self.active.g)
        if self.active.has_ridge:
            self._ridge(self.active, lam)
        self.rows.refresh()
        self.main.point.intercept = self.intercept
        if not self.main.point.evaluated:
            self.main.point.evaluate()
        self.main.expansion.expand_members(self.local)
        if first >= 0:
            self.main.expansion.bring_in(self.local, first)
        self.active.broken = True
        self._direction(self.local)
        self.main.expansion.curved = not self.active.broken
        return 0

    # --- the minimiser ------------------------------------------------------------------------------------------

    def measure(self):
        """lam_max from the model without the penalised features, itself warm from the last one."""
        j: cython.Py_ssize_t
        activity: cython.double = INFINITY
        self._penalty_units()
        self.lam_max = 0.0
        self.signal = 0.0
        if self._one_response():
            return 0
        for j in range(self.p):
            self.null.point.tau[j] = 0.0 if self.penalty_factor[j] == 0.0 and self.v[j] == 0.0 else INFINITY
        self.rows.refresh()
        self.null.point.evaluate()
        while self.null.point.activity() < 0.5 * activity:
            activity = self.null.point.activity()
            self.null.point.tolerate(max(self.tolerance * activity, SATURATED * self.scaler.weight), INFINITY)
            self.null.solve_or_restart(self.null_local)
        for j in range(self.p):
            if self.v[j] < INFINITY:
                self.signal = max(self.signal, fabs(self.null.point.g[j]) / self.size[j])
        self.lam_max = self._lam_max(cython.address(self.null.point.g[0]), cython.NULL)
        return 0

    def solve(self, lam):
        j: cython.Py_ssize_t
        status: cython.int
        weight: cython.double = self.scaler.weight
        if self._one_response():
            self.active.reset()
            self._constant_response(self.effective_size())
            return OK
        for j in range(self.p):
            self.main.point.tau[j] = lam * weight * self.l1_ratio * self.v[j] if self.v[j] < INFINITY else INFINITY
        if self.active.has_ridge:
            self._ridge(self.active, lam)
        self.main.point.tolerate(
            max(self.tolerance * self.signal, ROUNDING * self.null.point.activity(), SATURATED * weight),
            self.tolerance * weight * self.lam_max,
        )
        status = self.main.solve_or_restart(self.local)
        self.intercept = self.main.point.intercept
        for j in range(self.p):
            self.active.g[j] = self.main.point.g[j]
        self.active.broken = True
        return status

    def _one_response(self):
        return self.fit_intercept and not self.scaler.y_scatter > 0.0

    def _constant_response(self, omega):
        """b0 at the root of the loss's slope; where there is none, at that of loss(y, b0) + |b0| / (2 (omega + 1)). The
        slope is walked along until it turns, then bisected."""
        turn: cython.int
        y: cython.double = self.scaler.y_mean
        pull: cython.double = 0.0
        sign: cython.double = -1.0 if self.family.slope_at(y, 0.0) > 0.0 else 1.0
        near: cython.double = 0.0
        far: cython.double = 1.0
        middle: cython.double
        while sign * self.family.slope_at(y, sign * far) <= 0.0 and far < 1e100:
            far *= 2.0
        if far >= 1e100:
            pull = 0.5 / (omega + 1.0)
            far = 1024.0
        for turn in range(100):
            middle = 0.5 * (near + far)
            if sign * self.family.slope_at(y, sign * middle) + pull < 0.0:
                near = middle
            else:
                far = middle
        self.intercept = self.main.point.intercept = self.null.point.intercept = sign * far
        for turn in range(cython.cast(cython.int, self.p)):
            self.active.g[turn] = 0.0
        return 0

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        return {**Objective.parts(self), "null.": self.null.active}

    def _numbers(self, tape):
        Objective._numbers(self, tape)
        tape.number(cython.address(self.null.point.intercept), FINITE)

    def travel(self, tape):
        Objective.travel(self, tape)
        self.null.active.travel(tape)
        if tape.mode == READ:
            self.main.point.intercept = self.intercept
            self._rows_changed()
