from cpython.pythread cimport PyThread_type_lock


cdef class Gate:
    cdef PyThread_type_lock turn, bell
    cdef unsigned long owner, claimed_by
    cdef Py_ssize_t depth, wanted, generation
    cdef bint busy, in_row, inner, rung

    cpdef int hold(self) except -1
    cpdef int release(self) except -1
    cdef void _leave(self) noexcept
    cdef int _wait(self) except -1
    cdef int _make_locks(self) except -1
    cpdef int begin(self) except -1
    cpdef int end(self) except -1
    cpdef int claim(self) except -1
    cpdef int unclaim(self) except -1
    cdef int give_way(self) except -1
    cdef int pause(self) except -1
    cpdef watch(self)
    cpdef unwatch(self)
    cdef int _renew(self) except -1


cdef double seconds() noexcept nogil
