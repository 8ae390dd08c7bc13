# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What has been seen so far, and how far beyond it a value is trusted.

Every feature, the response and every prediction is held within the range seen so far, widened by half of it on each
side. A value further out counts as that bound, both for what is learnt and as what has been seen: one wild value moves
the bound by half, a world that really moved is followed within a few rows. Of a row with such a value little is learnt:
if it lies k times as far from the middle as the bound, the row weighs 1/k. A feature that was constant so far has no
range, and is trusted whatever its value; so is everything in the first rows.

A prediction is bounded in eta: where the mean is at the bound, of a linear model from row FIRST_ROWS on. A bound that
no mean reaches (a probability below 0, a negative count) lies half-way from the nearest response seen to where the
means end; where a response was seen at that very end (a class, a count of 0), it is the estimate of Krichevsky and
Trofimov for what never happened in n rows, 1 / (2 (n + 1)) of the range away."""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import ANY, FINITE

from streamlasso.core.base.state import COLUMNS, FEATURES, Column, complement, numbers, table

WIDEN = cython.declare(cython.double, 0.5)
#: Before this eta no mean has come to its end.
ENDS = cython.declare(cython.double, 32.0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _trust(value: cython.double, low: cython.double, high: cython.double) -> cython.double:
    reach: cython.double = (0.5 + WIDEN) * (high - low)
    away: cython.double = fabs(value - 0.5 * (low + high))
    return reach / away if away > reach and reach > 0.0 else 1.0


@cython.cclass
class Bounds(Stateful):
    """The ranges of p features, of the response, and of eta."""

    STATE = (
        table("features", (COLUMNS, FEATURES), Column("low"), Column("high")),
        numbers(
            "response",
            Column("y_low", complement, of="y_high"),
            Column("y_high", complement, of="y_low"),
            Column("eta_low", np.negative, of="eta_high"),
            Column("eta_high", np.negative, of="eta_low"),
        ),
        numbers("rows", Column("n"), dtype=np.int64),
    )

    def __cinit__(self, p: cython.Py_ssize_t, family):
        self.p = p
        self.family = family
        self.unbounded = family.quadratic
        self.room = Doubles(2 * p)
        self.low = self.room.at
        self.high = self.low + p
        self.y_low = self.y_high = 0.0
        self.eta_low, self.eta_high = -np.inf, np.inf
        self.n = 0

    def clip(self, j, x):
        """A value of feature j, held within its bounds."""
        margin: cython.double = WIDEN * (self.high[j] - self.low[j])
        if self.n < FIRST_ROWS or margin == 0.0:
            return x
        return min(max(x, self.low[j] - margin), self.high[j] + margin)

    def clip_y(self, y):
        margin: cython.double = WIDEN * (self.y_high - self.y_low)
        if self.n < FIRST_ROWS or margin == 0.0:
            return y
        return min(max(y, self.y_low - margin), self.y_high + margin)

    def trust(self, x, y):
        """What is left of a row's weight: 1, or 1/k for the value that lies furthest beyond its bound, k times."""
        j: cython.Py_ssize_t
        least: cython.double
        if self.n < FIRST_ROWS:
            return 1.0
        least = _trust(y, self.y_low, self.y_high)
        for j in range(self.p):
            least = min(least, _trust(x[j], self.low[j], self.high[j]))
        return least

    def clip_eta(self, eta):
        """An eta that is not a number counts as 0."""
        if not eta >= self.eta_low:
            return self.eta_low if eta < self.eta_low else min(max(0.0, self.eta_low), self.eta_high)
        return min(eta, self.eta_high)

    def see(self, x, y):
        """A row, clipped, has been seen."""
        j: cython.Py_ssize_t
        wider: cython.bint = self.n == 0 or y < self.y_low or y > self.y_high
        for j in range(self.p):
            if self.n == 0 or x[j] < self.low[j]:
                self.low[j] = x[j]
            if self.n == 0 or x[j] > self.high[j]:
                self.high[j] = x[j]
        if self.n == 0 or y < self.y_low:
            self.y_low = y
        if self.n == 0 or y > self.y_high:
            self.y_high = y
        self.n += 1
        if self.unbounded and self.n < FIRST_ROWS:
            return 0
        if wider or (self.n & (self.n - 1)) == 0 or self.n == FIRST_ROWS:
            self._bound_eta()
        return 0

    def _bound_eta(self):
        """eta at which the mean is at its bounds; n counts by its last power of two."""
        span: cython.double = self.y_high - self.y_low
        never: cython.double = (span if span > 0.0 else 1.0) / (2.0 * (self.n + 1.0))
        self.eta_low = self._where(-1.0, self.y_low, WIDEN * span, never)
        self.eta_high = self._where(1.0, self.y_high, WIDEN * span, never)
        if self.eta_low > self.eta_high:
            # One response only, where means end: the other bound has run to infinity.
            if fabs(self.eta_low) < fabs(self.eta_high):
                self.eta_high = self.eta_low
            self.eta_low = self.eta_high
        return 0

    def _where(self, sign, y, margin, never):
        """The eta whose mean lies `margin` beyond y, or as far as means go, by bisection: a mean never falls with eta.

        Means end where, far out, each doubling of eta moves them less than the one before.
        """
        turn: cython.int
        near: cython.double = -sign
        far: cython.double = sign
        middle: cython.double
        step: cython.double = 0.0
        last_step: cython.double = INFINITY
        mean: cython.double = self.family.mean_at(far)
        target: cython.double = y + sign * margin
        while sign * mean <= sign * target and fabs(far) < 1e100:
            if fabs(far) > ENDS and step <= 0.5 * last_step:
                target = 0.5 * (y + mean) if sign * y < sign * mean else mean - sign * never
                break
            far *= 2.0
            last_step = step
            step = fabs(self.family.mean_at(far) - mean)
            mean = self.family.mean_at(far)
        while sign * self.family.mean_at(near) > sign * target and fabs(near) < 1e100:
            near *= 2.0
        for turn in range(200):
            middle = 0.5 * (near + far)
            if middle == near or middle == far:
                break
            if sign * self.family.mean_at(middle) < sign * target:
                near = middle
            else:
                far = middle
        return near

    def least_loss(self, y):
        """The smallest loss that an eta within the bounds can have for this response."""
        return self.family.loss_at(y, self.family.best_eta(y, self.eta_low, self.eta_high))

    def travel(self, tape):
        """The bounds of eta may be infinite."""
        tape.doubles(self.low, 2 * self.p, FINITE)
        tape.number(cython.address(self.y_low), FINITE)
        tape.number(cython.address(self.y_high), FINITE)
        low: cython.double = tape.number(cython.address(self.eta_low), ANY)
        high: cython.double = tape.number(cython.address(self.eta_high), ANY)
        tape.require(low <= high, b"the bounds of eta are not a range")
        tape.count(cython.address(self.n))
