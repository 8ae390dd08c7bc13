"""Families and tuners as a user would write them, in plain Python; each equals a built-in one, but for the last."""

import math

from streamlasso.families import Family
from streamlasso.tuners import Tuner


class PlainGaussian(Family):
    def loss(self, y, eta):
        return (y - eta) ** 2 / 2

    def slope(self, y, eta):
        return eta - y

    def curvature(self, y, eta):
        return 1.0

    def mean(self, eta):
        return eta


class FloatGaussian(PlainGaussian):
    """What a user writes who thinks of one row: an array is an error."""

    def mean(self, eta):
        if not isinstance(eta, float):
            raise TypeError("plain floats only")
        return eta


class PlainBinomial(Family):
    def loss(self, y, eta):
        return math.log1p(math.exp(-abs(eta))) + max(eta, 0.0) - y * eta

    def slope(self, y, eta):
        return self.mean(eta) - y

    def curvature(self, y, eta):
        return self.mean(eta) * self.mean(-eta)

    def mean(self, eta):
        return 1 / (1 + math.exp(-eta)) if eta > -700 else 0.0


class PlainPoisson(Family):
    def loss(self, y, eta):
        return math.exp(eta) - y * eta

    def slope(self, y, eta):
        return math.exp(eta) - y

    def curvature(self, y, eta):
        return math.exp(eta)

    def mean(self, eta):
        return math.exp(eta)


class PlainGamma(Family):
    def loss(self, y, eta):
        return y * math.exp(-eta) + eta

    def slope(self, y, eta):
        return 1 - y * math.exp(-eta)

    def curvature(self, y, eta):
        return y * math.exp(-eta)

    def mean(self, eta):
        return math.exp(eta)


class PlainSGD(Tuner):
    def __init__(self, step_size):
        self.step_size = step_size

    def update(self, lam, slope, norm, lam_max, state):
        return lam - self.step_size * slope


class PlainLARS(Tuner):
    def __init__(self, step_size):
        self.step_size = step_size

    def update(self, lam, slope, norm, lam_max, state):
        return lam - self.step_size * slope / norm if norm > 0 else lam


class PlainLogRMS(Tuner):
    n_state = 2

    def update(self, lam, slope, norm, lam_max, state):
        d = lam * slope
        state[0] = 0.99 * state[0] + 0.01 * d * d
        state[1] = 0.99 * state[1] + 0.01
        if state[0] > 0:
            lam *= math.exp(-0.05 * d / math.sqrt(state[0] / state[1]))
        return max(lam, 1e-4 * lam_max)


class Fragile(Tuner):
    """Raises when its budget is spent."""

    def __init__(self, budget):
        self.budget = budget

    def update(self, lam, slope, norm, lam_max, state):
        if self.budget[0] == 0:
            raise RuntimeError("broken")
        self.budget[0] -= 1
        return lam
