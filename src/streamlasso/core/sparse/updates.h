/* What a row's features predict, and what they learn, for all experts at once: the formulas are in updates.pxd. */

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
} wide_settings;

typedef struct {
    float *state;
    float x, unit, fast, slow;
    unsigned int age;
} wide_term;

typedef struct {float z[8], r[8], s[8], g[8], q[8];} wide_eight;

/* z, r, s, 1 / (beta + r) and q of LANES experts. The compiler must see that nothing overlaps: local arrays. */
WIDE_PART void wide_look(wide_eight *at, const wide_term *term, const wide_settings *settings, int first) {
    const float *state = term->state + 2 * first, *beta = settings->beta + first, *lam = settings->lam + first;
    const float *fast = settings->fast + first, *slow = settings->slow + first;
    const float unit = term->unit, faster = term->fast, slower = term->slow;
    float h[8];
    EIGHT h[l] = 1.0f + fast[l] * faster + slow[l] * slower;
    EIGHT at->z[l] = unit * state[l] * h[l] * h[l];
    EIGHT at->r[l] = unit * state[8 + l] * h[l];
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
static void wide_predict(Py_ssize_t n, const wide_term *terms, const wide_settings *given, float *noted, float *coins,
                         float *m, float *length) {
    const wide_settings settings = *given;
    const int last = settings.n - 8, n_coins = settings.n_coins;
    float total[16] = {0.0f}, size[16] = {0.0f};
    float *coin_s = coins + 8, *coin_r = coin_s + n_coins * n + 16, *coin_x = coin_r + n_coins * n + 16;
    wide_eight at;
    /* From the end, so that of LANES numbers written for the sake of n_coins the others are written again. */
    for (Py_ssize_t i = n - 1; i >= 0; i--) {
        const wide_term *term = terms + i;
        float *note = noted + settings.n * i;
        const Py_ssize_t to = n_coins * (i + 1) - 8;
        const float x = term->x;
        if (last > 0) {
            wide_look(&at, term, &settings, 0);
            wide_add(&at, x, total, size);
            WIDE_COPY(note, at.q);
        }
        wide_look(&at, term, &settings, last);
        wide_add(&at, x, total + 8, size + 8);
        WIDE_COPY(note + last, at.q);
        WIDE_COPY(coin_s + to, at.s);
        WIDE_COPY(coin_r + to, at.r);
        EIGHT at.z[l] = copysignf(1.0f, at.z[l]) * x;
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
static void wide_learn(Py_ssize_t n, const wide_term *terms, const wide_settings *given, const float *noted,
                       const float *slopes) {
    const wide_settings settings = *given;
    for (Py_ssize_t i = 0; i < n; i++)
        for (Py_ssize_t first = 0; first < settings.n; first += 8) {
            const float *lam = settings.lam + first, *stays = settings.stays + first, *slope = slopes + first;
            const float *fast = settings.fast + first, *slow = settings.slow + first, *q = noted + settings.n * i + first;
            const float x = terms[i].x, unit = terms[i].unit, faster = terms[i].fast, slower = terms[i].slow;
            float *state = terms[i].state + 2 * first;
            float h[8], z[8], r[8], d[8], held[8], root[8];
            EIGHT h[l] = 1.0f + fast[l] * faster + slow[l] * slower;
            EIGHT z[l] = unit * state[l] * h[l] * h[l];
            EIGHT r[l] = unit * state[8 + l] * h[l];
            EIGHT d[l] = slope[l] * x;
            EIGHT held[l] = stays[l] * (q[l] + lam[l] < 1e30f * q[l] ? q[l] + lam[l] : 1e30f * q[l]);
            EIGHT root[l] = sqrtf(r[l] * r[l] + d[l] * d[l]);
            EIGHT z[l] = z[l] + d[l] + copysignf(held[l] * (root[l] - r[l]), z[l]);
            WIDE_COPY(state, z);
            WIDE_COPY(state + 8, root);
        }
}
