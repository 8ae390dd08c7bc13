/* Every loop of core/linalg against a naive one, for all lengths up to N, on arrays of exactly their length. */

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef ptrdiff_t Py_ssize_t;

#include "block.h"
#include "elementwise.h"

#define N 41
#define EACH_I for (Py_ssize_t i = 0; i < n; i++)

static int failures;
static const char *now;
static Py_ssize_t length;

static void expect(int holds, const char *what) {
    if (!holds) {
        failures++;
        printf("%s of %d: %s\n", now, (int)length, what);
    }
}

static void near(double found, double expected, double size) {
    expect(fabs(found - expected) <= 1e-12 * (1.0 + size), "not what the naive loop gives");
}

static void all_near(Py_ssize_t n, const double *found, const double *expected, double size) {
    EACH_I near(found[i], expected[i], size);
}

/* Numbers from -1 to 1. */
static double number(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 4503599627370496.0 - 1.0;
}

static double *room(Py_ssize_t n) {
    double *x = malloc((size_t)(n > 0 ? n : 1) * sizeof(double));
    if (x == NULL)
        exit(2);
    return x;
}

static double *numbers(Py_ssize_t n) {
    double *x = room(n);
    EACH_I x[i] = number();
    return x;
}

static double *positive(Py_ssize_t n) {
    double *x = numbers(n);
    EACH_I x[i] = 1.5 + x[i];
    return x;
}

static double *copy(Py_ssize_t n, const double *x) {
    double *y = room(n);
    memcpy(y, x, (size_t)n * sizeof(double));
    return y;
}

static double naive(Py_ssize_t n, const double *a, const double *b) {
    double s = 0.0;
    EACH_I s += a[i] * b[i];
    return s;
}

static void vectors(Py_ssize_t n) {
    double *a = numbers(n), *b = numbers(n), *c = numbers(n), *x = copy(n, a), *y = copy(n, a), *z = room(n);
    double sum = 0.0, sizes = 0.0;
    now = "vectors";
    near(dot(n, a, b), naive(n, a, b), n);
    near(long_dot(n, a, b), naive(n, a, b), n);
    EACH_I sum += (a[i] - c[i]) * b[i];
    near(centred_dot(n, a, c, b), sum, n);
    near(centre_row(n, a, c, b, z), sum, n);
    EACH_I expect(z[i] == a[i] - c[i], "centre_row");
    EACH_I sizes += fabs(a[i]);
    near(sum_of_sizes(n, a), sizes, n);
    near(weigh(n, b, x), naive(n, a, b), n);
    EACH_I expect(x[i] == a[i] * b[i], "weigh");
    centred_product(n, a, b, 0.25, z);
    EACH_I expect(z[i] == a[i] * (b[i] - 0.25), "centred_product");
    axpy(n, 0.75, b, y);
    EACH_I near(y[i], a[i] + 0.75 * b[i], 1.0);
    free(a), free(b), free(c), free(x), free(y), free(z);
}

static void rows_of(Py_ssize_t n, Py_ssize_t k) {
    const Py_ssize_t ld = n + 3;
    double *A = numbers(k * ld), *whole = numbers(k * n), *y = numbers(n), *weight = numbers(k), *out = room(k);
    double *sum = copy(n, y), *expected = copy(n, y), *column = room(k);
    const double *at[N];
    now = "rows";
    for (Py_ssize_t q = 0; q < k; q++)
        at[q] = A + q * ld;
    matrix_times(k, n, ld, A, y, out);
    for (Py_ssize_t q = 0; q < k; q++)
        near(out[q], naive(n, at[q], y), n);
    dot_rows(n, k, at, y, out);
    for (Py_ssize_t q = 0; q < k; q++)
        near(out[q], naive(n, at[q], y), n);
    if (k >= 4) {
        dot4(n, A, ld, y, out);
        for (Py_ssize_t q = 0; q < 4; q++)
            near(out[q], naive(n, at[q], y), n);
        axpy4(n, weight, at[0], at[1], at[2], at[3], sum);
        for (Py_ssize_t q = 0; q < 4; q++)
            EACH_I expected[i] += weight[q] * at[q][i];
        all_near(n, sum, expected, k);
    }
    add_rows(n, k, at, weight, sum);
    for (Py_ssize_t q = 0; q < k; q++)
        EACH_I expected[i] += weight[q] * at[q][i];
    all_near(n, sum, expected, k);
    for (Py_ssize_t q = 0; q < k; q++) {
        EACH_I whole[q * n + i] = weight[q] > 0.0 ? whole[q * n + i] : NAN;
        EACH_I expected[i] += weight[q] > 0.0 ? weight[q] * whole[q * n + i] : 0.0;
    }
    add_weighted(k, n, weight, whole, sum);
    all_near(n, sum, expected, k);
    for (Py_ssize_t q = 0; q < k; q++)
        EACH_I whole[q * n + i] = number();
    subtract_centred(k, n, weight, whole, y, sum);
    for (Py_ssize_t q = 0; q < k; q++)
        EACH_I expected[i] -= weight[q] * (whole[q * n + i] - y[i]);
    all_near(n, sum, expected, 2 * k);
    if (n > 0) {
        centred_column(k, n, whole, 0.5, column);
        for (Py_ssize_t q = 0; q < k; q++)
            expect(column[q] == whole[q * n] - 0.5, "centred_column");
    }
    free(A), free(whole), free(y), free(weight), free(out), free(sum), free(expected), free(column);
}

