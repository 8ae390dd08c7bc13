# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The experts of a model: what they say of the features of a row, combined, and what they learn from it.

Expert e says m_e = sum_j b_j x_j plus its intercept. Its step is a_e = alpha_e rate, where the rate is that of the row
(`model.py`). The intercept is a feature that is always 1 and has no penalty.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.libc.stdint import uint32_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.glm.implicit import implicit_root
from cython.cimports.streamlasso.core.sparse.lanes import LANES, MOST_EXPERTS, coin_room, learn, power_of_2, say

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
    """The experts of these settings. A row's features are put in place, then `say`, then `learn`."""

    def __cinit__(self, settings, units: Units):
        e: cython.int
        if len(settings) % LANES or len(settings) > MOST_EXPERTS:
            raise ValueError(f"{len(settings)} experts: use {LANES} or {MOST_EXPERTS}")
        self.n = self.n_said = self.capacity = 0
        self.units = units
        self.blend = Blend(len(settings), units)
        self.lanes.n, self.lanes.n_coins = len(settings), 0
        for e, each in enumerate(settings):
            self.alpha[e] = each["alpha"]
            self.implicit[e] = each["kind"] == "implicit"
            self.bias_alpha[e] = 1 if each["kind"] == "coin" else each["alpha"]
            self.bias_fade[e] = 0.5 ** (1 / each["half_life"]) if each["half_life"] else 1
            self.lanes.beta[e], self.lanes.lam[e] = each["beta"], each["lam"]
            self.lanes.stays[e] = each["kind"] != "coin"
            self.lanes.n_coins += each["kind"] == "coin"
            self.lanes.fast[e] = each["half_life"] == FAST
            self.lanes.slow[e] = each["half_life"] == SLOW
        if self.lanes.n_coins > LANES or any(
            each["kind"] == "coin" for each in settings[: -self.lanes.n_coins or None]
        ):
            raise ValueError(f"experts that bet come last, and are at most {LANES}")
        self.make_room(64)

    def __dealloc__(self):
        free(self.states)
        free(self.x)
        free(self.age)
        free(self.fast)
        free(self.slow)
        free(self.noted)
        free(self.coins)

    # --- the features of a row --------------------------------------------------------------------------------------

    def make_room(self, n):
        """For a row of n features."""
        size: cython.size_t
        if n <= self.capacity:
            return 0
        size = max(n, 2 * self.capacity)
        self.states = cython.cast(cython.pp_float, resized(self.states, size * cython.sizeof(cython.p_float)))
        self.x = cython.cast(cython.p_float, resized(self.x, size * 4))
        self.age = cython.cast(cython.pointer[uint32_t], resized(self.age, size * 4))
        self.fast = cython.cast(cython.p_float, resized(self.fast, size * 4))
        self.slow = cython.cast(cython.p_float, resized(self.slow, size * 4))
        self.noted = cython.cast(cython.p_float, resized(self.noted, size * 4 * self.lanes.n))
        self.coins = cython.cast(cython.p_float, resized(self.coins, 4 * coin_room(size, self.lanes.n_coins)))
        self.capacity = size
        return 0

    def total(self, m, length):
        """What `lanes.say` gives for the features in place."""
        k: cython.Py_ssize_t
        lanes: cython.pointer[Lanes]
        for k in range(self.n):
            if self.age[k] < AGES:
                self.fast[k], self.slow[k] = FADED_FAST[self.age[k]], FADED_SLOW[self.age[k]]
            else:
                self.fast[k] = power_of_2(-FAST_RATE * self.age[k]) - 1
                self.slow[k] = power_of_2(-SLOW_RATE * self.age[k]) - 1
        lanes = cython.address(self.lanes)
        say(self.n, self.states, self.x, self.fast, self.slow, lanes, self.noted, self.coins, m, length)
        self.n_said = self.n

    # --- a row ------------------------------------------------------------------------------------------------------

    def say(self, rate):
        """What the experts say, combined; nothing changes."""
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
        """The response to what was said last. Features that were put in place since are new: their states are 0."""
        e: cython.Py_ssize_t
        k: cython.Py_ssize_t
        g: cython.double
        slopes: cython.float[16]
        lanes: cython.pointer[Lanes] = cython.address(self.lanes)
        E: cython.Py_ssize_t = self.lanes.n
        self.blend.learn(y, self.m, weight)
        memset(slopes, 0, 64)
        for e in range(E):
            g = self._implicit_slope(e, y, weight) if self.implicit[e] else self.blend.slope[e]
            g = min(max(weight * g / self.units.steep, -MOST_SLOPE), MOST_SLOPE)
            if self.lanes.stays[e] == 0:
                g = min(max(g, -1.0), 1.0)
            slopes[e] = g
        self._learn_bias(slopes)
        for k in range(self.n_said, self.n):
            self.fast[k] = self.slow[k] = 0
            memset(self.noted + E * k, 0, 4 * E)
        learn(self.n, self.states, self.x, self.fast, self.slow, lanes, self.noted, slopes)
        return 0

    def _implicit_slope(self, e, y, weight):
        """The slope where the row's own step ends."""
        eta: cython.double = self.units.eta_of(self.m[e])
        length: cython.double = self.length[e] + (self.n - self.n_said) / self.lanes.beta[e]
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
        """As `lanes.learn`, without a penalty; what forgets, forgets a row."""
        e: cython.Py_ssize_t
        r: cython.double
        for e in range(MOST_EXPERTS):
            self.bias_n[e] *= self.bias_fade[e]
            r = sqrt(self.bias_n[e])
            self.bias_n[e] += cython.cast(cython.double, g[e]) * g[e]
            self.bias_z[e] = self.bias_z[e] * self.bias_fade[e] + g[e] + self.bias_q[e] * (sqrt(self.bias_n[e]) - r)

    # --- what they are ----------------------------------------------------------------------------------------------

    def proportions(self, rate):
        """The output is about sum_e p_e (lanes' m_e) + intercept: p, and the intercept; in the units of eta."""
        n = self.lanes.n
        p, c = self.blend.proportions()
        z, v = np.array(self.bias_z)[:n], np.array(self.bias_n)[:n]
        q = np.array(self.bias_alpha)[:n] * z / (BIAS_BETA + np.sqrt(v))
        intercept = self.units.level + self.units.unit * (c - rate * float(p @ q))
        return -rate * self.units.unit * p * np.array(self.alpha)[:n], intercept

    @property
    def state(self):
        """Of the intercepts: z, then n."""
        return np.concatenate([np.array(self.bias_z)[: self.lanes.n], np.array(self.bias_n)[: self.lanes.n]])

    @state.setter
    def state(self, sums):
        e: cython.int
        for e in range(self.lanes.n):
            self.bias_z[e], self.bias_n[e] = sums[e], sums[self.lanes.n + e]


def resized(old, size):
    new: cython.p_void = realloc(old, size)
    if new == cython.NULL:
        raise MemoryError
    return new
