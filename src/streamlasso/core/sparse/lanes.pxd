# cython: language_level=3
"""What a row's features say, and what they learn, for all experts at once.

An expert has two numbers per feature: z, the sum of its gradients, and r, the root of the sum of their squares, n. With
these

    s = max(|z| - lam r, 0)        q = s / (beta + r)        b = -a sign(z) q

so the penalty is a threshold on the evidence: z / r is a t-statistic, and lam its smallest that counts. a, the step
size of the row, is put in by the caller. Learning adds a gradient g x; so that a coefficient does not move merely
because n grows, z moves along (as in FTRL-Proximal, here for the threshold too):

    r' = sqrt(r^2 + (g x)^2)        z' = z + g x + sign(z) (q + lam) (r' - r)        where b is not 0

A coin-betting expert (FreeGrad, Mhammedi and Koolen 2020, with its hint at 1) has no step size: with V = 1 + r^2,

    q = s (2V + s) / (2 (V + s)^2 sqrt(V)) exp(s^2 / (2V + 2s))

and its z does not move along. (The exponential is (1 + p/256)^256, p at most 20: a little less is bet.) An expert that
forgets multiplies z by h^2 and r by h, 2^-(rows since / (2 half-lives)), when the feature is next there; `fast` and
`slow` hold h less 1 for the two half-lives.

The states of LANES experts lie side by side, z then r, and are worked on together. Those that bet are the last ones of
the last LANES: what they need is laid out feature after feature, and worked on when a row is through, LANES numbers at
a time whoever they belong to.
"""

from libc.string cimport memcpy


