# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What is remembered of the rows: weighted sums, and the few rows that are kept whole.

All sums are centred as they grow (Welford, West): with `d = x - mean` taken before the row is in,

    mean += w/(W + w) d        S += k d d'        c += k d (target - target_mean)        k = w W/(W + w)

so no large sums are ever subtracted from one another. Taking a row out is the same with the signs turned.

Weights do not decay; the newest row's weight grows instead (`unit` in `objective.py`), which is the same up to a common
factor and costs nothing. `scale` brings everything back by a power of two, exactly, long before anything overflows.

Arrays are parts of one: each that is made by itself takes some 600 bytes beside its numbers.

`Moments` holds the weighted least-squares problem `(1/2) sum_i w_i (target_i - b0 - x_i'b)^2`: for the Gaussian
family the stream itself, for the others the rows that have left the ring, as their second-order expansions (see
`likelihood.py`).
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.scipy.linalg.cython_blas import dgemm
from cython.cimports.streamlasso.core.base.buffers import Doubles
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import CHECK, FINITE, READ, WEIGHT, WIDTH
from cython.cimports.streamlasso.core.linalg.kernels import (
    axpy,
    deviations,
    gather_row,
    see_row,
    subtract_rows,
    take_row,
)

from streamlasso.core.base.state import COLUMNS, FEATURES, ROWS, Column, array, complement, numbers, table

#: Rows waiting to be added to S: a rank-4 update costs little more than a rank-one update, which is bound by memory.
PENDING = cython.declare(cython.Py_ssize_t, 4)
#: OpenBLAS starts a second thread above this many multiplications; for updates this small that costs more than it
#: gains.
ONE_THREAD = cython.declare(cython.Py_ssize_t, 262144)


@cython.no_gc
@cython.cclass
class Scaler(Stateful):
    """Running weighted mean and scatter of each feature and of the response; the scatter gives `scale_j`.

    room : where there are 3 p numbers for them, from `start` on; by default its own
    """

    STATE = (
        array("mean", FEATURES),
        array("scatter", FEATURES),
        array("peak", FEATURES),
        numbers(
            "sums",
            Column("weight"),
            Column("y_mean", complement),
            Column("y_scatter"),
        ),
        numbers("rebuild", Column("stale"), dtype=np.int64),
    )

    def __cinit__(self, p: cython.Py_ssize_t, room: Doubles = None, start: cython.Py_ssize_t = 0):
        self.p = p
        self.room = Doubles(3 * p) if room is None else room
        self.mean = self.room.at + start
        self.scatter = self.mean + p
        self.peak = self.scatter + p
        self.clear()

    def clear(self):
        j: cython.Py_ssize_t
        for j in range(self.p):
            self.mean[j] = self.scatter[j] = self.peak[j] = 0.0
        self.weight = self.y_mean = self.y_scatter = 0.0
        self.stale = False

    def add(self, x, y, weight):
        d: cython.double
        step: cython.double = weight / (self.weight + weight)
        k: cython.double = self.weight * step
        see_row(self.p, x, step, k, self.mean, self.scatter)
        d = y - self.y_mean
        self.y_mean += step * d
        self.y_scatter += k * d * d
        self.weight += weight

    def remove(self, x, y, weight):
        """Take a row out. Sums are `stale`, and have to be rebuilt, if what is left of one is mostly rounding error."""
        j: cython.Py_ssize_t
        d: cython.double
        step: cython.double = weight / (self.weight - weight)
        k: cython.double = self.weight * step
        for j in range(self.p):
            d = x[j] - self.mean[j]
            if self.scatter[j] > self.peak[j]:
                self.peak[j] = self.scatter[j]
            self.mean[j] -= step * d
            self.scatter[j] -= k * d * d
            if self.scatter[j] < 1e-4 * self.peak[j]:
                self.stale = True
        d = y - self.y_mean
        if self.y_scatter - k * d * d < 1e-4 * self.y_scatter:
            self.stale = True
        self.y_mean -= step * d
        self.y_scatter -= k * d * d
        self.weight -= weight

    def join(self, other: Scaler, factor: cython.double):
        """The rows of another one too, whose weights are multiplied by this factor."""
        j: cython.Py_ssize_t
        d: cython.double
        w: cython.double = other.weight * factor
        total: cython.double = w + self.weight
        if not total > 0.0:
            return
        k: cython.double = w * self.weight / total
        for j in range(self.p):
            d = other.mean[j] - self.mean[j]
            self.scatter[j] += factor * other.scatter[j] + k * d * d
            self.mean[j] += w / total * d
        d = other.y_mean - self.y_mean
        self.y_scatter = other.y_scatter * factor + self.y_scatter + k * (d * d)
        self.y_mean += w / total * d
        self.weight = total

    def deviations(self, out):
        """The standard deviation of each feature; 0 where doubles cannot tell its values apart."""
        deviations(self.p, self.scatter, self.mean, 1.0 / self.weight, out)

    def scale(self, factor):
        j: cython.Py_ssize_t
        for j in range(self.p):
            self.scatter[j] *= factor
            self.peak[j] *= factor
        self.weight *= factor
        self.y_scatter *= factor

    def travel(self, tape):
        tape.doubles(self.mean, 3 * self.p, FINITE)
        tape.number(cython.address(self.weight), WEIGHT)
        tape.number(cython.address(self.y_mean), FINITE)
        tape.number(cython.address(self.y_scatter), FINITE)
        tape.flag(cython.address(self.stale))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def room_for(p: cython.Py_ssize_t, removes: cython.bint) -> cython.Py_ssize_t:
    """How many numbers the moments of p features are."""
    return (p + 2 + (2 if removes else 1) * PENDING) * p


