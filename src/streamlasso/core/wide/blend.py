# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One prediction from those of the experts.

A Bayesian mixture, of means, matches its best expert and no more: `B` shares back 1/t of the weights per row, so that
none is ruled out, and a second one FIXED_SHARE, for streams that change. Around B a stack learns by online Newton steps
how far to go beyond it,

    a B + c + v'(m - B)        each m_e - B held within +-REACH,  from a = 1, c = 0, v = 0

once for each of PRIORS, the weight of that start. The output is a Bayesian mixture of the four.

What the experts say, m, is free of the units of y (`Units`).
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, fabs, sqrt
from cython.cimports.streamlasso.core.kernels import axpy, dot

FIXED_SHARE = cython.declare(cython.double, 0.002)
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

    def loss(self, y, m):
        return self.family.loss_at(y, self.eta_of(m)) / self.phi

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
        self.sums = np.array(sums, dtype=float)
        self._settle()


@cython.cclass
class Blend:
    """The weights of n experts and what is built on them."""

    def __cinit__(self, n: cython.Py_ssize_t, units: Units):
        self.n, self.d = n, n + 2
        self.units = units
        self.w = np.full((N_MIXTURES, n), 1.0 / n)
        self.theta = np.zeros((N_STACKS, n + 2))
        np.asarray(self.theta)[:, 0] = 1.0
        self.P = np.stack([np.eye(n + 2) / prior for prior in PRIORS])
        self.pi = np.full(N_OUTPUTS, 1.0 / N_OUTPUTS)
        self.f = np.zeros(n + 2)
        self.out = np.zeros(N_OUTPUTS)
        self.loss = np.zeros(max(n, N_OUTPUTS))
        self.mean = np.zeros(max(n, N_OUTPUTS))
        self.row = np.zeros(n + 2)
        self.t = 0.0

    def combine(self, m):
        """The prediction, from what the experts say."""
        e: cython.Py_ssize_t
        s: cython.Py_ssize_t
        f: cython.p_double
        centre: cython.double
        for e in range(self.n):
            self.mean[e] = self.units.family.mean_at(self.units.eta_of(m[e]))
        for s in range(N_MIXTURES):
            self.out[s] = self._pooled(self.n, cython.address(self.w[s, 0]), cython.address(self.mean[0]))
        centre = self.out[0]
        f = cython.address(self.f[0])
        f[0], f[1] = centre, 1.0
        for e in range(self.n):
            f[2 + e] = min(max(m[e] - centre, -REACH), REACH)
        for s in range(N_STACKS):
            self.out[N_MIXTURES + s] = 0.0
            for e in range(self.d):
                self.out[N_MIXTURES + s] += self.theta[s, e] * f[e]
        for s in range(N_OUTPUTS):
            self.mean[s] = self.units.family.mean_at(self.units.eta_of(self.out[s]))
        return self._pooled(N_OUTPUTS, cython.address(self.pi[0]), cython.address(self.mean[0]))

    def _pooled(self, n, w, mean):
        e: cython.Py_ssize_t
        total: cython.double = 0.0
        for e in range(n):
            total += w[e] * mean[e]
        return self.units.m_of(self.units.family.best_eta(total, self.units.low, self.units.high))

    def learn(self, y, m, weight):
        """The response to what was combined last."""
        e: cython.Py_ssize_t
        self.t += 1.0
        for e in range(N_OUTPUTS):
            self.loss[e] = self.units.loss(y, self.out[e])
        self._reweigh(N_OUTPUTS, cython.address(self.pi[0]), cython.address(self.loss[0]), 1.0 / (self.t + 1.0), weight)
        for e in range(N_STACKS):
            self._newton(e, y, weight)
        for e in range(self.n):
            self.loss[e] = self.units.loss(y, m[e])
        self._reweigh(self.n, cython.address(self.w[0, 0]), cython.address(self.loss[0]), 1.0 / (self.t + 1.0), weight)
        self._reweigh(self.n, cython.address(self.w[1, 0]), cython.address(self.loss[0]), FIXED_SHARE, weight)
        return 0

    def _reweigh(self, n, w, loss, share, weight):
        e: cython.Py_ssize_t
        total: cython.double = 0.0
        least: cython.double = loss[0]
        for e in range(1, n):
            least = min(least, loss[e])
        for e in range(n):
            w[e] *= exp(weight * (least - loss[e]))
            total += w[e]
        for e in range(n):
            w[e] = (1.0 - share) * (w[e] / total if total > 0.0 else 1.0 / n) + share / n
        return 0

    def _newton(self, s, y, weight):
        i: cython.Py_ssize_t
        m: cython.double = self.out[N_MIXTURES + s]
        eta: cython.double = self.units.eta_of(m)
        scale: cython.double = self.units.unit / self.units.phi
        g: cython.double = weight * scale * self.units.family.slope_at(y, eta)
        h: cython.double = weight * scale * self.units.unit * self.units.family.curvature_at(y, eta)
        spread: cython.double = 0.0
        f: cython.p_double = cython.address(self.f[0])
        row: cython.p_double = cython.address(self.row[0])
        for i in range(self.d):
            row[i] = dot(self.d, cython.address(self.P[s, i, 0]), f)
            spread += row[i] * f[i]
        spread = 1.0 / (1.0 + h * spread)
        for i in range(self.d):
            self.theta[s, i] -= g * spread * row[i]
            axpy(self.d, -h * spread * row[i], row, cython.address(self.P[s, i, 0]))
        return 0

    def proportions(self):
        """The output is about sum_e p_e m_e + c: p, and c."""
        theta, pi, w = np.asarray(self.theta), np.asarray(self.pi), np.asarray(self.w)
        stacks = pi[N_MIXTURES:] @ theta
        through = pi[0] + stacks[0] - stacks[2:].sum()
        return through * w[0] + pi[1] * w[1] + stacks[2:], stacks[1]

    @property
    def state(self):
        parts = (self.w, self.theta, self.P, self.pi, [self.t])
        return np.concatenate([np.ravel(part) for part in parts])

    @state.setter
    def state(self, numbers):
        numbers = np.array(numbers, dtype=float)
        n, d = self.n, self.d
        cuts = np.cumsum([N_MIXTURES * n, N_STACKS * d, N_STACKS * d * d, N_OUTPUTS])
        w, theta, P, pi, t = np.split(numbers, cuts)
        self.w, self.theta = w.reshape(N_MIXTURES, n), theta.reshape(N_STACKS, d)
        self.P, self.pi = P.reshape(N_STACKS, d, d), pi.copy()
        self.t = t[0]
