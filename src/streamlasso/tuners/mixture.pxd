from streamlasso.tuners.base cimport Tuner

cdef class Mixture(Tuner):
    cdef readonly tuple powers, factors
    cdef readonly int runs
    cdef readonly dict views
    cdef readonly bint carry