static void one_row(Py_ssize_t n) {
    double *x = numbers(n), *mean = numbers(n), *before = copy(n, mean), *scatter = positive(n), *c = numbers(n);
    double *z = room(n), *other = room(n), *squares = copy(n, scatter), *sums = copy(n, c);
    now = "a row";
    see_row(n, x, 0.25, 0.5, mean, scatter);
    EACH_I near(mean[i], before[i] + 0.25 * (x[i] - before[i]), 1.0);
    EACH_I near(scatter[i], squares[i] + 0.5 * (x[i] - before[i]) * (x[i] - before[i]), 4.0);
    memcpy(mean, before, (size_t)n * sizeof(double));
    take_row(n, x, 0.25, 0.5, -1.0, 2.0, mean, z, other, c);
    EACH_I near(mean[i], before[i] + 0.25 * (x[i] - before[i]), 1.0);
    EACH_I near(z[i], 0.5 * (x[i] - before[i]), 1.0);
    EACH_I expect(other[i] == -z[i], "take_row");
    EACH_I near(c[i], sums[i] + 2.0 * z[i], 2.0);
    free(x), free(mean), free(before), free(scatter), free(c), free(z), free(other), free(squares), free(sums);
}

static void symmetric(Py_ssize_t n) {
    double *P = numbers(n * (n + 1) / 2), *z = numbers(n), *q = room(n), *expected = room(n);
    double *before = copy(n * (n + 1) / 2, P), along;
    now = "symmetric";
    EACH_I {
        expected[i] = 0.0;
        for (Py_ssize_t j = 0; j < n; j++)
            expected[i] += P[i > j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i] * z[j];
    }
    along = symmetric_times(n, P, z, q);
    all_near(n, q, expected, n);
    near(along, naive(n, z, expected), n * n);
    symmetric_subtract(n, 0.5, q, P);
    EACH_I for (Py_ssize_t j = 0; j <= i; j++)
        near(P[i * (i + 1) / 2 + j], before[i * (i + 1) / 2 + j] - 0.5 * q[i] * q[j], n * n);
    free(P), free(z), free(q), free(expected), free(before);
}

