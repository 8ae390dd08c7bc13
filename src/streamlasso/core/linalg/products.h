/* Products of vectors, and of matrices with vectors.

   Measured against BLAS these are faster up to length 200, and they never start a thread. Short ones are inlined where
   they are called; the others take four numbers at a time, and some take four rows, so that a vector is loaded once. */

#pragma once

#include "sums.h"

/* a'b with four partial sums: compilers may not reorder one long sum, and could not use vector instructions on it. */
static inline double dot(Py_ssize_t n, const double *a, const double *b) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    Py_ssize_t i = 0;
    for (; i + 3 < n; i += 4) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++)
        s0 += a[i] * b[i];
    return (s0 + s1) + (s2 + s3);
}

/* out_r = (row r of x)'y for four rows that are `ld` apart. */
static inline void dot4(Py_ssize_t n, const double *x, Py_ssize_t ld, const double *y, double *out) {
    const double *x1 = x + ld, *x2 = x1 + ld, *x3 = x2 + ld;
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0;
    Py_ssize_t i = 0;
    for (; i + 1 < n; i += 2) {
        s0 += x[i] * y[i];
        t0 += x[i + 1] * y[i + 1];
        s1 += x1[i] * y[i];
        t1 += x1[i + 1] * y[i + 1];
        s2 += x2[i] * y[i];
        t2 += x2[i + 1] * y[i + 1];
        s3 += x3[i] * y[i];
        t3 += x3[i + 1] * y[i + 1];
    }
    if (i < n) {
        s0 += x[i] * y[i];
        s1 += x1[i] * y[i];
        s2 += x2[i] * y[i];
        s3 += x3[i] * y[i];
    }
    out[0] = s0 + t0;
    out[1] = s1 + t1;
    out[2] = s2 + t2;
    out[3] = s3 + t3;
}

/* a'b, for fifty numbers and more. */
WIDE
static double long_dot(Py_ssize_t n, const double *a, const double *b) {
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

/* x *= a, number by number; returns their sum, as long_dot adds up. */
WIDE
static double weigh(Py_ssize_t n, const double *a, double *x) {
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

/* a'b */
PART double fours_dot(Py_ssize_t n, const double *a, const double *b) {
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

/* (x - centre)'b */
WIDE
static double centred_dot(Py_ssize_t n, const double *x, const double *centre, const double *b) {
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

/* z = a (x - centre), number by number. */
WIDE
static void centred_product(Py_ssize_t n, const double *a, const double *x, double centre, double *z) {
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

/* z = x - centre; returns z'b. */
WIDE
static double centre_row(Py_ssize_t n, const double *x, const double *centre, const double *b,
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

/* out_i = x_(i step) - centre */
WIDE
static void centred_column(Py_ssize_t n, Py_ssize_t step, const double *x, double centre,
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

/* sum_i |x_i| */
WIDE
static double sum_of_sizes(Py_ssize_t n, const double *x) {
    double s[4] = {0.0}, rest = 0.0;
    Py_ssize_t i = 0;
    for (; i + 3 < n; i += 4)
        for (int l = 0; l < 4; l++)
            s[l] += x[i + l] < 0.0 ? -x[i + l] : x[i + l];
    for (; i < n; i++)
        rest += x[i] < 0.0 ? -x[i] : x[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + rest;
}

/* The first k of four rows times y; the other rows may be any. */
PART void dot_four(Py_ssize_t n, Py_ssize_t k, const double *x0, const double *x1,
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

/* out_q = (row q)'y, for k rows of n numbers. */
WIDE
static void dot_rows(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *y,
                                 double *out) {
    for (Py_ssize_t q = 0; q < k; q += 4)
        dot_four(n, k - q, rows[q], rows[q + 1 < k ? q + 1 : q], rows[q + 2 < k ? q + 2 : q],
                             rows[q + 3 < k ? q + 3 : q], y, out + q);
}

/* out = A y for a matrix of k rows of n numbers, `ld` apart. */
WIDE
static void matrix_times(Py_ssize_t k, Py_ssize_t n, Py_ssize_t ld, const double *A, const double *y,
                                     double *out) {
    for (Py_ssize_t q = 0; q < k; q += 4) {
        const double *x = A + q * ld;
        dot_four(n, k - q, x, x + (q + 1 < k ? ld : 0), x + (q + 2 < k ? 2 * ld : 0),
                             x + (q + 3 < k ? 3 * ld : 0), y, out + q);
    }
}

/* q = P z, for the lower triangle of a symmetric P by rows, each of which counts as a row and a
   column; returns z'q. */
WIDE
static double symmetric_times(Py_ssize_t n, const double *P, const double *z, double *q) {
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
        fours(i, z[i], r0, q);
        q[i] = fours_dot(i + 1, r0, z);
    }
    return fours_dot(n, z, q);
}

/* P -= gain q q' */
WIDE
static void symmetric_subtract(Py_ssize_t n, double gain, const double *q, double *P) {
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
        fours(2, a1, q + i, r1 + i);
        fours(3, a2, q + i, r2 + i);
        fours(4, a3, q + i, r3 + i);
        r0 = r3 + i + 4;
    }
    for (; i < n; r0 += ++i)
        fours(i + 1, -gain * q[i], q, r0);
}
