# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Families for which no finite sum is sufficient: the newest rows whole, the older ones as a quadratic.

**The fold.** A row that leaves the newest `history` is replaced by its second-order expansion at the current
minimiser: a row of weighted least squares with weight `w loss''(eta)` and target `eta - loss'(eta)/loss''(eta)`,
which `Moments` takes in like any other. Value, slope and curvature agree there, so the fold itself moves neither the
minimiser nor its derivative.

**Proximal Newton.** At (b0, b) let G be minus the gradient of the smooth part, and expand all rows to weighted least
squares. With the intercept profiled out its Gram matrix is

    S = S_old + K_old (m_old - m)(m_old - m)' + sum_ring k_i (x_i - m)(x_i - m)',     k_i = w_i loss''(eta_i),   K m =
    K_old m_old + sum_ring k_i x_i

and `c = S b + G - m G_0`. Its lasso solution (`active_set.py`) gives a direction, a line search on the true objective
the step. Only features that are active or violate their condition take part; all p conditions are looked at, with
exact slopes, before it stops. G is taken about the running mean, so that large offsets of a feature do not drown it.

**One response only.** Where all responses are equal there is nothing to explain, and the coefficients are zero. If the
intercept then has no finite optimum (a class not yet seen, counts all zero), it is penalised by |b0| / (2 (omega + 1))
until they differ: for one class this is the estimate of Krichevsky and Trofimov, (k + 1/2)/(omega + 1).
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs, sqrt
from cython.cimports.streamlasso.core.active_set import ActiveSet, ActiveSets
from cython.cimports.streamlasso.core.kernels import axpy, dot
from cython.cimports.streamlasso.core.objective import Objective
from cython.cimports.streamlasso.core.record import OK, SINGULAR, UNFINISHED
from cython.cimports.streamlasso.core.statistics import Moments

from streamlasso.core.state import Column, numbers

#: A condition holds if it holds to this share of lam_max, in the units of its feature.
LIKELIHOOD_TOLERANCE = cython.declare(cython.double, 1e-10)
#: The same for the model without penalised features, as a share of sum_i w_i |loss'_i|, and what rounding leaves of
#: that.
NULL_TOLERANCE = cython.declare(cython.double, 1e-12)
ROUNDING = cython.declare(cython.double, 1e-14)
#: Slopes this small mean that an unpenalised feature separates the responses; the way to infinity ends here.
SATURATED = cython.declare(cython.double, 1e-30)