/* S = B'B of n rows and some more, and the block of every other feature, with rows that wait to be added to S. */
static void block(Py_ssize_t n, Py_ssize_t n_rows) {
    const Py_ssize_t p = 2 * n + 1, k = n, ld = k + 2;
    double *B = numbers((p + 5) * p), *S = room(p * p), *H = room(p * p), *rows = numbers(4 * p), *other = room(4 * p);
    double *ridge = positive(p), *U = room((k + 2) * ld), *d = room(k), *inverse = room(k), *b = numbers(k);
    double *x = copy(k, b), *line = room(k), *out = numbers(p), *expected = copy(p, out), *y = room(k), sum;
    Py_ssize_t members[N];
    now = "block";
    for (Py_ssize_t m = 0; m < 4 * p; m++)
        other[m] = (m / p < 2 ? 1.0 : -0.01) * rows[m];
    for (Py_ssize_t i = 0; i < p; i++)
        for (Py_ssize_t j = 0; j < p; j++) {
            S[i * p + j] = 0.0;
            for (Py_ssize_t m = 0; m < p + 5; m++)
                S[i * p + j] += B[m * p + i] * B[m * p + j];
            H[i * p + j] = S[i * p + j];
            for (Py_ssize_t m = 0; m < n_rows; m++)
                H[i * p + j] += rows[m * p + i] * other[m * p + j];
        }
    for (Py_ssize_t i = 0; i < k; i++)
        members[i] = 2 * i + 1;
    if (k > 0) {
        gather_row(2, k, members, p, S, n_rows, rows, other, line);
        for (Py_ssize_t i = 0; i < k; i++)
            near(line[i], H[2 * p + members[i]], p);
    }
    subtract_rows(k, members, p, S, n_rows, rows, other, b, out);
    for (Py_ssize_t i = 0; i < k; i++)
        for (Py_ssize_t j = 0; j < p; j++)
            expected[j] -= b[i] * H[j * p + members[i]];
    all_near(p, out, expected, p * p);
    expect(factor_block(k, members, p, S, n_rows, rows, other, ridge, 1e-12, ld, U, d, inverse) == k, "factor_block");
    for (Py_ssize_t i = 0; i < k; i++)
        for (Py_ssize_t j = i; j < k; j++) {
            sum = i == j ? d[i] : d[i] * U[i * ld + j];
            for (Py_ssize_t m = 0; m < i; m++)
                sum += U[m * ld + i] * d[m] * U[m * ld + j];
            near(sum, H[members[i] * p + members[j]] + (i == j ? ridge[members[i]] : 0.0), 10 * p);
        }
    long_solve_lower(k, ld, U, x);
    for (Py_ssize_t i = 0; i < k; i++) {
        sum = x[i];
        for (Py_ssize_t m = 0; m < i; m++)
            sum += U[m * ld + i] * x[m];
        near(sum, b[i], 100.0);
    }
    memcpy(y, x, (size_t)k * sizeof(double));
    long_solve_upper(k, ld, U, x);
    for (Py_ssize_t i = 0; i < k; i++)
        near(x[i] + naive(k - i - 1, U + i * ld + i + 1, x + i + 1), y[i], 100.0);
    for (Py_ssize_t q = 0; q < k; q += 3) {
        double *V = copy((k + 2) * ld, U);
        drop_column(k, q, ld, V);
        for (Py_ssize_t i = 0; i < k - 1; i++)
            for (Py_ssize_t j = i + 1; j < k - 1; j++)
                expect(V[i * ld + j] == U[(i < q ? i : i + 1) * ld + (j < q ? j : j + 1)], "drop_column");
        free(V);
    }
    free(B), free(S), free(H), free(rows), free(other), free(ridge), free(U), free(d), free(inverse), free(b), free(x);
    free(line), free(out), free(expected), free(y);
}

static void eliminations(Py_ssize_t n) {
    double *row = numbers(n), *x = numbers(n), *u = copy(n, row), *v = copy(n, x), *r = copy(n, row), *w = copy(n, x);
    now = "eliminate";
    EACH_I w[i] -= 0.5 * r[i];
    EACH_I r[i] += 0.25 * w[i];
    eliminate(n, 0.5, 0.25, row, x);
    long_eliminate(n, 0.5, 0.25, u, v);
    all_near(n, row, r, 1.0), all_near(n, x, w, 1.0), all_near(n, u, r, 1.0), all_near(n, v, w, 1.0);
    free(row), free(x), free(u), free(v), free(r), free(w);
}

static void each(Py_ssize_t n) {
    double *x = numbers(n), *up = positive(n), *out = room(n), *y = numbers(n), *g = numbers(n), *e = room(n);
    double most = 0.0;
    signed char among[N];
    now = "each number";
    roots(n, up, out);
    EACH_I expect(out[i] == sqrt(up[i]), "roots");
    EACH_I y[i] *= 700.0;
    exps(n, y, out);
    EACH_I expect(fabs(out[i] / exp(y[i]) - 1.0) <= 4e-16, "exps");
    EACH_I out[i] = fabs(x[i]);
    log1ps(n, out);
    EACH_I near(out[i], log1p(fabs(x[i])), 0.0);
    EACH_I x[i] = i % 7 == 3 ? NAN : i % 7 == 5 ? INFINITY : x[i];
    hold(n, x, -0.5, 0.5, out);
    EACH_I expect(out[i] == (isnan(x[i]) ? 0.0 : fmax(-0.5, fmin(0.5, x[i]))), "hold");
    EACH_I out[i] = g[i];
    in_units(n, x, 0.1, 0.5, 1.0, 2.0, out);
    EACH_I if (isfinite(x[i])) near(out[i], 2.0 * fmin((g[i] - 0.1) / 0.5, 1.0), 2.0);
    EACH_I if (!isfinite(x[i])) expect(isinf(out[i]) && out[i] > 0.0, "in_units");
    EACH_I x[i] = i % 5 ? 800.0 * fabs(g[i]) : x[i];
    likelihoods(n, x, 600.0, out);
    EACH_I if (isfinite(x[i])) expect(fabs(out[i] / exp(-fmin(x[i], 600.0)) - 1.0) <= 4e-16, "likelihoods");
    EACH_I if (!isfinite(x[i])) expect(out[i] == 0.0, "likelihoods");
    EACH_I x[i] = i % 2;
    logistic_slopes(n, x, y, out, e);
    EACH_I if (fabs(y[i]) < 30.0) near(out[i], 1.0 / (1.0 + exp(-y[i])) - x[i], 0.0);
    EACH_I if (fabs(y[i]) < 30.0) near(e[i], 1.0 / (2.0 + exp(y[i]) + exp(-y[i])), 0.0);
    deviations(n, up, y, 0.5, out);
    EACH_I near(out[i], sqrt(0.5 * up[i]), 1.0);
    EACH_I up[i] = i % 3 ? up[i] : 0.0;
    EACH_I if (up[i] > 0.0 && fabs(g[i]) / up[i] > most) most = fabs(g[i]) / up[i];
    near(largest_ratio(n, g, up, NULL), most, 4.0);
    most = 0.0;
    EACH_I among[i] = i % 4 != 2;
    EACH_I if (among[i] && up[i] > 0.0 && fabs(g[i]) / up[i] > most) most = fabs(g[i]) / up[i];
    near(largest_ratio(n, g, up, among), most, 4.0);
    free(x), free(up), free(out), free(y), free(g), free(e);
}

