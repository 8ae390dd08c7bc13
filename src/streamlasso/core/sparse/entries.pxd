# cython: language_level=3
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from streamlasso.core.sparse.table cimport Entry


cdef extern from *:
    """
    #define wide_exact_float(o) PyFloat_CheckExact(o)
    #define wide_plain(o) (PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyFloat_Check(o))

    /* ASCII text, and NULL for any other object. In front of it is the object's head: more than 8 bytes. */
    static CYTHON_INLINE const unsigned char* wide_ascii(PyObject* name, Py_ssize_t* length) {
        if (!PyUnicode_CheckExact(name) || !PyUnicode_IS_COMPACT_ASCII(name))
            return NULL;
        *length = PyUnicode_GET_LENGTH(name);
        return (const unsigned char*)PyUnicode_DATA(name);
    }

    #if defined(__GNUC__)
    #define WIDE_NEAR(name) (__builtin_prefetch(name), __builtin_prefetch((const char*)(name) + 64))
    #else
    #define WIDE_NEAR(name) ((void)0)
    #endif

    /* The names and values of a dict, borrowed; the names are prefetched. -1 where a value has to run Python to say what
       it is: it could change the row meanwhile, or let another thread. */
    static CYTHON_INLINE Py_ssize_t wide_items(PyObject* row, PyObject** items) {
        PyObject *name, *value;
        Py_ssize_t n = 0, at = 0;
        while (PyDict_Next(row, &at, &name, &value)) {
            if (!wide_plain(value))
                return -1;
            WIDE_NEAR(name);
            items[2 * n] = name;
            items[2 * n++ + 1] = value;
        }
        return n;
    }
    """
    bint wide_exact_float(PyObject* given) noexcept
    double wide_float "PyFloat_AS_DOUBLE" (PyObject* given) noexcept
    const unsigned char* wide_ascii(PyObject* name, Py_ssize_t* length) noexcept
    const unsigned char* wide_utf8 "(const unsigned char*)PyUnicode_AsUTF8AndSize" (object text,
                                                                                    Py_ssize_t* length) except NULL
    Py_ssize_t wide_items(object row, PyObject** items) noexcept


@cython.final
cdef class Entries:
    """The non-zeros of a row: `all`, `n` of them."""
    cdef Entry* all
    cdef Entry* spare
    cdef uint32_t* count
    cdef Py_ssize_t n, capacity, n_last
    #: Names and values of the last row, in turn.
    cdef PyObject** last
    cdef uint64_t k0, k1
    cdef list made
    #: The row whose names the entries have, and whether it is the one that was there before.
    cdef dict held
    cdef bint again

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef int take_columns(self, Py_ssize_t start, Py_ssize_t end, const int64_t[::1] columns,
                          const double[::1] values) except -1
    cdef int take_names(self, x, bint remember) except -1
    cdef bint _walk(self, dict row, bint remember) except -1
    cdef bint _take_other(self, PyObject* name, PyObject* given) except -1
    cdef void _add(self, void* name, double value, uint64_t key) noexcept
    cdef bint _is_last(self, dict row) noexcept
    cdef void _forget_last(self) noexcept
    cdef void _sort(self) noexcept


cdef double number_of(name, given) except? -1
cdef _plain(name, given)
