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
    #include <math.h>
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
    #define FOUR(to, a, b, c, d) streamlasso_four to = {a, b, c, d}
    #define ADD(s, a, b) s += (a) * (b)
    #define LESS(s, a) s -= a
    #define STORE(x, s) *(streamlasso_four *)(x) = s
    #define AT(s, l) s[l]
    #else
    typedef struct {double at[4];} streamlasso_four;
    #define EACH(code) do { for (int l_ = 0; l_ < 4; l_++) {code;} } while (0)
    #define LOAD(to, x) streamlasso_four to; memcpy(to.at, x, sizeof(to.at))
    #define SPREAD(to, x) streamlasso_four to; EACH(to.at[l_] = x)
    #define FOUR(to, a, b, c, d) streamlasso_four to = {{a, b, c, d}}
    #define ADD(s, a, b) EACH(s.at[l_] += a.at[l_] * b.at[l_])
    #define LESS(s, a) EACH(s.at[l_] -= a.at[l_])
    #define STORE(x, s) memcpy(x, s.at, sizeof(s.at))
    #define AT(s, l) s.at[l]
    #endif
    #define SUM(s) ((AT(s, 0) + AT(s, 1)) + (AT(s, 2) + AT(s, 3)))
    /* The SUMs of four, as four numbers. */
    #if defined(__GNUC__)
    #if defined(__clang__)
    #define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
    #else
    typedef int64_t streamlasso_places __attribute__((vector_size(32)));
    #define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (streamlasso_places){i, j, k, l})
    #endif
    #define SUMS(to, s0, s1, s2, s3)                                                                                   \
        streamlasso_four to##_low = PICK(s0, s1, 0, 4, 2, 6) + PICK(s0, s1, 1, 5, 3, 7);                               \
        streamlasso_four to##_high = PICK(s2, s3, 0, 4, 2, 6) + PICK(s2, s3, 1, 5, 3, 7);                              \
        streamlasso_four to = PICK(to##_low, to##_high, 0, 1, 4, 5) + PICK(to##_low, to##_high, 2, 3, 6, 7)
    #else
    #define SUMS(to, s0, s1, s2, s3) streamlasso_four to = {{SUM(s0), SUM(s1), SUM(s2), SUM(s3)}}
    #endif

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

    /* x *= a; their sum, as long_dot has it */
    STREAMLASSO_WIDE
    static double streamlasso_weigh(Py_ssize_t n, const double *a, double *x) {
        SPREAD(one, 1.0);
        SPREAD(s, 0.0);
        SPREAD(t, 0.0);
        double rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8) {
            SPREAD(u, 0.0);
            SPREAD(v, 0.0);
            LOAD(a0, a + i);
            LOAD(x0, x + i);
            LOAD(a1, a + i + 4);
            LOAD(x1, x + i + 4);
            ADD(u, a0, x0);
            ADD(v, a1, x1);
            ADD(s, u, one);
            ADD(t, v, one);
            STORE(x + i, u);
            STORE(x + i + 4, v);
        }
        for (; i < n; i++) {
            x[i] *= a[i];
            rest += x[i];
        }
        return (SUM(s) + SUM(t)) + rest;
    }

    STREAMLASSO_PART void streamlasso_roots8(const double *__restrict x, double *__restrict out) {
        for (int i = 0; i < 8; i++)
            out[i] = sqrt(x[i]);
    }

    STREAMLASSO_WIDE
    static void streamlasso_roots(Py_ssize_t n, const double *x, double *out) {
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_roots8(x + i, out + i);
        for (; i < n; i++)
            out[i] = sqrt(x[i]);
    }

    /* The first k of four rows; the others may be any. */
    STREAMLASSO_PART void streamlasso_dot_four(Py_ssize_t n, Py_ssize_t k, const double *x0, const double *x1,
                                               const double *x2, const double *x3, const double *y, double *out) {
        double rest[4] = {0.0};
        SPREAD(s0, 0.0);
        SPREAD(s1, 0.0);
        SPREAD(s2, 0.0);
        SPREAD(s3, 0.0);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(v, y + i);
            LOAD(r0, x0 + i);
            LOAD(r1, x1 + i);
            LOAD(r2, x2 + i);
            LOAD(r3, x3 + i);
            ADD(s0, r0, v);
            ADD(s1, r1, v);
            ADD(s2, r2, v);
            ADD(s3, r3, v);
        }
        for (; i < n; i++) {
            rest[0] += x0[i] * y[i];
            rest[1] += x1[i] * y[i];
            rest[2] += x2[i] * y[i];
            rest[3] += x3[i] * y[i];
        }
        SUMS(sums, s0, s1, s2, s3);
        for (Py_ssize_t r = 0; r < 4 && r < k; r++)
            out[r] = rest[r] + AT(sums, r);
    }

    STREAMLASSO_WIDE
    static void streamlasso_dot_rows(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *y,
                                     double *out) {
        for (Py_ssize_t q = 0; q < k; q += 4)
            streamlasso_dot_four(n, k - q, rows[q], rows[q + 1 < k ? q + 1 : q], rows[q + 2 < k ? q + 2 : q],
                                 rows[q + 3 < k ? q + 3 : q], y, out + q);
    }

    STREAMLASSO_WIDE
    static void streamlasso_matrix_times(Py_ssize_t k, Py_ssize_t n, Py_ssize_t ld, const double *A, const double *y,
                                         double *out) {
        for (Py_ssize_t q = 0; q < k; q += 4) {
            const double *x = A + q * ld;
            streamlasso_dot_four(n, k - q, x, x + (q + 1 < k ? ld : 0), x + (q + 2 < k ? 2 * ld : 0),
                                 x + (q + 3 < k ? 3 * ld : 0), y, out + q);
        }
    }

    STREAMLASSO_WIDE
    static double streamlasso_sum_of_sizes(Py_ssize_t n, const double *x) {
        double s[4] = {0.0}, rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4)
            for (int l = 0; l < 4; l++)
                s[l] += x[i + l] < 0.0 ? -x[i + l] : x[i + l];
        for (; i < n; i++)
            rest += x[i] < 0.0 ? -x[i] : x[i];
        return ((s[0] + s[1]) + (s[2] + s[3])) + rest;
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

    STREAMLASSO_PART double streamlasso_fours_dot(Py_ssize_t n, const double *a, const double *b) {
        SPREAD(s, 0.0);
        double rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(u, a + i);
            LOAD(v, b + i);
            ADD(s, u, v);
        }
        for (; i < n; i++)
            rest += a[i] * b[i];
        return SUM(s) + rest;
    }

    STREAMLASSO_WIDE
    static double streamlasso_centred_dot(Py_ssize_t n, const double *x, const double *centre, const double *b) {
        SPREAD(s, 0.0);
        double rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(u, x + i);
            LOAD(c, centre + i);
            LOAD(v, b + i);
            LESS(u, c);
            ADD(s, u, v);
        }
        for (; i < n; i++)
            rest += (x[i] - centre[i]) * b[i];
        return SUM(s) + rest;
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

    STREAMLASSO_PART void streamlasso_add_few(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *a,
                                              double *y) {
        Py_ssize_t q = 0;
        for (; q + 3 < k; q += 4)
            streamlasso_fours4(n, a[q], a[q + 1], a[q + 2], a[q + 3], rows[q], rows[q + 1], rows[q + 2], rows[q + 3],
                               y);
        for (; q < k; q++)
            streamlasso_fours(n, a[q], rows[q], y);
    }

    STREAMLASSO_WIDE
    static void streamlasso_add_rows(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *a,
                                     double *y) {
        streamlasso_add_few(n, k, rows, a, y);
    }

    /* Rows of weight 0 may hold anything. */
    STREAMLASSO_WIDE
    static void streamlasso_add_weighted(Py_ssize_t k, Py_ssize_t n, const double *weight, const double *A,
                                         double *y) {
        const double *rows[4];
        double a[4];
        Py_ssize_t m = 0;
        for (Py_ssize_t q = 0; q < k; q++) {
            if (!(weight[q] > 0.0))
                continue;
            rows[m] = A + q * n;
            a[m++] = weight[q];
            if (m == 4) {
                streamlasso_fours4(n, a[0], a[1], a[2], a[3], rows[0], rows[1], rows[2], rows[3], y);
                m = 0;
            }
        }
        for (Py_ssize_t r = 0; r < m; r++)
            streamlasso_fours(n, a[r], rows[r], y);
    }

    /* At most four rows wait; those of S that are left over by fours go with them. */
    STREAMLASSO_WIDE
    static void streamlasso_subtract_rows(Py_ssize_t k, const Py_ssize_t *which, Py_ssize_t p, const double *S,
                                          Py_ssize_t n_rows, const double *rows, const double *signed_rows,
                                          const double *b, double *out) {
        const double *s0 = signed_rows, *s1 = s0 + p, *s2 = s1 + p, *s3 = s2 + p, *last[7];
        double sums[4] = {0.0}, a[7];
        Py_ssize_t i = 0, n = 0;
        if (k == 0)
            return;
        if (n_rows > 2)
            for (Py_ssize_t q = 0; q < k; q++) {
                const Py_ssize_t at = which[q];
                sums[0] += s0[at] * b[q];
                sums[1] += s1[at] * b[q];
                sums[2] += s2[at] * b[q];
                sums[3] += s3[at] * b[q];
            }
        else if (n_rows > 0)
            for (Py_ssize_t q = 0; q < k; q++) {
                const Py_ssize_t at = which[q];
                sums[0] += s0[at] * b[q];
                sums[1] += s1[at] * b[q];
            }
        for (; i + 3 < k; i += 4)
            streamlasso_fours4(p, -b[i], -b[i + 1], -b[i + 2], -b[i + 3], S + which[i] * p, S + which[i + 1] * p,
                               S + which[i + 2] * p, S + which[i + 3] * p, out);
        for (; i < k; i++, n++) {
            a[n] = -b[i];
            last[n] = S + which[i] * p;
        }
        for (Py_ssize_t m = 0; m < n_rows; m++, n++) {
            a[n] = -sums[m];
            last[n] = rows + m * p;
        }
        streamlasso_add_few(p, n, last, a, out);
    }

    /* Row `at` of S + rows'signed at k members; at most four rows wait. */
    STREAMLASSO_WIDE
    static void streamlasso_gather_row(Py_ssize_t at, Py_ssize_t k, const Py_ssize_t *members, Py_ssize_t p,
                                       const double *S, Py_ssize_t n_rows, const double *rows,
                                       const double *signed_rows, double *out) {
        const double *from = S + at * p, *r0 = rows, *r1 = r0 + p, *r2 = r1 + p, *r3 = r2 + p;
        const double a0 = signed_rows[at], a1 = signed_rows[p + at], a2 = signed_rows[2 * p + at];
        const double a3 = signed_rows[3 * p + at];
        Py_ssize_t i = 0;
        for (; i < k && n_rows == 0; i++)
            out[i] = from[members[i]];
        for (; i < k && n_rows == 1; i++)
            out[i] = from[members[i]] + a0 * r0[members[i]];
        for (; i < k && n_rows == 2; i++)
            out[i] = (from[members[i]] + a0 * r0[members[i]]) + a1 * r1[members[i]];
        for (; i < k && n_rows == 3; i++)
            out[i] = ((from[members[i]] + a0 * r0[members[i]]) + a1 * r1[members[i]]) + a2 * r2[members[i]];
        for (; i < k; i++)
            out[i] = (((from[members[i]] + a0 * r0[members[i]]) + a1 * r1[members[i]]) + a2 * r2[members[i]])
                     + a3 * r3[members[i]];
    }

    /* d = x - mean, then mean += step d and scatter += k d d. */
    STREAMLASSO_WIDE
    static void streamlasso_see_row(Py_ssize_t n, const double *x, double step, double k, double *mean,
                                    double *scatter) {
        SPREAD(to, step);
        SPREAD(times, k);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(d, x + i);
            LOAD(m, mean + i);
            LOAD(s, scatter + i);
            SPREAD(kd, 0.0);
            LESS(d, m);
            ADD(m, to, d);
            ADD(kd, times, d);
            ADD(s, kd, d);
            STORE(mean + i, m);
            STORE(scatter + i, s);
        }
        for (; i < n; i++) {
            const double d = x[i] - mean[i];
            mean[i] += step * d;
            scatter[i] += k * d * d;
        }
    }

    /* z = root (x - mean), then mean += step (x - mean); signed = sign z, c += dt z. */
    STREAMLASSO_WIDE
    static void streamlasso_take_row(Py_ssize_t n, const double *x, double step, double root, double sign, double dt,
                                     double *mean, double *z, double *signed_z, double *c) {
        SPREAD(to, step);
        SPREAD(by, root);
        SPREAD(side, sign);
        SPREAD(away, dt);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(d, x + i);
            LOAD(m, mean + i);
            LOAD(s, c + i);
            SPREAD(u, 0.0);
            SPREAD(v, 0.0);
            LESS(d, m);
            ADD(m, to, d);
            ADD(u, by, d);
            ADD(v, side, u);
            ADD(s, away, u);
            STORE(mean + i, m);
            STORE(z + i, u);
            STORE(signed_z + i, v);
            STORE(c + i, s);
        }
        for (; i < n; i++) {
            const double d = x[i] - mean[i];
            mean[i] += step * d;
            z[i] = root * d;
            signed_z[i] = sign * z[i];
            c[i] += dt * z[i];
        }
    }

    /* y -= sum_i a_i (row i - origin), for rows that follow one another; sixteen columns at a time stay at hand. */
    STREAMLASSO_WIDE
    static void streamlasso_subtract_centred(Py_ssize_t n, Py_ssize_t p, const double *a, const double *rows,
                                             const double *origin, double *y) {
        Py_ssize_t j = 0;
        for (; j + 15 < p; j += 16) {
            const double *x = rows + j;
            LOAD(s0, y + j);
            LOAD(s1, y + j + 4);
            LOAD(s2, y + j + 8);
            LOAD(s3, y + j + 12);
            LOAD(o0, origin + j);
            LOAD(o1, origin + j + 4);
            LOAD(o2, origin + j + 8);
            LOAD(o3, origin + j + 12);
            for (Py_ssize_t i = 0; i < n; i++, x += p) {
                SPREAD(b, -a[i]);
                LOAD(r0, x);
                LOAD(r1, x + 4);
                LOAD(r2, x + 8);
                LOAD(r3, x + 12);
                LESS(r0, o0);
                LESS(r1, o1);
                LESS(r2, o2);
                LESS(r3, o3);
                ADD(s0, b, r0);
                ADD(s1, b, r1);
                ADD(s2, b, r2);
                ADD(s3, b, r3);
            }
            STORE(y + j, s0);
            STORE(y + j + 4, s1);
            STORE(y + j + 8, s2);
            STORE(y + j + 12, s3);
        }
        for (; j + 3 < p; j += 4) {
            const double *x = rows + j;
            LOAD(s, y + j);
            LOAD(o, origin + j);
            for (Py_ssize_t i = 0; i < n; i++, x += p) {
                SPREAD(b, -a[i]);
                LOAD(r, x);
                LESS(r, o);
                ADD(s, b, r);
            }
            STORE(y + j, s);
        }
        for (; j < p; j++)
            for (Py_ssize_t i = 0; i < n; i++)
                y[j] -= a[i] * (rows[i * p + j] - origin[j]);
    }

    /* x - x is 0 where x is finite, and not a number where it is not. Sums wait for one another: there are four. */
    STREAMLASSO_WIDE
    static int streamlasso_all_finite(Py_ssize_t n, const double *x) {
        SPREAD(s0, 0.0);
        SPREAD(s1, 0.0);
        SPREAD(s2, 0.0);
        SPREAD(s3, 0.0);
        double rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 15 < n; i += 16) {
            LOAD(t, x + i);
            LOAD(u, x + i + 4);
            LOAD(v, x + i + 8);
            LOAD(w, x + i + 12);
            LESS(t, t);
            LESS(u, u);
            LESS(v, v);
            LESS(w, w);
            LESS(s0, t);
            LESS(s1, u);
            LESS(s2, v);
            LESS(s3, w);
        }
        for (; i + 3 < n; i += 4) {
            LOAD(t, x + i);
            LESS(t, t);
            LESS(s0, t);
        }
        for (; i < n; i++)
            rest += x[i] - x[i];
        return ((SUM(s0) + SUM(s1)) + (SUM(s2) + SUM(s3))) + rest == 0.0;
    }

    STREAMLASSO_WIDE
    static int streamlasso_all_weights(Py_ssize_t n, const double *x) {
        int64_t found = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            found |= !(x[i] >= 0.0) | !(x[i] <= 1.7976931348623157e308);
        return found == 0;
    }

    /* 1 and -1 are equal but for their first bit. */
    STREAMLASSO_PART int streamlasso_all_signs(Py_ssize_t n, const double *x) {
        uint64_t found = 0;
        for (Py_ssize_t i = 0; i < n; i++) {
            uint64_t bits;
            memcpy(&bits, x + i, sizeof(bits));
            found |= (bits << 1) ^ ((uint64_t)0x3ff0000000000000 << 1);
        }
        return found == 0;
    }

    STREAMLASSO_PART int streamlasso_all_within(Py_ssize_t n, const Py_ssize_t *x, Py_ssize_t first, Py_ssize_t end) {
        int found = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            found |= (size_t)x[i] - (size_t)first >= (size_t)end - (size_t)first;
        return found == 0;
    }

    STREAMLASSO_WIDE
    static int streamlasso_any_beyond(Py_ssize_t n, const double *g, const double *tau, const double *tol) {
        int64_t found = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            found |= (g[i] < 0.0 ? -g[i] : g[i]) > tau[i] + tol[i];
        return found != 0;
    }

    /* Twice the number of those that are larger; equal ones count half. */
    STREAMLASSO_WIDE
    static Py_ssize_t streamlasso_twice_larger(Py_ssize_t n, const double *x, double than) {
        int64_t twice = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            twice += (int64_t)(x[i] > than) + (int64_t)(x[i] >= than);
        return (Py_ssize_t)twice;
    }

    STREAMLASSO_PART void streamlasso_standardise4(const double *__restrict x, const double *__restrict mean,
                                                   const double *__restrict variance, double root, double least,
                                                   double bound, double *__restrict z) {
        const double none = 1e300 * 1e300 - 1e300 * 1e300;
        for (int i = 0; i < 4; i++) {
            const double s = root * (x[i] - mean[i]) / sqrt(variance[i]), up = s < -bound ? -bound : s;
            const double held = up > bound ? bound : up;
            z[i] = variance[i] > least * mean[i] * mean[i] ? held : none;
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_standardise(Py_ssize_t n, const double *x, const double *mean, const double *variance,
                                        double root, double least, double bound, double *z) {
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4)
            streamlasso_standardise4(x + i, mean + i, variance + i, root, least, bound, z + i);
        if (i < n) {
            const size_t size = (size_t)(n - i) * sizeof(double);
            double rest[4][4] = {{0.0}};
            memcpy(rest[0], x + i, size);
            memcpy(rest[1], mean + i, size);
            memcpy(rest[2], variance + i, size);
            streamlasso_standardise4(rest[0], rest[1], rest[2], root, least, bound, rest[3]);
            memcpy(z + i, rest[3], size);
        }
    }

    STREAMLASSO_PART void streamlasso_shift4(double z, double u, double rate, double low, double high, double keep,
                                             const double *__restrict shift, const double *__restrict share,
                                             double *__restrict usual, double *__restrict moved) {
        const double square = z * z, weight = 1.0 < square ? 1.0 : square;
        for (int k = 0; k < 4; k++) {
            const double b = shift[k] * z, e = b * (u - 0.5 * b), up = low > e ? low : e, held = high < up ? high : up;
            const double f1 = 1.0 + 0.125 * held, f2 = f1 * f1, f4 = f2 * f2, f = f4 * (f4 * share[k]);
            const double mean = usual[k] + rate * (f - usual[k]);
            usual[k] = mean;
            moved[k] = keep * ((moved[k] + weight) * f / (1.0 > mean ? 1.0 : mean));
        }
    }

    /* See `detector.py`: the evidence of four shifts of each of n features, and the sums of these. */
    STREAMLASSO_WIDE
    static void streamlasso_shift(Py_ssize_t n, const double *z, double u, double rate, double low, double high,
                                  double keep, const double *shift, const double *table, double steps, double *usual,
                                  double *moved, double *total) {
        for (Py_ssize_t i = 0; i < n; i++, usual += 4, moved += 4) {
            total[i] = 0.0;
            if (z[i] == z[i]) {
                const double few = table[(Py_ssize_t)(fabs(shift[0] * z[i]) * steps + 0.5)];
                const double many = table[(Py_ssize_t)(fabs(shift[2] * z[i]) * steps + 0.5)];
                const double share[4] = {few, few, many, many};
                streamlasso_shift4(z[i], u, rate, low, high, keep, shift, share, usual, moved);
                total[i] = ((moved[0] + moved[1]) + moved[2]) + moved[3];
            }
        }
    }

    /* Every `step`-th of n numbers, less their centre. */
    STREAMLASSO_WIDE
    static void streamlasso_centred_column(Py_ssize_t n, Py_ssize_t step, const double *x, double centre,
                                           double *out) {
        SPREAD(c, centre);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4, x += 4 * step) {
            FOUR(v, x[0], x[step], x[2 * step], x[3 * step]);
            LESS(v, c);
            STORE(out + i, v);
        }
        for (; i < n; i++, x += step)
            out[i] = x[0] - centre;
    }

    /* b <- U'^{-1} b for a unit upper triangle by rows, four at a time. */
    STREAMLASSO_WIDE
    static void streamlasso_long_solve_lower(Py_ssize_t k, Py_ssize_t ld, const double *U, double *b) {
        Py_ssize_t i = 0;
        for (; i + 3 < k; i += 4) {
            const double *r0 = U + i * ld + i, *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld;
            b[i + 1] -= r0[1] * b[i];
            b[i + 2] -= r0[2] * b[i] + r1[2] * b[i + 1];
            b[i + 3] -= (r0[3] * b[i] + r1[3] * b[i + 1]) + r2[3] * b[i + 2];
            streamlasso_fours4(k - i - 4, -b[i], -b[i + 1], -b[i + 2], -b[i + 3], r0 + 4, r1 + 4, r2 + 4, r3 + 4,
                               b + i + 4);
        }
        for (; i < k; i++)
            streamlasso_fours(k - i - 1, -b[i], U + i * ld + i + 1, b + i + 1);
    }

    /* b <- U^{-1} b */
    STREAMLASSO_WIDE
    static void streamlasso_long_solve_upper(Py_ssize_t k, Py_ssize_t ld, const double *U, double *b) {
        Py_ssize_t i = k - 4;
        for (; i >= 0; i -= 4) {
            const double *r0 = U + i * ld + i, *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld, *from = b + i + 4;
            double rest[4] = {0.0};
            SPREAD(s0, 0.0);
            SPREAD(s1, 0.0);
            SPREAD(s2, 0.0);
            SPREAD(s3, 0.0);
            Py_ssize_t j = 0;
            for (; j + 3 < k - i - 4; j += 4) {
                LOAD(v, from + j);
                LOAD(a0, r0 + 4 + j);
                LOAD(a1, r1 + 4 + j);
                LOAD(a2, r2 + 4 + j);
                LOAD(a3, r3 + 4 + j);
                ADD(s0, a0, v);
                ADD(s1, a1, v);
                ADD(s2, a2, v);
                ADD(s3, a3, v);
            }
            for (; j < k - i - 4; j++) {
                rest[0] += r0[4 + j] * from[j];
                rest[1] += r1[4 + j] * from[j];
                rest[2] += r2[4 + j] * from[j];
                rest[3] += r3[4 + j] * from[j];
            }
            b[i + 3] -= SUM(s3) + rest[3];
            b[i + 2] -= (SUM(s2) + rest[2]) + r2[3] * b[i + 3];
            b[i + 1] -= ((SUM(s1) + rest[1]) + r1[3] * b[i + 3]) + r1[2] * b[i + 2];
            b[i] -= (((SUM(s0) + rest[0]) + r0[3] * b[i + 3]) + r0[2] * b[i + 2]) + r0[1] * b[i + 1];
        }
        for (i += 3; i >= 0; i--)
            b[i] -= streamlasso_fours_dot(k - i - 1, U + i * ld + i + 1, b + i + 1);
    }

    /* x -= p row, then row += beta x */
    STREAMLASSO_WIDE
    static void streamlasso_long_eliminate(Py_ssize_t n, double p, double beta, double *row, double *x) {
        SPREAD(a, -p);
        SPREAD(c, beta);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(u, row + i);
            LOAD(v, x + i);
            ADD(v, a, u);
            ADD(u, c, v);
            STORE(x + i, v);
            STORE(row + i, u);
        }
        for (; i < n; i++) {
            x[i] -= p * row[i];
            row[i] += beta * x[i];
        }
    }

    /* y_i = S_i + ((a0 x0_i + a1 x1_i) + (a2 x2_i + a3 x3_i)) with S_i at which_i, for x that are 32 apart. */
    STREAMLASSO_PART void streamlasso_gather_fours(Py_ssize_t n, const Py_ssize_t *which, const double *S,
                                                   Py_ssize_t n_rows, const double *a, const double *x, double *y) {
        SPREAD(one, 1.0);
        SPREAD(b0, a[0]);
        SPREAD(b1, a[1]);
        SPREAD(b2, a[2]);
        SPREAD(b3, a[3]);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            SPREAD(s, 0.0);
            FOUR(v, S[which[i]], S[which[i + 1]], S[which[i + 2]], S[which[i + 3]]);
            LOAD(x0, x + i);
            LOAD(x1, x + 32 + i);
            ADD(s, b0, x0);
            ADD(s, b1, x1);
            if (n_rows > 2) {
                SPREAD(t, 0.0);
                LOAD(x2, x + 64 + i);
                LOAD(x3, x + 96 + i);
                ADD(t, b2, x2);
                ADD(t, b3, x3);
                ADD(s, t, one);
            }
            ADD(v, s, one);
            STORE(y + i, v);
        }
        for (; i < n; i++)
            y[i] = S[which[i]] + ((a[0] * x[i] + a[1] * x[32 + i]) + (a[2] * x[64 + i] + a[3] * x[96 + i]));
    }

    /* The upper triangle of the block of `members` of S + rows'signed + diag(ridge); at most four rows wait. What they
       have at the members is brought together first, for thirty-two columns at a time. */
    STREAMLASSO_PART void streamlasso_gather_block(Py_ssize_t k, const Py_ssize_t *members, Py_ssize_t p,
                                                   const double *S, Py_ssize_t n_rows, const double *rows,
                                                   const double *signed_rows, const double *ridge, Py_ssize_t ld,
                                                   double *U) {
        double near[4][32] = {{0.0}}, a[4] = {0.0};
        for (Py_ssize_t start = 0; start < k; start += 32) {
            const Py_ssize_t end = k < start + 32 ? k : start + 32;
            for (Py_ssize_t m = 0; m < n_rows; m++)
                for (Py_ssize_t j = start; j < end; j++)
                    near[m][j - start] = rows[m * p + members[j]];
            for (Py_ssize_t i = 0; i < end; i++) {
                const Py_ssize_t at = members[i], first = i > start ? i : start;
                for (Py_ssize_t m = 0; m < n_rows; m++)
                    a[m] = signed_rows[m * p + at];
                streamlasso_gather_fours(end - first, members + first, S + at * p, n_rows, a, near[0] + first - start,
                                         U + i * ld + first);
                if (first == i)
                    U[i * ld + i] += ridge[at];
            }
        }
    }

    STREAMLASSO_PART void streamlasso_take_out(Py_ssize_t j, Py_ssize_t k, double share, const double *from,
                                               double *to) {
        SPREAD(a, share);
        for (; j < k; j += 4) {
            LOAD(s, to + j);
            LOAD(v, from + j);
            ADD(s, a, v);
            STORE(to + j, s);
        }
    }

    /* Two pivots at a time are taken out of all rows below, which do not wait for one another. Fours may reach over the
       end of a row, by less than the two numbers that `ld` is larger than k and one below the diagonal of the next. */
    STREAMLASSO_WIDE
    static Py_ssize_t streamlasso_factor_block(Py_ssize_t k, const Py_ssize_t *members, Py_ssize_t p, const double *S,
                                               Py_ssize_t n_rows, const double *rows, const double *signed_rows,
                                               const double *ridge, double tolerance, Py_ssize_t ld, double *U,
                                               double *d, double *inverse) {
        streamlasso_gather_block(k, members, p, S, n_rows, rows, signed_rows, ridge, ld, U);
        for (Py_ssize_t i = 0; i < k; i++)
            d[i] = U[i * ld + i];
        for (Py_ssize_t i = 0; i < k; i += 2) {
            double *from = U + i * ld, *next = from + ld;
            const double pivot = from[i], share = 1.0 / pivot;
            if (!(pivot > tolerance * d[i]))
                return i;
            d[i] = pivot;
            inverse[i] = share;
            if (i + 1 == k)
                return k;
            streamlasso_take_out(i + 1, k, -share * from[i + 1], from, next);
            const double second = next[i + 1], part = 1.0 / second;
            if (!(second > tolerance * d[i + 1]))
                return i + 1;
            d[i + 1] = second;
            inverse[i + 1] = part;
            for (Py_ssize_t r = i + 2; r < k; r++) {
                double *to = U + r * ld;
                SPREAD(a, -share * from[r]);
                SPREAD(b, -part * next[r]);
                for (Py_ssize_t j = r; j < k; j += 4) {
                    LOAD(s, to + j);
                    LOAD(v, from + j);
                    LOAD(w, next + j);
                    ADD(s, a, v);
                    ADD(s, b, w);
                    STORE(to + j, s);
                }
            }
            from[i + 1] *= share;
            for (Py_ssize_t j = i + 2; j < k; j++) {
                from[j] *= share;
                next[j] *= part;
            }
        }
        return k;
    }

    STREAMLASSO_PART void streamlasso_move_back(Py_ssize_t n, const double *from, double *to) {
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(v, from + i);
            STORE(to + i, v);
        }
        for (; i < n; i++)
            to[i] = from[i];
    }

    /* Column q leaves a unit upper triangle of k rows: those behind it move to the left, rows below it up as well. */
    STREAMLASSO_WIDE
    static void streamlasso_drop_column(Py_ssize_t k, Py_ssize_t q, Py_ssize_t ld, double *U) {
        for (Py_ssize_t i = 0; i < q; i++)
            streamlasso_move_back(k - 1 - q, U + i * ld + q + 1, U + i * ld + q);
        for (Py_ssize_t i = q; i < k - 1; i++)
            streamlasso_move_back(k - 1 - i, U + (i + 1) * ld + i + 1, U + i * ld + i);
    }

    /* z = x - centre; z'b */
    STREAMLASSO_WIDE
    static double streamlasso_centre_row(Py_ssize_t n, const double *x, const double *centre, const double *b,
                                         double *z) {
        SPREAD(s, 0.0);
        double rest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            LOAD(u, x + i);
            LOAD(c, centre + i);
            LOAD(v, b + i);
            LESS(u, c);
            STORE(z + i, u);
            ADD(s, u, v);
        }
        for (; i < n; i++) {
            z[i] = x[i] - centre[i];
            rest += z[i] * b[i];
        }
        return SUM(s) + rest;
    }

    STREAMLASSO_WIDE
    static double streamlasso_largest_ratio(Py_ssize_t n, const double *g, const double *v) {
        double most[8] = {0.0}, largest = 0.0;
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            for (int l = 0; l < 8; l++) {
                const double size = g[i + l] < 0.0 ? -g[i + l] : g[i + l], ratio = v[i + l] > 0.0 ? size / v[i + l] : 0.0;
                most[l] = ratio > most[l] ? ratio : most[l];
            }
        for (; i < n; i++) {
            const double size = g[i] < 0.0 ? -g[i] : g[i], ratio = v[i] > 0.0 ? size / v[i] : 0.0;
            largest = ratio > largest ? ratio : largest;
        }
        for (int l = 0; l < 8; l++)
            largest = most[l] > largest ? most[l] : largest;
        return largest;
    }

    STREAMLASSO_PART void streamlasso_deviations8(const double *__restrict scatter, const double *__restrict mean,
                                                  double inverse, double *__restrict out) {
        for (int i = 0; i < 8; i++) {
            const double s = scatter[i] > 0.0 ? scatter[i] : 0.0, root = sqrt(s * inverse);
            const double size = mean[i] < 0.0 ? -mean[i] : mean[i];
            out[i] = root <= 1e-14 * size ? 0.0 : root;
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_deviations(Py_ssize_t n, const double *scatter, const double *mean, double inverse,
                                       double *out) {
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_deviations8(scatter + i, mean + i, inverse, out + i);
        if (i < n) {
            double rest[3][8] = {{0.0}};
            const size_t size = (size_t)(n - i) * sizeof(double);
            memcpy(rest[0], scatter + i, size);
            memcpy(rest[1], mean + i, size);
            streamlasso_deviations8(rest[0], rest[1], inverse, rest[2]);
            memcpy(out + i, rest[2], size);
        }
    }

    /* The lower triangle of a symmetric matrix by rows; each row counts as a row and as a column. */
    STREAMLASSO_WIDE
    static double streamlasso_symmetric_times(Py_ssize_t n, const double *P, const double *z, double *q) {
        const double *r0 = P;
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            const double *r1 = r0 + i + 1, *r2 = r1 + i + 2, *r3 = r2 + i + 3;
            SPREAD(z0, z[i]);
            SPREAD(z1, z[i + 1]);
            SPREAD(z2, z[i + 2]);
            SPREAD(z3, z[i + 3]);
            SPREAD(s0, 0.0);
            SPREAD(s1, 0.0);
            SPREAD(s2, 0.0);
            SPREAD(s3, 0.0);
            for (Py_ssize_t j = 0; j < i; j += 4) {
                LOAD(b0, r0 + j);
                LOAD(b1, r1 + j);
                LOAD(b2, r2 + j);
                LOAD(b3, r3 + j);
                LOAD(v, z + j);
                LOAD(t, q + j);
                ADD(s0, b0, v);
                ADD(s1, b1, v);
                ADD(s2, b2, v);
                ADD(s3, b3, v);
                ADD(t, b0, z0);
                ADD(t, b1, z1);
                ADD(t, b2, z2);
                ADD(t, b3, z3);
                STORE(q + j, t);
            }
            r0 += i;
            r1 += i;
            r2 += i;
            r3 += i;
            SUMS(sums, s0, s1, s2, s3);
            SPREAD(one, 1.0);
            FOUR(m0, r0[0], r1[0], r2[0], r3[0]);
            FOUR(m1, r1[0], r1[1], r2[1], r3[1]);
            FOUR(m2, r2[0], r2[1], r2[2], r3[2]);
            LOAD(m3, r3);
            SPREAD(here, 0.0);
            SPREAD(more, 0.0);
            ADD(here, m0, z0);
            ADD(here, m1, z1);
            ADD(more, m2, z2);
            ADD(more, m3, z3);
            ADD(here, more, one);
            ADD(sums, here, one);
            STORE(q + i, sums);
            r0 = r3 + 4;
        }
        for (; i < n; r0 += ++i) {
            streamlasso_fours(i, z[i], r0, q);
            q[i] = streamlasso_fours_dot(i + 1, r0, z);
        }
        return streamlasso_fours_dot(n, z, q);
    }

    STREAMLASSO_WIDE
    static void streamlasso_symmetric_subtract(Py_ssize_t n, double gain, const double *q, double *P) {
        double *r0 = P;
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4) {
            double *r1 = r0 + i + 1, *r2 = r1 + i + 2, *r3 = r2 + i + 3;
            const double a0 = -gain * q[i], a1 = -gain * q[i + 1], a2 = -gain * q[i + 2], a3 = -gain * q[i + 3];
            SPREAD(b0, a0);
            SPREAD(b1, a1);
            SPREAD(b2, a2);
            SPREAD(b3, a3);
            for (Py_ssize_t j = 0; j < i; j += 4) {
                LOAD(v, q + j);
                LOAD(s0, r0 + j);
                LOAD(s1, r1 + j);
                LOAD(s2, r2 + j);
                LOAD(s3, r3 + j);
                ADD(s0, b0, v);
                ADD(s1, b1, v);
                ADD(s2, b2, v);
                ADD(s3, b3, v);
                STORE(r0 + j, s0);
                STORE(r1 + j, s1);
                STORE(r2 + j, s2);
                STORE(r3 + j, s3);
            }
            r0[i] += a0 * q[i];
            streamlasso_fours(2, a1, q + i, r1 + i);
            streamlasso_fours(3, a2, q + i, r2 + i);
            streamlasso_fours(4, a3, q + i, r3 + i);
            r0 = r3 + i + 4;
        }
        for (; i < n; r0 += ++i)
            streamlasso_fours(i + 1, -gain * q[i], q, r0);
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

    STREAMLASSO_PART void streamlasso_hold8(const double *__restrict x, double low, double high,
                                            double *__restrict out) {
        for (int i = 0; i < 8; i++) {
            const double up = x[i] > low ? x[i] : low, held = up < high ? up : high;
            out[i] = x[i] == x[i] ? held : 0.0;
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_hold(Py_ssize_t n, const double *x, double low, double high, double *out) {
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_hold8(x + i, low, high, out + i);
        for (; i < n; i++) {
            const double up = x[i] > low ? x[i] : low, held = up < high ? up : high;
            out[i] = x[i] == x[i] ? held : 0.0;
        }
    }

    /* x - x is 0 where x is finite. */
    STREAMLASSO_PART void streamlasso_units8(const double *__restrict x, double least, double unit, double cap,
                                             double weight, double *__restrict loss) {
        const double infinity = 1e300 * 1e300;
        for (int i = 0; i < 8; i++) {
            const double u = (loss[i] - least) / unit, capped = cap < u ? cap : u, gap = x[i] - x[i];
            loss[i] = gap == 0.0 ? weight * capped : infinity;
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_in_units(Py_ssize_t n, const double *x, double least, double unit, double cap,
                                     double weight, double *loss) {
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_units8(x + i, least, unit, cap, weight, loss + i);
        if (i < n) {
            double rest[2][8] = {{0.0}};
            const size_t size = (size_t)(n - i) * sizeof(double);
            memcpy(rest[0], x + i, size);
            memcpy(rest[1], loss + i, size);
            streamlasso_units8(rest[0], least, unit, cap, weight, rest[1]);
            memcpy(loss + i, rest[1], size);
        }
    }

    STREAMLASSO_PART void streamlasso_likelihood8(const double *__restrict loss, double most,
                                                  double *__restrict out) {
        const double infinity = 1e300 * 1e300;
        double x[8], e[8];
        for (int i = 0; i < 8; i++)
            x[i] = loss[i] < most ? -loss[i] : -most;
        streamlasso_exp8(x, e);
        for (int i = 0; i < 8; i++)
            out[i] = loss[i] < infinity ? e[i] : 0.0;
    }

    STREAMLASSO_WIDE
    static void streamlasso_likelihoods(Py_ssize_t n, const double *loss, double most, double *out) {
        double rest[8] = {0.0}, ends[8];
        Py_ssize_t i = 0;
        for (; i + 7 < n; i += 8)
            streamlasso_likelihood8(loss + i, most, out + i);
        if (i < n) {
            memcpy(rest, loss + i, (size_t)(n - i) * sizeof(double));
            streamlasso_likelihood8(rest, most, ends);
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

    /* Rows of eight numbers: the weights of one expert for all shares. */
    STREAMLASSO_WIDE
    static void streamlasso_multiply_eights(Py_ssize_t n, const double *a, double *rows, double *sums) {
        SPREAD(low, 0.0);
        SPREAD(high, 0.0);
        SPREAD(one, 1.0);
        for (Py_ssize_t i = 0; i < n; i++, rows += 8) {
            SPREAD(x, a[i]);
            SPREAD(s, 0.0);
            SPREAD(t, 0.0);
            LOAD(u, rows);
            LOAD(v, rows + 4);
            ADD(s, u, x);
            ADD(t, v, x);
            ADD(low, s, one);
            ADD(high, t, one);
            STORE(rows, s);
            STORE(rows + 4, t);
        }
        STORE(sums, low);
        STORE(sums + 4, high);
    }

    STREAMLASSO_WIDE
    static void streamlasso_scale_eights(Py_ssize_t n, const double *a, double *rows) {
        LOAD(x, a);
        LOAD(y, a + 4);
        for (Py_ssize_t i = 0; i < n; i++, rows += 8) {
            SPREAD(s, 0.0);
            SPREAD(t, 0.0);
            LOAD(u, rows);
            LOAD(v, rows + 4);
            ADD(s, u, x);
            ADD(t, v, y);
            STORE(rows, s);
            STORE(rows + 4, t);
        }
    }

    STREAMLASSO_WIDE
    static void streamlasso_add_eights(Py_ssize_t n, const double *a, const double *rows, double *sums) {
        SPREAD(s, 0.0);
        SPREAD(t, 0.0);
        for (Py_ssize_t i = 0; i < n; i++, rows += 8) {
            SPREAD(x, a[i]);
            LOAD(u, rows);
            LOAD(v, rows + 4);
            ADD(s, u, x);
            ADD(t, v, x);
        }
        STORE(sums, s);
        STORE(sums + 4, t);
    }

    STREAMLASSO_WIDE
    static void streamlasso_dot_eights(Py_ssize_t n, const double *a, const double *rows, double *out) {
        LOAD(x, a);
        LOAD(y, a + 4);
        Py_ssize_t i = 0;
        for (; i + 3 < n; i += 4, rows += 32) {
            SPREAD(s0, 0.0);
            SPREAD(s1, 0.0);
            SPREAD(s2, 0.0);
            SPREAD(s3, 0.0);
            LOAD(u0, rows);
            LOAD(v0, rows + 4);
            LOAD(u1, rows + 8);
            LOAD(v1, rows + 12);
            LOAD(u2, rows + 16);
            LOAD(v2, rows + 20);
            LOAD(u3, rows + 24);
            LOAD(v3, rows + 28);
            ADD(s0, u0, x);
            ADD(s0, v0, y);
            ADD(s1, u1, x);
            ADD(s1, v1, y);
            ADD(s2, u2, x);
            ADD(s2, v2, y);
            ADD(s3, u3, x);
            ADD(s3, v3, y);
            SUMS(sums, s0, s1, s2, s3);
            STORE(out + i, sums);
        }
        for (; i < n; i++, rows += 8) {
            SPREAD(s, 0.0);
            LOAD(u, rows);
            LOAD(v, rows + 4);
            ADD(s, u, x);
            ADD(s, v, y);
            out[i] = SUM(s);
        }
    }

    /* All rows are scaled. Those of the groups of `size` rows are added up, row by row; those of single rows together,
       a part of which, 1 / size, counts at each. What comes out is `part` of these sums. */
    STREAMLASSO_WIDE
    static void streamlasso_pool_eights(Py_ssize_t n_groups, const Py_ssize_t *first, Py_ssize_t size,
                                        const double *scale, const double *part, double *rows, double *out) {
        const double each = (double)size;
        double single[8];
        LOAD(x, scale);
        LOAD(y, scale + 4);
        LOAD(a, part);
        LOAD(b, part + 4);
        SPREAD(one, 1.0);
        SPREAD(low, 0.0);
        SPREAD(high, 0.0);
        for (Py_ssize_t m = 0; m < n_groups; m++) {
            if (first[m + 1] - first[m] == size)
                continue;
            for (Py_ssize_t i = first[m]; i < first[m + 1]; i++) {
                double *row = rows + 8 * i;
                SPREAD(s, 0.0);
                SPREAD(t, 0.0);
                LOAD(u, row);
                LOAD(v, row + 4);
                ADD(s, u, x);
                ADD(t, v, y);
                STORE(row, s);
                STORE(row + 4, t);
                ADD(low, s, one);
                ADD(high, t, one);
            }
        }
        STORE(single, low);
        STORE(single + 4, high);
        for (int h = 0; h < 8; h++)
            single[h] /= each;
        for (Py_ssize_t k = 0; k < size; k++) {
            SPREAD(sum_low, 0.0);
            SPREAD(sum_high, 0.0);
            SPREAD(out_low, 0.0);
            SPREAD(out_high, 0.0);
            LOAD(more_low, single);
            LOAD(more_high, single + 4);
            for (Py_ssize_t m = 0; m < n_groups; m++) {
                double *row = rows + 8 * (first[m] + k);
                if (first[m + 1] - first[m] != size)
                    continue;
                SPREAD(s, 0.0);
                SPREAD(t, 0.0);
                LOAD(u, row);
                LOAD(v, row + 4);
                ADD(s, u, x);
                ADD(t, v, y);
                STORE(row, s);
                STORE(row + 4, t);
                ADD(sum_low, s, one);
                ADD(sum_high, t, one);
            }
            ADD(sum_low, more_low, one);
            ADD(sum_high, more_high, one);
            ADD(out_low, a, sum_low);
            ADD(out_high, b, sum_high);
            STORE(out + 8 * k, out_low);
            STORE(out + 8 * k + 4, out_high);
        }
    }

    /* row <- keep row + common + part (row before + row after), all as they were; the first and the last row count
       as their own neighbours. */
    STREAMLASSO_WIDE
    static void streamlasso_blur_eights(Py_ssize_t n, const double *keep, const double *part, const double *common,
                                        double *rows) {
        for (Py_ssize_t h = 0; h < 8; h += 4) {
            const double *from = common + h;
            double *row = rows + h;
            LOAD(k, keep + h);
            LOAD(a, part + h);
            LOAD(before, row);
            for (Py_ssize_t i = 0; i < n; i++, row += 8, from += 8) {
                LOAD(here, row);
                LOAD(after, i + 1 < n ? row + 8 : row);
                LOAD(s, from);
                ADD(s, k, here);
                ADD(s, a, before);
                ADD(s, a, after);
                STORE(row, s);
                before = here;
            }
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
    #: For vectors of fifty numbers and more, as `dot`.
    double long_dot "streamlasso_long_dot"(Py_ssize_t n, const double* a, const double* b) noexcept nogil
    #: x *= a, number by number; their sum
    double weigh "streamlasso_weigh"(Py_ssize_t n, const double* a, double* x) noexcept nogil
    #: out = sqrt(x); they do not overlap
    void roots "streamlasso_roots"(Py_ssize_t n, const double* x, double* out) noexcept nogil
    #: (x - centre)'b
    double centred_dot "streamlasso_centred_dot"(
        Py_ssize_t n, const double* x, const double* centre, const double* b
    ) noexcept nogil
    #: out_q = (row q)'y, for k rows of n numbers
    void dot_rows "streamlasso_dot_rows"(
        Py_ssize_t n, Py_ssize_t k, const double* const* rows, const double* y, double* out
    ) noexcept nogil
    #: out = A y for a matrix of k rows of n numbers, `ld` apart
    void matrix_times "streamlasso_matrix_times"(
        Py_ssize_t k, Py_ssize_t n, Py_ssize_t ld, const double* A, const double* y, double* out
    ) noexcept nogil
    #: y += A'weight for a matrix of k rows of n numbers; rows of weight 0 or less do not count
    void add_weighted "streamlasso_add_weighted"(
        Py_ssize_t k, Py_ssize_t n, const double* weight, const double* A, double* y
    ) noexcept nogil
    #: sum_i |x_i|
    double sum_of_sizes "streamlasso_sum_of_sizes"(Py_ssize_t n, const double* x) noexcept nogil
    #: y += sum_q a_q (row q), for k rows of n numbers
    void add_rows "streamlasso_add_rows"(
        Py_ssize_t n, Py_ssize_t k, const double* const* rows, const double* a, double* y
    ) noexcept nogil
    #: out -= sum_i b_i (row which_i of S + rows'signed), for rows of p numbers, with n_rows at most 4
    void subtract_rows "streamlasso_subtract_rows"(
        Py_ssize_t k, const Py_ssize_t* which, Py_ssize_t p, const double* S, Py_ssize_t n_rows, const double* rows,
        const double* signed_rows, const double* b, double* out
    ) noexcept nogil
    #: out_i = (S + rows'signed) at (at, members_i); the same
    void gather_row "streamlasso_gather_row"(
        Py_ssize_t at, Py_ssize_t k, const Py_ssize_t* members, Py_ssize_t p, const double* S, Py_ssize_t n_rows,
        const double* rows, const double* signed_rows, double* out
    ) noexcept nogil
    #: With d = x - mean as it was: mean += step d, scatter += k d^2
    void see_row "streamlasso_see_row"(
        Py_ssize_t n, const double* x, double step, double k, double* mean, double* scatter
    ) noexcept nogil
    #: With d = x - mean as it was: mean += step d, z = root d, signed_z = sign z, c += dt z
    void take_row "streamlasso_take_row"(
        Py_ssize_t n, const double* x, double step, double root, double sign, double dt, double* mean, double* z,
        double* signed_z, double* c
    ) noexcept nogil
    #: y -= sum_i a_i (row i - origin), for n rows of p numbers that follow one another
    void subtract_centred "streamlasso_subtract_centred"(
        Py_ssize_t n, Py_ssize_t p, const double* a, const double* rows, const double* origin, double* y
    ) noexcept nogil
    #: Whether all n numbers are finite
    bint all_finite "streamlasso_all_finite"(Py_ssize_t n, const double* x) noexcept nogil
    #: Whether all n numbers are 0 or larger, and finite; are 1 or -1; or are integers from `first` to `end - 1`
    bint all_weights "streamlasso_all_weights"(Py_ssize_t n, const double* x) noexcept nogil
    bint all_signs "streamlasso_all_signs"(Py_ssize_t n, const double* x) noexcept nogil
    bint all_within "streamlasso_all_within"(
        Py_ssize_t n, const Py_ssize_t* x, Py_ssize_t first, Py_ssize_t end
    ) noexcept nogil
    #: Whether any |g_i| > tau_i + tol_i
    bint any_beyond "streamlasso_any_beyond"(
        Py_ssize_t n, const double* g, const double* tau, const double* tol
    ) noexcept nogil
    #: How many of n numbers are larger than one, twice; equal ones count half
    Py_ssize_t twice_larger "streamlasso_twice_larger"(Py_ssize_t n, const double* x, double than) noexcept nogil
    #: z = root (x - mean) / sqrt(variance), within +-bound; no number where variance <= least mean^2
    void standardise "streamlasso_standardise"(
        Py_ssize_t n, const double* x, const double* mean, const double* variance, double root, double least,
        double bound, double* z
    ) noexcept nogil
    #: For n features the step of `Changes._compare_moved`: four shifts b = shift z each, a pair of either sign, with
    #: `table` by |b| steps; total is the sum of the four of `moved`. Where z is no number, nothing happens.
    void shift_features "streamlasso_shift"(
        Py_ssize_t n, const double* z, double u, double rate, double low, double high, double keep, const double* shift,
        const double* table, double steps, double* usual, double* moved, double* total
    ) noexcept nogil
    #: out_i = x_(i step) - centre
    void centred_column "streamlasso_centred_column"(
        Py_ssize_t n, Py_ssize_t step, const double* x, double centre, double* out
    ) noexcept nogil
    #: b <- U'^{-1} b and b <- U^{-1} b for a unit upper triangle of k rows, `ld` apart; x -= p row, row += beta x: for
    #: two dozen numbers and more
    void long_solve_lower "streamlasso_long_solve_lower"(
        Py_ssize_t k, Py_ssize_t ld, const double* U, double* b
    ) noexcept nogil
    void long_solve_upper "streamlasso_long_solve_upper"(
        Py_ssize_t k, Py_ssize_t ld, const double* U, double* b
    ) noexcept nogil
    void long_eliminate "streamlasso_long_eliminate"(
        Py_ssize_t n, double p, double beta, double* row, double* x
    ) noexcept nogil
    #: U'DU, U by rows that are `ld` >= k + 2 apart, of the block of k members of S + rows'signed + diag(ridge), with
    #: n_rows at most 4, and the inverse of D; how many pivots were more than `tolerance` of the diagonal, up to the
    #: first that was not
    Py_ssize_t factor_block "streamlasso_factor_block"(
        Py_ssize_t k, const Py_ssize_t* members, Py_ssize_t p, const double* S, Py_ssize_t n_rows, const double* rows,
        const double* signed_rows, const double* ridge, double tolerance, Py_ssize_t ld, double* U, double* d,
        double* inverse
    ) noexcept nogil
    #: Column q leaves a unit upper triangle of k rows that are `ld` apart
    void drop_column "streamlasso_drop_column"(Py_ssize_t k, Py_ssize_t q, Py_ssize_t ld, double* U) noexcept nogil
    #: z = x - centre; z'b
    double centre_row "streamlasso_centre_row"(
        Py_ssize_t n, const double* x, const double* centre, const double* b, double* z
    ) noexcept nogil
    #: The largest |g_i| / v_i with v_i > 0
    double largest_ratio "streamlasso_largest_ratio"(Py_ssize_t n, const double* g, const double* v) noexcept nogil
    #: sqrt(scatter inverse), 0 where doubles could not tell values about `mean` apart
    void deviations "streamlasso_deviations"(
        Py_ssize_t n, const double* scatter, const double* mean, double inverse, double* out
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
    #: out = x within [low, high], 0 where x is not a number
    void hold "streamlasso_hold"(Py_ssize_t n, const double* x, double low, double high, double* out) noexcept nogil
    #: loss <- weight min((loss - least) / unit, cap), infinite where x is not finite
    void in_units "streamlasso_in_units"(
        Py_ssize_t n, const double* x, double least, double unit, double cap, double weight, double* loss
    ) noexcept nogil
    #: out = e^-min(loss, most), 0 where a loss is infinite or not a number; `most` is 700 at most
    void likelihoods "streamlasso_likelihoods"(Py_ssize_t n, const double* loss, double most, double* out) noexcept nogil
    #: Slope and curvature of the logistic loss for n rows, any eta; they do not overlap.
    void logistic_slopes "streamlasso_logistic"(
        Py_ssize_t n, const double* y, const double* eta, double* slope, double* curvature
    ) noexcept nogil
    #: For n rows of eight numbers: row_i *= a_i, and the sums of the columns; row_i *= a; the sum of a_i row_i;
    #: out_i = a'row_i
    void multiply_eights "streamlasso_multiply_eights"(
        Py_ssize_t n, const double* a, double* rows, double* sums
    ) noexcept nogil
    #: row_i *= scale; then, for each of the `size` rows of a group, out_k = part (their sum over all groups of that size
    #: + 1 / size of the sum of all other rows)
    void pool_eights "streamlasso_pool_eights"(
        Py_ssize_t n_groups, const Py_ssize_t* first, Py_ssize_t size, const double* scale, const double* part,
        double* rows, double* out
    ) noexcept nogil
    void scale_eights "streamlasso_scale_eights"(Py_ssize_t n, const double* a, double* rows) noexcept nogil
    void add_eights "streamlasso_add_eights"(
        Py_ssize_t n, const double* a, const double* rows, double* sums
    ) noexcept nogil
    void dot_eights "streamlasso_dot_eights"(
        Py_ssize_t n, const double* a, const double* rows, double* out
    ) noexcept nogil
    #: row_i <- keep row_i + common_i + part (row_{i-1} + row_{i+1}); the first and last are their own neighbours
    void blur_eights "streamlasso_blur_eights"(
        Py_ssize_t n, const double* keep, const double* part, const double* common, double* rows
    ) noexcept nogil
    #: z = a (x - centre), number by number
    void centred_product "streamlasso_centred_product"(
        Py_ssize_t n, const double* a, const double* x, double centre, double* z
    ) noexcept nogil
