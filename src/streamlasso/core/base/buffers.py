# cython: language_level=3
"""Objects and numbers for loops without the GIL."""

import cython
import numpy as np
from cython.cimports.cpython.mem import PyMem_RawCalloc, PyMem_RawFree


@cython.cclass
class Pointers:
    """Objects, borrowed: the i-th is `cython.cast(Class, pointers.at[i])`, as long as this lives."""

    def __cinit__(self, objects):
        self.objects = tuple(objects)
        self.n = len(self.objects)
        self.at = items_of(self.objects)


@cython.cclass
class Doubles:
    """Room for n numbers, 0 at first, as long as this lives.

    A typed view takes 208 bytes in its object, and the array behind it some 400; a model has hundreds of them, of
    twenty numbers each.
    """

    def __cinit__(self, n: cython.Py_ssize_t):
        self.at = cython.cast(cython.p_double, PyMem_RawCalloc(max(n, 1), cython.sizeof(cython.double)))
        if self.at == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_RawFree(self.at)


@cython.cfunc
def in_doubles(values) -> Doubles:
    """The numbers of an array, one row after the other."""
    numbers = np.ravel(values)
    room: Doubles = Doubles(len(numbers))
    fill(room.at, len(numbers), numbers)
    return room


@cython.cfunc
def copied(at: cython.p_double, n: cython.Py_ssize_t):
    """n numbers as an array of their own."""
    i: cython.Py_ssize_t
    out = np.empty(n)
    numbers: cython.double[::1] = out
    for i in range(n):
        numbers[i] = at[i]
    return out


@cython.cfunc
@cython.exceptval(-1, check=False)
def fill(at: cython.p_double, n: cython.Py_ssize_t, values) -> cython.int:
    """n numbers, copied to here."""
    i: cython.Py_ssize_t
    numbers: cython.const[cython.double][::1] = np.ascontiguousarray(values, dtype=float)
    if numbers.shape[0] != n:
        raise ValueError(f"{numbers.shape[0]} numbers where {n} are needed")
    for i in range(n):
        at[i] = numbers[i]
    return 0
