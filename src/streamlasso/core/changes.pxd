cimport cython

from streamlasso.core.state cimport Stateful
from streamlasso.families.base cimport Family

#: Windows of the scores, ratios of the surprises, tails of the errors; rows and models that are kept.
cdef enum:
    N_WINDOWS = 5
    N_RATIOS = 4
    N_TAILS = 4
    N_RECENT = 128
    N_PAST = 8
    MOST_KEPT = 32

#: What is kept of a row beside its features.
cdef enum:
    RESPONSE, OFFSET, LOSS, SCORE, SURPRISE, N_NOTES

#: What raised an alarm: errors that go with a feature, or errors that are larger than usual.
cdef enum:
    NONE, BY_SCORE, BY_SURPRISE


@cython.final
cdef class Changes(Stateful):
    cdef Family family
    cdef readonly Py_ssize_t p
    cdef Py_ssize_t more
    cdef public double score_limit, surprise_limit
    cdef bint scaled, restarted
    cdef double[::1] factors, decay, ratio, odds, log_ratio, tail, constant
    cdef double[:, ::1] table
    cdef readonly double[::1] mean, sums, square, evidence, now, held
    cdef readonly double[::1] squares, products
    cdef readonly double[:, ::1] S, V, x, notes, past, found
    cdef public double n_scale, usual
    cdef public Py_ssize_t n, age, n_held, count, alarm_row, alarm_start, alarm_feature
    cdef public int alarm_kind
    cdef Py_ssize_t feature, started
    cdef double chance
    cdef readonly Py_ssize_t[::1] since

    cdef int see(self, const double* x, double y, double eta, double loss, double weight) except -1 nogil
    cdef double _residual(self, double y, double eta) except? -1 nogil
    cdef double _surprise(self, double r) noexcept nogil
    cdef double _deviation(self) noexcept nogil
    cdef double _add_surprise(self, double surprise) noexcept nogil
    cdef double _unlikely(self, double y, double mean) noexcept nogil
    cdef double _add_class(self, double surprise) noexcept nogil
    cdef double _largest_sum(self) noexcept nogil
    cdef void _measure(self, const double* x, double score, double variance) noexcept nogil
    cdef double _add_score(self, const double* x, double score, double variance) noexcept nogil
    cdef void _follow(self, double r, double floor) noexcept nogil
    cdef void _restart(self) noexcept nogil
    cdef int _raise_alarm(self, int kind, Py_ssize_t start) except -1 nogil
    cdef int _keep(self) except -1 nogil
