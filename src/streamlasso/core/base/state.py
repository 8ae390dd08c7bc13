# cython: language_level=3
"""What the next row needs, declared once per class.

A class shows its numbers to a tape (`travel`, see `tape.py`), and lists in the same order what they are called and what
lies along their axes (`STATE`), then the objects that it is made of (`parts`). Packing, saving, refusing what does not
fit, adding features and exchanging two classes follow from that, here.
"""

from collections.abc import Callable
from typing import NamedTuple

import cython
import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.streamlasso.core.base.tape import CHECK, MEASURE, READ, WRITE, Tape

#: What lies along an axis: features, the intercept and the features, the lower triangle of a matrix of these by rows,
#: the columns of the array, as many rows as there are now, the numbers in a triangle of as many (none where it is not
#: kept); any other name is that of an attribute that has the length, and a number is the length.
FEATURES, WITH_INTERCEPT, PAIRS = "features", "intercept and features", "pairs of intercept and features"
COLUMNS, ROWS, TRIANGLE = "columns", "rows", "triangle of rows"
#: Bytes of a number.
WIDTH = 8


class NoRoom(MemoryError):
    """Too little memory for as many numbers as are there: the computer's fault, not that of a file."""


def n_pairs(p):
    """The numbers in the lower triangle of a matrix of the intercept and p features."""
    return (p + 1) * (p + 2) // 2


def same(x):
    return x


def complement(x):
    return 1.0 - x


class Column(NamedTuple):
    """An attribute that is part of a state.

    exchanged : what becomes of its numbers when the two classes are exchanged
    of : the attribute whose numbers these are, where that is another
    """

    name: str
    exchanged: Callable = same
    of: str | None = None


