# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One row: find its features, ask the experts, combine, learn.

x is divided by the largest |x| of its feature so far, so units do not matter; where that grows, z and n are brought
to the new unit. The step of expert e is

    a_e = alpha_e sqrt(t / N)        N = sum over t rows of 1 + |x|^2

so that one list of alpha serves rows of any length. The intercept is a feature that is always 1 and has no penalty.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.streamlasso.core.implicit import implicit_step
from cython.cimports.streamlasso.core.wide.lanes import LANES, MOST_EXPERTS, fade, learn, power_of_2, say, z_place
from cython.cimports.streamlasso.core.wide.rows import SparseRows
from cython.cimports.streamlasso.core.wide.table import key_of, largest, last_row, state_of

from streamlasso.core.wide.entries import LARGEST_X, LEAST_X
from streamlasso.core.wide.experts import EXPERTS, FAST, SLOW
from streamlasso.core.wide.states import mirror, refuse_misfit
from streamlasso.core.wide.table import MOST

__all__ = ["ADMITTED_AT", "EXPERTS", "LARGEST_X", "LEAST_X", "Wide", "revive"]

#: Names of features that are gone may be kept, this many and as many as there are live ones.
FORGOTTEN_NAMES = 1000
FAST_RATE = cython.declare(cython.float, 1.0 / FAST)
SLOW_RATE = cython.declare(cython.float, 1.0 / SLOW)
FAST_FADE = cython.declare(cython.double, 0.5 ** (1.0 / FAST))
SLOW_FADE = cython.declare(cython.double, 0.5 ** (1.0 / SLOW))
#: What `lanes.say` takes for features that were last seen not long ago.
AGES = cython.declare(cython.Py_ssize_t, 1024)
FADED_FAST = cython.declare(cython.float[1024])
FADED_SLOW = cython.declare(cython.float[1024])
for age in range(AGES):
    FADED_FAST[age], FADED_SLOW[age] = 0.5 ** (age / FAST) - 1, 0.5 ** (age / SLOW) - 1
#: Squares of this are still far from the largest number in single precision.
MOST_SLOPE = cython.declare(cython.double, 1e12)
BIAS_BETA = cython.declare(cython.double, 0.3)
#: Candidates of `memory`: the evidence at which a feature is admitted.
ADMITTED_AT = {"full": None, "second_sight": 0.0, "sparse": 1.5}


