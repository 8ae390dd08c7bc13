from streamlasso.core.model cimport Engine


cdef class DictRows:
    cdef readonly list names
    cdef dict index
    cdef list recent
    cdef Py_ssize_t[::1] at
    cdef readonly object row, target, weight
    cdef double[:, ::1] x, note
    cdef double[::1] y, w
    cdef readonly Py_ssize_t width
    cdef Py_ssize_t n_filled

    cpdef bint fill(self, x) except -1
    cpdef double eta(self, Engine learner, x) except? -1
    cpdef double predict(self, Engine learner, x) except? -1
    cpdef bint learn(self, Engine learner, x, y, weight) except -1
    cdef bint _learn(self, Engine learner, x, y, weight) except -1
    cpdef int take(self, list learners, list targets) except -1
    cpdef double weigh(self, weight) except? -1
    cdef int _fit(self, Engine learner) except -1


cpdef double number(name, value) except? -1
cdef bint _same(a, b)
