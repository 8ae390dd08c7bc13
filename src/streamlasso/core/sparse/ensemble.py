# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The experts of a model: what they predict from the features of a row, combined, and what they learn from it.

Expert e predicts m_e = sum_j b_j x_j plus its intercept. Its step is a_e = alpha_e rate, where the rate is that of the
row (`model.py`). The intercept is a feature that is always 1 and has no penalty.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.libc.stdlib import free
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.glm.implicit import implicit_root
from cython.cimports.streamlasso.core.sparse.table import resized
from cython.cimports.streamlasso.core.sparse.updates import LANES, MOST_EXPERTS, coin_room, learn, power_of_2, predict

from streamlasso.core.sparse.experts import FAST, SLOW

FAST_RATE = cython.declare(cython.float, 0.5 / FAST)
SLOW_RATE = cython.declare(cython.float, 0.5 / SLOW)
#: What is left of r, less 1, for features that were last seen not long ago.
AGES = cython.declare(cython.Py_ssize_t, 1024)
FADED_FAST = cython.declare(cython.float[1024])
FADED_SLOW = cython.declare(cython.float[1024])
for age in range(AGES):
    FADED_FAST[age], FADED_SLOW[age] = 0.5 ** (age / FAST / 2) - 1, 0.5 ** (age / SLOW / 2) - 1
#: Squares of this are still far from the largest number in single precision.
MOST_SLOPE = cython.declare(cython.double, 1e12)
#: Of the steps of implicit experts, whose slopes are kept in single precision: the square of it does not show there.
SETTLED = cython.declare(cython.double, 1e-4)
BIAS_BETA = cython.declare(cython.double, 0.3)


