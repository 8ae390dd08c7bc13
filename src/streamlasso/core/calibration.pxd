cimport cython

from streamlasso.core.state cimport Stateful
from streamlasso.families.base cimport Family

#: The rules, and what is chosen from: nothing, or one of them.
cdef enum:
    N_RULES = 2
    N_CHOICES = 3


@cython.final
cdef class Calibration(Stateful):
    cdef Family family
    cdef double[::1] decay
    cdef readonly double[::1] losses
    cdef readonly double[:, ::1] theta, A

    cdef void linear(self, double* shift, double* scale) noexcept nogil
    cdef double of(self, double eta) noexcept nogil
    cdef int see(self, double y, double eta, double weight) except -1 nogil
    cdef int _learn_rule(self, Py_ssize_t h, double y, double eta, double weight) except -1 nogil
