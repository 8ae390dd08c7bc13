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
from cython.cimports.libc.stdint import int64_t, uint32_t
from cython.cimports.streamlasso.core.base.lock import Gate
from cython.cimports.streamlasso.core.sparse.ensemble import put
from cython.cimports.streamlasso.core.sparse.table import HEAD, largest, last_row, state_of
from cython.cimports.streamlasso.core.sparse.updates import LANES, Term, z_place

from streamlasso.core.sparse.entries import LARGEST_X, LEAST_X
from streamlasso.core.sparse.experts import EXPERTS
from streamlasso.core.sparse.table import MOST_RECORDS

__all__ = ["ADMITTED_AT", "EXPERTS", "LARGEST_X", "LEAST_X", "MOST_RECORDS", "Wide"]

#: Names of features that are gone may be kept, this many and as many as there are live ones.
FORGOTTEN_NAMES = 1000
#: Values of `memory`: the evidence at which a feature is admitted.
ADMITTED_AT = {"full": None, "second_sight": 0.0, "sparse": 1.5}
#: Rows are counted in whole numbers that are floats as well.
MOST_SEEN = 2**53


@cython.cclass
class Wide:
    """A model of features by number or name.

    family : of the response. fixed_units : as in `Units`. most : features that are kept, at most.
    memory : a key of ADMITTED_AT.

    No row runs Python, or gives the GIL away: no other thread and no signal comes between its parts. Callers take the
    gate for several steps that belong together.

    >>> from streamlasso.core.sparse.model import Wide
    >>> from streamlasso.families import Binomial
    >>> Wide(Binomial()).n_seen
    0
    """

    def __cinit__(self, family, experts=16, most=MOST_RECORDS, memory="full", fixed_units=True):
        settings = EXPERTS[experts] if isinstance(experts, int) else experts
        admitted_at = ADMITTED_AT[memory]
        self.settings = dict(family=family, experts=experts, most=most, memory=memory, fixed_units=fixed_units)
        self.gate = Gate()
        self.names = None
        self.row = Entries()
        self.family = family
        self.n_experts = len(settings)
        self.table = Table(2 * self.n_experts, most)
        self.candidates = None if admitted_at is None else Candidates(admitted_at)
        self.units = Units(family, fixed_units)
        self.experts = Ensemble(settings, self.units)
        self.n_seen, self.squares, self.more = 0, 0.0, 0.0
        self.m, self.looked = 0.0, False

    # --- rows of a matrix -------------------------------------------------------------------------------------------

    def decide(
        self,
        starts: cython.const[int64_t][::1],
        columns: cython.const[int64_t][::1],
        values: cython.const[cython.double][::1],
    ):
        """eta of each row of a CSR matrix, given what has been learnt."""
        i: cython.Py_ssize_t
        out = np.empty(starts.shape[0] - 1)
        etas: cython.double[::1] = out
        for i in range(etas.shape[0]):
            self._enter_columns(i, starts, columns, values)
            etas[i] = self._predict()
        return out

    def _learn_columns(self, starts, columns, values, y, weight, etas):
        """Predict, then learn, each row in order; `etas` takes the predictions."""
        i: cython.Py_ssize_t
        w: cython.double = 1.0
        weights: cython.const[cython.double][::1] = weight
        for i in range(y.shape[0]):
            if weight is not None:
                w = weights[i]
            self._enter_columns(i, starts, columns, values)
            etas[i] = self._learn(y[i], w) if w > 0.0 else self._predict()
        return 0

    def _enter_columns(self, i, starts, columns, values):
        self.row.take_columns(starts[i], starts[i + 1], columns, values)
        self.looked = False
        return 0

    # --- rows as dicts ----------------------------------------------------------------------------------------------

    @property
    def name_key(self):
        """The 128 bits that names are hashed with."""
        return np.array([self.row.k0, self.row.k1], dtype=np.uint64)

    @name_key.setter
    def name_key(self, key):
        self.row.k0, self.row.k1 = (int(part) for part in key)

    def learn_named(self, x, y: cython.double, weight: cython.double):
        """Learn a row with names; the eta that was predicted."""
        self.gate.hold()
        try:
            return self._learn_names(x, y, weight)
        finally:
            self.gate.release()

    def eta_named(self, x):
        """eta of a row with names; nothing changes."""
        self._enter_names(x, True)
        return self._predict()

    def predict_named(self, x):
        """The mean of the response, given a row with names."""
        return self.family.mean_at(self.eta_named(x))

    def check_named(self, x):
        """Refuse a row that `learn_named` would refuse."""
        self._enter_names(x, True)

    def _enter_names(self, x, remember):
        self.row.take_names(x, remember)
        self.looked = self.looked and self.row.again
        return 0

    def _learn_names(self, x, y, weight):
        if self.names is not None:
            self._forget_names()
        self._enter_names(x, False)
        if self.names is not None:
            self._look()
            self._keep_names()
        return self._learn(y, weight)

    def _forget_names(self):
        """At times, those of features that are gone."""
        if len(self.names) > 2 * self.table.n + FORGOTTEN_NAMES:
            live = set(self.table.keys().tolist())
            self.names = {key: kept for key, kept in self.names.items() if key in live}
        return 0

    def _keep_names(self):
        """Those of the row's features that have no record yet."""
        i: cython.Py_ssize_t
        for i in range(self.row.n):
            if self.row.all[i].record == cython.NULL:
                self.names[self.row.all[i].key] = cython.cast(object, self.row.all[i].name)
        return 0

    # --- one row ----------------------------------------------------------------------------------------------------

    def _predict(self):
        """eta of the row; nothing changes."""
        self._look()
        return self.units.eta_of(self.m)

    def _learn(self, y, weight):
        """Predict and learn the row; eta as it was predicted."""
        eta: cython.double = self._predict()
        self.looked = False
        self.n_seen += 1
        self.squares += self.more
        self._bring_in()
        if self.candidates is not None:
            self._gather_evidence(weight * self.units.slope(y, self.m))
        self.units.learn(y, self.m, weight)
        self.experts.learn(y, weight)
        return eta

    def _look(self):
        """Find the row's features and ask the experts, unless that has just been done. Where |x| has never been so
        large, the state is brought to the new unit."""
        i: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen + 1)
        one: cython.pointer[Entry]
        top: cython.float
        x: cython.float
        unit: cython.float
        if self.looked:
            return 0
        self.table.find(self.row.all, self.row.n)
        self.experts.make_room(self.row.n)
        self.experts.n = 0
        self.more = 1.0
        for i in range(self.row.n):
            one = self.row.all + i
            if one.record == cython.NULL:
                self.more += 1.0
                continue
            top, x, unit = largest(one.record)[0], one.value, 1.0
            if fabs(x) > top:
                unit, top = top / cython.cast(cython.float, fabs(x)), cython.cast(cython.float, fabs(x))
            self.more += put(self.experts, state_of(one.record), x / top, unit, row - last_row(one.record)[0])
        self.m = self.experts.predict(sqrt((self.n_seen + 1) / (self.squares + self.more)))
        self.looked = True
        return 0

    def _bring_in(self):
        """The row's features will be learnt: those without a record get one, or stay without."""
        i: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen)
        one: cython.pointer[Entry]
        term: cython.pointer[Term] = self.experts.terms
        size: cython.float
        for i in range(self.row.n):
            one = self.row.all + i
            if one.record != cython.NULL:
                last_row(one.record)[0] = row
                size, term.unit = fabs(one.value), 1.0
                if size > largest(one.record)[0]:
                    term.unit = largest(one.record)[0] / size
                    largest(one.record)[0] = size
                term += 1
        if self.candidates is not None:
            return 0
        for i in range(self.row.n):
            one = self.row.all + i
            if one.record == cython.NULL:
                one.record = self.table.insert(one.key, one.tag, row)
                if one.record != cython.NULL:
                    largest(one.record)[0] = max(largest(one.record)[0], cython.cast(cython.float, fabs(one.value)))
                    put(self.experts, state_of(one.record), 1.0 if one.value > 0.0 else -1.0, 1.0, 0)
        return 0

    def _gather_evidence(self, g):
        """Features without a record are candidates, and may get one."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        z: cython.float = 0
        n: cython.float = 0
        one: cython.pointer[Entry]
        record: cython.p_float
        for i in range(self.row.n):
            one = self.row.all + i
            if one.record != cython.NULL or not self.candidates.admit(
                one.key, g if one.value > 0.0 else -g, cython.address(z), cython.address(n)
            ):
                continue
            record = self.table.insert(one.key, one.tag, cython.cast(uint32_t, self.n_seen))
            if record != cython.NULL:
                largest(record)[0] = fabs(one.value)
                for j in range(self.n_experts):
                    state_of(record)[z_place(j)] = z
                    state_of(record)[z_place(j) + LANES] = sqrt(n)
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
        self.looked = False
        for i in range(n):
            record = self.table.record(i)
            self.experts.n = 0
            put(self.experts, state_of(record), 1.0, 1.0, row - last_row(record)[0])
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
    def nbytes(self):
        """Memory of the features, in bytes."""
        return self.table.nbytes + (0 if self.candidates is None else self.candidates.nbytes)

    def state(self):
        """All that the next row depends on, as arrays; between two rows, if another thread learns."""
        with self.gate:
            known = self.candidates is not None
            size = self.candidates.size if known else 0
            return {
                "counts": np.array([self.n_seen, self.table.hand, size], dtype=np.int64),
                "sums": np.concatenate([[self.squares], self.experts.state]),
                "units": self.units.state,
                "blend": self.experts.blend.state,
                "names": self.name_key,
                "records": self.table.records(),
                "candidates": self.candidates.state if known else np.zeros((0, 3), dtype=np.float32),
            }

    def restore(self, state):
        """A new model takes a state. One that these settings cannot have made is refused."""
        n_seen, hand, size = (int(number) for number in state["counts"])
        squares = state["sums"][0]
        if self.n_seen > 0:
            raise ValueError("the model has learnt already: use a new one")
        if not 0 <= n_seen <= MOST_SEEN or not n_seen <= squares < np.inf or (self.candidates is None) != (size == 0):
            raise ValueError("the counts do not fit the settings")
        self.units.state, self.experts.blend.state = state["units"], state["blend"]
        self.experts.state = state["sums"][1:]
        self.table.fill(state["records"], hand)
        if np.any(_evidence(state["records"], self.n_experts)[:, :, 1] < 0):
            raise ValueError("the features hold numbers that no row can have made")
        if self.candidates is not None:
            self.candidates.restore(state["candidates"], size)
        self.n_seen, self.squares = n_seen, squares
        self.name_key = state["names"]

    def mirrored(self):
        """The model of 1 - y: it predicts -eta."""
        state = self.state()
        _evidence(state["records"], self.n_experts)[:, :, 0] *= -1
        state["candidates"][:, 1] *= -1
        model: Wide = revive(self.settings, state, None if self.names is None else dict(self.names))
        model.experts.mirror()
        return model

    def __reduce__(self):
        with self.gate:
            return revive, (self.settings, self.state(), None if self.names is None else dict(self.names))


def _evidence(records, n_experts):
    """(feature, group of experts, z and r, expert), within the records."""
    return records[:, HEAD:].reshape(len(records), n_experts // LANES, 2, LANES)


def learn_each(models, rows, targets, weight, etas):
    """All models learn the rows of a CSR matrix, each with its own targets; `etas` (model, row) takes what each of them
    predicted before. No other thread and no signal comes between two of them."""
    one: Wide = models[0]
    gate: Gate = one.gate
    starts, columns, values = rows
    gate.hold()
    try:
        for model, y, before in zip(models, targets, etas, strict=True):
            one = model
            one._learn_columns(starts, columns, values, y, weight, before)
    finally:
        gate.release()


def learn_each_named(models, x, targets, weight):
    """All models learn the row, each with its own target; no other thread and no signal comes between two of them.

    The first one reads it: what is left then are names, text and plain numbers, which run no Python.
    """
    first: Wide = models[0]
    one: Wide
    first.gate.hold()
    try:
        first.check_named(x)
        row: dict = first.row.held
        for model, y in zip(models, targets, strict=True):
            one = model
            one._learn_names(row, y, weight)
    finally:
        first.gate.release()


def means_named(models, x):
    """The mean of each model, given a row with names: all between the same two rows, as above."""
    first: Wide = models[0]
    one: Wide
    means = []
    first.check_named(x)
    row: dict = first.row.held
    for model in models:
        one = model
        means.append(one.predict_named(row))
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