@cython.cclass
class Ensemble:
    """The experts of these settings. A row's features are put in place, then `predict`, then `learn`."""

    def __cinit__(self, settings, units: Units):
        e: cython.int
        if len(settings) % LANES or len(settings) > MOST_EXPERTS:
            raise ValueError(f"{len(settings)} experts: use {LANES} or {MOST_EXPERTS}")
        self.n = self.n_predicted = self.capacity = 0
        self.units = units
        self.blend = Blend(len(settings), units)
        self.settings.n, self.settings.n_coins = len(settings), 0
        for e, each in enumerate(settings):
            self.alpha[e] = each["alpha"]
            self.implicit[e] = each["kind"] == "implicit"
            self.bias_alpha[e] = 1 if each["kind"] == "coin" else each["alpha"]
            self.bias_fade[e] = 0.5 ** (1 / each["half_life"]) if each["half_life"] else 1
            self.settings.beta[e], self.settings.lam[e] = each["beta"], each["lam"]
            self.settings.stays[e] = each["kind"] != "coin"
            self.settings.n_coins += each["kind"] == "coin"
            self.settings.fast[e] = each["half_life"] == FAST
            self.settings.slow[e] = each["half_life"] == SLOW
        if self.settings.n_coins > LANES or any(
            each["kind"] == "coin" for each in settings[: -self.settings.n_coins or None]
        ):
            raise ValueError(f"experts that bet come last, and are at most {LANES}")
        self.make_room(64)

    def __dealloc__(self):
        free(self.terms)
        free(self.noted)
        free(self.coins)

    # --- the features of a row --------------------------------------------------------------------------------------

    def make_room(self, n):
        """For a row of n features."""
        size: cython.size_t
        if n <= self.capacity:
            return 0
        size = max(n, 2 * self.capacity)
        self.terms = cython.cast(cython.pointer[Term], resized(self.terms, size * cython.sizeof(Term)))
        self.noted = cython.cast(cython.p_float, resized(self.noted, size * 4 * self.settings.n))
        self.coins = cython.cast(cython.p_float, resized(self.coins, 4 * coin_room(size, self.settings.n_coins)))
        self.capacity = size
        return 0

    def total(self, m, length):
        """The sums over the features in place (`updates.predict`)."""
        k: cython.Py_ssize_t
        term: cython.pointer[Term]
        for k in range(self.n):
            term = self.terms + k
            if term.age < AGES:
                term.fast, term.slow = FADED_FAST[term.age], FADED_SLOW[term.age]
            else:
                term.fast = power_of_2(-FAST_RATE * term.age) - 1
                term.slow = power_of_2(-SLOW_RATE * term.age) - 1
        predict(self.n, self.terms, cython.address(self.settings), self.noted, self.coins, m, length)
        self.n_predicted = self.n

    # --- a row ------------------------------------------------------------------------------------------------------

    def predict(self, rate):
        """What the experts predict, combined; nothing changes."""
        e: cython.Py_ssize_t
        total: cython.float[16]
        length: cython.float[16]
        part: cython.double
        self.total(total, length)
        for e in range(MOST_EXPERTS):
            part = 1.0 / (BIAS_BETA + sqrt(self.bias_n[e]))
            self.bias_q[e] = self.bias_z[e] * part
            self.m[e] = -rate * (self.alpha[e] * total[e] + self.bias_alpha[e] * self.bias_q[e])
            self.length[e] = length[e] + part
        self.rate = rate
        return self.blend.combine(self.m)

    def learn(self, y, weight):
        """The response to the last prediction. Features that were put in place since are new: their states are 0."""
        e: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.settings.n
        g: cython.double
        slopes: cython.float[16]
        self.blend.learn(y, self.m, weight)
        memset(slopes, 0, 64)
        for e in range(n):
            g = self._implicit_slope(e, y, weight) if self.implicit[e] else self.blend.slope[e]
            g = min(max(weight * g / self.units.steep, -MOST_SLOPE), MOST_SLOPE)
            if self.settings.stays[e] == 0:
                g = min(max(g, -1.0), 1.0)
            slopes[e] = g
        self._learn_bias(slopes)
        memset(self.noted + n * self.n_predicted, 0, 4 * n * (self.n - self.n_predicted))
        learn(self.n, self.terms, cython.address(self.settings), self.noted, slopes)
        return 0

    def _implicit_slope(self, e, y, weight):
        """The slope where the row's own step ends."""
        eta: cython.double = self.units.eta_of(self.m[e])
        length: cython.double = self.length[e] + (self.n - self.n_predicted) / self.settings.beta[e]
        leverage: cython.double = weight * self.units.unit * self.rate * self.alpha[e] * length / self.units.steep
        slope: cython.double = self.blend.slope[e]
        if self.units.quadratic:
            # In closed form: `implicit_root` stops at steps that are small beside 1, and y has units.
            eta = self.units.eta_of(self.units.m_of((eta + leverage * y) / (1.0 + leverage)))
            return self.units.family.slope_at(y, eta)
        implicit_root(
            self.units.family,
            y,
            eta,
            leverage,
            self.units.low,
            self.units.high,
            SETTLED,
            cython.address(slope),
            self.blend.curvature[e],
        )
        return slope

    def _learn_bias(self, g):
        """As `updates.learn`, without a penalty; what forgets, forgets a row."""
        e: cython.Py_ssize_t
        r: cython.double
        for e in range(MOST_EXPERTS):
            self.bias_n[e] *= self.bias_fade[e]
            r = sqrt(self.bias_n[e])
            self.bias_n[e] += cython.cast(cython.double, g[e]) * g[e]
            self.bias_z[e] = self.bias_z[e] * self.bias_fade[e] + g[e] + self.bias_q[e] * (sqrt(self.bias_n[e]) - r)

    # --- what they are ----------------------------------------------------------------------------------------------

    def proportions(self, rate):
        """The output is about sum_e p_e (m_e of `total`) + intercept: p, and the intercept; in the units of eta."""
        n = self.settings.n
        p, c = self.blend.proportions()
        z, v = np.array(self.bias_z)[:n], np.array(self.bias_n)[:n]
        q = np.array(self.bias_alpha)[:n] * z / (BIAS_BETA + np.sqrt(v))
        intercept = self.units.level + self.units.unit * (c - rate * float(p @ q))
        return -rate * self.units.unit * p * np.array(self.alpha)[:n], intercept

    @property
    def state(self):
        """Of the intercepts: z, then n."""
        return np.concatenate([np.array(self.bias_z)[: self.settings.n], np.array(self.bias_n)[: self.settings.n]])

    @state.setter
    def state(self, sums):
        e: cython.int
        n: cython.int = self.settings.n
        if sums.shape != (2 * n,) or not np.all(np.isfinite(sums)) or np.any(sums[n:] < 0):
            raise ValueError("the sums do not fit the settings")
        for e in range(n):
            self.bias_z[e], self.bias_n[e] = sums[e], sums[n + e]

    def mirror(self):
        """Predict -m where it would have predicted m, once the features' states do."""
        e: cython.int
        for e in range(self.settings.n):
            self.bias_z[e] = -self.bias_z[e]
        self.blend.mirror()
