# cython: language_level=3
"""The loops that everything dense is made of.

Short ones are inlined where they are called. `dot` keeps four partial sums: a compiler may not reorder one long sum,
and so could not use its vector instructions on it. The `4` variants take four rows of a matrix (`ld` apart) at a time,
so that the vector is loaded once for all. Measured against BLAS these are faster up to length 200, and they never start
a thread.

Where twenty numbers and more are the rule, loops are written in fours, and compiled twice where gcc and glibc can choose
when a module is loaded: with two numbers per instruction, which every x86-64 has, and with four (AVX2), which takes
half the time or less. Neither fuses a product with a sum, so both give the same bits.
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


cdef inline double centred_dot(Py_ssize_t n, const double* x, const double* centre, const double* b) noexcept nogil:
    """(x - centre)'b"""
    cdef double s0 = 0.0, s1 = 0.0
    cdef Py_ssize_t i = 0
    while i + 1 < n:
        s0 += (x[i] - centre[i]) * b[i]
        s1 += (x[i + 1] - centre[i + 1]) * b[i + 1]
        i += 2
    if i < n:
        s0 += (x[i] - centre[i]) * b[i]
    return s0 + s1


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


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
        !defined(__SANITIZE_ADDRESS__)
    #define STREAMLASSO_WIDE __attribute__((unused, target_clones("avx2", "default")))
    #elif defined(__GNUC__)
    #define STREAMLASSO_WIDE __attribute__((unused))
    #else
    #define STREAMLASSO_WIDE
    #endif
    /* A part of a wide loop must be compiled with it, or it is not wide. */
    #if defined(__GNUC__)
    #define STREAMLASSO_PART static inline __attribute__((always_inline))
    #else
    #define STREAMLASSO_PART static inline
    #endif

    /* Four numbers. ADD: s += a b; SUM: of all four. */
    #if defined(__GNUC__)
    typedef double streamlasso_four __attribute__((vector_size(32), aligned(8), may_alias));
    #define LOAD(to, x) streamlasso_four to = *(const streamlasso_four *)(x)
    #define SPREAD(to, x) streamlasso_four to = {x, x, x, x}
    #define ADD(s, a, b) s += (a) * (b)
    #define LESS(s, a) s -= a
    #define STORE(x, s) *(streamlasso_four *)(x) = s
    #define AT(s, l) s[l]
    #else
    typedef struct {double at[4];} streamlasso_four;
    #define EACH(code) do { for (int l_ = 0; l_ < 4; l_++) {code;} } while (0)
    #define LOAD(to, x) streamlasso_four to; memcpy(to.at, x, sizeof(to.at))
    #define SPREAD(to, x) streamlasso_four to; EACH(to.at[l_] = x)
    #define ADD(s, a, b) EACH(s.at[l_] += a.at[l_] * b.at[l_])
    #define LESS(s, a) EACH(s.at[l_] -= a.at[l_])
    #define STORE(x, s) memcpy(x, s.at, sizeof(s.at))
    #define AT(s, l) s.at[l]
    #endif
    #define SUM(s) ((AT(s, 0) + AT(s, 1)) + (AT(s, 2) + AT(s, 3)))

    STREAMLASSO_WIDE
    static double streamlasso_long_dot(Py_ssize_t n, const double *a, const double *b) {
        SPREAD(s, 0.0);
        SPREAD(t, 0.0);
        double rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8) {
            LOAD(a0, a + i);
            LOAD(b0, b + i);
            LOAD(a1, a + i + 4);
            LOAD(b1, b + i + 4);
            ADD(s, a0, b0);
            ADD(t, a1, b1);
        }
        for (; i < n; i++)
            rest += a[i] * b[i];
        return (SUM(s) + SUM(t)) + rest;
    }

    STREAMLASSO_WIDE
    static void streamlasso_long_dot4(Py_ssize_t n, const double *x, Py_ssize_t ld, const double *y, double *out) {
        const double *x1 = x + ld, *x2 = x1 + ld, *x3 = x2 + ld;
        SPREAD(s0, 0.0);
        SPREAD(s1, 0.0);
        SPREAD(s2, 0.0);
        SPREAD(s3, 0.0);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(v, y + i);
            LOAD(r0, x + i);
            LOAD(r1, x1 + i);
            LOAD(r2, x2 + i);
            LOAD(r3, x3 + i);
            ADD(s0, r0, v);
            ADD(s1, r1, v);
            ADD(s2, r2, v);
            ADD(s3, r3, v);
        }
        out[0] = SUM(s0);
        out[1] = SUM(s1);
        out[2] = SUM(s2);
        out[3] = SUM(s3);
        for (; i < n; i++) {
            out[0] += x[i] * y[i];
            out[1] += x1[i] * y[i];
            out[2] += x2[i] * y[i];
            out[3] += x3[i] * y[i];
        }
    }

    STREAMLASSO_PART void streamlasso_fours(Py_ssize_t n, double a, const double *x, double *y) {
        SPREAD(a0, a);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(s, y + i);
            LOAD(v, x + i);
            ADD(s, a0, v);
            STORE(y + i, s);
        }
        for (; i < n; i++)
            y[i] += a * x[i];
    }

    STREAMLASSO_PART void streamlasso_fours4(Py_ssize_t n, double a0, double a1, double a2, double a3, const double *x0,
                                             const double *x1, const double *x2, const double *x3, double *y) {
        SPREAD(b0, a0);
        SPREAD(b1, a1);
        SPREAD(b2, a2);
        SPREAD(b3, a3);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(s, y + i);
            LOAD(r0, x0 + i);
            LOAD(r1, x1 + i);
            LOAD(r2, x2 + i);
            LOAD(r3, x3 + i);
            ADD(s, b0, r0);
            ADD(s, b1, r1);
            ADD(s, b2, r2);
            ADD(s, b3, r3);
            STORE(y + i, s);
        }
        for (; i < n; i++)
            y[i] = (((y[i] + a0 * x0[i]) + a1 * x1[i]) + a2 * x2[i]) + a3 * x3[i];
    }

    STREAMLASSO_WIDE
    static void streamlasso_add_rows(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *a,
                                     double *y) {
        Py_ssize_t q = 0;
        for (; q + 3 < k; q += 4)
            streamlasso_fours4(n, a[q], a[q + 1], a[q + 2], a[q + 3], rows[q], rows[q + 1], rows[q + 2], rows[q + 3],
                               y);
        for (; q < k; q++)
            streamlasso_fours(n, a[q], rows[q], y);
    }

    STREAMLASSO_WIDE
    static void streamlasso_subtract_rows(Py_ssize_t k, const Py_ssize_t *which, Py_ssize_t p, const double *S,
                                          const double *b, double *out) {
        Py_ssize_t i = 0;
        for (; i + 3 < k; i += 4)
            streamlasso_fours4(p, -b[i], -b[i + 1], -b[i + 2], -b[i + 3], S + which[i] * p, S + which[i + 1] * p,
                               S + which[i + 2] * p, S + which[i + 3] * p, out);
        for (; i < k; i++)
            streamlasso_fours(p, -b[i], S + which[i] * p, out);
    }

    STREAMLASSO_WIDE
    static void streamlasso_subtract4(Py_ssize_t n, const double *a, const double *x0, const double *x1,
                                      const double *x2, const double *x3, const double *origin, double *y) {
        SPREAD(b0, -a[0]);
        SPREAD(b1, -a[1]);
        SPREAD(b2, -a[2]);
        SPREAD(b3, -a[3]);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(s, y + i);
            LOAD(o, origin + i);
            LOAD(r0, x0 + i);
            LOAD(r1, x1 + i);
            LOAD(r2, x2 + i);
            LOAD(r3, x3 + i);
            LESS(r0, o);
            LESS(r1, o);
            LESS(r2, o);
            LESS(r3, o);
            ADD(s, b0, r0);
            ADD(s, b1, r1);
            ADD(s, b2, r2);
            ADD(s, b3, r3);
            STORE(y + i, s);
        }
        for (; i < n; i++)
            y[i] = (((y[i] - a[0] * (x0[i] - origin[i])) - a[1] * (x1[i] - origin[i])) - a[2] * (x2[i] - origin[i]))
                   - a[3] * (x3[i] - origin[i]);
    }

    /* The lower triangle of a symmetric matrix by rows; each row counts as a row and as a column. */
    STREAMLASSO_WIDE
    static double streamlasso_symmetric_times(Py_ssize_t n, const double *P, const double *z, double *q) {
        double total = 0.0;
        const double *row = P;
        for (Py_ssize_t i = 0; i < n; row += ++i) {
            SPREAD(s, 0.0);
            SPREAD(zi, z[i]);
            double rest = row[i] * z[i];
            Py_ssize_t j = 0;
            for (; j + 3 < i; j += 4) {
                LOAD(r, row + j);
                LOAD(v, z + j);
                LOAD(t, q + j);
                ADD(s, r, v);
                ADD(t, r, zi);
                STORE(q + j, t);
            }
            for (; j < i; j++) {
                rest += row[j] * z[j];
                q[j] += row[j] * z[i];
            }
            q[i] = SUM(s) + rest;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            total += z[i] * q[i];
        return total;
    }

    STREAMLASSO_WIDE
    static void streamlasso_symmetric_subtract(Py_ssize_t n, double gain, const double *q, double *P) {
        double *row = P;
        for (Py_ssize_t i = 0; i < n; row += ++i)
            streamlasso_fours(i + 1, -gain * q[i], q, row);
    }

    /* e^x = 2^k e^r with r = x - k log 2 at most half of log 2: its Taylor series to the 13th term is exact to rounding,
       and k goes straight into the exponent. Blocks of a fixed size without branches are what compilers vectorise. */
    STREAMLASSO_PART void streamlasso_exp8(const double *__restrict x, double *__restrict out) {
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

    /* log(1 + x) for x from 0 to 1 is 2 artanh(s) with s = x / (2 + x), at most a third: sixteen terms of its series. */
    STREAMLASSO_PART void streamlasso_log1p8(double *x) {
        for (int i = 0; i < 8; i++) {
            double s = x[i] / (2.0 + x[i]), t = s * s, t2 = t * t, t4 = t2 * t2;
            double low = (1.0 + t * (1.0 / 3)) + t2 * (1.0 / 5 + t * (1.0 / 7));
            double next = (1.0 / 9 + t * (1.0 / 11)) + t2 * (1.0 / 13 + t * (1.0 / 15));
            double third = (1.0 / 17 + t * (1.0 / 19)) + t2 * (1.0 / 21 + t * (1.0 / 23));
            double last = (1.0 / 25 + t * (1.0 / 27)) + t2 * (1.0 / 29 + t * (1.0 / 31));
            x[i] = 2.0 * s * (low + t4 * (next + t4 * (third + t4 * last)));
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_log1ps(Py_ssize_t n, double *x) {
        double rest[8] = {0.0};
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_log1p8(x + i);
        if (i < n) {
            memcpy(rest, x + i, (size_t)(n - i) * sizeof(double));
            streamlasso_log1p8(rest);
            memcpy(x + i, rest, (size_t)(n - i) * sizeof(double));
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_exps(Py_ssize_t n, const double *x, double *out) {
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

    /* Slope and curvature of log(1 + e^eta) - y eta, for any eta. */
    STREAMLASSO_PART void streamlasso_logistic8(const double *__restrict y, const double *__restrict eta,
                                               double *__restrict slope, double *__restrict curvature) {
        double x[8], e[8];
        for (int i = 0; i < 8; i++) {
            const double far = eta[i] < 0.0 ? eta[i] : -eta[i];
            x[i] = far > -700.0 ? far : -700.0;
        }
        streamlasso_exp8(x, e);
        for (int i = 0; i < 8; i++) {
            const double share = 1.0 / (1.0 + e[i]), up = eta[i] > 0.0 ? 1.0 : e[i], down = eta[i] > 0.0 ? e[i] : 1.0;
            slope[i] = ((1.0 - y[i]) * up - y[i] * down) * share;
            curvature[i] = e[i] * share * share;
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_logistic(Py_ssize_t n, const double *y, const double *eta, double *slope,
                                     double *curvature) {
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_logistic8(y + i, eta + i, slope + i, curvature + i);
        if (i < n) {
            double rest[4][8] = {{0.0}};
            const size_t size = (size_t)(n - i) * sizeof(double);
            memcpy(rest[0], y + i, size);
            memcpy(rest[1], eta + i, size);
            streamlasso_logistic8(rest[0], rest[1], rest[2], rest[3]);
            memcpy(slope + i, rest[2], size);
            memcpy(curvature + i, rest[3], size);
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_centred_product(Py_ssize_t n, const double *a, const double *x, double centre, double *z) {
        SPREAD(c, centre);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(v, x + i);
            LOAD(b, a + i);
            SPREAD(s, 0.0);
            LESS(v, c);
            ADD(s, b, v);
            STORE(z + i, s);
        }
        for (; i < n; i++)
            z[i] = a[i] * (x[i] - centre);
    }
    """
    #: For vectors of fifty numbers and more, as `dot` and `dot4`.
    double long_dot "streamlasso_long_dot"(Py_ssize_t n, const double* a, const double* b) noexcept nogil
    void long_dot4 "streamlasso_long_dot4"(
        Py_ssize_t n, const double* x, Py_ssize_t ld, const double* y, double* out
    ) noexcept nogil
    #: y += sum_q a_q (row q), for k rows of n numbers
    void add_rows "streamlasso_add_rows"(
        Py_ssize_t n, Py_ssize_t k, const double* const* rows, const double* a, double* y
    ) noexcept nogil
    #: out -= sum_i b_i (row which_i of S), for rows of p numbers
    void subtract_rows "streamlasso_subtract_rows"(
        Py_ssize_t k, const Py_ssize_t* which, Py_ssize_t p, const double* S, const double* b, double* out
    ) noexcept nogil
    #: y -= a[0] (x0 - origin) + a[1] (x1 - origin) + a[2] (x2 - origin) + a[3] (x3 - origin)
    void subtract4 "streamlasso_subtract4"(
        Py_ssize_t n, const double* a, const double* x0, const double* x1, const double* x2, const double* x3,
        const double* origin, double* y
    ) noexcept nogil
    #: q = P z, and z'q, of a symmetric P of which the rows of the lower triangle are kept
    double symmetric_times "streamlasso_symmetric_times"(
        Py_ssize_t n, const double* P, const double* z, double* q
    ) noexcept nogil
    #: P -= gain q q'
    void symmetric_subtract "streamlasso_symmetric_subtract"(
        Py_ssize_t n, double gain, const double* q, double* P
    ) noexcept nogil
    #: x <- log(1 + x) for x from 0 to 1
    void log1ps "streamlasso_log1ps"(Py_ssize_t n, double* x) noexcept nogil
    #: out = e^x for x within +-700; they do not overlap.
    void exps "streamlasso_exps"(Py_ssize_t n, const double* x, double* out) noexcept nogil
    #: Slope and curvature of the logistic loss for n rows, any eta; they do not overlap.
    void logistic_slopes "streamlasso_logistic"(
        Py_ssize_t n, const double* y, const double* eta, double* slope, double* curvature
    ) noexcept nogil
    #: z = a (x - centre), number by number
    void centred_product "streamlasso_centred_product"(
        Py_ssize_t n, const double* a, const double* x, double centre, double* z
    ) noexcept nogil
