"""The problem of docs/method.md, section 1, with all rows: objective, optimality conditions, lam_max, derivative."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from oracles.weights import weighted_mean, weighted_scatter

#: glmnet's stand-in for the l1_ratio of ridge, whose own lam_max is infinite.
RIDGE_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows with their weights today, and what is asked of b.

    A row with a finite `expanded_at` counts as its second-order expansion there.
    """

    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    family: object
    l1_ratio: float = 1.0
    penalty_factor: np.ndarray | None = None
    fit_intercept: bool = True
    standardize: bool = True
    expanded_at: np.ndarray | None = None

    # --- the data ---------------------------------------------------------------------------------------------------

    @cached_property
    def omega(self):
        return sum(self.w)

    @cached_property
    def mean(self):
        return weighted_mean(self.X, self.w)

    @cached_property
    def sd(self):
        return np.sqrt(np.diag(weighted_scatter(self.X, self.w)) / self.omega)

    @cached_property
    def factor(self):
        return np.ones(self.X.shape[1]) if self.penalty_factor is None else np.asarray(self.penalty_factor, dtype=float)

    @cached_property
    def scale(self):
        return self.sd if self.standardize else np.ones(self.X.shape[1])

    @property
    def v(self):
        return self.factor * self.scale

    @cached_property
    def present(self):
        """Features that may have a coefficient: those that vary; all, when nothing is centred or scaled."""
        spread = self.sd if self.fit_intercept or self.standardize else np.abs(self.X).max(axis=0)
        return spread > 1e-12 * np.abs(self.X).max(axis=0)

    @cached_property
    def all_equal(self):
        y = self.y[self.w > 0]
        return bool((y == y[0]).all())

    @property
    def gaussian(self):
        return type(self.family).__name__ == "Gaussian"

    @property
    def undefined(self):
        """Whether even the null model has no minimum, or (all responses alike, unless Gaussian) none that is fitted."""
        return self.null is None or (self.all_equal and self.fit_intercept and not self.gaussian)

    # --- loss of each row, as a function of its eta -----------------------------------------------------------------

    def _rows(self, exact, expanded, eta):
        if self.expanded_at is None:
            return exact(self.y, eta)
        whole = np.isnan(self.expanded_at)
        at = np.where(whole, 0.0, self.expanded_at)
        return np.where(whole, exact(self.y, np.where(whole, eta, 0.0)), expanded(at, eta - at))

    def losses(self, eta):
        f, y = self.family, self.y
        return self._rows(f.loss, lambda at, d: f.loss(y, at) + f.slope(y, at) * d + f.curvature(y, at) * d**2 / 2, eta)

    def slopes(self, eta):
        f, y = self.family, self.y
        return self._rows(f.slope, lambda at, d: f.slope(y, at) + f.curvature(y, at) * d, eta)

    def curvatures(self, eta):
        f, y = self.family, self.y
        return self._rows(f.curvature, lambda at, d: f.curvature(y, at), eta)

    # --- objective and gradient -------------------------------------------------------------------------------------

    def eta(self, b0, b):
        return b0 + self.X @ b

    def penalty(self, b, lam):
        return lam * np.sum(self.l1_ratio * self.v * np.abs(b) + (1 - self.l1_ratio) / 2 * self.v**2 * b**2)

    def objective(self, b0, b, lam):
        return self.w @ self.losses(self.eta(b0, b)) / self.omega + self.penalty(b, lam)

    def gradient(self, b0, b):
        """Of the mean loss, with respect to b0 and to b."""
        s = self.w * self.slopes(self.eta(b0, b)) / self.omega
        return s.sum(), s @ self.X

    # --- lam_max ----------------------------------------------------------------------------------------------------

    @cached_property
    def null(self):
        """eta of each row with every penalised coefficient 0; None where that loss has no minimum."""
        return self.newton(self.present & (self.factor == 0))

    def newton(self, free):
        """eta of the mean loss's minimum over b0 and the features `free`, from zero, by Newton with halving."""
        scale = np.where(self.size > 0, self.size, 1.0)[free]
        columns = [np.ones((len(self.y), 1))] if self.fit_intercept else []
        shift = self.mean[free] if self.fit_intercept else 0.0
        Z = np.hstack([*columns, (self.X[:, free] - shift) / scale])
        theta = np.zeros(Z.shape[1])
        for _ in range(100):
            eta = Z @ theta
            root = np.sqrt(self.w * self.curvatures(eta))
            aim = np.where(root > 0, -self.w * self.slopes(eta) / np.where(root > 0, root, 1.0), 0.0)
            step = np.linalg.lstsq(root[:, None] * Z, aim, rcond=1e-12)[0]
            value = self.w @ self.losses(eta)
            while np.any(step) and not self.w @ self.losses(Z @ (theta + step)) <= value + 1e-15 * abs(value):
                step = step / 2
            theta = theta + step
            if np.max(np.abs(Z @ step), initial=0.0) < 1e-13 * (1 + np.max(np.abs(eta))):
                break
        eta = Z @ theta
        runs_away = np.max(np.abs(eta), initial=0.0) > 25 and self.curvatures(eta).min() < 1e-9
        return None if runs_away else eta

    @cached_property
    def entering(self):
        """-gradient at the null model, per unit of penalty: c_j / v_j, 0 where it cannot enter."""
        can = self.present & (self.factor > 0)
        g = self.w * self.slopes(self.null) / self.omega @ (self.X - self.mean * self.fit_intercept)
        return np.where(can, -g / np.where(can, self.v, 1.0), 0.0)

    @cached_property
    def lam_max(self):
        """The smallest lam at which all penalised coefficients are zero."""
        return np.max(np.abs(self.entering), initial=0.0) / (self.l1_ratio or RIDGE_SHARE)

    # --- optimality -------------------------------------------------------------------------------------------------

    @cached_property
    def size(self):
        """How far each feature moves eta, about its mean where there is an intercept."""
        return self.sd if self.fit_intercept else np.sqrt(self.w @ self.X**2 / self.omega)

    @cached_property
    def reach(self):
        """lam_max, if the residuals were of size 1 and some feature were parallel to them."""
        can = self.present & (self.factor > 0)
        return np.max(self.size[can] / self.v[can], initial=0.0)

    @cached_property
    def unit(self):
        """What violations are measured in: lam_max, as it would be for the lasso (so that ridge has it no easier).

        Where that is the rounding of a zero (y has nothing to do with the penalised features), what it could have been.
        """
        flat = replace(self, penalty_factor=np.ones(len(self.factor)))
        zero = np.zeros(len(self.y))
        spread = np.sqrt(self.w @ flat.slopes(zero if flat.null is None else flat.null) ** 2 / self.omega)
        level = np.sqrt(self.w @ self.slopes(zero) ** 2 / self.omega)
        if not self.gaussian:  # responses have a unit of their own: that of the mean's derivative
            level = max(level, self.w @ self.curvatures(self.null) / self.omega)
        possible = max(spread, 1e-3 * level) * self.reach
        lam_max = np.max(np.abs(self.entering), initial=0.0)
        return lam_max if lam_max > 1e-5 * possible else possible

    def violation(self, b0, b, lam):
        """The largest violation of the optimality conditions, in the units of each feature, divided by lam_max."""
        g0, g = self.gradient(b0, b)
        if self.fit_intercept:  # the same conditions, given that of the intercept, without its cancellation
            g = self.w * self.slopes(self.eta(b0, b)) / self.omega @ (self.X - self.mean)
        ridge = lam * (1 - self.l1_ratio) * self.v**2 * b
        bound = lam * self.l1_ratio * self.v
        off = np.where(b != 0, np.abs(g + ridge + bound * np.sign(b)), np.maximum(np.abs(g) - bound, 0.0))
        off = off / np.where(self.scale > 0, self.scale, 1.0)
        # lam_max does not depend on what is never penalised, so that is measured in lam_max per unit of residual
        never = self.present & (self.factor == 0)
        off[never] = (np.abs(g) / np.where(never, self.size, 1.0))[never] * self.reach
        assert (b[~self.present] == 0).all(), "a feature that never varied has a coefficient"
        worst = max(np.max(off[self.present], initial=0.0), abs(g0) * self.reach if self.fit_intercept else 0.0)
        return worst / self.unit if worst else 0.0

    # --- the derivative of docs/method.md, section 3 ------------------------------------------------------------------

    def direction(self, b0, b, lam, *, hessian_of=None, diagonal=False):
        """(db0/dlam, db/dlam, sqrt(u'H^{-1}u)) at the solution b; `hessian_of`: the problem with the new row in it."""
        rows = hessian_of or self
        active = self.present.copy() if self.l1_ratio == 0 else b != 0
        s = np.sign(b)
        if not (active & (self.factor > 0)).any():
            first = np.argmax(np.abs(self.entering))
            active[first] = self.entering[first] != 0
            s[first] = np.sign(self.entering[first])
        u = (self.l1_ratio * self.v * s + (1 - self.l1_ratio) * self.v**2 * b)[active]
        k = rows.w * rows.curvatures(rows.eta(b0, b)) / rows.omega
        centre = k @ rows.X / k.sum() if self.fit_intercept else np.zeros(len(b))
        Z = (rows.X - centre)[:, active]
        H = Z.T @ (Z * k[:, None]) + lam * (1 - self.l1_ratio) * np.diag(self.v[active] ** 2)
        H = np.diag(np.diag(H)) if diagonal else H
        db = np.zeros(len(b))
        db[active] = -np.linalg.solve(H, u)
        return -centre @ db, db, np.sqrt(-u @ db[active])

    def slope(self, b0, b, lam, x, y, **how):
        """dC/dlam of the new row (x, y)."""
        db0, db, _ = self.direction(b0, b, lam, **how)
        return float(self.family.slope(y, b0 + x @ b)) * (db0 + x @ db)
