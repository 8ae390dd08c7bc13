# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One prediction from those of the experts.

The experts are weighted by `Hedge`, and their means averaged: B. An average matches its best expert and no more. Around
B a stack learns by online Newton steps how far to go beyond it,

    a B + c + v'(m - B)        each m_e - B held within +-REACH,  from a = 1, c = 0, v = 0

once for each of PRIORS, the weight of that start. The output is an average of B and the stacks, weighted by `Hedge`.

The experts' predictions, m, are free of the units of y (`Units`).
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs, sqrt
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.linalg.kernels import dot, symmetric_subtract, symmetric_times

#: What leaks back of the weights per row. The average of the experts follows changes, and the stacks learn what lasts:
#: on 19 streams a share of .002 for the experts costs .8 % of the loss, one of .001 for the outputs .2 %.
SHARE, OUTPUT_SHARE = 0.02, 0.0003
REACH = cython.declare(cython.double, 4.0)
PRIORS = (2.0, 20.0)
#: The largest |eta| of a family with a link: e^-40 is below the precision of a double beside 1.
LARGEST_ETA = cython.declare(cython.double, 40.0)


@cython.cclass
class Units:
    """What makes responses comparable from stream to stream: nothing for classes (`fixed`), which have no units.

    Otherwise `level` is the eta of the running mean, `steep` the root mean square of the slope there, so that
    slopes are about 1, and `phi` the dispersion that the predictions had so far: losses over it are logarithms of
    likelihoods, as weights need them. For squared error m is in units of `steep`, the standard deviation of y. No
    prediction leaves the range of the responses so far.
    """

    def __cinit__(self, family, fixed: cython.bint):
        self.family = family
        self.fixed = fixed
        self.quadratic = family.quadratic
        # Weight, mean of y, its sum of squares, Pearson's sum; the least and the largest y.
        self.sums = np.array([0.0, 0.0, 0.0, 0.0, INFINITY, -INFINITY])
        self._settle()

    def eta_of(self, m):
        eta: cython.double = self.level + self.unit * m
        return min(max(eta, self.low), self.high)

    def m_of(self, eta):
        return (eta - self.level) / self.unit

    def slope(self, y, m):
        return self.family.slope_at(y, self.eta_of(m)) / self.steep

    def learn(self, y, m, weight):
        """A row's response, and what was predicted."""
        eta: cython.double
        slope: cython.double
        d: cython.double
        if self.fixed:
            return 0
        eta = self.eta_of(m)
        slope = self.family.slope_at(y, eta)
        if self.sums[0] > 0.0:
            # The first prediction has no level yet.
            self.sums[3] += weight * slope * slope / max(self.family.curvature_at(y, eta), 1e-12)
        d = y - self.sums[1]
        self.sums[0] += weight
        self.sums[1] += weight / self.sums[0] * d
        self.sums[2] += weight * d * (y - self.sums[1])
        self.sums[4], self.sums[5] = min(self.sums[4], y), max(self.sums[5], y)
        return self._settle()

    def _settle(self):
        weight: cython.double = self.sums[0]
        curvature: cython.double
        self.level, self.unit, self.steep, self.phi = 0.0, 1.0, 1.0, 1.0
        self.low, self.high = -LARGEST_ETA, LARGEST_ETA
        if self.fixed or weight == 0.0:
            return 0
        self.level = self._eta(self.sums[1])
        self.low, self.high = self._eta(self.sums[4]), self._eta(self.sums[5])
        curvature = self.family.curvature_at(self.sums[1], self.level)
        self.steep = sqrt(max(self.sums[2], 0.0) / weight)
        if self.steep <= 1e-14 * (1e-280 + fabs(self.sums[1])):
            # All responses are alike: any unit will do.
            self.steep = sqrt(curvature)
        self.unit = self.steep if self.quadratic else 1.0
        self.phi = (self.steep * self.steep / curvature + self.sums[3]) / (1.0 + weight)
        if not self.phi > 1e-14 * self.steep * self.steep:
            self.phi = 1e-14 * self.steep * self.steep
        return 0

    def _eta(self, mean):
        """Of a mean. What has a link has a mean above 0: half of a response in all the rows, at least."""
        if self.quadratic:
            return mean
        return self.family.best_eta(max(mean, 0.5 / (self.sums[0] + 1.0)), -LARGEST_ETA, LARGEST_ETA)

    @property
    def state(self):
        return np.array(self.sums)

    @state.setter
    def state(self, sums):
        if sums.shape != np.shape(self.sums):
            raise ValueError("the units do not fit the settings")
        weight, _, squares, pearson, least, largest = sums
        # Before the first row the least response is infinite.
        known = sums if weight > 0 else sums[:4]
        if not np.all(np.isfinite(known)) or min(weight, squares, pearson) < 0 or (weight > 0 and least > largest):
            raise ValueError("units that no row can have made")
        self.sums = np.array(sums, dtype=float)
        self._settle()


