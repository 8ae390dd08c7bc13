from streamlasso.families.base cimport Family

#: Exponentials that are taken together.
cdef enum:
    MOST_AT_ONCE = 64


cdef class Binomial(Family):
    pass
