# cython: language_level=3
"""Any convex penalty, asked for its value and its proximal operator: proximal Newton, the plain way.

    L_t(b0, b, lam) = (1/omega) sum_i w_i loss(y_i, b0 + x_i'b) + lam P(u),        u_j = v_j b_j

Rows come, are kept whole and are folded as in `likelihood.py`. Each turn expands the rows that are whole to weighted
least squares, and minimises that and the penalty by accelerated proximal gradient steps (Beck and Teboulle, 2009, with
O'Donoghue and Candes' restarts); half the way is tried where the whole one does not lower the objective. The derivative
of the minimiser with respect to lam is a difference quotient. A row costs milliseconds: the penalties that the
active-set solver knows (`Penalty.l1_ratio`) do not come here.
"""

import cython
import numpy as np
from cython.cimports.streamlasso.core.base.buffers import copied
from cython.cimports.streamlasso.core.base.record import OK, UNFINISHED
from cython.cimports.streamlasso.core.glm.likelihood import Likelihood

#: Newton's turns, and gradient steps in each, at most.
MOST_TURNS, MOST_STEPS = 20, 2_000
#: A step is no step if it is smaller than this share of the coefficients.
LEAST_STEP = 1e-12
#: The difference quotient's step, as a share of lam; where lam is 0, of lam_max.
QUOTIENT = 1e-4
#: What rounding may add to an objective that falls.
LOST_DIGITS = 1e-13


