from streamlasso.families.base cimport Family

cdef class Gaussian(Family):
    pass
