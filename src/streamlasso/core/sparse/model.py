# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One row: find its features, ask the experts, learn.

x is divided by the largest |x| of its feature so far, so units do not matter; where that grows, z and r are brought
to the new unit. The rate of the row, by which the steps of all experts are multiplied, is

    sqrt(t / N)        N = sum over t rows of 1 + |x|^2

so that one list of steps serves rows of any length.

A row is looked at first, and nothing changes: that is all that a prediction needs. Learning goes on from there, so a
row that was just predicted is not looked up again.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt
from cython.cimports.libc.stdint import uint32_t
from cython.cimports.libc.stdlib import free
from cython.cimports.streamlasso.core.base.lock import taken
from cython.cimports.streamlasso.core.sparse.ensemble import put, resized
from cython.cimports.streamlasso.core.sparse.lanes import LANES, z_place
from cython.cimports.streamlasso.core.sparse.rows import SparseRows
from cython.cimports.streamlasso.core.sparse.table import largest, last_row, state_of

from streamlasso.core.sparse.entries import LARGEST_X, LEAST_X
from streamlasso.core.sparse.experts import EXPERTS
from streamlasso.core.sparse.states import mirror, refuse_misfit
from streamlasso.core.sparse.table import MOST

__all__ = ["ADMITTED_AT", "EXPERTS", "LARGEST_X", "LEAST_X", "Wide", "revive"]

#: Names of features that are gone may be kept, this many and as many as there are live ones.
FORGOTTEN_NAMES = 1000
#: Candidates of `memory`: the evidence at which a feature is admitted.
ADMITTED_AT = {"full": None, "second_sight": 0.0, "sparse": 1.5}


