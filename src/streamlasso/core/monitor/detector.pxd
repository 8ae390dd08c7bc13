cimport cython

from streamlasso.core.monitor.diagnosis cimport BETWEEN, LOSS, N_NOTES, N_PAST, N_RECENT, OFFSET, RESPONSE, SCORE, SURPRISE
from streamlasso.core.base.buffers cimport Doubles
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family

#: Powers of ranks and shifts of errors; the errors that ranks are among, those just before the row that are left out,
#: and room for both; changes that are kept.
cdef enum:
    N_POWERS = 4
    N_SHIFTS = 4
    N_BEFORE = 256
    N_LATE = 16
    N_ERRORS = 272
    MOST_KEPT = 32

#: What raised an alarm: errors that go with a feature, or errors that are larger than usual.
cdef enum:
    NONE, BY_SCORE, BY_SURPRISE


@cython.final
cdef class Changes(Stateful):
    cdef Family family
    cdef readonly Py_ssize_t p
    cdef public double limit
    cdef bint scaled, whole, quadratic
    cdef Doubles room
    # By feature, those with an intercept p + 1; errors by row; moved and usual by feature and shift; x, notes and past
    # by row.
    cdef double* mean
    cdef double* variance
    cdef double* grown
    cdef double* errors
    cdef double* moved
    cdef double* usual
    cdef double* now
    cdef double* held
    cdef double* x
    cdef double* notes
    cdef double* past
    # Of the row at hand, by feature.
    cdef double* z
    cdef double* total
    # The changes that were found, and for how many there is room.
    cdef double* found
    cdef Py_ssize_t count, n_found
    cdef public double square, n_scale, information, level, deviation
    cdef public Py_ssize_t n, age, n_errors, n_held, alarm_row, alarm_feature
    cdef public int alarm_kind
    # Of the row at hand.
    cdef bint restarted
    cdef double residual, predicted, root, evidence, largest
    cdef int kind
    cdef Py_ssize_t feature

    cdef int see(self, const double* x, double y, double eta, double loss, double weight) except -1 nogil
    cdef double _linear(self, const double* model, const double* x) noexcept nogil
    cdef void _copy(self, double* to, const double* model) noexcept nogil
    cdef int _residual(self, double y, double eta) except -1 nogil
    cdef double _error(self, double y) noexcept nogil
    cdef double _least_error(self) noexcept nogil
    cdef double _compare_grown(self, double error) noexcept nogil
    cdef void _hold(self, bint suspicious) noexcept nogil
    cdef double _compare_moved(self, const double* x) noexcept nogil
    cdef void _weigh(self, double evidence, int kind, Py_ssize_t feature) noexcept nogil
    cdef void _follow_scale(self) noexcept nogil
    cdef void _follow(self, const double* x, double y) noexcept nogil
    cdef void _note(
        self, const double* x, double y, double offset, double loss, double score, double surprise
    ) noexcept nogil
    cdef Py_ssize_t _n_varied(self) noexcept nogil
    cdef int _raise_alarm(self) except -1 nogil
    cdef int _keep(self) except -1 nogil
    cdef bint _make_room(self, Py_ssize_t n) noexcept nogil
