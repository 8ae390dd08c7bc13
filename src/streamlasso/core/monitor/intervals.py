# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How far responses fall from their predictions: quantiles of the errors, followed row by row.

An error is measured in units of the recent noise and of the family's own spread at its mean (1, the root of the mean
of counts, the mean of positive responses):

    z = (y - mu) / (spread(mu) s),        s^2 <- fading mean of ((y - mu) / spread(mu))^2, a square at most CAP s^2

so that a quantile of z need not move when the noise does. A mean of squares falls slowly from where a jump has brought
it, and quantiles that went up with it come down slowly. The mean of log z^2 over the last few rows forgets a jump in
as many rows: where it says that the squares are SHRINKS times smaller, s^2 starts again from there, and all rates from
the steadiest.

For each level tau it follows the errors by a step of online gradient descent on the pinball loss, which makes the share
of errors below q the level, whatever the errors do (Gibbs and Candes; Angelopoulos, Candes and Tibshirani):

    q <- q + rate (tau - 1{z <= q})

Counts are whole numbers, and where few are likely no end between two of them has the share of a level below it. Half of
a count is taken to lie on either side of it: 1{z <= q} is the share of [y - 1/2, y + 1/2] that lies below q. So q is
the mid-quantile (Ma, Genton and Parzen), which a whole number is as often above as below.

A large rate follows a change, a small one is steady. RATES run side by side, weighted by `Hedge` with the mean of the
pinball losses over the levels; so no rate is to be set.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, floor, isfinite, log, sqrt
from cython.cimports.streamlasso.core.base.buffers import Doubles, fill, in_doubles
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import FINITE, WEIGHT
from scipy.special import ndtri, stdtrit

from streamlasso.core.base.state import Column, array, numbers

#: The first level is that of the lower end of a 99 % interval.
LEVELS = np.array([0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995])
RATES = np.array([0.003, 0.01, 0.03, 0.1])
TAU, RATE = cython.declare(Doubles, in_doubles(LEVELS)), cython.declare(Doubles, in_doubles(RATES))
KNOTS = cython.declare(Doubles, in_doubles(ndtri(LEVELS)))
#: What leaks back of the weights of the rates, per row.
SHARE = 0.001
#: Of s^2, and the most that one square counts.
SQUARE_DECAY = cython.declare(cython.double, 0.98)
CAP = cython.declare(cython.double, 25.0)
#: Of log z^2, which is at least LEAST_LOG (a thirtieth of s) and USUAL on average for normal errors. Chance has not
#: brought its mean to less than a fiftieth in a million rows of normal, Laplace or t(2) errors.
FAST_DECAY = cython.declare(cython.double, 0.9)
SHRINKS = cython.declare(cython.double, 50.0)
LEAST_LOG, USUAL = cython.declare(cython.double, -6.9), cython.declare(cython.double, -1.27)
#: The rows that s^2 is worth when it starts again.
FEW = cython.declare(cython.double, 5.0)
#: Errors beyond this are this far out.
FARTHEST = cython.declare(cython.double, 20.0)
#: The rows after which the noise counts as known; before, quantiles are as much wider as those of Student's t.
KNOWN = cython.declare(cython.Py_ssize_t, 100)


def _exchanged(q):
    """Errors change their sign."""
    return -q[::-1]