static void standards(Py_ssize_t n) {
    double *x = numbers(n), *mean = numbers(n), *variance = positive(n), *z = room(n);
    now = "standardise";
    EACH_I variance[i] = i % 4 == 1 ? 0.0 : variance[i];
    standardise(n, x, mean, variance, 0.9, 1e-10, 0.8, z);
    EACH_I if (variance[i] == 0.0) expect(isnan(z[i]), "no variance");
    EACH_I if (variance[i] > 0.0)
        near(z[i], fmax(-0.8, fmin(0.8, 0.9 * (x[i] - mean[i]) / sqrt(variance[i]))), 1.0);
    free(x), free(mean), free(variance), free(z);
}

static void shifts(Py_ssize_t n) {
    const double shift[4] = {1.0, -1.0, 2.0, -2.0}, table[] = {1.0, 0.75, 0.5, 0.25, 0.125};
    double *z = numbers(n), *usual = positive(4 * n), *moved = positive(4 * n), *total = room(n);
    double *mean = copy(4 * n, usual), *evidence = copy(4 * n, moved);
    now = "shift_features";
    EACH_I z[i] = i % 3 == 1 ? NAN : z[i];
    shift_features(n, z, 0.5, 0.1, -2.0, 2.0, 0.99, shift, table, 2.0, usual, moved, total);
    EACH_I {
        double sum = 0.0;
        for (int k = 0; k < 4 && !isnan(z[i]); k++) {
            const double b = shift[k] * z[i], held = fmax(-2.0, fmin(2.0, b * (0.5 - b / 2.0)));
            const double f = pow(1.0 + held / 8.0, 8.0) * table[(int)(fabs(b) * 2.0 + 0.5)];
            mean[4 * i + k] += 0.1 * (f - mean[4 * i + k]);
            evidence[4 * i + k] = 0.99 * (evidence[4 * i + k] + fmin(1.0, z[i] * z[i])) * f / fmax(1.0, mean[4 * i + k]);
            sum += evidence[4 * i + k];
        }
        near(total[i], sum, 100.0);
    }
    all_near(4 * n, usual, mean, 10.0);
    all_near(4 * n, moved, evidence, 100.0);
    free(z), free(usual), free(moved), free(total), free(mean), free(evidence);
}

/* One number at a time is made what it must not be. */
static void questions(Py_ssize_t n) {
    double *x = positive(n), *tau = copy(n, x), *tol = positive(n);
    Py_ssize_t twice = 0;
    now = "questions";
    EACH_I twice += (x[i] > 1.5) + (x[i] >= 1.5);
    expect(twice_larger(n, x, 1.5) == twice, "twice_larger");
    expect(all_finite(n, x), "all_finite");
    expect(!any_beyond(n, x, tau, tol), "any_beyond");
    EACH_I {
        const double kept = x[i], wrong[] = {INFINITY, -INFINITY, NAN};
        for (int w = 0; w < 3; w++) {
            x[i] = wrong[w];
            expect(!all_finite(n, x), "not all_finite");
        }
        x[i] = -(tau[i] + tol[i]) * 1.001;
        expect(any_beyond(n, x, tau, tol), "any_beyond");
        x[i] = kept;
    }
    free(x), free(tau), free(tol);
}

int main(void) {
    for (length = 0; length < N; length++) {
        vectors(length), one_row(length), symmetric(length), eliminations(length), each(length), standards(length);
        shifts(length), questions(length);
        for (Py_ssize_t k = 0; k < 10; k++)
            rows_of(length, k);
        for (Py_ssize_t n_rows = 0; n_rows < 5; n_rows++)
            block(length, n_rows);
    }
    return failures > 0;
}
