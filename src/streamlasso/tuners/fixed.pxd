from streamlasso.tuners.base cimport Tuner

cdef class Fixed(Tuner):
    cdef readonly double lam
