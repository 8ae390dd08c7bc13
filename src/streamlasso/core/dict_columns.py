# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Rows that come as dicts, as columns."""

import cython
import numpy as np

#: Whole numbers up to this are the same as floats.
EXACT = cython.declare(cython.longlong, 2**53)


def number_columns(rows: list):
    """By name, in the order in which names come: the column as floats, NaN where there is none or None; and whether all
    its numbers are whole. None for a column that holds something else, or whole numbers beyond 2^53.

    >>> from streamlasso.core.dict_columns import number_columns
    >>> number_columns([{"a": 1, "b": 0.5}, {"b": 2, "c": "x"}])
    {'a': (array([ 1., nan]), True), 'b': (array([0.5, 2. ]), False), 'c': None}
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(rows)
    room: cython.Py_ssize_t = len(rows[0]) if n else 0
    whole: cython.longlong
    row: dict
    names: list = []
    place: dict = {}
    values = np.full((room, n), np.nan)
    kinds = np.zeros(room, dtype=np.uint8)
    out: cython.double[:, ::1] = values
    kind: cython.uchar[::1] = kinds
    for i in range(n):
        row = rows[i]
        k = 0
        for name, value in row.items():
            # Mostly a row has its names in the order of the first one.
            if k < len(names) and names[k] is name:
                j = k
            else:
                found = place.get(name)
                j = len(names) if found is None else found
                if found is None:
                    place[name] = j
                    names.append(name)
                    if j == room:
                        room = 2 * room + 1
                        values = np.concatenate([values, np.full((room - j, n), np.nan)])
                        kinds = np.concatenate([kinds, np.zeros(room - j, dtype=np.uint8)])
                        out, kind = values, kinds
            k += 1
            if type(value) is float:
                out[j, i] = value
                kind[j] |= FRACTIONS
            elif type(value) is int:
                try:
                    whole = value
                except OverflowError:
                    kind[j] |= OTHER
                    continue
                if -EXACT <= whole <= EXACT:
                    out[j, i] = whole
                else:
                    kind[j] |= OTHER
            elif value is not None:
                kind[j] |= OTHER
    return {name: None if kind[j] & OTHER else (values[j], not kind[j] & FRACTIONS) for j, name in enumerate(names)}
