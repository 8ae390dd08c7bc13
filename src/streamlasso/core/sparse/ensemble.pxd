# cython: language_level=3
cimport cython
from libc.stdint cimport uint32_t

from streamlasso.core.sparse.blend cimport Blend, Units
from streamlasso.core.sparse.lanes cimport MOST_EXPERTS, Lanes


@cython.final
cdef class Ensemble:
    #: The features of a row, `n` of them: where their states are, x, and rows since they were last seen.
    cdef Py_ssize_t n, n_said, capacity
    cdef float** states
    cdef float* x
    cdef uint32_t* age
    cdef float* fast
    cdef float* slow
    cdef float* noted
    cdef float* coins
    cdef Lanes lanes
    cdef Units units
    cdef readonly Blend blend
    cdef bint implicit[MOST_EXPERTS]
    cdef double alpha[MOST_EXPERTS]
    #: Of the row: what each says, and the squared length in its metric.
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
    cdef double say(self, double rate) except? -1
    cdef int learn(self, double y, double weight) except -1
    cdef double _implicit_slope(self, Py_ssize_t e, double y, double weight) except? -1
    cdef void _learn_bias(self, const float* g) noexcept nogil


cdef inline double put(Ensemble self, float* state, float x, uint32_t age) noexcept nogil:
    """The next feature of a row; x^2."""
    self.states[self.n] = state
    self.x[self.n] = x
    self.age[self.n] = age
    self.n += 1
    return x * x


cdef void* resized(void* old, size_t size) except NULL
