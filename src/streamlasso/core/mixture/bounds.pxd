cimport cython

from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family

@cython.final
cdef class Bounds(Stateful):
    cdef readonly Py_ssize_t p
    cdef public Py_ssize_t n
    cdef Family family
    cdef bint unbounded
    cdef Doubles room
    cdef double* low
    cdef double* high
    cdef public double y_low, y_high, eta_low, eta_high

    cdef double clip(self, Py_ssize_t j, double x) noexcept nogil
    cdef double clip_y(self, double y) noexcept nogil
    cdef double trust(self, const double* x, double y) noexcept nogil
    cdef double clip_eta(self, double eta) noexcept nogil
    cdef int see(self, const double* x, double y) except -1 nogil
    cdef int _bound_eta(self) except -1 nogil
    cdef double _where(self, double sign, double y, double margin, double never) except? -1 nogil
    cdef double least_loss(self, double y) except? -1 nogil
