from streamlasso.tuners.base cimport Tuner

cdef class SGD(Tuner):
    cdef readonly double step_size