@cython.cclass
class Wide(SparseRows):
    """A model of features by number or name.

    family : of the response. fixed_units : as in `Units`. most : features that are kept, at most.
    memory : a key of ADMITTED_AT.

    >>> from streamlasso.core.wide.model import Wide
    >>> from streamlasso.families import Binomial
    >>> Wide(Binomial()).n_seen
    0
    """

    def __cinit__(self, family, experts=16, most=MOST, memory="full", fixed_units=True):
        settings = EXPERTS[experts] if isinstance(experts, int) else experts
        n = len(settings)
        self.settings = dict(family=family, experts=experts, most=most, memory=memory, fixed_units=fixed_units)
        self.names = None
        self.row = Entries()
        admitted_at = ADMITTED_AT[memory]
        self.family = family
        self.table = Table(2 * n, most)
        self.nursery = None if admitted_at is None else Nursery(admitted_at)
        self.units = Units(family, fixed_units)
        self.blend = Blend(n, self.units)
        self.alpha = np.array([each["alpha"] for each in settings], dtype=float)
        self.implicit = np.array([each["kind"] == "implicit" for each in settings], dtype=float)
        self._set_lanes(settings)
        self.bias_alpha = np.array([1 if each["kind"] == "coin" else each["alpha"] for each in settings], dtype=float)
        self.m, self.length = np.zeros(n), np.zeros(n)
        self.bias_z, self.bias_n, self.bias_q = np.zeros(n), np.zeros(n), np.zeros(n)
        self.n_seen, self.squares = 0, 0.0
        self.said, self.more, self.told = 0.0, 0.0, False
        self.capacity = self.spare_capacity = self.n_known = 0
        self.make_room(64)

    def __dealloc__(self):
        free(self.states)
        free(self.x)
        free(self.fast)
        free(self.slow)
        free(self.noted)
        free(self.spare)

    def _set_lanes(self, settings):
        e: cython.int
        if len(settings) % LANES or len(settings) > MOST_EXPERTS:
            raise ValueError(f"{len(settings)} experts: use {LANES} or {MOST_EXPERTS}")
        self.lanes.n = len(settings)
        for e, each in enumerate(settings):
            self.lanes.beta[e], self.lanes.lam[e] = each["beta"], each["lam"]
            self.lanes.coin[e] = each["kind"] == "coin"
            self.lanes.fast[e] = each["half_life"] == FAST
            self.lanes.slow[e] = each["half_life"] == SLOW
        for e in range(len(settings) // LANES):
            group = settings[e * LANES : (e + 1) * LANES]
            self.lanes.bets[e] = any(each["kind"] == "coin" for each in group)
            self.lanes.forgets[e] = any(each["half_life"] for each in group)

    def make_room(self, n):
        """For a row of n features."""
        E: cython.Py_ssize_t = self.lanes.n
        size: cython.size_t
        if n <= self.capacity:
            return 0
        size = max(n, 2 * self.capacity)
        self.states = cython.cast(cython.pp_float, _resized(self.states, size * cython.sizeof(cython.p_float)))
        self.x = cython.cast(cython.p_float, _resized(self.x, size * 4))
        self.fast = cython.cast(cython.p_float, _resized(self.fast, size * 4))
        self.slow = cython.cast(cython.p_float, _resized(self.slow, size * 4))
        self.noted = cython.cast(cython.p_float, _resized(self.noted, size * 8 * E))
        self.capacity = size
        return 0

    # --- rows -------------------------------------------------------------------------------------------------------

    def enter(self, start, end, columns, values):
        """The non-zeros of a row become entries."""
        self.row.take_columns(start, end, columns, values)
        self.told = False
        self.make_room(self.row.n)
        return self.row.n

    @property
    def name_key(self):
        """The 128 bits that names are hashed with."""
        return np.array([self.row.k0, self.row.k1], dtype=np.uint64)

    @name_key.setter
    def name_key(self, key):
        self.row.k0, self.row.k1 = (int(part) for part in key)

    # --- rows as dicts ----------------------------------------------------------------------------------------------

    def learn_named(self, x, y: cython.double, weight: cython.double):
        """Learn a row with names; the eta that was predicted."""
        n: cython.Py_ssize_t = self._enter_named(x, False)
        if self.names is None or self.told:
            return self.take(n, y, weight)
        self._drop_names()
        self.table.find(self.row.all, n)
        self._keep_names(n)
        return self._take_found(n, y, weight)

    def predict_named(self, x):
        """The mean of the response, given a row with names."""
        return self.family.mean_at(self.eta_named(x))

    def eta_named(self, x):
        """eta of a row with names; nothing changes."""
        return self.tell(self._enter_named(x, True))

    def check_named(self, x):
        """Refuse a row that `learn_named` would refuse."""
        self._enter_named(x, True)

    def _enter_named(self, x, remember):
        """The non-zeros of a dict become entries."""
        self.row.take_names(x, remember)
        self.told = self.told and self.row.again
        self.make_room(self.row.n)
        return self.row.n

    def _keep_names(self, n):
        """Those of the row's features that have no record yet."""
        i: cython.Py_ssize_t
        for i in range(n):
            if self.row.all[i].record == cython.NULL:
                self.names[self.row.all[i].key] = cython.cast(object, self.row.all[i].name)

    def _drop_names(self):
        """Those of features that are gone, now and then."""
        if len(self.names) > 2 * self.table.n + FORGOTTEN_NAMES:
            live = set(self.coef()[0].tolist())
            self.names = {key: kept for key, kept in self.names.items() if key in live}

    # --- one row ----------------------------------------------------------------------------------------------------

    def take(self, n, y, weight):
        """Predict and learn the row of the first n entries; eta as it was predicted."""
        if not self.told:
            self.table.find(self.row.all, n)
        return self._take_found(n, y, weight)

    def _take_found(self, n, y, weight):
        """The same, once its features have been looked up."""
        eta: cython.double
        m: cython.double
        if self.told:
            m = self._say_again(n)
        else:
            self.squares += 1.0 + self._bring_in(n)
            self.n_seen += 1
            m = self._say(self.squares, True)
        self.told = False
        eta = self.units.eta_of(m)
        if self.nursery is not None:
            self._nurse(n, weight * self.units.slope(y, m))
        self.units.learn(y, m, weight)
        self._learn(y, weight)
        return eta

    def tell(self, n):
        """eta of the row of the first n entries; nothing changes."""
        self.table.find(self.row.all, n)
        if n > self.spare_capacity:
            self.spare = cython.cast(cython.p_float, _resized(self.spare, self.capacity * 8 * self.lanes.n))
            self.spare_capacity = self.capacity
        self.told = True
        self.more = 1.0 + self._look_at(n)
        self.n_seen += 1
        self.said = self._say(self.squares + self.more, False)
        self.n_seen -= 1
        return self.units.eta_of(self.said)

    def _say_again(self, n):
        """The row that was told last is learnt: all is in place but what was forgotten."""
        i: cython.Py_ssize_t
        for i in range(n):
            last_row(self.row.all[i].record)[0] = cython.cast(uint32_t, self.n_seen + 1)
        fade(self.n_known, self.states, self.fast, self.slow, cython.address(self.lanes))
        self.squares += self.more
        self.n_seen += 1
        return self.said

    # --- its features -----------------------------------------------------------------------------------------------

    def _bring_in(self, n):
        """The states of a row that is learnt: new features get records, or stay without. Returns |x|^2."""
        i: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen + 1)
        age: uint32_t
        squares: cython.double = 0.0
        size: cython.float
        one: cython.pointer[Entry]
        self.n_known = 0
        for i in range(n):
            one = self.row.all + i
            # It may have made room for another of this row.
            if one.record != cython.NULL and key_of(one.record) != one.key:
                one.record = cython.NULL
            if one.record == cython.NULL and self.nursery is None:
                one.record = self.table.insert(one.key, one.tag, row)
                if one.record != cython.NULL:
                    largest(one.record)[0] = fabs(one.value)
            if one.record == cython.NULL:
                squares += 1.0
                continue
            age = row - last_row(one.record)[0]
            last_row(one.record)[0] = row
            size = fabs(one.value)
            if size > largest(one.record)[0]:
                _shrink(state_of(one.record), state_of(one.record), self.lanes.n, largest(one.record)[0] / size)
                largest(one.record)[0] = size
            squares += self._place(
                state_of(one.record), cython.cast(cython.float, one.value) / largest(one.record)[0], age
            )
        return squares

    def _look_at(self, n):
        """The same for a row that is not learnt: nothing changes."""
        i: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen + 1)
        squares: cython.double = 0.0
        one: cython.pointer[Entry]
        state: cython.p_float
        top: cython.float
        size: cython.float
        self.n_known = 0
        for i in range(n):
            one = self.row.all + i
            if one.record == cython.NULL:
                squares += 1.0
                self.told = False
                continue
            state = state_of(one.record)
            top = largest(one.record)[0]
            size = fabs(one.value)
            if size > top:
                self.told = False
                _shrink(state, self.spare + 2 * self.lanes.n * i, self.lanes.n, top / size)
                state = self.spare + 2 * self.lanes.n * i
                top = size
            squares += self._place(state, cython.cast(cython.float, one.value) / top, row - last_row(one.record)[0])
        return squares

    def _place(self, state, x, age):
        """The next feature of the row; x^2."""
        k: cython.Py_ssize_t = self.n_known
        self.states[k], self.x[k] = state, x
        if age < AGES:
            self.fast[k], self.slow[k] = FADED_FAST[age], FADED_SLOW[age]
        else:
            self.fast[k], self.slow[k] = power_of_2(-FAST_RATE * age) - 1, power_of_2(-SLOW_RATE * age) - 1
        self.n_known += 1
        return self.x[k] * self.x[k]

    def _nurse(self, n, g):
        """Features without a record gather evidence, and may get one."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        z: cython.float = 0
        v: cython.float = 0
        one: cython.pointer[Entry]
        record: cython.p_float
        for i in range(n):
            one = self.row.all + i
            if one.record != cython.NULL or not self.nursery.admit(
                one.key, g if one.value > 0.0 else -g, cython.address(z), cython.address(v)
            ):
                continue
            record = self.table.insert(one.key, one.tag, cython.cast(uint32_t, self.n_seen))
            if record == cython.NULL:
                continue
            largest(record)[0] = fabs(one.value)
            for j in range(self.lanes.n):
                k = z_place(j)
                state_of(record)[k], state_of(record)[k + LANES] = z, v
        return 0

    # --- its experts ------------------------------------------------------------------------------------------------

    def _say(self, squares, keep):
        """What the experts say of the features in place, combined."""
        e: cython.Py_ssize_t
        total: cython.float[16]
        length: cython.float[16]
        rate: cython.double = sqrt(self.n_seen / squares)
        step: cython.double
        say(
            self.n_known,
            self.states,
            self.x,
            self.fast,
            self.slow,
            cython.address(self.lanes),
            self.noted,
            total,
            length,
            keep,
        )
        for e in range(self.lanes.n):
            self.bias_q[e] = self.bias_z[e] / (BIAS_BETA + sqrt(self.bias_n[e]))
            step = rate * self.alpha[e]
            self.m[e] = -step * total[e] - rate * self.bias_alpha[e] * self.bias_q[e]
            self.length[e] = step * (length[e] + 1.0 / (BIAS_BETA + sqrt(self.bias_n[e])))
        return self.blend.combine(cython.address(self.m[0]))

    def _learn(self, y, weight):
        e: cython.Py_ssize_t
        g: cython.double
        eta: cython.double
        leverage: cython.double
        slopes: cython.float[16]
        for e in range(self.lanes.n):
            g = self.units.slope(y, self.m[e])
            if self.implicit[e] > 0.0:
                eta = self.units.eta_of(self.m[e])
                leverage = weight * self.units.unit * self.length[e] / self.units.steep
                if self.units.quadratic:
                    # In closed form: `implicit_step` stops at steps that are small beside 1, and y has units.
                    eta = self.units.eta_of(self.units.m_of((eta + leverage * y) / (1.0 + leverage)))
                else:
                    eta = implicit_step(self.family, y, eta, leverage, self.units.low, self.units.high)
                g = self.family.slope_at(y, eta) / self.units.steep
            g = min(max(weight * g, -MOST_SLOPE), MOST_SLOPE)
            if self.lanes.coin[e] > 0:
                g = min(max(g, -1.0), 1.0)
            slopes[e] = g
            self._learn_bias(e, g)
        for e in range(self.lanes.n, MOST_EXPERTS):
            slopes[e] = 0
        self.blend.learn(y, cython.address(self.m[0]), weight)
        learn(self.n_known, self.states, self.x, slopes, cython.address(self.lanes), self.noted)
        return 0

    # --- what it is -------------------------------------------------------------------------------------------------

    def coef(self):
        """Keys and coefficients of all features: the experts' in the proportions of the blend, in the units of x."""
        return self.spread_coef()[:2]

    def spread_coef(self):
        """The same, and the root mean square of each feature, as its share of the squared slopes shows it."""
        i: cython.Py_ssize_t
        e: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen + 1)
        total: cython.float[16]
        length: cython.float[16]
        record: cython.p_float
        self.told = False
        keys, values, spreads = np.empty(self.table.n, dtype=np.uint64), np.zeros(self.table.n), np.zeros(self.table.n)
        key: uint64_t[::1] = keys
        value: cython.double[::1] = values
        spread: cython.double[::1] = spreads
        slopes: cython.double = max(self.bias_n[0], 1e-300)
        p: cython.double[::1] = self.blend.proportions()[0] * np.asarray(self.alpha) * -self._rate() * self.units.unit
        for i in range(self.table.n):
            record = self.table.record(i)
            self.n_known = 0
            self._place(state_of(record), 1.0, row - last_row(record)[0])
            say(
                1,
                self.states,
                self.x,
                self.fast,
                self.slow,
                cython.address(self.lanes),
                self.noted,
                total,
                length,
                False,
            )
            key[i] = key_of(record)
            for e in range(self.lanes.n):
                value[i] += p[e] * total[e]
            value[i] /= largest(record)[0]
            spread[i] = largest(record)[0] * min(sqrt(state_of(record)[LANES] / slopes), 1.0)
        return keys, values, spreads

    @property
    def intercept(self):
        p, c = self.blend.proportions()
        q = np.asarray(self.bias_z) / (BIAS_BETA + np.sqrt(self.bias_n))
        return self.units.level + self.units.unit * (c - self._rate() * float(p @ (np.asarray(self.bias_alpha) * q)))

    def _rate(self):
        return sqrt(self.n_seen / self.squares) if self.n_seen > 0 else 1.0

    @property
    def weights(self):
        """Of the experts, in the mixture that shares back 1/t."""
        return np.array(self.blend.w[0])

    @property
    def nbytes(self):
        """Memory of the features, in bytes."""
        return self.table.nbytes + (0 if self.nursery is None else self.nursery.nbytes)

    def state(self):
        """All that the next row depends on, as arrays."""
        nursery = (np.zeros((0, 3), dtype=np.float32), 0) if self.nursery is None else self.nursery.state
        return {
            "counts": np.array([self.n_seen, self.table.pointed_at, nursery[1]], dtype=np.int64),
            "sums": np.concatenate([[self.squares], self.bias_z, self.bias_n]),
            "units": self.units.state,
            "blend": self.blend.state,
            "names": self.name_key,
            "records": self.table.records(),
            "candidates": nursery[0],
        }

    def restore(self, state):
        """A new model takes a state. One that these settings cannot have made is refused."""
        n_seen, hand, size = (int(number) for number in state["counts"])
        sums, n = state["sums"], self.lanes.n
        refuse_misfit(state, n, len(self.blend.state))
        if self.n_seen > 0:
            raise ValueError("the model has learnt already: use a new one")
        if (self.nursery is None) != (size == 0):
            raise ValueError("the candidates do not fit the settings")
        self.table.fill(state["records"], hand)
        if self.nursery is not None:
            self.nursery.state = (state["candidates"], size)
        self.n_seen, self.squares = n_seen, sums[0]
        self.bias_z, self.bias_n = np.array(sums[1 : 1 + n]), np.array(sums[1 + n :])
        self.units.state, self.blend.state = state["units"], state["blend"]
        self.name_key = state["names"]

    def mirrored(self):
        """The model of 1 - y: it says -eta."""
        state = mirror(self.state(), self.lanes.n)
        return revive(self.settings, state, None if self.names is None else dict(self.names))

    def __reduce__(self):
        return revive, (self.settings, self.state(), self.names)

    def _learn_bias(self, e, g):
        """As `lanes.learn`, without a penalty; what forgets, forgets a row."""
        r: cython.double
        f: cython.double = 1.0
        if self.lanes.fast[e] > 0:
            f = FAST_FADE
        if self.lanes.slow[e] > 0:
            f = SLOW_FADE
        self.bias_z[e] *= f
        self.bias_n[e] *= f
        r = sqrt(self.bias_n[e])
        self.bias_n[e] += g * g
        self.bias_z[e] += g + self.bias_q[e] * (sqrt(self.bias_n[e]) - r)


def revive(settings, state, names=None):
    """A model in this state; `names` are those of its keys, where they are kept.

    >>> from streamlasso.core.wide.model import Wide, revive
    >>> from streamlasso.families import Binomial
    >>> model = Wide(Binomial())
    >>> revive(model.settings, model.state()).n_seen
    0
    """
    model = Wide(**settings)
    model.restore(state)
    model.names = names
    return model


def _resized(old, size):
    new: cython.p_void = realloc(old, size)
    if new == cython.NULL:
        raise MemoryError
    return new


def _shrink(state, out, n, ratio):
    """z and n as if x had been divided by the larger number from the start."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(n):
        k = z_place(j)
        out[k] = ratio * state[k]
        out[k + LANES] = ratio * ratio * state[k + LANES]
