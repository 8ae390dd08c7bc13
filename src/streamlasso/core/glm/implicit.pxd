from streamlasso.families.base cimport Family

cdef double implicit_step(Family family, double y, double eta, double a, double low, double high) except? -1 nogil
cdef double implicit_root(Family family, double y, double eta, double a, double low, double high, double settled,
                          double* slope, double curvature) except? -1 nogil
