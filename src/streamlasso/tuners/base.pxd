from streamlasso.core.part cimport Part

cdef class Tuner(Part):
    cdef double move(self, double lam, double slope, double norm, double lam_max, double* state) except? -1 nogil
