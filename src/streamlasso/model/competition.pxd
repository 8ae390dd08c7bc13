cimport cython

from streamlasso.core.base.state cimport Stateful
from streamlasso.core.base.hedge cimport Hedge
from streamlasso.families.base cimport Family


@cython.final
cdef class Competition(Stateful):
    cdef Family family
    cdef Hedge hedge
    cdef readonly list competitors
    # The fading sum of excess losses, and that of the rows.
    cdef public double total, n

    cdef int _weigh(self, double y, const double* etas, double eta, double least, double[::1] loss) except -1