@cython.cclass
class Proximal(Likelihood):
    """The minimiser for a penalty that is asked for it."""

    def __cinit__(self, problem):
        self.penalty = problem.penalty

    def measure(self):
        Likelihood.measure(self)
        if self.lam_max > 0.0:
            with cython.gil:
                v = copied(self.v, self.p)
                g = np.divide(np.asarray(self.null.point.g), v, out=np.zeros(self.p), where=(v > 0.0))
                self.lam_max = self.penalty.dual_norm(g / self.scaler.weight)
        return 0

    def solve(self, lam):
        if self._one_response():
            return Likelihood.solve(self, lam)
        with cython.gil:
            return self._solve(lam)

    def _solve(self, lam: cython.double):
        j: cython.Py_ssize_t
        solved, self.intercept, coef, _ = self._minimised(lam, self.intercept, self._coefficients())
        b: cython.double[::1] = coef
        self.active.reset()
        for j in range(self.p):
            self.active.g[j] = 0.0
            if b[j] != 0.0:
                self.active.hold_or_end(self.active.k + 1)
                self.active.k += 1
                self.active._join(j, 1.0 if b[j] > 0.0 else -1.0, b[j])
        self.active.broken = True
        self.main.point.intercept = self.intercept
        return OK if solved else UNFINISHED

    def differentiate(self, lam):
        with cython.gil:
            self._differentiate(lam)
        return 0

    def _differentiate(self, lam: cython.double):
        """(b(lam) - b(lam - h)) / h: below lam_max also where the model is empty."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t = 0
        h: cython.double = QUOTIENT * (lam if lam > 0.0 else -self.lam_max)
        _, b0, b, _ = self._minimised(lam, self.intercept, self._coefficients())
        _, _, below, (S, _, centre, _, _) = self._minimised(lam - h, b0, b)
        step = (b - below) / h
        slope: cython.double[::1] = step
        mean: cython.double[::1] = centre
        for j in range(self.p):
            if slope[j] != 0.0:
                self.active.scratch.slope_members[k] = j
                self.active.scratch.slope_mean[k] = mean[j]
                self.active.scratch.slope_b[k] = slope[j]
                k += 1
        self.n_slope = k
        self.norm = np.sqrt(max(step @ S @ step, 0.0) / self.scaler.weight)

    def _coefficients(self):
        b = np.zeros(self.p)
        for q in range(self.active.k):
            b[self.active.members[q]] = self.active.b[q]
        return b

    # --- the minimiser ------------------------------------------------------------------------------------------

    def _minimised(self, lam, b0, b):
        """From here: whether it is found, intercept, coefficients, and the last expansion."""
        rows, folded = self._whole_rows(), self._folded()
        v, size = copied(self.v, self.p), copied(self.size, self.p)
        live = np.isfinite(v) & (size > 0.0)
        penalised = live & (v > 0.0)
        units = np.where(penalised, v, np.where(live, size, 1.0))
        pull = lam * self.scaler.weight
        expansion = self._expanded(rows, folded, b0, b)
        for _ in range(MOST_TURNS):
            S, c, centre, level, _ = expansion
            H, target = S * live / np.outer(units, units) * live[:, None], c * live / units
            u = _descended(H, target, pull, self.penalty, penalised, units * b)
            target = u / units
            target0 = level - centre @ target if self.fit_intercept else 0.0
            if self.family.quadratic:
                return True, target0, target, expansion
            before, step0, step = self._value(rows, folded, pull, v, b0, b), target0 - b0, target - b
            most = before + LOST_DIGITS * abs(before)
            while not self._value(rows, folded, pull, v, b0 + step0, b + step) <= most:
                step0, step = 0.5 * step0, 0.5 * step
                if not np.any(np.abs(step) > LEAST_STEP * np.abs(b)) and not abs(step0) > LEAST_STEP * abs(b0):
                    return True, b0, b, expansion
            b0, b = b0 + step0, b + step
            expansion = self._expanded(rows, folded, b0, b)
            if np.all(np.abs(step * size) <= 1e-10 * (np.abs(b * size).max() + 1e-10)):
                return True, b0, b, expansion
        return False, b0, b, expansion

    def _whole_rows(self):
        """X, y and weights."""
        i: cython.Py_ssize_t
        slot: cython.Py_ssize_t
        X, y, w = np.empty((self.n_whole, self.p)), np.empty(self.n_whole), np.empty(self.n_whole)
        for i in range(self.n_whole):
            slot = self.ring.slot(self.ring.count - self.n_whole + i)
            X[i], y[i], w[i] = copied(self.ring.x + slot * self.p, self.p), self.ring.y[slot], self.ring.weight[slot]
        return X, y, w

    def _folded(self):
        """S, c, mean, target mean and weight of the older rows."""
        m = self.moments
        m.flush()
        S = copied(m.S, self.p * self.p).reshape(self.p, self.p)
        if not self.fit_intercept:
            return S, copied(m.c, self.p), np.zeros(self.p), 0.0, m.weight
        return S, copied(m.c, self.p), copied(m.mean, self.p), m.target_mean, m.weight

    def _expanded(self, rows, folded, b0, b):
        """The same of all rows, those that are whole as quadratics here."""
        X, y, w = rows
        S, c, mean, level, weight = folded
        eta = b0 + X @ b
        slope, curvature = self.family.derivatives(y, eta)
        h = w * np.maximum(curvature, 1e-30)
        pull, total = w * slope, weight + h.sum()
        if self.fit_intercept:
            centre, middle = (weight * mean + h @ X) / total, (weight * level + h @ eta - pull.sum()) / total
        else:
            centre, middle = np.zeros(self.p), 0.0
        d, Z = mean - centre, X - centre
        S = S + weight * np.outer(d, d) + (Z.T * h) @ Z
        c = c + weight * (level - middle) * d + (h * (eta - middle) - pull) @ Z
        return S, c, centre, middle, total

    def _value(self, rows, folded, pull, v, b0, b):
        """The objective, but for a constant."""
        X, y, w = rows
        S, c, mean, level, weight = folded
        loss = w @ self.family.losses(y, b0 + X @ b) + 0.5 * b @ S @ b - c @ b
        if self.fit_intercept:
            loss += 0.5 * weight * (b0 + mean @ b - level) ** 2
        return loss + pull * self.penalty.value(np.where(np.isfinite(v), v, 0.0) * b)


def _descended(S, c, pull, penalty, penalised, u):
    """The minimiser of u'Su/2 - c'u + pull P(u), from here; features that are not penalised are not P's."""
    steepest = np.linalg.eigvalsh(S)[-1]
    if not steepest > 0.0:
        return np.zeros_like(u)
    before, z, t = u, u, 1.0
    for _ in range(MOST_STEPS):
        ahead = z - (S @ z - c) / steepest
        u = np.where(penalised, penalty.prox(np.where(penalised, ahead, 0.0), pull / steepest), ahead)
        if np.abs(u - z).max() <= LEAST_STEP * np.abs(u).max():
            break
        if (z - u) @ (u - before) > 0.0:
            t, z = 1.0, u
        else:
            further = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
            z = u + (t - 1.0) / further * (u - before)
            t = further
        before = u
    return u
