/* Sums of rows.

   Short ones are inlined where they are called; the others take four numbers at a time, and some take four rows. */

#pragma once

#include "fours.h"

/* y += a x */
static inline void axpy(Py_ssize_t n, double a, const double *x, double *y) {
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* y += a_0 x0 + a_1 x1 + a_2 x2 + a_3 x3 */
static inline void axpy4(Py_ssize_t n, const double *a, const double *x0, const double *x1, const double *x2,
                         const double *x3, double *y) {
    const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    for (Py_ssize_t i = 0; i < n; i++)
        y[i] += (a0 * x0[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
}

/* y += a x */
PART void fours(Py_ssize_t n, double a, const double *x, double *y) {
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

/* y += a0 x0 + a1 x1 + a2 x2 + a3 x3 */
PART void fours4(Py_ssize_t n, double a0, double a1, double a2, double a3, const double *x0,
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

PART void add_few(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *a,
                                          double *y) {
    Py_ssize_t q = 0;
    for (; q + 3 < k; q += 4)
        fours4(n, a[q], a[q + 1], a[q + 2], a[q + 3], rows[q], rows[q + 1], rows[q + 2], rows[q + 3],
                           y);
    for (; q < k; q++)
        fours(n, a[q], rows[q], y);
}

/* y += sum_q a_q (row q), for k rows of n numbers. */
WIDE
static void add_rows(Py_ssize_t n, Py_ssize_t k, const double *const *rows, const double *a,
                                 double *y) {
    add_few(n, k, rows, a, y);
}

/* y += A'weight for a matrix of k rows of n numbers. Rows of weight 0 or less do not count, and may hold anything. */
WIDE
static void add_weighted(Py_ssize_t k, Py_ssize_t n, const double *weight, const double *A,
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
            fours4(n, a[0], a[1], a[2], a[3], rows[0], rows[1], rows[2], rows[3], y);
            m = 0;
        }
    }
    for (Py_ssize_t r = 0; r < m; r++)
        fours(n, a[r], rows[r], y);
}

/* out -= sum_i b_i (row which_i of S + rows'signed_rows), for rows of p numbers. At most four
   `rows` wait to be added to S, and there is room for four. Rows of S that are left over by fours go with them. */
WIDE
static void subtract_rows(Py_ssize_t k, const Py_ssize_t *which, Py_ssize_t p, const double *S,
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
        fours4(p, -b[i], -b[i + 1], -b[i + 2], -b[i + 3], S + which[i] * p, S + which[i + 1] * p,
                           S + which[i + 2] * p, S + which[i + 3] * p, out);
    for (; i < k; i++, n++) {
        a[n] = -b[i];
        last[n] = S + which[i] * p;
    }
    for (Py_ssize_t m = 0; m < n_rows; m++, n++) {
        a[n] = -sums[m];
        last[n] = rows + m * p;
    }
    add_few(p, n, last, a, out);
}

/* y -= sum_i a_i (row i - origin), for n rows of p numbers that follow one another; sixteen columns at a time stay in
   registers. */
WIDE
static void subtract_centred(Py_ssize_t n, Py_ssize_t p, const double *a, const double *rows,
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

/* With d = x - mean as it was: mean += step d and scatter += k d d. */
WIDE
static void see_row(Py_ssize_t n, const double *x, double step, double k, double *mean,
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

/* With d = x - mean as it was: mean += step d, z = root d, signed_z = sign z and c += dt z. */
WIDE
static void take_row(Py_ssize_t n, const double *x, double step, double root, double sign, double dt,
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
