# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Requests to learn many rows of numbers, read into columns at once; whatever is not that is left to the JSON decoder.

    {"rows": [{"heat": 21.5, "wind": 3}, {"heat": 23, "wind": 1}], "y": [310, 325]}

Every row has the names of the first, in its order, and every value is a number. What is read is what the decoder would
have read, and a body that it would refuse is never taken. The text ends with a 0, which no number or mark is.
"""

import cython
import numpy as np
from cython.cimports.cpython.conversion import PyOS_string_to_double
from cython.cimports.libc.float import LDBL_MANT_DIG
from cython.cimports.libc.math import isfinite
from cython.cimports.libc.string import memcmp

#: The most rows, and names; names have as many characters at most.
MOST_ROWS = cython.declare(cython.Py_ssize_t, 10_000)
MOST_NAMES = cython.declare(cython.Py_ssize_t, 1000)
#: Whole numbers up to this, times or by powers of ten up to this one, are exact: so the result is rounded once.
EXACT = cython.declare(cython.ulonglong, 2**53)
LARGEST_POWER = cython.declare(cython.Py_ssize_t, 22)
#: The same of numbers with a mantissa of 64 bits or more; and half of the last of these.
MOST_DIGITS = cython.declare(cython.Py_ssize_t, 19)
WIDE_POWER = cython.declare(cython.Py_ssize_t, 27)
ONE_BIT = cython.declare(cython.longdouble, 2.0**-63)
WIDE_POWERS = cython.declare(cython.longdouble[28])
POWERS = cython.declare(cython.double[::1], np.array([float(f"1e{k}") for k in range(23)]))

WIDE_POWERS[0] = 1.0
for _k in range(1, 28):
    WIDE_POWERS[_k] = 10.0 * WIDE_POWERS[_k - 1]


def columns_in(body: bytes):
    """The columns by name, and the labels, each as floats and whether they are all whole; or None.

    >>> from streamlasso.serve.scanned import columns_in
    >>> columns, y = columns_in(b'{"rows": [{"a": 1, "b": 0.5}, {"a": 2, "b": 3}], "y": [7, 8]}')
    >>> columns
    {'a': (array([1., 2.]), True), 'b': (array([0.5, 3. ]), False)}
    >>> y
    (array([7., 8.]), True)
    >>> columns_in(b'{"rows": [{"a": null}], "y": [7]}')
    """
    scanner: Scanner = Scanner(body)
    return scanner.read()


@cython.final
@cython.cclass
class Scanner:
    """A place in a text. What fails leaves it anywhere."""

    def __cinit__(self, body: bytes):
        self.body, self.text, self.at, self.end = body, body, 0, len(body)
        self.names, self.keys, self.n_names, self.room = [], [], 0, 0

    def read(self):
        n: cython.Py_ssize_t = 0
        labels = None
        self.blank()
        if not self.take(b"{"):
            return None
        for k in range(2):
            self.blank()
            if n == 0 and self.word(b'"rows"', 6):
                n = self.rows()
                if n == 0:
                    return None
            elif labels is None and self.word(b'"y"', 3):
                labels = self.numbers()
                if labels is None:
                    return None
            else:
                return None
            self.blank()
            if k == 0 and not self.take(b","):
                return None
        if not self.take(b"}"):
            return None
        self.blank()
        if self.at != self.end or len(labels[0]) != n:
            return None
        columns = np.ascontiguousarray(self.buffer[:n].T)
        return {name: (columns[j], not self.fractions[j]) for j, name in enumerate(self.names)}, labels

    # --- lists --------------------------------------------------------------------------------------------------------

    def rows(self):
        """After its name: how many there are, 0 if they are not as they should be."""
        n: cython.Py_ssize_t = 0
        self.blank()
        if not self.take(b":"):
            return 0
        self.blank()
        if not self.take(b"["):
            return 0
        self.blank()
        if not self.first_row():
            return 0
        n = 1
        while True:
            self.blank()
            if self.take(b"]"):
                return n
            if n == MOST_ROWS or not self.take(b","):
                return 0
            self.blank()
            if n == self.room:
                self.room *= 2
                self.buffer = np.concatenate([self.buffer, np.empty_like(self.buffer)])
                self.values = self.buffer
            if not self.row(n):
                return 0
            n += 1

    def numbers(self):
        """After its name: as floats, and whether they are all whole; None if they are something else."""
        n: cython.Py_ssize_t = 0
        fractions: cython.bint = False
        found = np.empty(MOST_ROWS)
        values: cython.double[::1] = found
        self.blank()
        if not self.take(b":"):
            return None
        self.blank()
        if not self.take(b"["):
            return None
        while True:
            self.blank()
            if n == MOST_ROWS or not self.number(cython.address(values[n])):
                return None
            fractions |= not self.whole
            n += 1
            self.blank()
            if self.take(b"]"):
                return found[:n].copy(), not fractions
            if not self.take(b","):
                return None

    # --- rows ---------------------------------------------------------------------------------------------------------

    def first_row(self):
        """It has the names."""
        start: cython.Py_ssize_t
        value: cython.double = 0.0
        found: list = []
        fractions: list = []
        if not self.take(b"{"):
            return False
        while True:
            self.blank()
            start = self.at
            if not self.take(b'"'):
                return False
            while 0x20 <= self.text[self.at] < 0x7F and self.text[self.at] != b'"' and self.text[self.at] != b"\\":
                self.at += 1
            if not self.take(b'"') or self.at - start - 2 > MOST_NAMES or len(found) == MOST_NAMES:
                return False
            self.keys.append(self.body[start : self.at])
            self.blank()
            if not self.take(b":"):
                return False
            self.blank()
            if not self.number(cython.address(value)):
                return False
            found.append(value)
            fractions.append(not self.whole)
            self.blank()
            if self.take(b"}"):
                break
            if not self.take(b","):
                return False
        self.names = [key[1 : len(key) - 1].decode() for key in self.keys]
        self.n_names, self.room = len(found), 128
        if len(set(self.names)) < self.n_names:
            return False
        self.buffer = np.empty((self.room, self.n_names))
        self.buffer[0] = found
        self.values, self.fractions = self.buffer, np.array(fractions, dtype=np.uint8)
        return True

    def row(self, i):
        j: cython.Py_ssize_t
        key: bytes
        if not self.take(b"{"):
            return False
        for j in range(self.n_names):
            self.blank()
            key = self.keys[j]
            if not self.word(key, len(key)):
                return False
            self.blank()
            if not self.take(b":"):
                return False
            self.blank()
            if not self.number(cython.address(self.values[i, j])):
                return False
            self.fractions[j] |= not self.whole
            self.blank()
            if j < self.n_names - 1 and not self.take(b","):
                return False
        return self.take(b"}")

    # --- what they are made of ----------------------------------------------------------------------------------------

    def number(self, value):
        """A number as JSON has it; `whole` is whether it is written as one."""
        start: cython.Py_ssize_t = self.at
        begun: cython.Py_ssize_t
        mantissa: cython.ulonglong = 0
        n: cython.Py_ssize_t = 0
        power: cython.Py_ssize_t = 0
        exponent: cython.ulonglong = 0
        minus: cython.bint = self.take(b"-")
        below: cython.bint = False
        wide: cython.longdouble
        after: cython.p_char = cython.NULL
        self.whole = True
        begun = self.at
        if not self.digits(cython.address(mantissa), cython.address(n)):
            return False
        if self.text[begun] == b"0" and self.at - begun > 1:
            return False
        if self.take(b"."):
            self.whole = False
            begun = self.at
            if not self.digits(cython.address(mantissa), cython.address(n)):
                return False
            power = begun - self.at
        if self.take(b"e") or self.take(b"E"):
            self.whole = False
            below = self.take(b"-")
            if not below:
                self.take(b"+")
            begun = 0
            if not self.digits(cython.address(exponent), cython.address(begun)) or begun > 4:
                return False
            power += -cython.cast(cython.Py_ssize_t, exponent) if below else cython.cast(cython.Py_ssize_t, exponent)
        if n <= MOST_DIGITS and mantissa <= EXACT and -LARGEST_POWER <= power <= LARGEST_POWER:
            value[0] = cython.cast(cython.double, mantissa)
            if power < 0:
                value[0] /= POWERS[-power]
            elif power > 0:
                value[0] *= POWERS[power]
            if minus and not (self.whole and mantissa == 0):
                value[0] = -value[0]
            return True
        if self.whole:
            return False
        if LDBL_MANT_DIG >= 64 and n <= MOST_DIGITS and -WIDE_POWER <= power <= WIDE_POWER:
            # Exact numbers, and rounded once: the result is off by 2^-64 of it at most, which matters only if a double
            # ends in between.
            wide = mantissa
            wide = wide / WIDE_POWERS[-power] if power < 0 else wide * WIDE_POWERS[power]
            value[0] = cython.cast(cython.double, wide - wide * ONE_BIT)
            if value[0] == cython.cast(cython.double, wide + wide * ONE_BIT):
                value[0] = -value[0] if minus else value[0]
                return True
        value[0] = PyOS_string_to_double(
            cython.cast(cython.p_char, self.text) + start, cython.address(after), cython.NULL
        )
        return isfinite(value[0])

    def digits(self, number, n):
        """At least one. n counts those after zeros; of more than MOST_DIGITS the number is nonsense."""
        start: cython.Py_ssize_t = self.at
        while b"0" <= self.text[self.at] <= b"9":
            number[0] = 10 * number[0] + (self.text[self.at] - 48)
            n[0] += n[0] > 0 or number[0] != 0
            self.at += 1
        return self.at > start

    def word(self, wanted, n):
        if self.end - self.at < n or memcmp(cython.address(self.text[self.at]), wanted, n) != 0:
            return False
        self.at += n
        return True

    def take(self, mark):
        if self.text[self.at] != mark:
            return False
        self.at += 1
        return True

    def blank(self):
        while self.text[self.at] == 32 or 9 <= self.text[self.at] <= 10 or self.text[self.at] == 13:
            self.at += 1
