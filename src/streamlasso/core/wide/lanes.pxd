# cython: language_level=3
"""One feature's states of all experts, LANES at a time."""

from libc.string cimport memcpy

cdef enum:
    #: Experts that are worked on together; a feature's z of LANES experts lie side by side, then their n.
    LANES = 8
    MOST_EXPERTS = 16
    MOST_GROUPS = 2

cdef struct Lanes:
    int n  # experts
    float beta[MOST_EXPERTS]
    float lam[MOST_EXPERTS]
    #: 1 where the expert bets, and 0 elsewhere.
    float coin[MOST_EXPERTS]
    #: 1 where the first half-life acts, 1 where the second does.
    float fast[MOST_EXPERTS]
    float slow[MOST_EXPERTS]
    #: Whether any of LANES experts bets.
    bint bets[MOST_GROUPS]


# Compiled twice on x86: with AVX2 the loops take half the instructions, and give the same bits.
cdef extern from *:
    """
    #if defined(__PYX_HAVE__streamlasso__core__wide__lanes) && defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
    #define WIDE_CLONES __attribute__((target_clones("avx2", "default")))
    static void wide_say(Py_ssize_t, float**, const float*, const float*, const float*, const void*, float*, float*,
                         float*) WIDE_CLONES;
    static void wide_learn(Py_ssize_t, float**, const float*, const float*, const float*, const void*, const float*,
                           const float*) WIDE_CLONES;
    #endif
    """

cdef void say "wide_say" (Py_ssize_t n, float** states, const float* x, const float* fast, const float* slow,
                          const void* settings, float* noted, float* m, float* length) noexcept nogil
cdef void learn "wide_learn" (Py_ssize_t n, float** states, const float* x, const float* fast, const float* slow,
                              const void* settings, const float* noted, const float* g) noexcept nogil


cdef inline Py_ssize_t z_place(Py_ssize_t e) noexcept nogil:
    """Where the z of expert e is in the state of a feature; LANES further is its n."""
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
