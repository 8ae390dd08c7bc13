from streamlasso.core.learner cimport Learner


cdef class Columns:
    cdef readonly list names
    cdef dict index
    cdef list recent
    cdef Py_ssize_t[::1] at
    cdef readonly object row, target, weight
    cdef double[:, ::1] x, note
    cdef double[::1] y, w
    cdef readonly Py_ssize_t width

    cpdef bint fill(self, x) except -1
    cpdef double eta(self, Learner learner, x) except? -1
    cpdef double predict(self, Learner learner, x) except? -1
    cpdef bint learn(self, Learner learner, x, y, weight) except -1
    cpdef double weigh(self, weight) except? -1
    cdef int _fit(self, Learner learner) except -1


cpdef double number(name, value) except? -1
cdef bint _same(a, b)
