# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One model whose lam moves along its own derivative: the paper's idea, for millions of features.

The model is one expert of `lanes.pxd`, in double precision. The derivative of everything that it remembers with respect
to lam is carried along, by the chain rule, at the same cost again: with b = -a sign(z) s / (beta + r), s = |z| - lam r
and r = sqrt(n),

    db = -a sign(z) (ds / (beta + r) - s dr / (beta + r)^2)        ds = sign(z) dz - r - lam dr        dr = dn / 2r
    dm = sum_j db_j x_j            dg = loss''(m) dm

and dz, dn follow the rules by which z and n learn. This is exact for a lam that was the same in all rows; a tuner then
moves lam by dC/dlam = loss'(m) dm, as in the dense engine. Small steps stay where they start and large ones empty the
model, so the default keeps a list of lam instead (docs/wide.md).
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.streamlasso.core.sparse.rows import SparseRows
from cython.cimports.streamlasso.core.sparse.table import key_of, largest, last_row, state_of

from streamlasso.core.sparse.states import HEAD, refuse_other_shapes
from streamlasso.core.sparse.table import MOST

#: As floats.
EVIDENCE_WIDTH = 10
#: The threshold to start from: what was seen once has a coefficient.
FIRST_LAM = 0.6


@cython.cclass
class Single(SparseRows):
    """A model of numbered features with one lam. `alpha` and `beta` are those of `lanes.pxd`."""

    def __cinit__(self, family, tuner, most=MOST, fixed_units=True, alpha=0.5, beta=1.0):
        self.settings = dict(family=family, tuner=tuner, most=most, fixed_units=fixed_units, alpha=alpha, beta=beta)
        self.family, self.tuner = family, tuner
        self.table = Table(EVIDENCE_WIDTH, most)
        self.units = Units(family, fixed_units)
        self.alpha, self.beta = alpha, beta
        self.lam = FIRST_LAM if tuner.lambda_init is None else tuner.lambda_init
        self.lam_max, self.squares, self.n_seen = 0.0, 0.0, 0
        self.tuner_state = np.zeros(max(tuner.n_state, 1))
        self._make_room(64)

    # --- rows -------------------------------------------------------------------------------------------------------

    def enter(self, start, end, columns, values):
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        if self.room.shape[0] < (end - start) * cython.cast(cython.Py_ssize_t, cython.sizeof(Entry)):
            self._make_room(2 * (end - start))
        for j in range(start, end):
            if fabs(values[j]) >= 1e-30:
                self.entries[n].key, self.entries[n].value = columns[j], values[j]
                n += 1
        self.table.find(self.entries, n)
        return n

    def _make_room(self, n):
        self.room = np.zeros(n * cython.sizeof(Entry), dtype=np.uint8)
        self.entries = cython.cast(cython.pointer[Entry], cython.address(self.room[0]))

    def take(self, n, y, weight):
        """Predict and learn the row; eta as it was predicted."""
        i: cython.Py_ssize_t
        row: uint32_t = cython.cast(uint32_t, self.n_seen + 1)
        one: cython.pointer[Entry]
        evidence: cython.pointer[Evidence]
        share: Share
        size: cython.float
        ratio: cython.double
        m: cython.double = 0.0
        dm: cython.double = 0.0
        a: cython.double
        eta: cython.double
        free: cython.double
        held: cython.bint
        g: cython.double
        self.squares += 1.0
        for i in range(n):
            one = self.entries + i
            if one.record == cython.NULL or key_of(one.record) != one.key:
                one.record = self.table.insert(one.key, one.tag, row)
            if one.record == cython.NULL:
                self.squares += 1.0
                continue
            last_row(one.record)[0] = row
            size = fabs(one.value)
            evidence = cython.cast(cython.pointer[Evidence], state_of(one.record))
            if size > largest(one.record)[0]:
                _shrink(evidence, largest(one.record)[0] / size)
                largest(one.record)[0] = size
            one.value /= largest(one.record)[0]
            self.squares += one.value * one.value
            share = self._share(evidence, self.lam, True)
            m += share.q * one.value
            dm += share.dq * one.value
        self.n_seen += 1
        a = -self.alpha * sqrt(self.n_seen / self.squares)
        share = self._share(cython.address(self.bias), 0.0, False)
        m, dm = a * (m + share.q), a * (dm + share.dq)
        free = self.units.level + self.units.unit * m
        eta = self.units.eta_of(m)
        self.units.learn(y, m, weight)
        g = weight * self.units.slope(y, m)
        # Where a prediction is held within its range, lam does not move it; the row may have moved the range.
        held = self.units.level + self.units.unit * m != self.units.eta_of(m)
        ratio = weight * self.family.curvature_at(y, self.units.eta_of(m)) * self.units.unit / self.units.steep
        ratio = 0.0 if held else ratio
        for i in range(n):
            one = self.entries + i
            if one.record != cython.NULL:
                evidence = cython.cast(cython.pointer[Evidence], state_of(one.record))
                self._learn(evidence, one.value, g, ratio * dm, True)
                if evidence.n > 0.0:
                    self.lam_max = max(self.lam_max, fabs(evidence.z) / sqrt(evidence.n))
        self._learn(cython.address(self.bias), 1.0, g, ratio * dm, False)
        self._move(y, eta, dm if free == eta else 0.0, weight)
        return eta

    def tell(self, n):
        """eta of the row; nothing changes."""
        i: cython.Py_ssize_t
        one: cython.pointer[Entry]
        evidence: Evidence
        top: cython.float
        x: cython.double
        m: cython.double = self._share(cython.address(self.bias), 0.0, False).q
        squares: cython.double = self.squares + 1.0
        for i in range(n):
            one = self.entries + i
            if one.record == cython.NULL:
                squares += 1.0
                continue
            evidence = cython.cast(cython.pointer[Evidence], state_of(one.record))[0]
            top = fabs(one.value)
            if top > largest(one.record)[0]:
                _shrink(cython.address(evidence), largest(one.record)[0] / top)
            else:
                top = largest(one.record)[0]
            x = one.value / top
            squares += x * x
            m += x * self._share(cython.address(evidence), self.lam, True).q
        return self.units.eta_of(-self.alpha * sqrt((self.n_seen + 1) / squares) * m)

    # --- one feature ------------------------------------------------------------------------------------------------

    def _share(self, one, lam, penalised):
        share: Share
        s: cython.double
        ds: cython.double
        sign: cython.double = 1.0 if one.z > 0.0 else -1.0
        bottom: cython.double
        share.q = share.dq = share.dr = 0.0
        share.r = sqrt(one.n)
        if share.r == 0.0:
            return share
        share.dr = 0.5 * one.dn / share.r
        s = fabs(one.z) - lam * share.r
        if s <= 0.0:
            return share
        ds = sign * one.dz - lam * share.dr - (share.r if penalised else 0.0)
        bottom = self.beta + share.r
        share.q = sign * s / bottom
        share.dq = sign * (ds - s * share.dr / bottom) / bottom
        return share

    def _learn(self, one, x, g, dg, penalised):
        lam: cython.double = self.lam if penalised else 0.0
        share: Share = self._share(one, lam, penalised)
        sign: cython.double = 1.0 if share.q > 0.0 else -1.0
        r: cython.double
        dr: cython.double
        one.n += g * g * x * x
        one.dn += 2.0 * g * dg * x * x
        one.seen = sqrt(one.n)
        r = sqrt(one.n)
        dr = 0.5 * one.dn / r if r > 0.0 else 0.0
        if share.q != 0.0:
            one.dz += (share.dq + (sign if penalised else 0.0)) * (r - share.r) + (share.q + sign * lam) * (
                dr - share.dr
            )
            one.z += (share.q + sign * lam) * (r - share.r)
        one.z += g * x
        one.dz += dg * x

    def _move(self, y, eta, dm, weight):
        """lam after the row."""
        slope: cython.double = weight * self.family.slope_at(y, eta) * self.units.unit * dm
        state: cython.p_double = cython.address(self.tuner_state[0])
        lam: cython.double = self.tuner.move(self.lam, slope, fabs(dm), self.lam_max, state, self.tuner_state.shape[0])
        if self.tuner.clamped:
            lam = min(max(lam, 0.0), self.lam_max)
        self.lam = lam
        return 0

    # --- what it is -------------------------------------------------------------------------------------------------

    def coef(self):
        """Keys and coefficients of all features, in the units of x."""
        return self._coef()[:2]

    def coef_slope(self):
        """Keys, and the derivatives of the coefficients with respect to lam."""
        keys, _, slopes = self._coef()
        return keys, slopes

    def _coef(self):
        i: cython.Py_ssize_t
        share: Share
        record: cython.p_float
        n: cython.Py_ssize_t = self.table.n
        keys, values = np.empty(n, dtype=np.uint64), np.zeros((n, 2))
        key: uint64_t[::1] = keys
        value: cython.double[:, ::1] = values
        a: cython.double = self._rate() * self.units.unit
        for i in range(n):
            record = self.table.record(i)
            share = self._share(cython.cast(cython.pointer[Evidence], state_of(record)), self.lam, True)
            key[i] = key_of(record)
            value[i, 0] = a * share.q / largest(record)[0]
            value[i, 1] = a * share.dq / largest(record)[0]
        return keys, values[:, 0].copy(), values[:, 1].copy()

    def _rate(self):
        return -self.alpha * np.sqrt(self.n_seen / self.squares) if self.n_seen else 0.0

    @property
    def intercept(self):
        share: Share = self._share(cython.address(self.bias), 0.0, False)
        return self.units.level + self._rate() * self.units.unit * share.q

    @property
    def nbytes(self):
        return self.table.nbytes

    def state(self):
        """All that the next row depends on, as arrays; between two rows, if another thread learns."""
        with self.gate:
            return self._state()

    def _state(self):
        bias = [self.bias.z, self.bias.n, self.bias.dz, self.bias.dn]
        return {
            "counts": np.array([self.n_seen, self.table.pointed_at], dtype=np.int64),
            "sums": np.array([self.squares, self.lam, self.lam_max, *bias]),
            "units": self.units.state,
            "tuner": np.array(self.tuner_state),
            "records": self.table.records(),
        }

    def restore(self, state):
        """A new model takes a state. One that these settings cannot have made is refused."""
        n_seen, hand = (int(number) for number in state["counts"])
        refuse_other_shapes(state, {"counts": 2, "sums": 7, "units": 6, "tuner": len(self.tuner_state)})
        squares, lam, lam_max, *bias = state["sums"].tolist()
        records = state["records"]
        if squares < n_seen or lam_max < 0.0 or bias[1] < 0.0:
            raise ValueError("the sums do not fit the settings")
        if records.ndim != 2 or records.shape[1] != HEAD + EVIDENCE_WIDTH or records.dtype != np.float32:
            raise ValueError("the features do not fit the settings")
        evidence = np.ascontiguousarray(records[:, HEAD : HEAD + 8]).view(np.float64)
        if not (np.all(records[:, 2] > 0) and np.all(np.isfinite(evidence)) and np.all(evidence[:, 1] >= 0)):
            raise ValueError("the features hold numbers that no row can have made")
        if not np.all(np.isfinite(records[:, 2])):
            raise ValueError("the features hold numbers that no row can have made")
        self.table.fill(records, hand)
        self.n_seen, self.squares, self.lam, self.lam_max = n_seen, squares, lam, lam_max
        self.bias.z, self.bias.n, self.bias.dz, self.bias.dn = bias
        self.units.state = state["units"]
        self.tuner_state = np.array(state["tuner"])

    def __reduce__(self):
        return revive_single, (self.settings, self.state())


def _shrink(one, ratio):
    """As if x had been divided by the larger number from the start."""
    one.z, one.dz = ratio * one.z, ratio * one.dz
    one.n, one.dn = ratio * ratio * one.n, ratio * ratio * one.dn


def revive_single(settings, state):
    """A model in this state; for pickle."""
    model = Single(**settings)
    model.restore(state)
    return model
