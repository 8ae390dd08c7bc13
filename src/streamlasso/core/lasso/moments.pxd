cimport cython

from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.core.base.tape cimport Tape


#: Weighted least squares of a memory, in units of its newest row: S (p x p, by rows, its lower triangle), c and the
#: means of the features; the effective number of rows, their weight (the sum of their curvatures), the mean of the
#: targets and their scatter.
cdef struct Sums:
    double* S
    double* c
    double* mean
    double rows, weight, target_mean, target_scatter


@cython.final
cdef class Scaler(Stateful):
    cdef readonly Py_ssize_t p
    cdef Doubles room
    cdef double* mean
    cdef double* scatter
    cdef double* peak
    cdef public double weight, y_mean, y_scatter
    cdef public bint stale

    cdef void add(self, const double* x, double y, double weight) noexcept nogil
    cdef void remove(self, const double* x, double y, double weight) noexcept nogil
    cdef void deviations(self, double* out) noexcept nogil
    cdef void scale(self, double factor) noexcept nogil
    cdef void clear(self) noexcept nogil


cdef Py_ssize_t room_for(Py_ssize_t p, bint removes) noexcept nogil


@cython.final
cdef class Moments(Stateful):
    cdef readonly Py_ssize_t p
    cdef readonly bint centred
    cdef Doubles room
    cdef double* S
    cdef double* rows
    cdef double* signed
    cdef double* c
    cdef double* mean
    cdef public double weight, target_mean, target_scatter
    cdef Py_ssize_t n_pending

    cdef double* add(self, const double* x, double target, double weight) noexcept nogil
    cdef double* remove(self, const double* x, double target, double weight) noexcept nogil
    cdef double* _take(self, const double* x, double target, double k, double step, double sign) noexcept nogil
    cdef void flush(self) noexcept nogil
    cdef void write_sums(self, double factor, Sums* sums) noexcept nogil
    cdef void scale(self, double factor) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef double diagonal(self, Py_ssize_t j) noexcept nogil
    cdef void column(self, Py_ssize_t j, Py_ssize_t* members, Py_ssize_t k, double* out) noexcept nogil
    cdef void _travel_S(self, Tape tape) noexcept nogil
    cdef void _travel_rows(self, Tape tape, Py_ssize_t n) noexcept nogil
    cdef void times(self, Py_ssize_t* members, Py_ssize_t k, double* b, double* out) noexcept nogil


@cython.final
cdef class Ring(Stateful):
    cdef readonly Py_ssize_t p, capacity, start
    cdef public Py_ssize_t count
    cdef Doubles room
    cdef double* x
    cdef double* y
    cdef double* weight
    cdef double* curvature
    cdef double* target

    cdef Py_ssize_t slot(self, Py_ssize_t i) noexcept nogil
    cdef Py_ssize_t push(self, const double* x, double y, double weight) noexcept nogil
    cdef void forget_oldest(self) noexcept nogil
    cdef void scale(self, double factor) noexcept nogil
