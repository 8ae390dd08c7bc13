# cython: language_level=3
"""What a row's features predict, and what they learn, for all experts at once.

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

The states of LANES experts lie side by side, z then r, and are worked on together (SIMD). Those that bet are the last
ones of the last LANES: what they need is laid out feature after feature, and worked on when a row is through, LANES
numbers at a time whoever they belong to.
"""

from libc.string cimport memcpy


cdef extern from "updates.h":
    ctypedef struct Settings "wide_settings":
        int n  # experts
        int n_coins  # of them, the last
        float beta[16]
        float lam[16]
        #: 0 where the expert bets, and 1 elsewhere.
        float stays[16]
        #: 1 where the first half-life acts, 1 where the second does.
        float fast[16]
        float slow[16]

    #: A feature of a row: its state, which is first multiplied by `unit`, and x.
    ctypedef struct Term "wide_term":
        float* state
        float x
        float unit
        float fast
        float slow
        unsigned int age

    # m = sum_j sign(z) q x_j and length = sum_j x_j^2 / (beta + r), per expert. `noted` takes q for `learn`, `coins` is
    # room for `coin_room` numbers.
    void predict "wide_predict" (Py_ssize_t n, const Term* terms, const Settings* settings, float* noted, float* coins,
                                 float* m, float* length) noexcept nogil
    # Forget, then add the gradients g x_j, one g per expert, to the states of which `predict` has noted q.
    void learn "wide_learn" (Py_ssize_t n, const Term* terms, const Settings* settings, const float* noted,
                             const float* g) noexcept nogil

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
