from streamlasso.core.monitor.detector cimport Changes
from streamlasso.core.base.lock cimport Gate
from streamlasso.core.base.buffers cimport Pointers
from streamlasso.core.monitor.intervals cimport Quantiles
from streamlasso.core.base.record cimport Record
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family


cdef class Engine(Stateful):
    cdef readonly dict settings
    cdef Family family
    cdef readonly Quantiles quantiles
    cdef readonly Changes changes
    # The first rows, that nothing could predict.
    cdef Py_ssize_t n_unpredicted
    cdef readonly Py_ssize_t p
    cdef Py_ssize_t batch_size
    cdef readonly bint compiled
    #: Is S at the same place of all states, so that it may stay there while rows are learnt?
    cdef bint in_place
    cdef public Gate gate
    cdef public Py_ssize_t n_seen
    cdef public int code

    cdef int take(self, const double[:, ::1] x, const double[::1] y, const double[::1] w, double[:, ::1] record) except -1
    cdef int rest(self) except -1
    cdef int _step(self, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out) except -1 nogil
    cdef int complete(self, Py_ssize_t n, Record* out) except -1 nogil
    cdef int step(self, Py_ssize_t n, const double* X, const double* y, const double* w, Record* out) except -1 nogil
    cdef double eta_at(self, const double* x) except? -1 nogil
    cdef int predict_rows(self, Py_ssize_t n, const double* X, double* etas, double* residuals) except -1 nogil
    cdef double ask(self, const double* x) except? -1 nogil
    cdef void write_model(self, double* model) noexcept nogil


cdef class _Rows:
    cdef Gate gate
    cdef Pointers each
    cdef const double[:, ::1] X, Y
    cdef const double[::1] w
    cdef double[:, :, :] record, coef
    cdef long long[::1] learnt
    cdef Py_ssize_t n, batch_size, done
    cdef bint weighted, recorded, traced

    cdef int learn(self) except -1
    cdef int _loop(self) except -1 nogil
    cdef int _step(self, Py_ssize_t size) except -1 nogil
