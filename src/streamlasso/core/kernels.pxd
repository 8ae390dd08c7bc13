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


cdef inline void subtract4(Py_ssize_t n, const double* a, const double* x0, const double* x1, const double* x2,
                           const double* x3, const double* origin, double* y) noexcept nogil:
    """y -= a[0] (x0 - origin) + a[1] (x1 - origin) + a[2] (x2 - origin) + a[3] (x3 - origin)"""
    cdef Py_ssize_t i
    cdef double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], o
    for i in range(n):
        o = origin[i]
        y[i] -= (a0 * (x0[i] - o) + a1 * (x1[i] - o)) + (a2 * (x2[i] - o) + a3 * (x3[i] - o))


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


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* e^x = 2^k e^r with r = x - k log 2 at most half of log 2: its Taylor series to the 13th term is exact to rounding,
       and k goes straight into the exponent. Blocks of a fixed size without branches are what compilers vectorise. */
    static inline void streamlasso_exp8(const double *__restrict x, double *__restrict out) {
        const double shift = 6755399441055744.0;  /* 1.5 * 2^52: adding it rounds to a whole number */
        for (int i = 0; i < 8; i++) {
            double t = x[i] * 1.4426950408889634 + shift, k = t - shift;
            double r = (x[i] - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
            double r2 = r * r, r4 = r2 * r2;
            double low = (1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
            double middle = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
            double high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
            union {double value; uint64_t bits;} whole, part;
            high += r4 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
            whole.value = t;
            part.value = low + r4 * (middle + r4 * high);
            part.bits += whole.bits << 52;
            out[i] = part.value;
        }
    }

    static inline void streamlasso_exps(Py_ssize_t n, const double *x, double *out) {
        double rest[8] = {0.0}, ends[8];
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_exp8(x + i, out + i);
        if (i < n) {
            memcpy(rest, x + i, (size_t)(n - i) * sizeof(double));
            streamlasso_exp8(rest, ends);
            memcpy(out + i, ends, (size_t)(n - i) * sizeof(double));
        }
    }
    """
    #: out = e^x for x within +-700; they do not overlap.
    void exps "streamlasso_exps"(Py_ssize_t n, const double* x, double* out) noexcept nogil
