from streamlasso.tuners.base cimport Tuner

cdef class LogRMS(Tuner):
    cdef readonly double step_size
