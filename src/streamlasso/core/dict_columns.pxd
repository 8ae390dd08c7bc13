#: What a column holds besides whole numbers.
cdef enum:
    FRACTIONS = 1
    OTHER = 2
