# cython: language_level=3
cimport cython
from libc.stdint cimport uint32_t

from streamlasso.core.sparse.blend cimport Blend, Units
from streamlasso.core.sparse.updates cimport MOST_EXPERTS, Settings, Term


@cython.final
cdef class Ensemble:
    #: The features of a row, `n` of them; those that were there when it was predicted.
    cdef Py_ssize_t n, n_predicted, capacity
    cdef Term* terms
    cdef float* noted
    cdef float* coins
    cdef Settings settings
    cdef Units units
    cdef readonly Blend blend
    cdef bint implicit[MOST_EXPERTS]
    cdef double alpha[MOST_EXPERTS]
    #: Of the row: each one's prediction, and the squared length in its metric.
    cdef double m[MOST_EXPERTS]
    cdef double length[MOST_EXPERTS]
    cdef double rate
    #: Of the intercepts.
    cdef double bias_alpha[MOST_EXPERTS]
    cdef double bias_fade[MOST_EXPERTS]
    cdef double bias_z[MOST_EXPERTS]
    cdef double bias_n[MOST_EXPERTS]
    cdef double bias_q[MOST_EXPERTS]

    cdef int make_room(self, Py_ssize_t n) except -1
    cdef void total(self, float* m, float* length) noexcept nogil
    cdef double predict(self, double rate) except? -1
    cdef int learn(self, double y, double weight) except -1
    cdef double _implicit_slope(self, Py_ssize_t e, double y, double weight) except? -1
    cdef void _learn_bias(self, const float* g) noexcept nogil


cdef inline double put(Ensemble self, float* state, float x, float unit, uint32_t age) noexcept nogil:
    """The next feature of the row: its state, to be multiplied by `unit`, and the rows since its last one; x^2."""
    cdef Term* term = self.terms + self.n
    term.state = state
    term.x = x
    term.unit = unit
    term.age = age
    term.fast = 0
    term.slow = 0
    self.n += 1
    return x * x
