# cython: language_level=3
"""What the next row needs, declared once per class.

A class lists the arrays of its state (`STATE`) and the objects that it is made of (`parts`). Saving, loading, refusing
what does not fit, adding features and exchanging two classes follow from that list, here.
"""

from collections.abc import Callable
from typing import NamedTuple

import cython
import numpy as np

#: What lies along an axis: features, the intercept and the features, the lower triangle of a matrix of these by rows,
#: the columns of the array, as many rows as there are now (`count`, at most `capacity`), or as many numbers as the
#: settings ask for.
FEATURES, WITH_INTERCEPT, PAIRS = "features", "intercept and features", "pairs of intercept and features"
COLUMNS, ROWS, FIXED = "columns", "rows", "fixed"


def n_pairs(p):
    """The numbers in the lower triangle of a matrix of the intercept and p features."""
    return (p + 1) * (p + 2) // 2


class Range(NamedTuple):
    """Which numbers are admissible, in words and as a function of an array."""

    words: str
    holds: Callable


ANY = Range("anything", lambda x: np.True_)
FINITE = Range("finite", np.isfinite)
WEIGHT = Range("finite, 0 or larger", lambda x: np.isfinite(x) & (x >= 0))
PENALTY = Range("a number, 0 or larger", lambda x: x >= 0)
NOT_NEGATIVE = Range("not negative", lambda x: ~(x < 0))
SIGN = Range("1 or -1", lambda x: np.abs(x) == 1)
#: Far from where integers end.
COUNT = Range("from 0 to 2^62", lambda x: (x >= 0) & (x <= 2**62))


def below(n):
    return Range(f"from 0 to {n - 1}", lambda x: (x >= 0) & (x < n))


def same(x):
    return x


def complement(x):
    return 1.0 - x


class Column(NamedTuple):
    """An attribute that is part of a state.

    exchanged : what becomes of its numbers when the two classes are exchanged
    of : the attribute whose numbers these are, where that is another
    computed : whether it is a property with a setter; all other arrays are written in place
    """

    name: str
    range: Range = ANY
    exchanged: Callable = same
    of: str | None = None
    computed: bool = False


class Array(NamedTuple):
    """One array of a state: its name, what lies along its axes, the attributes that are its columns, its type.

    new : what a new feature has, as if it had been there all along and 0
    """

    name: str
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    dtype: type
    new: float

    def split(self, value):
        """The numbers of each column."""
        if COLUMNS not in self.axes:
            return [value]
        return list(np.moveaxis(value, self.axes.index(COLUMNS), 0))

    def join(self, columns):
        if COLUMNS not in self.axes:
            return np.array(columns[0], dtype=self.dtype)
        # Faster than np.stack where the columns are single numbers.
        joined = np.array(columns, dtype=self.dtype)
        return joined if self.axes[0] == COLUMNS else np.ascontiguousarray(joined.T)

    def grown(self, value, extra, p):
        """With `extra` features more than p."""
        more = {FEATURES: extra, WITH_INTERCEPT: extra, PAIRS: n_pairs(p + extra) - n_pairs(p)}
        widths = [(0, more.get(axis, 0)) for axis in self.axes]
        return np.pad(value, widths, constant_values=self.new) if any(map(any, widths)) else value

    def mirrored(self, value):
        """With the two classes exchanged."""
        before = dict(zip([column.name for column in self.columns], self.split(value), strict=True))
        return self.join([column.exchanged(before[column.of or column.name]) for column in self.columns])


def array(name, *axes, attribute=None, dtype=np.float64, new=0.0, **column):
    """An array that is one attribute, of the same name or that after its last dot."""
    return Array(name, axes, (Column(attribute or name.rpartition(".")[2], **column),), dtype, new)


def table(name, axes, *columns, dtype=np.float64):
    """An array of several attributes side by side."""
    return Array(name, axes, columns, dtype, 0.0)


def numbers(name, *columns, dtype=np.float64):
    """An array of attributes that are one number each."""
    return table(name, (COLUMNS,), *columns, dtype=dtype)


def under(prefix, state):
    """The arrays of a part, by the names that it has for them."""
    return {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}


