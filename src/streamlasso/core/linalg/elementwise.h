/* Functions of every number of an array, and questions about all of them.

   Blocks of a fixed size without branches are what compilers vectorise. */

#pragma once

#include "fours.h"

PART void roots8(const double *__restrict x, double *__restrict out) {
    for (int i = 0; i < 8; i++)
        out[i] = sqrt(x[i]);
}

/* out = sqrt(x); they do not overlap. */
WIDE
static void roots(Py_ssize_t n, const double *x, double *out) {
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        roots8(x + i, out + i);
    for (; i < n; i++)
        out[i] = sqrt(x[i]);
}

PART void hold8(const double *__restrict x, double low, double high,
                                        double *__restrict out) {
    for (int i = 0; i < 8; i++) {
        const double up = x[i] > low ? x[i] : low, held = up < high ? up : high;
        out[i] = x[i] == x[i] ? held : 0.0;
    }
}

/* out = x within [low, high]; 0 where x is NaN. */
WIDE
static void hold(Py_ssize_t n, const double *x, double low, double high, double *out) {
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        hold8(x + i, low, high, out + i);
    for (; i < n; i++) {
        const double up = x[i] > low ? x[i] : low, held = up < high ? up : high;
        out[i] = x[i] == x[i] ? held : 0.0;
    }
}

PART void deviations8(const double *__restrict scatter, const double *__restrict mean,
                                              double inverse, double *__restrict out) {
    for (int i = 0; i < 8; i++) {
        const double s = scatter[i] > 0.0 ? scatter[i] : 0.0, root = sqrt(s * inverse);
        const double size = mean[i] < 0.0 ? -mean[i] : mean[i];
        out[i] = root <= 1e-14 * size ? 0.0 : root;
    }
}

/* sqrt(scatter inverse); 0 where doubles could not tell values about `mean` apart. */
WIDE
static void deviations(Py_ssize_t n, const double *scatter, const double *mean, double inverse,
                                   double *out) {
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        deviations8(scatter + i, mean + i, inverse, out + i);
    if (i < n) {
        double rest[3][8] = {{0.0}};
        const size_t size = (size_t)(n - i) * sizeof(double);
        memcpy(rest[0], scatter + i, size);
        memcpy(rest[1], mean + i, size);
        deviations8(rest[0], rest[1], inverse, rest[2]);
        memcpy(out + i, rest[2], size);
    }
}

/* The largest |g_i| / v_i with v_i > 0 and i `among` those asked for, or any where that is NULL; 0 if there is none. */
WIDE
static double largest_ratio(Py_ssize_t n, const double *g, const double *v, const signed char *among) {
    double most[8] = {0.0}, largest = 0.0;
    Py_ssize_t i = 0;
    for (; i + 7 < n && among == NULL; i += 8)
        for (int l = 0; l < 8; l++) {
            const double size = g[i + l] < 0.0 ? -g[i + l] : g[i + l], ratio = v[i + l] > 0.0 ? size / v[i + l] : 0.0;
            most[l] = ratio > most[l] ? ratio : most[l];
        }
    for (; i < n; i++) {
        const double size = g[i] < 0.0 ? -g[i] : g[i], ratio = v[i] > 0.0 ? size / v[i] : 0.0;
        largest = ratio > largest && (among == NULL || among[i]) ? ratio : largest;
    }
    for (int l = 0; l < 8; l++)
        largest = most[l] > largest ? most[l] : largest;
    return largest;
}

/* Whether any |g_i| > tau_i + tol_i. */
WIDE
static int any_beyond(Py_ssize_t n, const double *g, const double *tau, const double *tol) {
    int64_t found = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        found |= (g[i] < 0.0 ? -g[i] : g[i]) > tau[i] + tol[i];
    return found != 0;
}

/* Twice the number of those that are larger than `than`; equal ones count half. */
WIDE
static Py_ssize_t twice_larger(Py_ssize_t n, const double *x, double than) {
    int64_t twice = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        twice += (int64_t)(x[i] > than) + (int64_t)(x[i] >= than);
    return (Py_ssize_t)twice;
}

