cimport cython

from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.base.buffers cimport Doubles, Pointers
from streamlasso.core.base.state cimport Stateful


@cython.final
cdef class Average(Stateful):
    cdef readonly Py_ssize_t p, n
    cdef Pointers each, groups
    cdef Hedge hedge
    cdef Py_ssize_t nothing, restarting
    cdef bint is_constant
    cdef Doubles room
    # The first expert of each of `each`; by expert, its weight, and what its coefficients are multiplied by.
    cdef Py_ssize_t* first
    cdef double* total
    # The weights of the groups.
    cdef double* gate
    cdef double doubt
    cdef double* scaled
    # (b0, b), and whether no expert with a weight is left out of it.
    cdef double* model
    cdef bint is_whole
    cdef signed char* used

    cdef void add_up(self) noexcept nogil
    cdef int outline(self) except -1 nogil
    cdef int whole(self) except -1 nogil
    cdef int _add_models(self, double least) except -1 nogil
    cdef double weight_of(self, Py_ssize_t m) noexcept nogil
    cdef Py_ssize_t n_active(self) except -1 nogil
    cdef int _write_model_of(self, Py_ssize_t m, Py_ssize_t k, double* only, double* model) except -1 nogil
