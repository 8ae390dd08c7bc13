"""What the last residuals add to a prediction, written out plainly: weighted least squares over all rows so far.

No recursion: after every row each rule is fitted again to all rows before, with weights that fade.
"""

import numpy as np

FIRST, SHARE, CAP, OUTLIER = 20, 0.001, 6.0, 6.0
SHRINK, OF_CLASSES = 20.0, 0.1


class Oracle:
    """Rows with their own eta go in by `learn`; `offset(eta)` is what the next row gets."""

    def __init__(self, family):
        self.family, self.classes = family, not family.has_scale
        self.rules = (False, True)  # short, long
        # nothing, short, long
        self.prior = np.array([0.8, 0.1, 0.1])
        self.gate = self.prior.copy()
        self.theta = [np.zeros(5 if long else 1) for long in self.rules]
        self.rows = [[] for _ in self.rules]  # (z, weight, target)
        self.residuals, self.levels, self.etas = [], [], []

    def residual(self, y, eta):
        mean = float(self.family.mean(eta))
        name = type(self.family).__name__
        if name == "Poisson":
            return np.log((y + 0.5) / (mean + 0.5))
        return np.log(y / mean) if name == "Gamma" else y - mean

    def level(self, y):
        name = type(self.family).__name__
        return np.log(y + 0.5) if name == "Poisson" else np.log(y) if name == "Gamma" else y

    def features(self, eta):
        e = [0.0, 0.0, *self.residuals]
        fading = sum(0.1 * 0.9**i * value for i, value in enumerate(reversed(self.residuals)))
        level = self.levels[-1] - np.mean(self.levels) if self.levels else 0.0
        return np.array([e[-1], e[-2], fading, level, eta - (np.mean(self.etas) if self.etas else 0.0)])

    def offsets(self, eta):
        z = self.features(eta)
        learnt = [float(theta @ z[: len(theta)]) for theta in self.theta]
        return np.array([0.0, *learnt])

    def offset(self, eta):
        used = np.maximum(self.gate - 2 * SHARE * self.prior, 0)
        return float(used @ self.offsets(eta) / used.sum()) if len(self.etas) >= FIRST else 0.0

    def learn(self, y, eta, least, phi):
        """`least` is the smallest loss that the row could have had, phi the dispersion of the noise by now."""
        ready = len(self.etas) >= FIRST
        offsets = self.offsets(eta) if ready else np.zeros(len(self.gate))
        losses = np.array([float(self.family.loss(y, eta + offset)) for offset in offsets]) - least
        deviations = np.sqrt(2 * max(losses[0], 0.0) / phi) if phi > 0 and not self.classes else 0.0
        if not self.classes:
            losses = np.minimum(losses / phi, CAP) if phi > 0 else np.zeros(3)
        if ready:
            self.gate = self.gate * np.exp(losses.min() - losses)
            self.gate = (1 - SHARE) * self.gate / self.gate.sum() + SHARE * self.prior
        residual, z = self.residual(y, eta), self.features(eta)
        trust = OUTLIER / deviations if deviations > OUTLIER else 1.0
        for h, long in enumerate(self.rules):
            x = z[: 5 if long else 1]
            weight, target = trust, residual
            if self.classes:
                at = eta + float(self.theta[h] @ x)
                weight = max(float(self.family.curvature(y, at)), 1e-6)
                target = at - eta - float(self.family.slope(y, at)) / weight
            self.rows[h].append((x, weight, target))
            self.theta[h] = self.fitted(self.rows[h], 0.998 if long else 0.99, OF_CLASSES if self.classes else 0.0)
        self.residuals.append(trust * residual)
        self.levels.append(self.level(y))
        self.etas.append(eta)

    @staticmethod
    def fitted(rows, r, prior):
        n = len(rows)
        weight = np.array([w for _, w, _ in rows]) * r ** np.arange(n - 1, -1, -1.0)
        Z, target = np.array([z for z, _, _ in rows]), np.array([t for _, _, t in rows])
        A = Z.T @ (weight[:, None] * Z)
        used = np.diag(A) > 0
        A = A + np.diag(np.diag(A)) * SHRINK / min(n, 1 / (1 - r)) + prior * np.eye(len(A))
        theta = np.zeros(Z.shape[1])
        theta[used] = np.linalg.solve(A[np.ix_(used, used)], (Z.T @ (weight * target))[used])
        return theta
