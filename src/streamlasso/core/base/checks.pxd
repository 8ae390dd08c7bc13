#: The first rows, in which a model stays empty.
cdef enum:
    FIRST_ROWS = 10


#: The weight of the i-th row; w may be NULL, and all weights are then 1.
cdef inline double weight_of(const double* w, Py_ssize_t i) noexcept nogil:
    return w[i] if w != NULL else 1.0