/* Whether all n numbers are finite: x - x is 0 where x is finite, and not a number where it is not. A sum waits for the
   one before it, so there are four. */
WIDE
static int all_finite(Py_ssize_t n, const double *x) {
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

/* e^x = 2^k e^r with r = x - k log 2 at most half of log 2: its Taylor series to the 13th term is exact to rounding,
   and k goes straight into the exponent. Blocks of a fixed size without branches are what compilers vectorise. */
PART void exp8(const double *__restrict x, double *__restrict out) {
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

/* out = e^x for x within +-700; they do not overlap. */
WIDE
static void exps(Py_ssize_t n, const double *x, double *out) {
    double rest[8] = {0.0}, ends[8];
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        exp8(x + i, out + i);
    if (i < n) {
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(double));
        exp8(rest, ends);
        memcpy(out + i, ends, (size_t)(n - i) * sizeof(double));
    }
}

/* log(1 + x) for x from 0 to 1 is 2 artanh(s) with s = x / (2 + x), at most a third: sixteen terms of its series. */
PART void log1p8(double *x) {
    for (int i = 0; i < 8; i++) {
        double s = x[i] / (2.0 + x[i]), t = s * s, t2 = t * t, t4 = t2 * t2;
        double low = (1.0 + t * (1.0 / 3)) + t2 * (1.0 / 5 + t * (1.0 / 7));
        double next = (1.0 / 9 + t * (1.0 / 11)) + t2 * (1.0 / 13 + t * (1.0 / 15));
        double third = (1.0 / 17 + t * (1.0 / 19)) + t2 * (1.0 / 21 + t * (1.0 / 23));
        double last = (1.0 / 25 + t * (1.0 / 27)) + t2 * (1.0 / 29 + t * (1.0 / 31));
        x[i] = 2.0 * s * (low + t4 * (next + t4 * (third + t4 * last)));
    }
}

/* x <- log(1 + x) for x from 0 to 1. */
WIDE
static void log1ps(Py_ssize_t n, double *x) {
    double rest[8] = {0.0};
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        log1p8(x + i);
    if (i < n) {
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(double));
        log1p8(rest);
        memcpy(x + i, rest, (size_t)(n - i) * sizeof(double));
    }
}

PART void logistic_slopes8(const double *__restrict y, const double *__restrict eta,
                                           double *__restrict slope, double *__restrict curvature) {
    double x[8], e[8];
    for (int i = 0; i < 8; i++) {
        const double far = eta[i] < 0.0 ? eta[i] : -eta[i];
        x[i] = far > -700.0 ? far : -700.0;
    }
    exp8(x, e);
    for (int i = 0; i < 8; i++) {
        const double share = 1.0 / (1.0 + e[i]), up = eta[i] > 0.0 ? 1.0 : e[i], down = eta[i] > 0.0 ? e[i] : 1.0;
        slope[i] = ((1.0 - y[i]) * up - y[i] * down) * share;
        curvature[i] = e[i] * share * share;
    }
}

/* Slope and curvature of log(1 + e^eta) - y eta, for n rows and any eta; they do not overlap. */
WIDE
static void logistic_slopes(Py_ssize_t n, const double *y, const double *eta, double *slope,
                                 double *curvature) {
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        logistic_slopes8(y + i, eta + i, slope + i, curvature + i);
    if (i < n) {
        double rest[4][8] = {{0.0}};
        const size_t size = (size_t)(n - i) * sizeof(double);
        memcpy(rest[0], y + i, size);
        memcpy(rest[1], eta + i, size);
        logistic_slopes8(rest[0], rest[1], rest[2], rest[3]);
        memcpy(slope + i, rest[2], size);
        memcpy(curvature + i, rest[3], size);
    }
}

PART void units8(const double *__restrict x, double least, double unit, double cap,
                                         double weight, double *__restrict loss) {
    const double infinity = 1e300 * 1e300;
    for (int i = 0; i < 8; i++) {
        const double u = (loss[i] - least) / unit, capped = cap < u ? cap : u, gap = x[i] - x[i];
        loss[i] = gap == 0.0 ? weight * capped : infinity;
    }
}