@cython.cclass
class Newton:
    """Proximal Newton from a warm start, for one penalty on one objective."""

    def __cinit__(self, objective: Objective):
        p: cython.Py_ssize_t = objective.p
        n: cython.Py_ssize_t = objective.ring.x.shape[0]
        self.objective = objective
        self.p = p
        self.ring = objective.ring
        self.moments = objective.moments
        self.scaler = objective.scaler
        self.active = ActiveSet(p)
        self.intercept = self.pull = self.activity = 0.0
        self.tau = np.zeros(p)
        self.tol = np.zeros(p + 1)
        self.g = np.zeros(p)
        self.folded_g = np.zeros(p)
        self.old = np.zeros(p)
        self.step = np.zeros(p)
        self.z = np.zeros((p, n))
        self.eta = np.zeros(n)
        self.eta_step = np.zeros(n)
        self.working = np.zeros(p, dtype=np.intp)
        self.n_working = 0

    def solve_or_restart(self, local):
        """`solve`, and once more from zero where the warm start was no good: rows that were separable until now leave
        coefficients so large that all curvature is gone."""
        status: cython.int = self.solve(local)
        if status == UNFINISHED:
            self.active.reset()
            self.intercept = 0.0
            status = self.solve(local)
        return status

    def solve(self, local):
        """Minimise for the current `tau`, until all conditions hold to `tol`."""
        i: cython.Py_ssize_t
        turn: cython.int
        moved: cython.int
        status: cython.int = OK
        for turn in range(100):
            self.look()
            if self._optimal():
                return status
            self._work_on(True)
            self.expand(local)
            for i in range(self.active.p):
                self.active.tau[i] = INFINITY
            for i in range(self.n_working):
                self.active.tau[self.working[i]] = self.tau[self.working[i]]
                self.active.tol[self.working[i]] = 0.01 * self.tol[self.working[i]]
            self.active.broken = True
            self.active.has_free = True
            if self.active.solve(local) != OK:
                status = SINGULAR
            moved = self._search(local)
            if moved == 0:
                break
        self.look()
        return status if self._optimal() else UNFINISHED

    def tolerate(self, share, most):
        """The largest violations that count as none."""
        j: cython.Py_ssize_t
        unit: cython.double
        for j in range(self.p):
            unit = self.objective.size[j] if self.objective.standardize else 1.0
            self.tol[j] = min(share * self.objective.size[j], most * unit)
        self.tol[self.p] = share

    def look(self):
        """eta and loss' on the whole rows; G about the running mean, and G_0 (`pull`)."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        s: cython.double
        eta: cython.double
        residual: cython.double
        for j in range(self.p):
            self.folded_g[j] = self.moments.c[j]
        self.moments.times(
            cython.address(self.active.members[0]),
            self.active.factor.k,
            cython.address(self.active.b[0]),
            cython.address(self.folded_g[0]),
        )
        residual = self._residual()
        self.pull = self.moments.weight * residual if self.objective.fit_intercept else 0.0
        self.activity = fabs(self.pull)
        for j in range(self.p):
            self.g[j] = self.folded_g[j]
            if self.objective.fit_intercept:
                self.g[j] += self.moments.weight * residual * (self.moments.mean[j] - self.scaler.mean[j])
        for i in range(self.ring.count - self.objective.n_whole, self.ring.count):
            slot = self.ring.slot(i)
            eta = self.intercept
            for q in range(self.active.factor.k):
                eta += self.ring.x[slot, self.active.members[q]] * self.active.b[q]
            self.eta[slot] = eta
            s = self.ring.weight[slot] * self.objective.family.slope_at(self.ring.y[slot], eta)
            self.activity += fabs(s)
            if self.objective.fit_intercept:
                self.pull -= s
                for j in range(self.p):
                    self.g[j] -= s * (self.ring.x[slot, j] - self.scaler.mean[j])
            else:
                axpy(self.p, -s, cython.address(self.ring.x[slot, 0]), cython.address(self.g[0]))
        if self.active.has_ridge:
            for q in range(self.active.factor.k):
                j = self.active.members[q]
                self.g[j] -= self.active.ridge[j] * self.active.b[q]
        return 0

    def _residual(self):
        """target_mean - b0 - mean'b over the folded rows."""
        q: cython.Py_ssize_t
        r: cython.double = self.moments.target_mean - self.intercept
        for q in range(self.active.factor.k):
            r -= self.moments.mean[self.active.members[q]] * self.active.b[q]
        return r

    def _optimal(self):
        j: cython.Py_ssize_t
        q: cython.Py_ssize_t
        if not fabs(self.pull) <= self.tol[self.p]:
            return False
        for j in range(self.p):
            q = self.active.where[j]
            if q >= 0:
                if not fabs(self.g[j] - self.tau[j] * self.active.sign[q]) <= self.tol[j]:
                    return False
            elif not fabs(self.g[j]) <= self.tau[j] + self.tol[j]:
                return False
        return True

    def _work_on(self, with_violators):
        """List the members, and the features whose condition is violated."""
        j: cython.Py_ssize_t
        self.n_working = 0
        for j in range(self.p):
            if self.active.where[j] >= 0 or (with_violators and fabs(self.g[j]) > self.tau[j] + self.tol[j]):
                self.working[self.n_working] = j
                self.n_working += 1

    def expand(self, local):
        """All rows as weighted least squares at the current point, on the features at work. `look` comes before."""
        self._centre(local)
        self._gram(local)
        self._linear_term(local)
        return 0

    def _centre(self, local):
        """The curvature of each whole row, and the mean of all rows under it."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        k: cython.double
        w: cython.pointer[cython.Py_ssize_t] = cython.address(self.working[0])
        local.n_pending = 0
        local.weight = self.moments.weight
        for a in range(self.n_working):
            local.mean[w[a]] = self.moments.weight * self.moments.mean[w[a]]
        for i in range(self.ring.count - self.objective.n_whole, self.ring.count):
            slot = self.ring.slot(i)
            k = self.ring.weight[slot] * self.objective.family.curvature_at(self.ring.y[slot], self.eta[slot])
            self.ring.curvature[slot] = k
            local.weight += k
            for a in range(self.n_working):
                local.mean[w[a]] += k * self.ring.x[slot, w[a]]
        local.weight = max(local.weight, 1e-300)
        for a in range(self.n_working):
            local.mean[w[a]] = local.mean[w[a]] / local.weight if self.objective.fit_intercept else 0.0
        return 0

    def _gram(self, local):
        """S: the folded rows moved to the common mean, plus the whole rows, a column of `z` for each."""
        a: cython.Py_ssize_t
        b: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        root: cython.double
        d: cython.double
        n: cython.Py_ssize_t = self.objective.n_whole
        w: cython.pointer[cython.Py_ssize_t] = cython.address(self.working[0])
        row: cython.p_double = cython.address(self.step[0])
        for i in range(n):
            slot = self.ring.slot(self.ring.count - n + i)
            root = sqrt(self.ring.curvature[slot])
            for a in range(self.n_working):
                self.z[a, i] = root * (self.ring.x[slot, w[a]] - local.mean[w[a]])
        for a in range(self.n_working):
            j = w[a]
            d = 0.0
            if self.objective.fit_intercept:
                d = self.moments.weight * (self.moments.mean[j] - local.mean[j])
            self.moments.column(j, w, a + 1, row)
            for b in range(a + 1):
                row[b] += d * (self.moments.mean[w[b]] - local.mean[w[b]])
                row[b] += dot(n, cython.address(self.z[a, 0]), cython.address(self.z[b, 0]))
                local.S[j, w[b]] = local.S[w[b], j] = row[b]

    def _linear_term(self, local):
        """c = S b + G - m G_0, and the point itself."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for a in range(self.n_working):
            j = self.working[a]
            local.c[j] = self.g[j] + self.pull * (self.scaler.mean[j] - local.mean[j])
            for i in range(self.active.factor.k):
                local.c[j] += local.S[j, self.active.members[i]] * self.active.b[i]
            self.old[j] = self.active.b[self.active.where[j]] if self.active.where[j] >= 0 else 0.0
            if self.active.has_ridge:
                local.c[j] += self.active.ridge[j] * self.old[j]

    def _search(self, local):
        """Walk towards the expansion's minimiser as far as the true objective falls; 0 if nowhere."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        t: cython.double = 1.0
        d: cython.double
        new: cython.double
        change: cython.double
        expected: cython.double
        intercept_step: cython.double = 0.0
        shift: cython.double = 0.0
        linear: cython.double
        quadratic: cython.double
        old_residual: cython.double
        w: cython.pointer[cython.Py_ssize_t] = cython.address(self.working[0])
        if self.objective.fit_intercept:
            intercept_step = self.pull / local.weight
        old_residual = self.moments.target_mean - self.intercept
        expected = -self.pull * intercept_step
        for a in range(self.n_working):
            j = w[a]
            new = self.active.b[self.active.where[j]] if self.active.where[j] >= 0 else 0.0
            d = new - self.old[j]
            self.step[j] = d
            intercept_step -= local.mean[j] * d
            shift += self.moments.mean[j] * d
            old_residual -= self.moments.mean[j] * self.old[j]
            expected += self.tau[j] * (fabs(new) - fabs(self.old[j]))
            expected -= (self.g[j] + self.pull * (self.scaler.mean[j] - local.mean[j])) * d
            if self.active.has_ridge:
                expected += 0.5 * self.active.ridge[j] * d * d
        if not self.objective.fit_intercept:
            intercept_step = 0.0
        shift += intercept_step
        linear = -self.moments.weight * shift * old_residual if self.objective.fit_intercept else 0.0
        quadratic = self.moments.weight * shift * shift if self.objective.fit_intercept else 0.0
        for a in range(self.n_working):
            j = w[a]
            linear -= self.folded_g[j] * self.step[j]
            for i in range(self.n_working):
                quadratic += self.step[j] * self.step[w[i]] * self.moments.S[j, w[i]]
        for i in range(self.moments.n_pending):
            d = 0.0
            new = 0.0
            for a in range(self.n_working):
                d += self.moments.rows[i, w[a]] * self.step[w[a]]
                new += self.moments.signed[i, w[a]] * self.step[w[a]]
            quadratic += d * new
        for i in range(self.ring.count - self.objective.n_whole, self.ring.count):
            slot = self.ring.slot(i)
            self.eta_step[slot] = intercept_step
            for a in range(self.n_working):
                self.eta_step[slot] += self.ring.x[slot, w[a]] * self.step[w[a]]
        for i in range(60):
            change = self._change(t, linear, quadratic)
            if change <= 1e-4 * t * expected + ROUNDING * self.magnitude:
                break
            t *= 0.25
        else:
            t = 0.0
        self._move(t, intercept_step)
        return 1 if t > 0.0 else 0

    def _change(self, t, linear, quadratic):
        """The objective at step t less the objective at the old point."""
        a: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        b: cython.double
        before: cython.double
        total: cython.double = t * linear + 0.5 * t * t * quadratic
        self.magnitude = fabs(t * linear)
        for i in range(self.ring.count - self.objective.n_whole, self.ring.count):
            slot = self.ring.slot(i)
            before = self.objective.family.loss_at(self.ring.y[slot], self.eta[slot])
            total += self.ring.weight[slot] * (
                self.objective.family.loss_at(self.ring.y[slot], self.eta[slot] + t * self.eta_step[slot]) - before
            )
            self.magnitude += self.ring.weight[slot] * fabs(before)
        for a in range(self.n_working):
            j = self.working[a]
            b = self.old[j] + t * self.step[j]
            total += self.tau[j] * (fabs(b) - fabs(self.old[j]))
            if self.active.has_ridge:
                total += 0.5 * self.active.ridge[j] * (b * b - self.old[j] * self.old[j])
        return total

    def _move(self, t, intercept_step):
        """To old + t step. At t = 1 the active set stands there already."""
        a: cython.Py_ssize_t
        j: cython.Py_ssize_t
        b: cython.double
        self.intercept += t * intercept_step
        if t == 1.0:
            return
        self.active.reset()
        for a in range(self.n_working):
            j = self.working[a]
            b = self.old[j] + t * self.step[j]
            if b != 0.0:
                self.active.factor.k += 1
                self.active._join(j, 1.0 if b > 0.0 else -1.0, b)
        self.active.broken = True


@cython.cclass
class Likelihood(Objective):
    """Any family but the Gaussian."""

    STATE = (
        *Objective.STATE,
        numbers("null_intercept", Column("null_intercept", exchanged=np.negative)),
    )

    def __cinit__(self, problem):
        self.local = Moments(self.p, self.fit_intercept)
        self.main = Newton(self)
        self.null = Newton(self)
        self.signal = 0.0
        self.active = self.main.active
        self.actives = ActiveSets([self.active])
        self.active.has_ridge = self.l1_ratio < 1.0

    # --- the rows -----------------------------------------------------------------------------------------------

    def _admit(self, x, y, weight):
        if self.n_whole == self.history:
            self._fold_oldest()
        self.ring.push(x, y, weight)
        self.n_whole += 1
        return 0

    def _fold_oldest(self):
        """The oldest whole row becomes its second-order expansion at the current minimiser."""
        slot: cython.Py_ssize_t = self.ring.slot(self.ring.count - self.n_whole)
        x: cython.p_double = cython.address(self.ring.x[slot, 0])
        eta: cython.double = self.predict(x)
        slope: cython.double = self.family.slope_at(self.ring.y[slot], eta)
        curvature: cython.double = self.curvature_at(self.ring.y[slot], eta)
        self.ring.curvature[slot] = self.ring.weight[slot] * curvature
        self.ring.target[slot] = eta - slope / curvature
        self.moments.add(x, self.ring.target[slot], self.ring.curvature[slot])
        self.n_whole -= 1
        if self.window == 0:
            self.ring.forget_oldest()
        return 0

    # --- the derivative -----------------------------------------------------------------------------------------

    def differentiate(self, lam):
        first: cython.Py_ssize_t
        if self.active.has_ridge:
            self._ridge(self.active, lam)
        self.main.intercept = self.intercept
        self.main.look()
        self._first_to_enter(cython.address(self.active.g[0]), cython.address(first))
        self.main._work_on(False)
        if first >= 0 and self.active.where[first] < 0:
            self.main.working[self.main.n_working] = first
            self.main.n_working += 1
        self.main.expand(self.local)
        self.active.broken = True
        self._direction(self.local)
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
            self.null.tau[j] = 0.0 if self.penalty_factor[j] == 0.0 and self.v[j] == 0.0 else INFINITY
        self.null.look()
        while self.null.activity < 0.5 * activity:
            activity = self.null.activity
            self.null.tolerate(max(NULL_TOLERANCE * activity, SATURATED * self.scaler.weight), INFINITY)
            self.null.solve_or_restart(self.local)
        for j in range(self.p):
            if self.v[j] < INFINITY:
                self.signal = max(self.signal, fabs(self.null.g[j]) / self.size[j])
        self._set_lam_max(cython.address(self.null.g[0]))
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
            self.main.tau[j] = lam * weight * self.l1_ratio * self.v[j] if self.v[j] < INFINITY else INFINITY
        if self.active.has_ridge:
            self._ridge(self.active, lam)
        self.main.tolerate(
            max(LIKELIHOOD_TOLERANCE * self.signal, ROUNDING * self.null.activity, SATURATED * weight),
            LIKELIHOOD_TOLERANCE * weight * self.lam_max,
        )
        status = self.main.solve_or_restart(self.local)
        self.intercept = self.main.intercept
        for j in range(self.p):
            self.active.g[j] = self.main.g[j]
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
        self.intercept = self.main.intercept = self.null.intercept = sign * far
        for turn in range(cython.cast(cython.int, self.p)):
            self.active.g[turn] = 0.0
        return 0

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        return {**Objective.parts(self), "null.": self.null.active}

    @property
    def null_intercept(self):
        return self.null.intercept

    @null_intercept.setter
    def null_intercept(self, value):
        self.null.intercept = value

    def _filled(self):
        self.main.intercept = self.intercept
