cimport cython

from streamlasso.core.model cimport Engine
from streamlasso.core.base.buffers cimport Pointers
from streamlasso.core.base.tape cimport Tape
from streamlasso.keyed.pooling cimport Pooling


@cython.final
cdef class PackedModels:
    cdef readonly list engines
    cdef Pointers each, tapes, poolings
    cdef bytes fresh
    cdef char* fresh_at
    cdef Py_ssize_t fresh_size
    cdef readonly Py_ssize_t p, n_places
    cdef Py_ssize_t room
    # Which workers are at work, and how many.
    cdef list working
    cdef Py_ssize_t n_working
    cdef char** at
    cdef Py_ssize_t* size
    cdef Py_ssize_t* held

    cdef int _learn(
        self, Engine engine, Tape tape, Pooling pooling, Py_ssize_t place, Py_ssize_t n, const Py_ssize_t* rows, const double* X,
        const double* y, const double* w, const double* pooled, double* etas
    ) except -1 nogil
    cdef int _predict(
        self, Engine engine, Tape tape, Pooling pooling, Py_ssize_t place, Py_ssize_t n, const Py_ssize_t* rows, const double* X,
        const double* pooled, double* etas
    ) except -1 nogil
    cdef int _take_out(self, Engine engine, Tape tape, Pooling pooling, Py_ssize_t place) except -1 nogil
    cdef int _put_back(self, Engine engine, Tape tape, Pooling pooling, Py_ssize_t place) except -1 nogil
    cdef int _start(self, Py_ssize_t worker) except -1
    cdef int _refuse_at_work(self) except -1
    cdef int _stop(self, Py_ssize_t worker) except -1
    cdef void _keep(self, Py_ssize_t place, char* there, Py_ssize_t size) noexcept nogil
    cdef void _drop(self, Py_ssize_t place) noexcept nogil