/* loss <- weight min((loss - least) / unit, cap); infinite where x is not finite. */
WIDE
static void in_units(Py_ssize_t n, const double *x, double least, double unit, double cap,
                                 double weight, double *loss) {
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        units8(x + i, least, unit, cap, weight, loss + i);
    if (i < n) {
        double rest[2][8] = {{0.0}};
        const size_t size = (size_t)(n - i) * sizeof(double);
        memcpy(rest[0], x + i, size);
        memcpy(rest[1], loss + i, size);
        units8(rest[0], least, unit, cap, weight, rest[1]);
        memcpy(loss + i, rest[1], size);
    }
}

PART void likelihood8(const double *__restrict loss, double most,
                                              double *__restrict out) {
    const double infinity = 1e300 * 1e300;
    double x[8], e[8];
    for (int i = 0; i < 8; i++)
        x[i] = loss[i] < most ? -loss[i] : -most;
    exp8(x, e);
    for (int i = 0; i < 8; i++)
        out[i] = loss[i] < infinity ? e[i] : 0.0;
}

/* out = e^-min(loss, most); 0 where a loss is infinite or NaN. `most` is 700 at most. */
WIDE
static void likelihoods(Py_ssize_t n, const double *loss, double most, double *out) {
    double rest[8] = {0.0}, ends[8];
    Py_ssize_t i = 0;
    for (; i + 7 < n; i += 8)
        likelihood8(loss + i, most, out + i);
    if (i < n) {
        memcpy(rest, loss + i, (size_t)(n - i) * sizeof(double));
        likelihood8(rest, most, ends);
        memcpy(out + i, ends, (size_t)(n - i) * sizeof(double));
    }
}

PART void standardise4(const double *__restrict x, const double *__restrict mean,
                                               const double *__restrict variance, double root, double least,
                                               double bound, double *__restrict z) {
    const double none = 1e300 * 1e300 - 1e300 * 1e300;
    for (int i = 0; i < 4; i++) {
        const double s = root * (x[i] - mean[i]) / sqrt(variance[i]), up = s < -bound ? -bound : s;
        const double held = up > bound ? bound : up;
        z[i] = variance[i] > least * mean[i] * mean[i] ? held : none;
    }
}

/* z = root (x - mean) / sqrt(variance), within +-bound; NaN where variance <= least mean^2. */
WIDE
static void standardise(Py_ssize_t n, const double *x, const double *mean, const double *variance,
                                    double root, double least, double bound, double *z) {
    Py_ssize_t i = 0;
    for (; i + 3 < n; i += 4)
        standardise4(x + i, mean + i, variance + i, root, least, bound, z + i);
    if (i < n) {
        const size_t size = (size_t)(n - i) * sizeof(double);
        double rest[4][4] = {{0.0}};
        memcpy(rest[0], x + i, size);
        memcpy(rest[1], mean + i, size);
        memcpy(rest[2], variance + i, size);
        standardise4(rest[0], rest[1], rest[2], root, least, bound, rest[3]);
        memcpy(z + i, rest[3], size);
    }
}

PART void shift4(double z, double u, double rate, double low, double high, double keep,
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

/* The evidence for four shifts of each of n features, b = shift z, in pairs of either sign, with `table` by |b| steps; 
   and the sum of the four, `total`. Nothing changes where z is NaN. See `Changes` in monitor/detector.py. */
WIDE
static void shift_features(Py_ssize_t n, const double *z, double u, double rate, double low, double high,
                              double keep, const double *shift, const double *table, double steps, double *usual,
                              double *moved, double *total) {
    for (Py_ssize_t i = 0; i < n; i++, usual += 4, moved += 4) {
        total[i] = 0.0;
        if (z[i] == z[i]) {
            const double few = table[(Py_ssize_t)(fabs(shift[0] * z[i]) * steps + 0.5)];
            const double many = table[(Py_ssize_t)(fabs(shift[2] * z[i]) * steps + 0.5)];
            const double share[4] = {few, few, many, many};
            shift4(z[i], u, rate, low, high, keep, shift, share, usual, moved);
            total[i] = ((moved[0] + moved[1]) + moved[2]) + moved[3];
        }
    }
}
