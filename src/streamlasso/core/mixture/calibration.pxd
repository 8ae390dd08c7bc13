cimport cython

from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family

#: The rules, and what is chosen from: nothing, or one of them.
cdef enum:
    N_RULES = 2
    N_CHOICES = 3


@cython.final
cdef class Calibration(Stateful):
    cdef Family family
    # (a, b) and A of each rule, and the weights of no change and of these.
    cdef double[2][2] theta
    cdef double[2][3] A
    cdef readonly Hedge hedge

    cdef void linear(self, double* shift, double* scale) noexcept nogil
    cdef double of(self, double eta) noexcept nogil
    cdef int see(self, double y, double eta, double weight) except -1 nogil
    cdef int _learn_rule(self, Py_ssize_t h, double y, double eta, double weight) except -1 nogil
