from streamlasso.families.base cimport Family

cdef class Binomial(Family):
    pass
