# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows that come as dicts: each name has its column, and a name that is absent is 0."""

import cython
import numpy as np
from cython.cimports.libc.math import fabs
from cython.cimports.streamlasso.core.model import Engine

from streamlasso.core.base.checks import LARGEST
from streamlasso.core.base.record import RECORD

_LARGEST = cython.declare(cython.double, LARGEST)


@cython.final
@cython.cclass
class DictRows:
    """The names, in the order of their columns, and one row of `width` columns, of which the last may have no name yet.

    >>> from streamlasso.core.dict_rows import DictRows
    >>> columns = DictRows(["a", "b"])
    >>> columns.fill({"b": 2})
    True
    >>> columns.row
    array([[0., 2.]])
    """

    def __cinit__(self, names=(), width: cython.Py_ssize_t = 0):
        self.names = list(names)
        self.index = {name: j for j, name in enumerate(self.names)}
        if len(self.index) != len(self.names):
            raise ValueError("a feature is named twice")
        self.recent = list(self.names)
        self.at = np.arange(max(len(self.names), 1))
        self.width = max(width, len(self.names), 1)
        self.row = np.zeros((1, self.width))
        self.target = np.zeros(1)
        self.weight = np.ones(1)
        self.x, self.y, self.w = self.row, self.target, self.weight
        self.note = np.empty((1, len(RECORD)))

    def __contains__(self, name):
        return name in self.index

    def __reduce__(self):
        return DictRows, (self.names, self.width)

    def place(self, name):
        """The column of this name."""
        return self.index[name]

    # --- one row ------------------------------------------------------------------------------------------------

    def fill(self, x):
        """Put the dict's values into the row; False where it has names without a column. Bad values are refused."""
        j: cython.Py_ssize_t
        i: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = len(self.names)
        known: cython.bint = True
        value: cython.double
        values: dict = x if type(x) is dict else dict(x)
        self.n_filled += 1
        mine: cython.Py_ssize_t = self.n_filled
        recent: list = self.recent
        at: cython.pointer[cython.Py_ssize_t] = cython.address(self.at[0])
        row: cython.p_double = cython.address(self.x[0, 0])
        for j in range(n):
            row[j] = 0.0
        try:
            for name, given in values.items():
                value = given
                if not fabs(value) <= _LARGEST:
                    raise ValueError
                # Mostly a row has its names in the order of the row before: then none of them needs to be looked up.
                if i < n and _same(recent[i], name):
                    row[at[i]] = value
                else:
                    place = self.index.get(name)
                    if place is None:
                        known = False
                    else:
                        j = place
                        row[j] = value
                        if i < n:
                            recent[i] = name
                            at[i] = j
                i += 1
        except (TypeError, ValueError, OverflowError):
            _refuse(values)
        if self.n_filled != mine:
            raise RuntimeError("a value of this row, asked for its number, used the model that the row is for")
        return known

    def eta(self, learner, x):
        """b0 + x'b; names without a column have no coefficient.

        Before the first row nothing has one, and a scaler in front may have no value yet: NaN then counts as 0.
        """
        self._fit(learner)
        self.fill(x if learner.n_seen > 0 else {name: 0.0 if value != value else value for name, value in x.items()})
        return learner.ask(cython.address(self.x[0, 0]))

    def predict(self, learner, x):
        """The mean of the response, given the row."""
        return learner.family.mean_at(self.eta(learner, x))

    def learn(self, learner, x, y, weight):
        """Learn the row; False, and nothing is learnt, where it has names without a column. Bad values are refused."""
        # Another thread that predicts writes into the same row.
        learner.gate.hold()
        try:
            return self._learn(learner, x, y, weight)
        finally:
            learner.gate.release()

    def _learn(self, learner, x, y, weight):
        # Numbers first: what runs Python to say what it is could fill the row with another.
        target: cython.double = number("y", y)
        weight = number("w", weight)
        known: cython.bint = self.fill(x)
        self._fit(learner)
        self.y[0] = target
        self.weigh(weight)
        complaint = learner.family.check_target(self.target) if learner.family.checks_target else None
        if complaint is not None:
            raise ValueError(f"y={y!r}: {complaint}; family={learner.family!r}. Nothing was learnt.")
        if known and self.w[0] > 0.0:
            learner.take(self.x, self.y, self.w, self.note)
        return known

    def take(self, learners, targets):
        """Learn the row at hand, of the weight at hand, each learner with its own target; no signal comes between."""
        k: cython.Py_ssize_t
        learner: Engine
        for k in range(len(learners)):
            self._fit(learners[k])
        for k in range(len(learners)):
            learner = learners[k]
            self.y[0] = targets[k]
            learner.take(self.x, self.y, self.w, self.note)
        return 0

    def weigh(self, weight):
        """Note the weight of the row."""
        self.w[0] = number("w", weight)
        if self.w[0] < 0.0:
            raise ValueError(
                f"w={weight!r}: a weight is a number, 0 (the row is skipped) or larger; nothing was learnt."
            )
        return self.w[0]

    def _fit(self, learner):
        """The engine trusts the row to be as wide as it is itself."""
        if learner.p != self.width:
            raise ValueError(f"{self.width} columns do not fit a learner of {learner.p} features")
        return 0


def _same(a, b):
    return a is b or (type(a) is str and type(b) is str and cython.cast(str, a) == cython.cast(str, b))


def number(name, value):
    """The value as a float, or an error that names it."""
    x: cython.double
    try:
        x = value
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}={value!r}: a real number is needed; nothing was learnt.") from None
    if not fabs(x) <= _LARGEST:
        raise ValueError(f"{name}={value!r}: a finite number within +-{LARGEST:g} is needed; nothing was learnt.")
    return x


def _refuse(values):
    for name, value in values.items():
        number(f"x[{name!r}]", value)
