from streamlasso.families.base cimport Family

cdef class Gamma(Family):
    pass
