cimport cython

from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.base.buffers cimport Doubles, Pointers


@cython.final
cdef class Average:
    cdef readonly Py_ssize_t p, n
    cdef Pointers each, groups
    cdef Hedge hedge
    cdef Py_ssize_t nothing
    cdef bint is_constant
    cdef Doubles room
    # The first expert of each of `each`; by expert, its weight, and what its coefficients are multiplied by.
    cdef Py_ssize_t* first
    cdef double* total
    # The weights of the groups.
    cdef double* gate
    cdef double doubt
    cdef double* scaled
    # (b0, b), and whether it is that of the present weights.
    cdef double* model
    cdef bint is_current
    # Averages over the experts, and how the last solve of the heaviest went; whether they are those of the last row.
    cdef double lam, lam_max, size
    cdef Py_ssize_t code
    cdef bint is_summarised
    cdef signed char* used

    cdef void add_up(self) noexcept nogil
    cdef int summarise(self, Py_ssize_t n_seen) except -1 nogil
    cdef int add_models(self) except -1 nogil
    cdef double weight_of(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t n_active(self) except -1 nogil
    cdef int _write_model_of(self, Py_ssize_t m, Py_ssize_t k, double* only, double* model) except -1 nogil
