from streamlasso.core.record cimport Record
from streamlasso.core.state cimport Stateful
from streamlasso.families.base cimport Family


cdef class Engine(Stateful):
    cdef readonly dict settings
    cdef Family family
    cdef readonly Py_ssize_t p
    cdef Py_ssize_t batch_size
    cdef readonly bint compiled
    cdef bint busy
    cdef public double lam
    cdef public Py_ssize_t n_seen
    cdef public int code

    cdef int take(self, const double[:, ::1] x, const double[::1] y, const double[::1] w, double[:, ::1] record) except -1
    cdef int _learn(self, const double[:, ::1] X, const double[::1] y, weight, record, coef) except -1
    cdef int _step(self, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out) except -1 nogil
    cdef double eta_at(self, const double* x) except? -1 nogil
    cdef int predict_rows(self, Py_ssize_t n, const double* X, double* etas, double* residuals) except -1 nogil
    cdef void write_model(self, double* model) noexcept nogil
