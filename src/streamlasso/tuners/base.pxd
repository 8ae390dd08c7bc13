from streamlasso.core.base.part cimport Part

cdef class Tuner(Part):
    cdef double move(
        self, double lam, double slope, double norm, double lam_max, double* state, Py_ssize_t n
    ) except? -1 nogil