cdef extern from *:
    """
    #include <math.h>
    #include <string.h>

    #if defined(__GNUC__)
    #define WIDE_PART static inline __attribute__((always_inline))
    #else
    #define WIDE_PART static inline
    #endif
    /* Compiled twice on x86: with AVX2 the loops take half the instructions or less, and give the same bits. */
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
        !defined(__SANITIZE_ADDRESS__)
    #define WIDE_CLONES __attribute__((unused, target_clones("avx2", "default")))
    #elif defined(__GNUC__)
    #define WIDE_CLONES __attribute__((unused))
    #else
    #define WIDE_CLONES
    #endif
    #define EIGHT for (int l = 0; l < 8; l++)
    /* Eight numbers as one: GCC makes two of a memcpy, and then waits for the halves. */
    #if defined(__GNUC__)
    typedef float wide_whole __attribute__((vector_size(32), aligned(4), may_alias));
    #define WIDE_COPY(to, from) (*(wide_whole *)(to) = *(const wide_whole *)(from))
    #else
    #define WIDE_COPY(to, from) memcpy(to, from, 32)
    #endif

    typedef struct {
        int n, n_coins;
        float beta[16], lam[16], stays[16], fast[16], slow[16];
    } wide_lanes;

    typedef struct {float z[8], r[8], s[8], g[8], q[8];} wide_eight;

    /* z, r, s, 1 / (beta + r) and q of LANES experts. The compiler must see that nothing overlaps: local arrays. */
    WIDE_PART void wide_look(wide_eight *at, const float *state, const float *beta, const float *lam, const float *fast,
                             const float *slow, float faster, float slower) {
        float h[8];
        EIGHT h[l] = 1.0f + fast[l] * faster + slow[l] * slower;
        EIGHT at->z[l] = state[l] * h[l] * h[l];
        EIGHT at->r[l] = state[8 + l] * h[l];
        EIGHT at->s[l] = fabsf(at->z[l]) - lam[l] * at->r[l];
        EIGHT at->s[l] = at->s[l] > 0.0f ? at->s[l] : 0.0f;
        EIGHT at->g[l] = 1.0f / (beta[l] + at->r[l]);
        EIGHT at->q[l] = at->s[l] * at->g[l];
    }

    WIDE_PART void wide_add(const wide_eight *at, float x, float *total, float *length) {
        EIGHT total[l] += copysignf(at->q[l], at->z[l]) * x;
        EIGHT length[l] += x * x * at->g[l];
    }

    /* sum of q sign(z) x over n_coins numbers per feature. */
    WIDE_PART void wide_bet(Py_ssize_t n, int n_coins, const float *s, const float *r, const float *x, float *total) {
        float sum[8] = {0.0f};
        for (Py_ssize_t k = 0; k < n * n_coins; k += 8) {
            float V[8], root[8], w[8], f[8], p[8];
            EIGHT V[l] = 1.0f + r[k + l] * r[k + l];
            EIGHT root[l] = sqrtf(V[l]);
            EIGHT w[l] = V[l] + s[k + l];
            EIGHT f[l] = 1.0f / (w[l] * w[l] * root[l]);
            EIGHT p[l] = 0.5f * s[k + l] * s[k + l] * f[l] * w[l] * root[l];
            EIGHT p[l] = p[l] < 20.0f ? p[l] : 20.0f;
            EIGHT p[l] = 1.0f + p[l] * (1.0f / 256.0f);
            for (int doubled = 0; doubled < 8; doubled++)
                EIGHT p[l] = p[l] * p[l];
            EIGHT sum[l] += 0.5f * s[k + l] * (V[l] + w[l]) * f[l] * p[l] * x[k + l];
        }
        for (int c = 0; c < n_coins; c++) {
            total[c] = 0.0f;
            for (int l = c; l < 8; l += n_coins)
                total[c] += sum[l];
        }
    }

    WIDE_CLONES
    static void wide_say(Py_ssize_t n, float **states, const float *x, const float *fast, const float *slow,
                         const wide_lanes *settings, float *noted, float *coins, float *m, float *length) {
        const wide_lanes lanes = *settings;
        const int last = lanes.n - 8, n_coins = lanes.n_coins;
        float total[16] = {0.0f}, size[16] = {0.0f};
        float *coin_s = coins + 8, *coin_r = coin_s + n_coins * n + 16, *coin_x = coin_r + n_coins * n + 16;
        wide_eight at;
        /* From the end, so that of LANES numbers written for the sake of n_coins the others are written again. */
        for (Py_ssize_t i = n - 1; i >= 0; i--) {
            const float *state = states[i];
            float *note = noted + lanes.n * i;
            const Py_ssize_t to = n_coins * (i + 1) - 8;
            const float xi = x[i];
            if (last > 0) {
                wide_look(&at, state, lanes.beta, lanes.lam, lanes.fast, lanes.slow, fast[i], slow[i]);
                wide_add(&at, xi, total, size);
                WIDE_COPY(note, at.q);
            }
            wide_look(&at, state + 2 * last, lanes.beta + last, lanes.lam + last, lanes.fast + last, lanes.slow + last,
                      fast[i], slow[i]);
            wide_add(&at, xi, total + 8, size + 8);
            WIDE_COPY(note + last, at.q);
            WIDE_COPY(coin_s + to, at.s);
            WIDE_COPY(coin_r + to, at.r);
            EIGHT at.z[l] = copysignf(1.0f, at.z[l]) * xi;
            WIDE_COPY(coin_x + to, at.z);
        }
        memset(coin_s + n_coins * n, 0, 32);
        memset(coin_r + n_coins * n, 0, 32);
        memset(coin_x + n_coins * n, 0, 32);
        if (n_coins > 0)
            wide_bet(n, n_coins, coin_s, coin_r, coin_x, total + 16 - n_coins);
        WIDE_COPY(m, total);
        WIDE_COPY(m + last, total + 8);
        WIDE_COPY(length, size);
        WIDE_COPY(length + last, size + 8);
    }

    /* `held` is q + lam, or 0 where q is: a minimum, since a branch would not be vectorised. */
    WIDE_CLONES
    static void wide_learn(Py_ssize_t n, float **states, const float *x, const float *fast, const float *slow,
                           const wide_lanes *settings, const float *noted, const float *slopes) {
        const wide_lanes lanes = *settings;
        for (Py_ssize_t i = 0; i < n; i++)
            for (Py_ssize_t first = 0; first < lanes.n; first += 8) {
                const float *lam = lanes.lam + first, *stays = lanes.stays + first, *slope = slopes + first;
                const float *fast_one = lanes.fast + first, *slow_one = lanes.slow + first;
                const float xi = x[i], faster = fast[i], slower = slow[i], *q = noted + lanes.n * i + first;
                float *state = states[i] + 2 * first;
                float h[8], z[8], r[8], d[8], held[8], root[8];
                EIGHT h[l] = 1.0f + fast_one[l] * faster + slow_one[l] * slower;
                EIGHT z[l] = state[l] * h[l] * h[l];
                EIGHT r[l] = state[8 + l] * h[l];
                EIGHT d[l] = slope[l] * xi;
                EIGHT held[l] = stays[l] * (q[l] + lam[l] < 1e30f * q[l] ? q[l] + lam[l] : 1e30f * q[l]);
                EIGHT root[l] = sqrtf(r[l] * r[l] + d[l] * d[l]);
                EIGHT z[l] = z[l] + d[l] + copysignf(held[l] * (root[l] - r[l]), z[l]);
                WIDE_COPY(state, z);
                WIDE_COPY(state + 8, root);
            }
    }
    """
    ctypedef struct Lanes "wide_lanes":
        int n  # experts
        int n_coins  # of them, the last
        float beta[16]
        float lam[16]
        #: 0 where the expert bets, and 1 elsewhere.
        float stays[16]
        #: 1 where the first half-life acts, 1 where the second does.
        float fast[16]
        float slow[16]

    # m = sum_j sign(z) q x_j and length = sum_j x_j^2 / (beta + r), per expert. `noted` takes q for `learn`, `coins` is
    # room for `coin_room` numbers.
    void say "wide_say" (Py_ssize_t n, float** states, const float* x, const float* fast, const float* slow,
                         const Lanes* settings, float* noted, float* coins, float* m, float* length) noexcept nogil
    # Forget, then add the gradients g x_j, one g per expert, to the states of which `say` has noted q.
    void learn "wide_learn" (Py_ssize_t n, float** states, const float* x, const float* fast, const float* slow,
                             const Lanes* settings, const float* noted, const float* g) noexcept nogil

cdef enum:
    #: Experts that are worked on together; a feature's z of LANES experts lie side by side, then their r.
    LANES = 8
    MOST_EXPERTS = 16


cdef inline size_t coin_room(Py_ssize_t n, int n_coins) noexcept nogil:
    return 3 * (n_coins * n + 16) + 8


cdef inline Py_ssize_t z_place(Py_ssize_t e) noexcept nogil:
    """Where the z of expert e is in the state of a feature; LANES further is its r."""
    return 2 * LANES * (e // LANES) + e % LANES


cdef inline float power_of_2(float y) noexcept nogil:
    """2^y to single precision, for |y| < 120 and any smaller y; libm's takes several times as long."""
    cdef float f
    cdef int whole, bits
    if y < -120:
        return 0
    whole = <int>(y + <float>128.5) - 128
    f = (y - whole) * <float>0.69314718
    bits = (whole + 127) << 23
    y = f * <float>(1.0 / 720) + <float>(1.0 / 120)
    y = ((((y * f + <float>(1.0 / 24)) * f + <float>(1.0 / 6)) * f + <float>0.5) * f + 1) * f + 1
    memcpy(&f, &bits, 4)
    return y * f