@cython.cclass
class Stateful:
    """An object whose state is declared."""

    STATE = ()

    def parts(self):
        """The objects that have a state of their own, by what their arrays' names begin with."""
        return {}

    def names(self):
        """Of all arrays, those of the parts too."""
        own = [array.name for array in self.STATE]
        return own + [prefix + name for prefix, part in self.parts().items() for name in part.names()]

    def state(self):
        """What the next row needs, as named arrays: exactly what a checkpoint holds."""
        return self._each(lambda owner, array, _: owner._read(array), {})

    def restore(self, state):
        """The state that `state` gave; a ValueError, and no change, where it does not fit these settings."""
        if set(state) != set(self.names()):
            raise ValueError(f"the state of another model: {sorted(set(state) ^ set(self.names()))}")
        self._check(state)
        self._fill(state)

    def _each(self, change, state):
        """All arrays, from those of a state: change(owner, array, value)."""
        out = {array.name: change(self, array, state.get(array.name)) for array in self.STATE}
        for prefix, part in self.parts().items():
            inner = part._each(change, under(prefix, state))
            out.update({prefix + name: value for name, value in inner.items()})
        return out

    def _grown(self, extra):
        """The state with more features, as if they had been there all along and 0."""
        p = self.p
        return self._each(lambda _, array, value: array.grown(value, extra, p), self.state())

    def _mirrored(self):
        """The state with the two classes exchanged."""
        return self._each(lambda _, array, value: array.mirrored(value), self.state())

    # --- reading and writing ------------------------------------------------------------------------------------

    def _read(self, array):
        columns = [self._get(column.name) for column in array.columns]
        if array.axes[0] == ROWS:
            columns = [np.asarray(column)[: self.count] for column in columns]
        return array.join(columns)

    def _get(self, name):
        return getattr(self, name)

    def _fill(self, state):
        """Of a state that is known to fit."""
        for array in self.STATE:
            value = state[array.name]
            if array.axes[0] == ROWS:
                self.count = len(value)
            for column, numbers in zip(array.columns, array.split(value), strict=True):
                self._set(column, numbers)
        for prefix, part in self.parts().items():
            part._fill(under(prefix, state))
        self._filled()

    def _set(self, column, numbers):
        if column.computed or np.ndim(numbers) == 0:
            setattr(self, column.name, numbers)
        else:
            np.asarray(getattr(self, column.name))[: len(numbers)] = numbers

    def _filled(self):
        """What follows from the state that was just written."""
        return

    # --- refusing -----------------------------------------------------------------------------------------------

    def _check(self, state, where=""):
        """Refuse what these settings could not have made, before compiled code trusts it."""
        n_rows = None
        for array in self.STATE:
            value = state[array.name]
            if array.axes[0] == ROWS and n_rows is None:
                n_rows = value.shape[0] if value.ndim else 0
            expected = tuple(self._length(array, i, n_rows) for i in range(len(array.axes)))
            if value.shape != expected or value.dtype != array.dtype:
                raise ValueError(
                    f"array {where}{array.name} has the shape {value.shape} and the type {value.dtype}; {expected} and "
                    f"{np.dtype(array.dtype)} are needed"
                )
            for column, numbers in zip(array.columns, array.split(value), strict=True):
                if not np.all(column.range.holds(numbers)):
                    raise ValueError(f"array {where}{array.name}: {column.name} must be {column.range.words}")
        if n_rows is not None and n_rows > self.capacity:
            raise ValueError(f"{n_rows} rows are more than the {self.capacity} that there is room for")
        for prefix, part in self.parts().items():
            part._check(under(prefix, state), where + prefix)
        self._check_together(state)

    def _length(self, array, i, n_rows):
        axis = array.axes[i]
        if axis == FEATURES:
            return self.p
        if axis == WITH_INTERCEPT:
            return self.p + 1
        if axis == PAIRS:
            return n_pairs(self.p)
        if axis == COLUMNS:
            return len(array.columns)
        if axis == ROWS:
            return n_rows
        return np.shape(getattr(self, array.columns[0].name))[i]

    def _check_together(self, state):
        """Refuse arrays that do not belong together."""
        return
