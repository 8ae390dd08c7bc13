from streamlasso.tuners.base cimport Tuner

cdef class LARS(Tuner):
    cdef readonly double step_size