@cython.cclass
class Blend:
    """The weights of n experts and what is built on them."""

    def __cinit__(self, n: cython.Py_ssize_t, units: Units):
        self.n, self.d = n, n + 2
        self.units = units
        self.experts = Hedge(np.full(n, 1.0 / n), 1.0, SHARE)
        self.outputs = Hedge(np.full(N_OUTPUTS, 1.0 / N_OUTPUTS), 1.0, OUTPUT_SHARE)
        self.theta = np.zeros((N_STACKS, n + 2))
        np.asarray(self.theta)[:, 0] = 1.0
        self.P = np.stack([np.eye(n + 2)[np.tril_indices(n + 2)] / prior for prior in PRIORS])
        self.f, self.row = np.zeros(n + 2), np.zeros(n + 2)
        self.out = np.zeros(N_OUTPUTS)
        self.y, self.eta, self.mean, self.loss, self.slope, self.curvature = np.zeros((6, n + N_OUTPUTS))

    def combine(self, m):
        """The prediction, from those of the experts."""
        e: cython.Py_ssize_t
        s: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.n
        f: cython.p_double = cython.address(self.f[0])
        eta: cython.p_double = cython.address(self.eta[0])
        mean: cython.p_double = cython.address(self.mean[0])
        centre: cython.double
        for e in range(n):
            eta[e] = self.units.eta_of(m[e])
        self.units.family.means_of(n, eta, mean)
        centre = self.out[0] = self._pooled(n, self.experts.used, mean)
        f[0], f[1] = centre, 1.0
        for e in range(n):
            f[2 + e] = min(max(m[e] - centre, -REACH), REACH)
        for s in range(N_STACKS):
            self.out[1 + s] = dot(self.d, cython.address(self.theta[s, 0]), f)
        for s in range(N_OUTPUTS):
            eta[n + s] = self.units.eta_of(self.out[s])
        self.units.family.means_of(N_OUTPUTS, eta + n, mean + n)
        return self._pooled(N_OUTPUTS, self.outputs.used, mean + n)

    def _pooled(self, n, w, mean):
        return self.units.m_of(self.units.family.best_eta(dot(n, w, mean), self.units.low, self.units.high))

    def learn(self, y, m, weight):
        """The response to what was combined last. Leaves the experts' slopes."""
        e: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.n
        eta: cython.p_double = cython.address(self.eta[0])
        loss: cython.p_double = cython.address(self.loss[0])
        # The units may have moved since.
        for e in range(n):
            eta[e] = self.units.eta_of(m[e])
        for e in range(N_OUTPUTS):
            eta[n + e] = self.units.eta_of(self.out[e])
        for e in range(n + N_OUTPUTS):
            self.y[e] = y
        self.units.family.losses_of(n + N_OUTPUTS, y, eta, loss)
        self.units.family.slopes(
            n + N_OUTPUTS,
            cython.address(self.y[0]),
            eta,
            cython.address(self.slope[0]),
            cython.address(self.curvature[0]),
        )
        for e in range(N_STACKS):
            self._newton(e, weight)
        for e in range(n + N_OUTPUTS):
            loss[e] = weight * loss[e] / self.units.phi
        self.experts.update(loss)
        self.outputs.update(loss + n)
        return 0

    def _newton(self, s, weight):
        i: cython.Py_ssize_t
        scale: cython.double = weight * self.units.unit / self.units.phi
        g: cython.double = scale * self.slope[self.n + 1 + s]
        h: cython.double = scale * self.units.unit * self.curvature[self.n + 1 + s]
        row: cython.p_double = cython.address(self.row[0])
        theta: cython.p_double = cython.address(self.theta[s, 0])
        gain: cython.double = symmetric_times(self.d, cython.address(self.P[s, 0]), cython.address(self.f[0]), row)
        gain = 1.0 / (1.0 + h * gain)
        for i in range(self.d):
            theta[i] -= g * gain * row[i]
        symmetric_subtract(self.d, h * gain, row, cython.address(self.P[s, 0]))

    def proportions(self):
        """The output is about sum_e p_e m_e + c: p, and c."""
        outputs = self.outputs.weights
        stacks = outputs[1:] @ np.asarray(self.theta)
        through = outputs[0] + stacks[0] - stacks[2:].sum()
        return through * self.experts.weights + stacks[2:], stacks[1]

    @property
    def state(self):
        parts = (self.experts.weights, self.theta, self.P, self.outputs.weights)
        return np.concatenate([np.ravel(part) for part in parts])

    @state.setter
    def state(self, numbers):
        parts = [self.n, np.size(self.theta), np.size(self.P), N_OUTPUTS]
        if numbers.shape != (sum(parts),) or not np.all(np.isfinite(numbers)):
            raise ValueError("the blend does not fit the settings")
        experts, theta, P, outputs = np.split(numbers, np.cumsum(parts)[:3])
        self.experts.restore({"w": experts})
        self.outputs.restore({"w": outputs})
        self.theta, self.P = theta.reshape(N_STACKS, -1).copy(), P.reshape(N_STACKS, -1).copy()

    def mirror(self):
        """Predict -m where it would have predicted m, once the experts do."""
        turned = np.where(np.arange(self.d) == 1, -1.0, 1.0)
        self.theta = np.asarray(self.theta) * turned
        self.P = np.asarray(self.P) * np.outer(turned, turned)[np.tril_indices(self.d)]