@cython.cclass
class Quantiles(Stateful):
    """The quantiles of one model's errors."""

    STATE = (
        array("q", N_LEVELS, N_RATES, exchanged=_exchanged),
        numbers("noise", Column("square"), Column("weight"), Column("fast")),
        numbers("seen", Column("n"), dtype=np.int64),
    )

    def __cinit__(self, family):
        self.family = family
        self.whole, self.lowest = family.whole, family.lowest
        self.room = Doubles(N_LEVELS * N_RATES)
        self.q = self.room.at
        self.hedge = Hedge(np.full(N_RATES, 1.0 / N_RATES), 1.0, SHARE)
        fill(self.q, N_LEVELS * N_RATES, np.repeat(ndtri(LEVELS), N_RATES))
        self.square = self.weight = 0.0
        self.fast = USUAL
        self.n = 0

    def see(self, y, eta, weight):
        """A row of which eta was predicted."""
        error: cython.double
        square: cython.double
        unit: cython.double
        half: cython.double = 0.5 if self.whole and floor(y) == y else 0.0
        if not weight > 0.0:
            return 0
        unit = self.family.spread_at(eta)
        error = (y - self.family.mean_at(eta)) / unit
        square = error * error
        if not isfinite(square):
            return 0
        if self.square > 0.0:
            unit *= sqrt(self.square)
            error = min(max(error / sqrt(self.square), -FARTHEST), FARTHEST)
            self._follow(error, min(half / unit, FARTHEST))
            square = min(square, CAP * self.square)
            if square > 0.0:
                self.fast += (1.0 - FAST_DECAY) * (max(log(square / self.square), LEAST_LOG) - self.fast)
        self.weight = SQUARE_DECAY * self.weight + 1.0
        self.square += (square - self.square) / self.weight
        if self.fast < USUAL - log(SHRINKS):
            self._shrink()
        self.n += 1
        return 0

    def _shrink(self):
        """The noise is less than it was."""
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        self.square *= exp(self.fast - USUAL)
        self.weight = FEW
        self.fast = USUAL
        for i in range(N_LEVELS):
            for k in range(N_RATES):
                self.q[i * N_RATES + k] = self.q[i * N_RATES]

    def _follow(self, z, half):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        below: cython.double
        q: cython.p_double = self.q
        loss: cython.double[N_RATES]
        for k in range(N_RATES):
            loss[k] = 0.0
        for i in range(N_LEVELS):
            for k in range(N_RATES):
                below = _share_below(q[k], z, half)
                loss[k] += _pinball(TAU.at[i], below, z - q[k], half) / N_LEVELS
                q[k] += RATE.at[k] * (TAU.at[i] - below)
            q += N_RATES
        self.hedge.update(loss)

    def travel(self, tape):
        tape.doubles(self.q, N_LEVELS * N_RATES, FINITE)
        tape.number(cython.address(self.square), WEIGHT)
        tape.number(cython.address(self.weight), WEIGHT)
        tape.number(cython.address(self.fast), FINITE)
        tape.count(cython.address(self.n))
        self.hedge.travel(tape)

    def parts(self):
        return {"rates.": self.hedge}

    def __reduce__(self):
        return revived, (self.family, self.pack())

    # --- what is reported ---------------------------------------------------------------------------------------

    def errors(self, levels):
        """Quantiles of (y - mu) / spread(mu) at these levels; without end before there are two rows."""
        at, wide = ndtri(levels), widths(max(self.n, 2), levels)
        out = np.empty(len(at))
        found: cython.double[::1] = out
        self._report(at, wide, found)
        return out

    def around(self, etas: cython.const[cython.double][::1], levels):
        """Quantiles of the responses of rows with this eta: (row, level)."""
        i: cython.Py_ssize_t
        errors: cython.double[::1] = self.errors(levels)
        out = np.empty((etas.shape[0], errors.shape[0]))
        quantiles: cython.double[:, ::1] = out
        for i in range(etas.shape[0]):
            self._place(etas[i], errors, quantiles[i])
        return out

    def walk(self, y: cython.const[cython.double][::1], etas: cython.const[cython.double][::1], levels):
        """Quantiles of each response before it is seen: (row, level). A row whose response is NaN is not seen."""
        i: cython.Py_ssize_t
        at: cython.double[::1] = ndtri(levels)
        wide: cython.double[:, ::1] = np.array([widths(n, levels) for n in range(2, KNOWN + 1)])
        errors: cython.double[::1] = np.empty(len(at))
        out = np.empty((y.shape[0], len(at)))
        quantiles: cython.double[:, ::1] = out
        for i in range(y.shape[0]):
            self._report(at, wide[min(max(self.n, 2), KNOWN) - 2], errors)
            self._place(etas[i], errors, quantiles[i])
            self.see(y[i], etas[i], 1.0 if y[i] == y[i] else 0.0)
        return out

    def _report(self, at, wide, out):
        """Quantiles of the errors at these normal quantiles, each so much wider; the rates' averages are in order."""
        i: cython.Py_ssize_t
        value: cython.double
        said: cython.double[N_LEVELS]
        s: cython.double = sqrt(self.square)
        for i in range(N_LEVELS):
            said[i] = self.hedge.average(self.q + i * N_RATES)
            if i > 0:
                said[i] = max(said[i], said[i - 1])
        for i in range(at.shape[0]):
            if self.n < 2:
                out[i] = 0.0 if at[i] == 0.0 else (INFINITY if at[i] > 0.0 else -INFINITY)
                continue
            value = _between(at[i], KNOTS.at, said)
            # Only away from the prediction: otherwise a wider interval would not hold a narrower one.
            out[i] = s * (wide[i] if value * at[i] > 0.0 else 1.0) * value
            if i > 0:
                out[i] = max(out[i], out[i - 1])

    def _place(self, eta, errors, out):
        i: cython.Py_ssize_t
        mean: cython.double = self.family.mean_at(eta)
        spread: cython.double = self.family.spread_at(eta)
        for i in range(errors.shape[0]):
            out[i] = max(mean + spread * errors[i], self.lowest)
        return 0


def revived(family, data):
    """The quantiles that `pack` gave."""
    quantiles = Quantiles(family)
    quantiles.unpack(data)
    return quantiles


def widths(n, levels):
    """How much wider the quantiles of Student's t are than the normal ones, after n rows; 1 from KNOWN rows on."""
    levels = np.asarray(levels, dtype=float)
    found, apart = np.ones(len(levels)), levels != 0.5
    if n < KNOWN:
        found[apart] = stdtrit(n - 1, levels[apart]) / ndtri(levels[apart])
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _share_below(q: cython.double, z: cython.double, half: cython.double) -> cython.double:
    """The share of z, or of an interval about it, that is not above q."""
    if half == 0.0:
        return 1.0 if z <= q else 0.0
    return min(max((q - z + half) / (2.0 * half), 0.0), 1.0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _pinball(tau: cython.double, below: cython.double, apart: cython.double, half: cython.double) -> cython.double:
    """The pinball loss of an error this far from the quantile: its mean over an interval, of which a share is below."""
    if below == 0.0 or below == 1.0:
        return (tau - below) * apart
    return half * (tau * (1.0 - below) * (1.0 - below) + (1.0 - tau) * below * below)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _between(at: cython.double, knots: cython.p_double, values: cython.p_double) -> cython.double:
    """Straight lines between the knots; beyond the last ones in proportion to the knot, as for a normal error."""
    i: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t = N_LEVELS - 1
    if at <= knots[0]:
        return values[0] * at / knots[0] if values[0] < 0.0 else values[0]
    if at >= knots[last]:
        return values[last] * at / knots[last] if values[last] > 0.0 else values[last]
    while at > knots[i + 1]:
        i += 1
    return values[i] + (values[i + 1] - values[i]) * (at - knots[i]) / (knots[i + 1] - knots[i])
