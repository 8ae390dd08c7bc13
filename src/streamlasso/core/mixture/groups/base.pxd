from streamlasso.core.mixture.residuals cimport Carry
from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.mixture.dispersion cimport Noise
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.core.lasso.moments cimport Scaler, Sums


#: The most rows that a model of little weight waits to be solved again; they all enter its memory.
cdef enum:
    STALE_ROWS = 32


#: n rows to learn. `etas`: what these experts predicted for the first row, where there is a link within the bounds,
#: `stride` further for the next; `weight`: of these experts; `eta_low`, `eta_high`: where a row may be expanded.
cdef struct Batch:
    Py_ssize_t n
    const double* X
    const double* y
    const double* w
    const double* etas
    Py_ssize_t stride
    const double* weight
    double eta_low
    double eta_high


#: A row that is judged: its response and weight, the least loss that it could have had, and its losses by expert in
#: units of the noise.
cdef struct Judged:
    double y
    double weight
    double least
    const double* etas
    const double* loss


cdef class Experts(Stateful):
    cdef readonly Py_ssize_t n
    cdef readonly object memory

    cdef int predict(self, const double* x, double* eta) except -1 nogil
    cdef int learn(self, Batch* batch) except -1 nogil
    cdef void rest(self) noexcept
    cdef int add_coef(self, const double* weight, double* model) except -1 nogil
    cdef Py_ssize_t mark(self, const double* weight, signed char* used) except -1 nogil
    cdef double lam_of(self, Py_ssize_t k) except? -1 nogil
    cdef double sum_lam(self, const double* weight) except? -1 nogil
    cdef double lam_max_of(self) except? -1 nogil
    cdef double size_of(self) except? -1 nogil
    cdef bint keeps_sums(self) noexcept nogil
    cdef void write_sums(self, Sums* sums) noexcept nogil
    cdef int code_of(self, Py_ssize_t k) except? -1 nogil
    cdef int _missing(self, const char* name) except -1 nogil


cdef class Group(Stateful):
    cdef readonly str name
    cdef readonly Py_ssize_t first, n
    cdef readonly double prior, start
    cdef readonly bint waits
    cdef readonly Hedge hedge
    cdef readonly Carry carry
    cdef Doubles room
    cdef double* w
    cdef double* regret

    cdef double average(self, const double* pulls) noexcept nogil
    cdef int evaluate(self, Judged* row, double eta, Noise noise) except -1 nogil
    cdef int begin_group(self, Scaler stream) except -1 nogil
    cdef int see(self, Scaler stream, double eta, Py_ssize_t n_seen) except -1 nogil
