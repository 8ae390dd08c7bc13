from streamlasso.core.base.part cimport Part

cdef class Family(Part):
    cdef bint checks_target
    cdef double loss_at(self, double y, double eta) except? -1 nogil
    cdef double slope_at(self, double y, double eta) except? -1 nogil
    cdef double curvature_at(self, double y, double eta) except? -1 nogil
    cdef int slopes_at(self, double y, double eta, double* slope, double* curvature) except -1 nogil
    cdef int losses_of(self, Py_ssize_t n, double y, const double* eta, double* loss) except -1 nogil
    cdef int slopes(
        self, Py_ssize_t n, const double* y, const double* eta, double* slope, double* curvature
    ) except -1 nogil
    cdef double mean_at(self, double eta) except? -1 nogil
    cdef int means_of(self, Py_ssize_t n, const double* eta, double* mean) except -1 nogil
    cdef double spread_at(self, double eta) except? -1 nogil
    cdef double best_eta(self, double y, double low, double high) except? -1 nogil
    cdef double residual_at(self, double y, double eta) except? -1 nogil
    cdef double level_at(self, double y) except? -1 nogil
    cdef _each(self, int which, y, eta)
