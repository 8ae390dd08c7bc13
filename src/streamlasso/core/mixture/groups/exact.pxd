cimport cython

from streamlasso.core.mixture.groups.base cimport Experts
from streamlasso.core.lasso.learner cimport Learner


@cython.final
cdef class ModelExperts(Experts):
    cdef Learner learner
    cdef Py_ssize_t stale_rows
    cdef double[:, ::1] notes
    cdef double[::1] model
