# cython: language_level=3
"""The loops that everything dense is made of; inlined where they are called.

`dot` keeps four partial sums: a compiler may not reorder one long sum, and so could not use its vector
instructions on it. The `4` variants take four rows of a matrix (`ld` apart) at a time, so that the vector is loaded
once for all. Measured against BLAS these are faster up to length 200, and they never start a thread.
"""


cdef inline double dot(Py_ssize_t n, const double* a, const double* b) noexcept nogil:
    cdef double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0
    cdef Py_ssize_t i = 0
    while i + 3 < n:
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
        i += 4
    while i < n:
        s0 += a[i] * b[i]
        i += 1
    return (s0 + s1) + (s2 + s3)


cdef inline void axpy(Py_ssize_t n, double a, const double* x, double* y) noexcept nogil:
    """y += a x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] += a * x[i]


cdef inline void eliminate(Py_ssize_t n, double p, double beta, double* row, double* x) noexcept nogil:
    """x -= p row, then row += beta x"""
    cdef Py_ssize_t i
    for i in range(n):
        x[i] -= p * row[i]
        row[i] += beta * x[i]


cdef inline void axpy4(Py_ssize_t n, const double* a, const double* x0, const double* x1, const double* x2,
                       const double* x3, double* y) noexcept nogil:
    """y += a[0] x0 + a[1] x1 + a[2] x2 + a[3] x3"""
    cdef Py_ssize_t i
    cdef double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3]
    for i in range(n):
        y[i] += (a0 * x0[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i])


cdef inline void dot4(Py_ssize_t n, const double* x, Py_ssize_t ld, const double* y, double* out) noexcept nogil:
    """out[r] = (row r of x)'y for four rows"""
    cdef double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0
    cdef Py_ssize_t i = 0
    cdef const double* x1 = x + ld
    cdef const double* x2 = x1 + ld
    cdef const double* x3 = x2 + ld
    while i + 1 < n:
        s0 += x[i] * y[i]
        t0 += x[i + 1] * y[i + 1]
        s1 += x1[i] * y[i]
        t1 += x1[i + 1] * y[i + 1]
        s2 += x2[i] * y[i]
        t2 += x2[i + 1] * y[i + 1]
        s3 += x3[i] * y[i]
        t3 += x3[i + 1] * y[i + 1]
        i += 2
    if i < n:
        s0 += x[i] * y[i]
        s1 += x1[i] * y[i]
        s2 += x2[i] * y[i]
        s3 += x3[i] * y[i]
    out[0] = s0 + t0
    out[1] = s1 + t1
    out[2] = s2 + t2
    out[3] = s3 + t3