class Array(NamedTuple):
    """One array of a state: its name, what lies along its axes, the attributes that are its columns, its type.

    new : what a new feature has, as if it had been there all along and 0
    """

    name: str
    axes: tuple[str, ...]
    columns: tuple[Column, ...]
    dtype: type
    new: float

    def columns_first(self, value):
        """As it lies on the tape, one column after the other."""
        return np.moveaxis(value, self.axes.index(COLUMNS), 0) if COLUMNS in self.axes else value

    def columns_back(self, value):
        """As its axes say."""
        return np.moveaxis(value, 0, self.axes.index(COLUMNS)) if COLUMNS in self.axes else value

    def grown(self, value, extra, p):
        """With `extra` features more than p."""
        more = {FEATURES: extra, WITH_INTERCEPT: extra, PAIRS: n_pairs(p + extra) - n_pairs(p)}
        widths = [(0, more.get(axis, 0)) for axis in self.axes]
        return np.pad(value, widths, constant_values=self.new) if any(map(any, widths)) else value

    def mirrored(self, value):
        """With the two classes exchanged."""
        if COLUMNS not in self.axes:
            return self.columns[0].exchanged(value)
        names = [column.name for column in self.columns]
        before = self.columns_first(value)
        after = [column.exchanged(before[names.index(column.of or column.name)]) for column in self.columns]
        return np.ascontiguousarray(self.columns_back(np.array(after, dtype=self.dtype)))


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

    STATE = ()  # type: tuple

    def parts(self):
        """The objects that have a state of their own, by what their arrays' names begin with."""
        return {}

    def travel(self, tape):
        """Show the tape all numbers, those of STATE and then those of the parts; before the first of them, where an
        axis of STATE is ROWS, how many rows there are."""
        return

    # --- as one row of bytes ------------------------------------------------------------------------------------

    def n_bytes(self, tape):
        """That `write` will need."""
        tape.use(MEASURE, cython.NULL, 0)
        self.travel(tape)
        return tape.at

    def write(self, tape, start, size):
        tape.use(WRITE, start, size)
        self.travel(tape)

    def read(self, tape, start, size):
        """What `write` wrote here, or what `fits`. After `fits` there is room; otherwise see whether the tape `lacks`
        memory, and what it was before is lost."""
        tape.use(READ, start, size)
        self.travel(tape)

    def fits(self, tape, start, size):
        """Could these settings have made this? If not, the tape says what is wrong."""
        tape.use(CHECK, start, size)
        self.travel(tape)
        tape.require(tape.at == size, b"there are more numbers than belong to this model")
        return tape.wrong == cython.NULL

    def pack(self):
        """What the next row needs, as bytes."""
        tape: Tape = Tape()
        size: cython.Py_ssize_t = self.n_bytes(tape)
        data: bytes = PyBytes_FromStringAndSize(cython.NULL, size)
        self.write(tape, PyBytes_AS_STRING(data), size)
        return data

    def unpack(self, data: bytes):
        """The state that `pack` gave; a ValueError, and no change, where it does not fit these settings."""
        tape: Tape = Tape()
        self._refuse_unfit(tape, data)
        self.read(tape, PyBytes_AS_STRING(data), len(data))

    def refuse_unfit(self, data: bytes):
        """A ValueError where these settings could not have made this state."""
        self._refuse_unfit(Tape(), data)

    def _refuse_unfit(self, tape, data):
        if not self.fits(tape, PyBytes_AS_STRING(data), len(data)):
            if tape.lacks:
                raise NoRoom
            raise ValueError(self._complaint(data, tape.wrong.decode(), tape.wrong_at))
        return 0

    def _complaint(self, data, wrong, wrong_at):
        if wrong_at < 0:
            return wrong
        for name, array, start, shape in self._layout(data, 0):
            n_bytes = WIDTH * int(np.prod(shape))
            if start <= wrong_at < start + n_bytes:
                column = array.columns[(wrong_at - start) * len(array.columns) // n_bytes].name
                return f"array {name}: {column} {wrong}"
        return f"a number of rows {wrong}"

    # --- as named arrays ----------------------------------------------------------------------------------------

    def names(self):
        """Of all arrays, those of the parts too."""
        own = [array.name for array in self.STATE]
        return own + [prefix + name for prefix, part in self.parts().items() for name in part.names()]

    def state(self):
        """What the next row needs, as named arrays."""
        data = self.pack()
        return {
            name: np.ascontiguousarray(
                array.columns_back(np.frombuffer(data, array.dtype, int(np.prod(shape)), start).reshape(shape))
            ).copy()
            for name, array, start, shape in self._layout(data, 0)
        }

    def restore(self, state):
        """The state that `state` gave; a ValueError, and no change, where it does not fit these settings."""
        if set(state) != set(self.names()):
            raise ValueError(f"the state of another model: {sorted(set(state) ^ set(self.names()))}")
        self.unpack(b"".join(self._joined(state, "")))

    def _layout(self, data, at, prefix=""):
        """(name, array, where it begins, shape with the columns first) of all arrays on a tape."""
        n_rows = None
        known = {}
        if self._has_rows():
            n_rows = int(np.frombuffer(data, np.int64, 1, at)[0])
            at += WIDTH
        for array in self.STATE:
            # No room is taken for what a forged tape claims to hold.
            shape = array.columns_first(np.broadcast_to(False, self._shape(array, n_rows, known))).shape
            yield prefix + array.name, array, at, shape
            n = int(np.prod(shape))
            known[array.name] = np.frombuffer(data, array.dtype, n, at)
            at += WIDTH * n
        for name, part in self.parts().items():
            at = yield from part._layout(data, at, prefix + name)
        return at

    def _joined(self, state, where):
        """The bytes of all arrays, in their order."""
        n_rows = None
        if self._has_rows():
            n_rows = next(state[array.name].shape[:1] for array in self.STATE if array.axes[0] == ROWS)
            n_rows = n_rows[0] if n_rows else 0
            yield np.int64(n_rows).tobytes()
        for array in self.STATE:
            value, expected = state[array.name], self._shape(array, n_rows, state)
            if value.shape != expected or value.dtype != array.dtype:
                raise ValueError(
                    f"array {where}{array.name} has the shape {value.shape} and the type {value.dtype}; {expected} and "
                    f"{np.dtype(array.dtype)} are needed"
                )
            yield array.columns_first(value).tobytes()
        for prefix, part in self.parts().items():
            yield from part._joined(under(prefix, state), where + prefix)

    def _has_rows(self):
        return any(array.axes[0] == ROWS for array in self.STATE)

    def _shape(self, array, n_rows, known):
        """With this many rows, and the arrays that come before it."""
        return tuple(self._length(array, axis, n_rows, known) for axis in array.axes)

    def _length(self, array, axis, n_rows, known):
        if axis == ROWS:
            return n_rows
        if axis == TRIANGLE:
            return n_rows * (n_rows + 1) // 2 if self._keeps_triangle(known) else 0
        if axis == COLUMNS:
            return len(array.columns)
        if axis in (FEATURES, WITH_INTERCEPT, PAIRS):
            return {FEATURES: self.p, WITH_INTERCEPT: self.p + 1, PAIRS: n_pairs(self.p)}[axis]
        return getattr(self, axis) if isinstance(axis, str) else axis

    def _keeps_triangle(self, known):
        return True

    # --- other settings -----------------------------------------------------------------------------------------

    def _each(self, change, state):
        """All arrays of a state, changed: change(array, value)."""
        out = {array.name: change(array, state[array.name]) for array in self.STATE}
        for prefix, part in self.parts().items():
            inner = part._each(change, under(prefix, state))
            out.update({prefix + name: value for name, value in inner.items()})
        return out

    def _grown(self, extra):
        """The state with more features, as if they had been there all along and 0."""
        p = self.p
        return self._each(lambda array, value: array.grown(value, extra, p), self.state())

    def _mirrored(self):
        """The state with the two classes exchanged."""
        return self._each(lambda array, value: array.mirrored(value), self.state())
