# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What a row's features say, and what they learn, for all experts at once.

An expert has two numbers per feature: z, the sum of its gradients, and n, that of their squares. With r = sqrt(n),

    s = max(|z| - lam r, 0)        q = s / (beta + r)        b = -a sign(z) q

so the penalty is a threshold on the evidence: z / r is a t-statistic, and lam its smallest that counts. a, the step
size of the row, is put in by the caller. Learning adds a gradient g x; so that a coefficient does not move merely
because n grows, z moves along (as in FTRL-Proximal, here for the threshold too):

    r' = sqrt(n + (g x)^2)        z' = z + g x + sign(z) (q + lam) (r' - r)        where b is not 0

A coin-betting expert (FreeGrad, Mhammedi and Koolen 2020, with its hint at 1) has no step size: with V = 1 + n,

    q = s (2V + s) / (2 (V + s)^2 sqrt(V)) exp(s^2 / (2V + 2s))

and its z does not move along. (The exponential is (1 + p/256)^256, p at most 20: a little less is bet.) An expert that
forgets multiplies z and n by 2^-(rows since / half-life) when the feature is next there; `fast` and `slow` hold that
factor less 1 for the two half-lives.

No loop over LANES reads from one pointer and writes to another: the compiler would have to think that they overlap, and
would not use vectors. Local arrays stand between; nor is anything merely copied, which would become a memcpy.
"""

import cython
from cython.cimports.libc.math import copysignf, fabsf, sqrtf
from cython.cimports.libc.string import memcpy, memset


def say(n, states, x, fast, slow, settings, noted, m, length):
    """m = sum_j sign(z) q x_j and length = sum_j x_j^2 / (beta + r), per expert. `noted` takes q and r for `learn`."""
    lanes: cython.pointer[Lanes] = cython.cast(cython.pointer[Lanes], settings)
    n_experts: cython.Py_ssize_t = lanes.n
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    first: cython.Py_ssize_t
    state: cython.p_float
    note: cython.p_float
    xi: cython.float
    faster: cython.float
    slower: cython.float
    f: cython.float
    s: cython.float
    p: cython.float
    zero: cython.float = 0.0
    half: cython.float = 0.5
    one: cython.float = 1.0
    most: cython.float = 20.0
    part: cython.float = 1.0 / 256.0
    z: cython.float[8]
    v: cython.float[8]
    r: cython.float[8]
    q: cython.float[8]
    u: cython.float[8]
    beta: cython.float[16]
    lam: cython.float[16]
    coin: cython.float[16]
    is_fast: cython.float[16]
    is_slow: cython.float[16]
    total: cython.float[16]
    size: cython.float[16]
    memcpy(beta, lanes.beta, 64)
    memcpy(lam, lanes.lam, 64)
    memcpy(coin, lanes.coin, 64)
    memcpy(is_fast, lanes.fast, 64)
    memcpy(is_slow, lanes.slow, 64)
    memset(total, 0, 64)
    memset(size, 0, 64)
    for i in range(n):
        xi = x[i]
        first = 0
        while first < n_experts:
            state = states[i] + 2 * first
            note = noted + (i * n_experts + first) * 2
            faster, slower = fast[i], slow[i]
            for e in range(8):
                f = one + is_fast[first + e] * faster + is_slow[first + e] * slower
                z[e] = state[e] * f
                v[e] = state[8 + e] * f
            for e in range(8):
                r[e] = sqrtf(v[e])
                s = fabsf(z[e]) - lam[first + e] * r[e]
                s = s if s > zero else zero
                f = one / (beta[first + e] + r[e])
                u[e] = s
                q[e] = s * f
                size[first + e] += xi * xi * f
            if lanes.bets[first // 8]:
                for e in range(8):
                    s = v[e] + one + u[e]
                    f = one / (s * s * sqrtf(v[e] + one))
                    p = half * u[e] * u[e] * f * s * sqrtf(v[e] + one)
                    # min(p, most), without a branch that the compiler would follow to a constant.
                    p = one + part * half * (p + most - fabsf(p - most))
                    p = p * p
                    p = p * p
                    p = p * p
                    p = p * p
                    p = p * p
                    p = p * p
                    p = p * p
                    p = p * p
                    p = half * u[e] * (v[e] + one + s) * f * p
                    q[e] = q[e] + coin[first + e] * (p - q[e])
            for e in range(8):
                note[e] = q[e] * one
                note[8 + e] = zero - r[e]
                total[first + e] += copysignf(q[e], z[e]) * xi
            first += LANES
    memcpy(m, total, 64)
    memcpy(length, size, 64)


def learn(n, states, x, fast, slow, settings, noted, g):
    """Forget, then add the gradients g x_j, one g per expert, to the states that `say` has noted. `held` is q + lam, or
    0 where q is: a minimum, since a branch would not be vectorised."""
    lanes: cython.pointer[Lanes] = cython.cast(cython.pointer[Lanes], settings)
    n_experts: cython.Py_ssize_t = lanes.n
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t
    first: cython.Py_ssize_t
    state: cython.p_float
    note: cython.pointer[cython.const[cython.float]]
    xi: cython.float
    faster: cython.float
    slower: cython.float
    d: cython.float
    v: cython.float
    f: cython.float
    one: cython.float = 1.0
    most: cython.float = 1e30
    z: cython.float[8]
    held: cython.float[8]
    kept: cython.float[8]
    is_fast: cython.float[16]
    is_slow: cython.float[16]
    lam: cython.float[16]
    stays: cython.float[16]
    slope: cython.float[16]
    memcpy(lam, lanes.lam, 64)
    memcpy(is_fast, lanes.fast, 64)
    memcpy(is_slow, lanes.slow, 64)
    memcpy(slope, g, 64)
    for e in range(16):
        stays[e] = one - lanes.coin[e]
    for i in range(n):
        xi = x[i]
        first = 0
        while first < n_experts:
            state = states[i] + 2 * first
            note = noted + (i * n_experts + first) * 2
            faster, slower = fast[i], slow[i]
            for e in range(8):
                f = note[e] + lam[first + e]
                f = f if f < most * note[e] else most * note[e]
                held[e] = stays[first + e] * f
                kept[e] = held[e] * note[8 + e]
            for e in range(8):
                f = one + is_fast[first + e] * faster + is_slow[first + e] * slower
                d = slope[first + e] * xi
                z[e] = state[e] * f
                v = state[8 + e] * f + d * d
                state[8 + e] = v
                state[e] = z[e] + d + copysignf(held[e] * sqrtf(v) + kept[e], z[e])
            first += LANES
