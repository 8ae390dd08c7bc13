from streamlasso.families.base cimport Family

cdef class Poisson(Family):
    pass
