from cpython.pythread cimport PyThread_get_thread_ident, PyThread_type_lock


cdef class Gate:
    cdef PyThread_type_lock turn, bell
    cdef unsigned long owner, learner, claimed_by
    cdef Py_ssize_t depth, wanted, generation
    cdef bint busy, in_row, inner, rung, watched

    cpdef int hold(self) except -1
    cpdef int release(self) except -1
    cdef void _leave(self) noexcept
    cdef int _wait(self) except -1
    cdef int _make_locks(self) except -1
    cpdef int begin(self, bint keeps_gil=*) except -1
    cpdef int end(self) except -1
    cdef void _end(self) noexcept
    cpdef int claim(self) except -1
    cpdef int unclaim(self) except -1
    cdef int give_way(self) except -1
    cdef int pause(self) except -1
    cpdef bint watch(self) except -1
    cdef void unwatch(self) noexcept
    cdef bint _outermost(self) except -1
    cdef int _renew(self) except -1


cdef inline bint taken(Gate gate) noexcept:
    """Whether another thread has it."""
    return gate.owner != 0 and gate.owner != PyThread_get_thread_ident()


cdef class Alone:
    cdef Gate gate


cdef class Whole:
    cdef Gate gate
    cdef bint watched


cdef class Claimed:
    cdef Gate gate


cdef class Learning:
    cdef object estimator
    cdef readonly long process


cdef double seconds() noexcept nogil
