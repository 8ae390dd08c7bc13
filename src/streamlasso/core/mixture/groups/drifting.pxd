cimport cython

from streamlasso.core.mixture.groups.base cimport Group
from streamlasso.core.mixture.groups.ridge cimport Ridge


@cython.final
cdef class Drifting(Group):
    cdef Ridge ridge
