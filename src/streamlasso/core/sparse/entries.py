# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The non-zeros of one row: from columns of a matrix, or from a dict with names.

Names are hashed to 64 bits (`table.hashed`). Entries of a dict are put in the order of their hashes, so that rows with
the same names and values are the same bits, in whatever order the dict has them.

A stream mostly predicts a row, then learns it. So a predicted dict is remembered: if the names and values of the next
one are the same objects, its entries are there already. Text and numbers cannot change; a row with anything else is
not remembered.
"""

import cython
from cython.cimports.cpython.dict import PyDict_Next
from cython.cimports.cpython.object import PyObject
from cython.cimports.cpython.ref import Py_INCREF, Py_XDECREF
from cython.cimports.libc.math import fabs
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.stdlib import free
from cython.cimports.libc.string import memset
from cython.cimports.streamlasso.core.sparse.table import hashed, resized

#: Values beyond this, or smaller than its inverse, do not fit single precision.
LARGEST_X, LEAST_X = 1e30, 1e-30
_LARGEST_X = cython.declare(cython.double, LARGEST_X)
_LEAST_X = cython.declare(cython.double, LEAST_X)


@cython.cclass
class Entries:
    """Rows one after another; `make_room` may move them."""

    def __cinit__(self):
        self.n = self.capacity = self.n_last = self.k0 = self.k1 = 0
        self.made, self.again = [], False
        self.make_room(64)

    def __dealloc__(self):
        self._forget_last()
        free(self.all)
        free(self.spare)
        free(self.count)
        free(self.last)

    def make_room(self, n):
        """For a row of n entries."""
        size: cython.size_t
        if n <= self.capacity:
            return 0
        size = max(n, 2 * self.capacity)
        self.all = cython.cast(cython.pointer[Entry], resized(self.all, size * cython.sizeof(Entry)))
        self.spare = cython.cast(cython.pointer[Entry], resized(self.spare, size * cython.sizeof(Entry)))
        self.count = cython.cast(cython.pointer[uint32_t], resized(self.count, (size + 1) * cython.sizeof(uint32_t)))
        self.last = cython.cast(
            cython.pointer[cython.pointer[PyObject]], resized(self.last, 2 * size * cython.sizeof(cython.p_void))
        )
        self.capacity = size
        return 0

    # --- columns ----------------------------------------------------------------------------------------------------

    def take_columns(self, start, end, columns, values):
        """The non-zeros of a row of a matrix."""
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        self.make_room(end - start)
        self._forget_last()
        self.again = False
        for j in range(start, end):
            if fabs(values[j]) >= _LEAST_X:
                self.all[n].key, self.all[n].value = columns[j], values[j]
                n += 1
        self.n = n
        return 0

    # --- names ------------------------------------------------------------------------------------------------------

    def take_names(self, x, remember):
        """The non-zeros of a dict. A value that is text is a feature of its own, `name=value`."""
        row: dict
        if not (isinstance(x, dict) or hasattr(x, "keys")):
            raise ValueError(f"x={x!r}: a row is a dict from names to values; nothing was learnt.")
        row = x if type(x) is dict else dict(x)
        self.again = self._is_last(row)
        if self.again:
            return 0
        self.make_room(len(row))
        self._forget_last()
        self.made.clear()
        self.held = row
        try:
            if not self._walk(row, remember):
                # A number that runs Python to say what it is, in which another thread can have its turn.
                return self.take_names({name: _plain(name, given) for name, given in list(row.items())}, False)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"x has the key {error.object!r}, which is not valid Unicode; nothing was learnt."
            ) from None
        self._sort()
        return 0

    def _walk(self, row, remember):
        """Whether all values are text or numbers that can be read at once: nobody else can touch the row meanwhile."""
        i: cython.Py_ssize_t
        length: cython.Py_ssize_t = 0
        value: cython.double
        text: cython.pointer[cython.const[cython.uchar]]
        name: cython.pointer[PyObject]
        given: cython.pointer[PyObject]
        plain: cython.bint = True
        seen: cython.Py_ssize_t = wide_items(row, self.last)
        self.n = 0
        if seen < 0:
            return False
        for i in range(seen):
            name, given = self.last[2 * i], self.last[2 * i + 1]
            text = wide_ascii(name, cython.address(length))
            if text != cython.NULL and wide_exact_float(given):
                value = wide_float(given)
                if fabs(value) <= _LARGEST_X:
                    self._add(name, value, hashed(self.k0, self.k1, text, length, True))
                    continue
            plain = self._take_other(name, given) and plain
        if remember and plain:
            self.n_last = seen
            for i in range(2 * seen):
                Py_INCREF(cython.cast(object, self.last[i]))
        return True

    def _take_other(self, name_at, given_at):
        """A feature that is not a float with an ASCII name; whether its value can be relied on not to change."""
        length: cython.Py_ssize_t = 0
        value: cython.double
        text: cython.pointer[cython.const[cython.uchar]]
        plain: cython.bint = True
        name, given = cython.cast(object, name_at), cython.cast(object, given_at)
        if type(name) is not str:
            raise ValueError(f"x has the key {name!r}: names of features are strings; nothing was learnt.")
        if type(given) is str:
            name, value = f"{name}={given}", 1.0
            self.made.append(name)
        else:
            plain = type(given) is float or type(given) is int or type(given) is bool
            value = number_of(name, given)
        text = wide_utf8(name, cython.address(length))
        self._add(cython.cast(cython.p_void, name), value, hashed(self.k0, self.k1, text, length, False))
        return plain

    def _add(self, name, value, key):
        """An entry, unless its value is 0."""
        one: cython.pointer[Entry] = self.all + self.n
        one.key, one.value, one.name = key, value, name
        self.n += fabs(value) >= _LEAST_X

    def _is_last(self, row):
        """Whether the dict holds the objects of the last one in the same order."""
        at: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t = 0
        name: cython.pointer[PyObject] = cython.NULL
        given: cython.pointer[PyObject] = cython.NULL
        if self.n_last == 0 or self.n_last != len(row):
            return False
        while PyDict_Next(row, cython.address(at), cython.address(name), cython.address(given)):
            if self.last[2 * i] != name or self.last[2 * i + 1] != given:
                return False
            i += 1
        return True

    def _forget_last(self):
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.n_last
        self.n_last = 0
        for i in range(2 * n):
            Py_XDECREF(self.last[i])

    # --- their order ------------------------------------------------------------------------------------------------

    def _sort(self):
        """By key. Keys are hashes, so the place of each is known but for a few, which are then exchanged."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        one: Entry
        n: uint64_t = self.n
        new: cython.pointer[Entry] = self.spare
        memset(self.count, 0, (n + 1) * cython.sizeof(uint32_t))
        for i in range(self.n):
            self.count[((self.all[i].key >> 32) * n >> 32) + 1] += 1
        for i in range(self.n):
            self.count[i + 1] += self.count[i]
        for i in range(self.n):
            j = (self.all[i].key >> 32) * n >> 32
            new[self.count[j]] = self.all[i]
            self.count[j] += 1
        for i in range(1, self.n):
            if new[i - 1].key > new[i].key:
                one = new[i]
                j = i
                while j > 0 and new[j - 1].key > one.key:
                    new[j] = new[j - 1]
                    j -= 1
                new[j] = one
        self.all, self.spare = new, self.all


def _plain(name, given):
    return given if type(given) is str or isinstance(given, float) else number_of(name, given)


def number_of(name, given):
    """The value of a feature, or a refusal."""
    value: cython.double
    try:
        value = given
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"x[{name!r}]={given!r}: a number or text is needed; nothing was learnt.") from None
    if not fabs(value) <= _LARGEST_X:
        raise ValueError(
            f"x[{name!r}]={given!r}: a finite number within +-{LARGEST_X:g} is needed; nothing was learnt."
        )
    return value