@cython.cclass
class Wide(SparseRows):
    """A model of features by number or name.

    family : of the response. fixed_units : as in `Units`. most : features that are kept, at most.
    memory : a key of ADMITTED_AT.

    >>> from streamlasso.core.sparse.model import Wide
    >>> from streamlasso.families import Binomial
    >>> Wide(Binomial()).n_seen
    0
    """

    def __cinit__(self, family, experts=16, most=MOST, memory="full", fixed_units=True):
        settings = EXPERTS[experts] if isinstance(experts, int) else experts
        admitted_at = ADMITTED_AT[memory]
        self.settings = dict(family=family, experts=experts, most=most, memory=memory, fixed_units=fixed_units)
        self.names = None
        self.row = Entries()
        self.family = family
        self.n_experts = len(settings)
        self.table = Table(2 * self.n_experts, most)
        self.nursery = None if admitted_at is None else Nursery(admitted_at)
        self.units = Units(family, fixed_units)
        self.experts = Ensemble(settings, self.units)
        self.n_seen, self.squares, self.more = 0, 0.0, 0.0
        self.said, self.told, self.spare_capacity = 0.0, False, 0

    def __dealloc__(self):
        free(self.spare)

    # --- rows -------------------------------------------------------------------------------------------------------

    def enter(self, start, end, columns, values):
        """The non-zeros of a row become entries."""
        self.row.take_columns(start, end, columns, values)
        self.told = False
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
        n: cython.Py_ssize_t = self._enter_free(x)
        if n >= 0:
            return self._learn_entered(n, y, weight)
        with self.gate:
            return self._learn_entered(self._enter_free(x), y, weight)

    def learn_if_free(self, x, y: cython.double, weight: cython.double):
        """Learn a row with names, unless another thread has the gate; whether it did. Nobody comes between."""
        n: cython.Py_ssize_t = self._enter_free(x)
        if n >= 0:
            self._learn_entered(n, y, weight)
        return n >= 0

    def _enter_free(self, x):
        """The row becomes entries, or -2 where another thread has the gate. From here to the end of the row this one
        keeps the GIL, which is all that others wait for; taking the gate would cost more than that."""
        n: cython.Py_ssize_t
        if taken(self.gate):
            return -2
        if self.names is not None:
            self._forget_names()
        n = self._enter_named(x, False)
        return -2 if taken(self.gate) else n

    def _learn_entered(self, n, y, weight):
        if self.names is not None:
            self._look(n)
            self._keep_names(n)
        return self.take(n, y, weight)

    def predict_named(self, x):
        """The mean of the response, given a row with names."""
        return self.family.mean_at(self.tell(self._enter_named(x, True)))

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
        return self.row.n

    def _forget_names(self):
        """At times, those of features that are gone."""
        if len(self.names) > 2 * self.table.n + FORGOTTEN_NAMES:
            live = set(self.table.keys().tolist())
            self.names = {key: kept for key, kept in self.names.items() if key in live}
        return 0

    def _keep_names(self, n):
        """Those of the row's features that have no record yet."""
        i: cython.Py_ssize_t
        for i in range(n):
            if self.row.all[i].record == cython.NULL:
                self.names[self.row.all[i].key] = cython.cast(object, self.row.all[i].name)
        return 0

    # --- one row ----------------------------------------------------------------------------------------------------

    def tell(self, n):
        """eta of the row of the first n entries; nothing changes."""
        self._look(n)
        return self.units.eta_of(self.said)

    def take(self, n, y, weight):
        """Predict and learn the row of the first n entries; eta as it was predicted."""
        eta: cython.double = self.tell(n)
        self.told = False
        self.n_seen += 1
        self.squares += self.more
        self._bring_in(n)
        if self.nursery is not None:
            self._nurse(n, weight * self.units.slope(y, self.said))
        self.units.learn(y, self.said, weight)
        self.experts.learn(y, weight)
        return eta

    def _look(self, n):
        """Find the row's features and ask the experts, unless that has just been done."""
        if self.told:
            return 0
        self.table.find(self.row.all, n)
        self.experts.make_room(n)
        if n > self.spare_capacity:
            self.spare = cython.cast(
                cython.p_float, resized(self.spare, 2 * n * 2 * self.n_experts * cython.sizeof(cython.float))
            )
            self.spare_capacity = 2 * n
        self._put_known(n)
        self.said = self.experts.say(sqrt((self.n_seen + 1) / (self.squares + self.more)))
        self.told = True
        return 0

    # --- its features -----------------------------------------------------------------------------------------------

    def _put_known(self, n):
        """The states of features with a record. One that has never been so large is copied, in its new unit."""
        i: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen + 1)
        one: cython.pointer[Entry]
        state: cython.p_float
        top: cython.float
        size: cython.float
        self.more = 1.0
        self.experts.n = 0
        for i in range(n):
            one = self.row.all + i
            if one.record == cython.NULL:
                self.more += 1.0
                continue
            state = state_of(one.record)
            top, size = largest(one.record)[0], fabs(one.value)
            if size > top:
                state = self.spare + 2 * self.n_experts * i
                shrink(state_of(one.record), state, 2 * self.n_experts, top / size)
                top = size
            self.more += put(
                self.experts, state, cython.cast(cython.float, one.value) / top, row - last_row(one.record)[0]
            )

    def _bring_in(self, n):
        """The row's features will be learnt: those without a record get one, or stay without."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = 0
        row: uint32_t = cython.cast(uint32_t, self.n_seen)
        one: cython.pointer[Entry]
        size: cython.float
        state: cython.p_float
        for i in range(n):
            one = self.row.all + i
            if one.record != cython.NULL:
                last_row(one.record)[0] = row
                size, state = fabs(one.value), state_of(one.record)
                if size > largest(one.record)[0]:
                    shrink(state, state, 2 * self.n_experts, largest(one.record)[0] / size)
                    largest(one.record)[0] = size
                    self.experts.states[k] = state
                k += 1
        if k == n or self.nursery is not None:
            return 0
        for i in range(n):
            one = self.row.all + i
            if one.record == cython.NULL:
                one.record = self.table.insert(one.key, one.tag, row)
                if one.record != cython.NULL:
                    largest(one.record)[0] = max(largest(one.record)[0], cython.cast(cython.float, fabs(one.value)))
                    put(self.experts, state_of(one.record), 1.0 if one.value > 0.0 else -1.0, 0)
        return 0

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
            for j in range(self.n_experts):
                k = z_place(j)
                state_of(record)[k], state_of(record)[k + LANES] = z, sqrt(v)
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
        p: cython.double[::1] = self.experts.proportions(self._rate())[0]
        # Another thread may learn until the arrays are there, but no feature goes away.
        n: cython.Py_ssize_t = self.table.n
        values, spreads, keys = np.zeros(n), np.zeros(n), self.table.keys()[:n]
        value: cython.double[::1] = values
        spread: cython.double[::1] = spreads
        slopes: cython.double = sqrt(max(self.experts.bias_n[0], 1e-300))
        self.told = False
        for i in range(n):
            record = self.table.record(i)
            self.experts.n = 0
            put(self.experts, state_of(record), 1.0, row - last_row(record)[0])
            self.experts.total(total, length)
            for e in range(self.n_experts):
                value[i] += p[e] * total[e]
            value[i] /= largest(record)[0]
            spread[i] = largest(record)[0] * min(state_of(record)[LANES] / slopes, 1.0)
        return keys, values, spreads

    @property
    def intercept(self):
        return self.experts.proportions(self._rate())[1]

    def _rate(self):
        return sqrt(self.n_seen / self.squares) if self.n_seen > 0 else 1.0

    @property
    def weights(self):
        """Of the experts, in the mixture that shares back 1/t."""
        return np.array(self.experts.blend.w[0])

    @property
    def nbytes(self):
        """Memory of the features, in bytes."""
        return self.table.nbytes + (0 if self.nursery is None else self.nursery.nbytes)

    def state(self):
        """All that the next row depends on, as arrays; between two rows, if another thread learns."""
        with self.gate:
            return self._state()

    def _state(self):
        nursery = (np.zeros((0, 3), dtype=np.float32), 0) if self.nursery is None else self.nursery.state
        return {
            "counts": np.array([self.n_seen, self.table.pointed_at, nursery[1]], dtype=np.int64),
            "sums": np.concatenate([[self.squares], self.experts.state]),
            "units": self.units.state,
            "blend": self.experts.blend.state,
            "names": self.name_key,
            "records": self.table.records(),
            "candidates": nursery[0],
        }

    def restore(self, state):
        """A new model takes a state. One that these settings cannot have made is refused."""
        n_seen, hand, size = (int(number) for number in state["counts"])
        refuse_misfit(state, self.n_experts, len(self.experts.blend.state))
        if self.n_seen > 0:
            raise ValueError("the model has learnt already: use a new one")
        if (self.nursery is None) != (size == 0):
            raise ValueError("the candidates do not fit the settings")
        self.table.fill(state["records"], hand)
        if self.nursery is not None:
            self.nursery.state = (state["candidates"], size)
        self.n_seen, self.squares = n_seen, state["sums"][0]
        self.experts.state = state["sums"][1:]
        self.units.state, self.experts.blend.state = state["units"], state["blend"]
        self.name_key = state["names"]

    def mirrored(self):
        """The model of 1 - y: it says -eta."""
        state = mirror(self.state(), self.n_experts)
        return revive(self.settings, state, None if self.names is None else dict(self.names))

    def __reduce__(self):
        with self.gate:
            return revive, (self.settings, self.state(), None if self.names is None else dict(self.names))


def learn_each_named(models, x, targets, weight):
    """All models learn the row, each with its own target, unless another thread has the gate; whether they did. No
    other thread and no signal comes between two of them.

    The first one reads it: what is left then are names, text and plain numbers, which run no Python.
    """
    first: Wide = models[0]
    one: Wide
    first.check_named(x)
    row: dict = first.row.held
    if taken(first.gate):
        return False
    for model, y in zip(models, targets, strict=True):
        one = model
        one._learn_entered(one._enter_free(row), y, weight)
    return True


def means_named(models, x):
    """The mean of each model, given a row with names: all between the same two rows, as above."""
    first: Wide = models[0]
    one: Wide
    means = []
    first.check_named(x)
    row: dict = first.row.held
    for model in models:
        one = model
        means.append(one.family.mean_at(one.tell(one._enter_named(row, True))))
    return means


def revive(settings, state, names=None):
    """A model in this state; `names` are those of its keys, where they are kept.

    >>> from streamlasso.core.sparse.model import Wide, revive
    >>> from streamlasso.families import Binomial
    >>> model = Wide(Binomial())
    >>> revive(model.settings, model.state()).n_seen
    0
    """
    model = Wide(**settings)
    model.restore(state)
    model.names = names
    return model


def shrink(state, out, n, ratio):
    """z and r as if x had been divided by the larger number from the start."""
    k: cython.Py_ssize_t
    for k in range(n):
        out[k] = ratio * state[k]
