# cython: language_level=3, cdivision=True
"""Where a row's own fit puts its eta: the implicit step."""

import cython
from cython.cimports.libc.math import fabs
from cython.cimports.streamlasso.families.base import Family

#: After a Newton step this small, relative to eta, the next one is of its square, which changes nothing.
SETTLED = cython.declare(cython.double, 1e-7)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=True)
def implicit_step(
    family: Family, y: cython.double, eta: cython.double, a: cython.double, low: cython.double, high: cython.double
) -> cython.double:
    """The root of e = eta - a loss'(e), held within [low, high]; a is the leverage of the row.

    For a quadratic loss it is the eta after a step of recursive least squares; for any convex loss there is one root,
    short of eta - a loss'(eta).
    """
    slope: cython.double = 0.0
    curvature: cython.double = 0.0
    family.slopes_at(y, eta, cython.address(slope), cython.address(curvature))
    return implicit_root(family, y, eta, a, low, high, SETTLED, cython.address(slope), curvature)


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=True)
def implicit_root(
    family: Family,
    y: cython.double,
    eta: cython.double,
    a: cython.double,
    low: cython.double,
    high: cython.double,
    settled: cython.double,
    slope: cython.p_double,
    curvature: cython.double,
) -> cython.double:
    """The same where loss' and loss'' at eta are known; `slope` becomes that at the root, to the square of `settled`.

    By Newton steps; by halves where these leave the bracket or do not shrink fast.
    """
    turn: cython.int
    gap: cython.double
    step: cython.double
    e: cython.double
    last: cython.double
    far: cython.double = eta - a * slope[0]
    low, high = max(min(eta, far), low), min(max(eta, far), high)
    if not low < high:
        return high if far > eta else low
    e = min(max(eta, low), high)
    last = high - low
    for turn in range(100):
        if e != eta:
            family.slopes_at(y, e, slope, cython.address(curvature))
        gap = e - eta + a * slope[0]
        if gap < 0.0:
            low = e
        else:
            high = e
        step = gap / (1.0 + a * curvature)
        if fabs(step) > 0.5 * last or not low <= e - step <= high:
            step = e - 0.5 * (low + high)
        e -= step
        last = fabs(step)
        if last <= settled * (1.0 + fabs(e)):
            break
    slope[0] -= curvature * step
    return e
