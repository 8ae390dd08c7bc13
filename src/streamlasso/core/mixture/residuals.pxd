cimport cython

from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.base.state cimport Stateful
from streamlasso.families.base cimport Family

#: The residuals that are kept: e_{t-1}, e_{t-2}, their fading mean, and the last response on the scale of eta.
cdef enum:
    LAST = 0
    BEFORE = 1
    FADING = 2
    LEVEL = 3
    N_LAGS = 4

#: The rules, what the gate chooses from (nothing, or one of them), and the features of the long one.
cdef enum:
    SHORT = 0
    LONG = 1
    N_RULES = 2
    N_CHOICES = 3
    N_FEATURES = 5


@cython.final
cdef class Carry(Stateful):
    cdef Family family
    cdef bint scaled
    cdef public Py_ssize_t n_seen
    cdef readonly Hedge hedge
    cdef double* gate
    cdef double[2][5][5] A
    cdef double[2][5] B
    cdef double[2][5] theta
    cdef double[4] lags
    cdef public double level_mean, eta_mean

    cdef double offset(self, const double* lags, double eta) noexcept nogil
    cdef void linear(self, double* shift, double* scale) noexcept nogil
    cdef int expect(self, double* lags, double eta) except -1 nogil
    cdef double choice(self, Py_ssize_t h, const double* lags, double eta) noexcept nogil
    cdef void weigh(self, const double* loss) noexcept nogil
    cdef int learn(self, const double* lags, double y, double eta, double weight, double trust) except -1 nogil
    cdef void _features(self, const double* lags, double eta, double* z) noexcept nogil
    cdef double _rule(self, Py_ssize_t h, const double* z) noexcept nogil
    cdef int _advance(self, double* lags, double y, double eta, double trust) except -1 nogil
    cdef int _learn_rule(
        self, Py_ssize_t h, double y, double eta, double weight, double residual, const double* z
    ) except -1 nogil
    cdef void _solve(self, Py_ssize_t h) noexcept nogil
