from streamlasso.core.glm.likelihood cimport Likelihood


cdef class Proximal(Likelihood):
    cdef object penalty
