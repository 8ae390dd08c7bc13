/* Four numbers at a time.

   Loops over twenty numbers and more are written in fours. Where gcc and glibc can choose when a module is loaded, they
   are compiled twice: for two numbers per instruction, which every x86-64 has, and for four (AVX2), which takes half
   the time or less. Neither fuses a product with a sum, so both give the same bits.

   `Py_ssize_t` must be known already: Cython includes Python.h first. */

#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((unused, target_clones("avx2", "default")))
#elif defined(__GNUC__)
#define WIDE __attribute__((unused))
#else
#define WIDE
#endif
/* A part of a wide loop must be compiled with it, or it is not wide. */
#if defined(__GNUC__)
#define PART static inline __attribute__((always_inline))
#else
#define PART static inline
#endif

/* Four numbers. ADD: s += a b; SUM: of all four. */
#if defined(__GNUC__)
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
#define LOAD(to, x) four to = *(const four *)(x)
#define SPREAD(to, x) four to = {x, x, x, x}
#define FOUR(to, a, b, c, d) four to = {a, b, c, d}
#define ADD(s, a, b) s += (a) * (b)
#define LESS(s, a) s -= a
#define STORE(x, s) *(four *)(x) = s
#define AT(s, l) s[l]
#else
typedef struct {double at[4];} four;
#define EACH(code) do { for (int l_ = 0; l_ < 4; l_++) {code;} } while (0)
#define LOAD(to, x) four to; memcpy(to.at, x, sizeof(to.at))
#define SPREAD(to, x) four to; EACH(to.at[l_] = x)
#define FOUR(to, a, b, c, d) four to = {{a, b, c, d}}
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
typedef int64_t places __attribute__((vector_size(32)));
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (places){i, j, k, l})
#endif
#define SUMS(to, s0, s1, s2, s3)                                                                                   \
    four to##_low = PICK(s0, s1, 0, 4, 2, 6) + PICK(s0, s1, 1, 5, 3, 7);                               \
    four to##_high = PICK(s2, s3, 0, 4, 2, 6) + PICK(s2, s3, 1, 5, 3, 7);                              \
    four to = PICK(to##_low, to##_high, 0, 1, 4, 5) + PICK(to##_low, to##_high, 2, 3, 6, 7)
#else
#define SUMS(to, s0, s1, s2, s3) four to = {{SUM(s0), SUM(s1), SUM(s2), SUM(s3)}}
#endif
