# cython: language_level=3
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from streamlasso.core.wide.table cimport Entry


cdef extern from *:
    """
    #define wide_exact_float(o) PyFloat_CheckExact(o)
    #define wide_plain(o) (PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyFloat_Check(o))

    static CYTHON_INLINE const unsigned char* wide_utf8(PyObject* text, Py_ssize_t* length) {
        if (PyUnicode_IS_COMPACT_ASCII(text)) {
            *length = PyUnicode_GET_LENGTH(text);
            return (const unsigned char*)PyUnicode_DATA(text);
        }
        return (const unsigned char*)PyUnicode_AsUTF8AndSize(text, length);
    }

    /* A number that no other dict has had, nor this one before it changed; 0 where Python keeps none. */
    #if PY_VERSION_HEX < 0x030D0000
    #if defined(__GNUC__)
    #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    #endif
    #define wide_version(row) (((PyDictObject*)(row))->ma_version_tag)
    #else
    #define wide_version(row) 0
    #endif
    """
    uint64_t wide_version(object row) noexcept
    bint wide_exact_float(PyObject* given) noexcept
    bint wide_plain(PyObject* given) noexcept
    const unsigned char* wide_utf8(object text, Py_ssize_t* length) except NULL


@cython.final
cdef class Entries:
    """The non-zeros of a row: `all`, `n` of them."""
    cdef Entry* all
    cdef Entry* spare
    cdef Py_ssize_t n, capacity, n_last
    cdef PyObject** last
    cdef uint64_t k0, k1, version
    cdef list made
    cdef bint again

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef int take_columns(self, Py_ssize_t start, Py_ssize_t end, const int64_t[::1] columns,
                          const double[::1] values) except -1
    cdef int take_names(self, x, bint remember) except -1
    cdef bint _walk(self, dict row, bint remember) except -1
    cdef bint _is_last(self, dict row) noexcept
    cdef void _forget_last(self) noexcept
    cdef void _sort(self) noexcept nogil


cdef double number_of(name, given) except? -1
cdef _plain(name, given)