@cython.no_gc
@cython.cclass
class Moments(Stateful):
    """S, c and the means of a weighted least-squares problem; uncentred where there is no intercept.

    S in full is `S + rows' signed`: the newest rows wait, up to PENDING of them, to be added together.

    removes : whether rows are taken out again; where none is, `signed` are the rows themselves
    room : where the first `room_for(p, removes)` numbers are for them; by default its own
    """

    STATE = (
        array("S", FEATURES, FEATURES),
        array("c", FEATURES, exchanged=np.negative),
        array("mean", FEATURES),
        array("rows", ROWS, FEATURES),
        array("signed", ROWS, FEATURES),
        numbers(
            "sums",
            Column("weight"),
            Column("target_mean", np.negative),
            Column("target_scatter"),
        ),
    )

    def __cinit__(self, p: cython.Py_ssize_t, centred: cython.bint, removes: cython.bint = True, room: Doubles = None):
        self.p = p
        self.centred = centred
        self.room = Doubles(room_for(p, removes)) if room is None else room
        self.S = self.room.at
        self.c = self.S + p * p
        self.mean = self.c + p
        self.rows = self.mean + p
        self.signed = self.rows + (PENDING * p if removes else 0)
        # Not `clear`: writing p x p zeros over zeros takes memory that may never be used.
        self.weight = self.target_mean = self.target_scatter = 0.0
        self.n_pending = 0

    def clear(self):
        i: cython.Py_ssize_t
        for i in range(self.p):
            self.c[i] = self.mean[i] = 0.0
        for i in range(self.p * self.p):
            self.S[i] = 0.0
        self.weight = self.target_mean = self.target_scatter = 0.0
        self.n_pending = 0

    def add(self, x, target, weight):
        """Take a row in; returns z with S + z z', for the factor.

        The mean moves away from whichever weighs more: a saturated row has almost no weight and a target far out.
        """
        step: cython.double = weight / (self.weight + weight)
        k: cython.double = self.weight * step if self.centred else weight
        mean: cython.double = self.target_mean + step * (target - self.target_mean)
        z: cython.p_double
        if weight > self.weight:
            mean = target + self.weight / (self.weight + weight) * (self.target_mean - target)
        z = self._take(x, target, k, step, 1.0)
        self.weight += weight
        self.target_mean = mean
        return z

    def remove(self, x, target, weight):
        """Take a row out again; returns z with S - z z'."""
        step: cython.double = weight / (self.weight - weight)
        k: cython.double = self.weight * step if self.centred else weight
        mean: cython.double = self.target_mean - step * (target - self.target_mean)
        z: cython.p_double = self._take(x, target, k, -step, -1.0)
        self.weight -= weight
        self.target_mean = mean
        return z

    def _take(self, x, target, k, step, sign):
        j: cython.Py_ssize_t
        root: cython.double = sqrt(k)
        dt: cython.double = target - self.target_mean if self.centred else target
        z: cython.p_double
        signed: cython.p_double
        c: cython.p_double = self.c
        if self.n_pending == PENDING:
            self.flush()
        z = self.rows + self.n_pending * self.p
        signed = self.signed + self.n_pending * self.p
        self.n_pending += 1
        dt *= root * sign
        if self.centred:
            take_row(self.p, x, step, root, sign, dt, self.mean, z, signed, c)
        else:
            for j in range(self.p):
                z[j] = root * x[j]
                signed[j] = sign * z[j]
                c[j] += dt * z[j]
        self.target_scatter += sign * dt * dt
        return z

    def join(self, other: Moments, factor: cython.double):
        """The rows of another problem too, whose weights are multiplied by this factor."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.p
        w: cython.double = other.weight * factor
        total: cython.double = w + self.weight
        share: cython.double = w / total if total > 0.0 else 0.0
        k: cython.double = w * self.weight / total if self.centred and total > 0.0 else 0.0
        dt: cython.double = other.target_mean - self.target_mean
        d: cython.double[::1] = np.empty(p)
        self.flush()
        other.flush()
        for j in range(p):
            d[j] = other.mean[j] - self.mean[j]
        for j in range(p):
            self.c[j] += factor * other.c[j] + k * d[j] * dt
            self.mean[j] += share * d[j]
            for i in range(p):
                self.S[j * p + i] = self.S[j * p + i] + factor * other.S[j * p + i] + k * (d[j] * d[i])
        self.target_scatter = other.target_scatter * factor + self.target_scatter + k * (dt * dt)
        self.target_mean += share * dt
        self.weight = total

    def flush(self):
        """S += rows' signed, in panels so small that BLAS uses one thread."""
        p: cython.int = cython.cast(cython.int, self.p)
        m: cython.int = cython.cast(cython.int, self.n_pending)
        one: cython.double = 1.0
        start: cython.int = 0
        width: cython.int
        panel: cython.int
        no: cython.char = b"N"
        yes: cython.char = b"T"
        if m == 0:
            return
        panel = cython.cast(cython.int, ONE_THREAD // (m * self.p))
        panel = max(panel, 1)
        while start < p:
            width = min(panel, p - start)
            dgemm(
                cython.address(no),
                cython.address(yes),
                cython.address(p),
                cython.address(width),
                cython.address(m),
                cython.address(one),
                self.rows,
                cython.address(p),
                self.signed + start,
                cython.address(p),
                cython.address(one),
                self.S + start * self.p,
                cython.address(p),
            )
            start += width
        self.n_pending = 0

    def scale(self, factor):
        i: cython.Py_ssize_t
        self.flush()
        for i in range(self.p):
            self.c[i] *= factor
        for i in range(self.p * self.p):
            self.S[i] *= factor
        self.weight *= factor
        self.target_scatter *= factor

    def write_sums(self, factor, sums):
        """Everything times a factor, the lower triangle of S alone."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.p
        for j in range(p):
            memcpy(sums.S + j * p, self.S + j * p, (j + 1) * cython.sizeof(cython.double))
            for m in range(self.n_pending):
                axpy(j + 1, self.signed[m * p + j], self.rows + m * p, sums.S + j * p)
            for k in range(j + 1):
                sums.S[j * p + k] *= factor
            sums.c[j] = factor * self.c[j]
            sums.mean[j] = self.mean[j] if self.centred else 0.0
        sums.weight = factor * self.weight
        sums.target_mean = self.target_mean if self.centred else 0.0
        sums.target_scatter = factor * self.target_scatter

    def diagonal(self, j):
        m: cython.Py_ssize_t
        s: cython.double = self.S[j * self.p + j]
        for m in range(self.n_pending):
            s += self.signed[m * self.p + j] * self.rows[m * self.p + j]
        return s

    def column(self, j, members, k, out):
        """out = S_Aj"""
        gather_row(j, k, members, self.p, self.S, self.n_pending, self.rows, self.signed, out)

    def times(self, members, k, b, out):
        """out -= S_{.A} b, for all p features"""
        subtract_rows(k, members, self.p, self.S, self.n_pending, self.rows, self.signed, b, out)

    def travel(self, tape):
        n: cython.Py_ssize_t = tape.rows(cython.address(self.n_pending), PENDING)
        self._travel_S(tape)
        self._travel_rows(tape, n)
        tape.number(cython.address(self.weight), WEIGHT)
        tape.number(cython.address(self.target_mean), FINITE)
        tape.number(cython.address(self.target_scatter), FINITE)

    def _travel_rows(self, tape, n):
        """c, the mean and the rows that wait, which lie side by side; then the same rows with their signs."""
        p: cython.Py_ssize_t = self.p
        rows: cython.pointer[cython.const[cython.double]] = tape.doubles(self.c, (2 + n) * p, FINITE) + 2 * p
        signed: cython.pointer[cython.const[cython.double]]
        if self.signed != self.rows:
            tape.doubles(self.signed, n * p, FINITE)
        elif tape.mode == READ:
            tape._next(n * p)
        else:
            signed = tape.doubles(self.signed, n * p, FINITE)
            if tape.mode == CHECK and tape.wrong == cython.NULL and memcmp(rows, signed, n * p * WIDTH) != 0:
                tape._refuse_at(-n * p, b"must be the rows: none is taken out")

    def _travel_S(self, tape):
        """S may stay on the tape: most rows read a part of it, and one of PENDING writes it."""
        if tape.mode == READ:
            self.S = self.room.at
        self.S = tape.lent(self.S, self.p * self.p, FINITE)


@cython.no_gc
@cython.cclass
class Ring(Stateful):
    """The newest rows, whole. A row that has been folded into the moments keeps what it was folded with."""

    STATE = (
        array("x", ROWS, FEATURES),
        table(
            "rest",
            (ROWS, COLUMNS),
            Column("y", complement),
            Column("weight"),
            Column("curvature"),
            Column("target", np.negative),
        ),
    )

    def __cinit__(self, capacity: cython.Py_ssize_t, p: cython.Py_ssize_t):
        self.p = p
        self.capacity = capacity
        self.room = Doubles(capacity * (p + 4))
        self.x = self.room.at
        self.y = self.x + capacity * p
        self.weight = self.y + capacity
        self.curvature = self.weight + capacity
        self.target = self.curvature + capacity
        self.count = self.start = 0

    def slot(self, i):
        """The place of the i-th oldest row."""
        i += self.start
        return i - self.capacity if i >= self.capacity else i

    def push(self, x, y, weight):
        slot: cython.Py_ssize_t = self.slot(self.count)
        memcpy(self.x + slot * self.p, x, self.p * cython.sizeof(cython.double))
        self.y[slot] = y
        self.weight[slot] = weight
        self.curvature[slot] = self.target[slot] = 0.0
        self.count += 1
        return slot

    def forget_oldest(self):
        self.start = self.slot(1)
        self.count -= 1

    def scale(self, factor):
        i: cython.Py_ssize_t
        for i in range(self.capacity):
            self.weight[i] *= factor
            self.curvature[i] *= factor

    def travel(self, tape):
        """Oldest first."""
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t = self.count
        n: cython.Py_ssize_t = tape.rows(cython.address(count), self.capacity)
        if tape.mode == READ:
            self.count = count
            self.start = 0
        for i in range(n):
            tape.doubles(self.x + self.slot(i) * self.p, self.p, FINITE)
        for i in range(n):
            tape.number(cython.address(self.y[self.slot(i)]), FINITE)
        for i in range(n):
            tape.number(cython.address(self.weight[self.slot(i)]), WEIGHT)
        for i in range(n):
            tape.number(cython.address(self.curvature[self.slot(i)]), WEIGHT)
        for i in range(n):
            tape.number(cython.address(self.target[self.slot(i)]), FINITE)
