from streamlasso.tuners.base cimport Tuner

cdef class Mixture(Tuner):
    cdef readonly tuple powers, factors
    cdef readonly int starts
    cdef readonly bint carry
