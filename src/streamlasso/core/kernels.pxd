# cython: language_level=3
"""The three loops that everything dense is made of; inlined where they are called.

`dot` keeps four partial sums: a compiler may not reorder one long sum, and so could not use its vector
instructions on it. Measured against BLAS `ddot`/`daxpy` these are faster up to length 200 and never start a thread.
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


cdef inline void rotate(Py_ssize_t n, double c, double s, double* a, double* b) noexcept nogil:
    """(a, b) <- (c a + s b, c b - s a)"""
    cdef Py_ssize_t i
    cdef double t
    for i in range(n):
        t = a[i]
        a[i] = c * t + s * b[i]
        b[i] = c * b[i] - s * t
