/* The factor U'DU of a block of a symmetric matrix, U unit upper triangular and stored by rows: see cholesky.py. */

#pragma once

#include "products.h"

/* out_i = (S + rows'signed_rows) at (at, members_i); at most four rows wait. */
WIDE
static void gather_row(Py_ssize_t at, Py_ssize_t k, const Py_ssize_t *members, Py_ssize_t p,
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

/* y_i = S_i + ((a0 x0_i + a1 x1_i) + (a2 x2_i + a3 x3_i)), with S_i at which_i, for x that are 32 apart. */
PART void gather_fours(Py_ssize_t n, const Py_ssize_t *which, const double *S,
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

/* The upper triangle of the block of `members` of S + rows'signed_rows + diag(ridge); at most four rows wait. Their
   values at the members are brought together first, for thirty-two columns at a time. */
PART void gather_block(Py_ssize_t k, const Py_ssize_t *members, Py_ssize_t p,
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
            gather_fours(end - first, members + first, S + at * p, n_rows, a, near[0] + first - start,
                                     U + i * ld + first);
            if (first == i)
                U[i * ld + i] += ridge[at];
        }
    }
}

/* to += share from, in fours from j on; the last four may reach over k. */
PART void take_out(Py_ssize_t j, Py_ssize_t k, double share, const double *from,
                                           double *to) {
    SPREAD(a, share);
    for (; j < k; j += 4) {
        LOAD(s, to + j);
        LOAD(v, from + j);
        ADD(s, a, v);
        STORE(to + j, s);
    }
}

/* U'DU = the block of `members` of S + rows'signed_rows + diag(ridge), U by rows that are `ld` >= k + 2 apart, and the
   inverse of D. Returns how many pivots were more than `tolerance` of the diagonal, up to the first that was not.

   Two pivots at a time are taken out of all rows below, which do not wait for one another. Fours may reach over the end
   of a row, by less than the two numbers that `ld` is larger than k and the one below the diagonal of the next. */
WIDE
static Py_ssize_t factor_block(Py_ssize_t k, const Py_ssize_t *members, Py_ssize_t p, const double *S,
                                           Py_ssize_t n_rows, const double *rows, const double *signed_rows,
                                           const double *ridge, double tolerance, Py_ssize_t ld, double *U,
                                           double *d, double *inverse) {
    gather_block(k, members, p, S, n_rows, rows, signed_rows, ridge, ld, U);
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
        take_out(i + 1, k, -share * from[i + 1], from, next);
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

/* to = from, which begins later in the same memory. */
PART void move_back(Py_ssize_t n, const double *from, double *to) {
    Py_ssize_t i = 0;
    for (; i + 3 < n; i += 4) {
        LOAD(v, from + i);
        STORE(to + i, v);
    }
    for (; i < n; i++)
        to[i] = from[i];
}

/* Column q leaves a unit upper triangle of k rows: those behind it move to the left, rows below it up as well. */
WIDE
static void drop_column(Py_ssize_t k, Py_ssize_t q, Py_ssize_t ld, double *U) {
    for (Py_ssize_t i = 0; i < q; i++)
        move_back(k - 1 - q, U + i * ld + q + 1, U + i * ld + q);
    for (Py_ssize_t i = q; i < k - 1; i++)
        move_back(k - 1 - i, U + (i + 1) * ld + i + 1, U + i * ld + i);
}

/* x -= p row, then row += beta x. */
static inline void eliminate(Py_ssize_t n, double p, double beta, double *row, double *x) {
    for (Py_ssize_t i = 0; i < n; i++) {
        x[i] -= p * row[i];
        row[i] += beta * x[i];
    }
}

/* x -= p row, then row += beta x. */
WIDE
static void long_eliminate(Py_ssize_t n, double p, double beta, double *row, double *x) {
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

/* b <- U'^{-1} b for a unit upper triangle of k rows, `ld` apart, four at a time. */
WIDE
static void long_solve_lower(Py_ssize_t k, Py_ssize_t ld, const double *U, double *b) {
    Py_ssize_t i = 0;
    for (; i + 3 < k; i += 4) {
        const double *r0 = U + i * ld + i, *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld;
        b[i + 1] -= r0[1] * b[i];
        b[i + 2] -= r0[2] * b[i] + r1[2] * b[i + 1];
        b[i + 3] -= (r0[3] * b[i] + r1[3] * b[i + 1]) + r2[3] * b[i + 2];
        fours4(k - i - 4, -b[i], -b[i + 1], -b[i + 2], -b[i + 3], r0 + 4, r1 + 4, r2 + 4, r3 + 4,
                           b + i + 4);
    }
    for (; i < k; i++)
        fours(k - i - 1, -b[i], U + i * ld + i + 1, b + i + 1);
}

/* b <- U^{-1} b */
WIDE
static void long_solve_upper(Py_ssize_t k, Py_ssize_t ld, const double *U, double *b) {
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
        b[i] -= fours_dot(k - i - 1, U + i * ld + i + 1, b + i + 1);
}
