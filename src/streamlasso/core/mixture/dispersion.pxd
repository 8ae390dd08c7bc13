cimport cython

from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family


@cython.final
cdef class Noise(Stateful):
    cdef Family family
    cdef bint scaled
    cdef readonly double cap
    cdef double rounding
    cdef public double dispersion, dispersion_weight

    cdef int measure(self, double y, double eta, double least) except -1 nogil
    cdef double trust(self, double y, double eta, double least) except? -1 nogil
    cdef double slope_of(self, double y, double eta, double weight) except? -1 nogil
    cdef double loss_of(self, double y, double eta, double weight, double least) except? -1 nogil
    cdef int losses_of(
        self, Py_ssize_t n, double y, const double* etas, double weight, double least, double* loss
    ) except -1 nogil
