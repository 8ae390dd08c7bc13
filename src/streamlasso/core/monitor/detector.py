# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Changes, found in the errors of a model that follows them: errors that go with a feature, and errors that grew.

While nothing changes, the order of the rows says nothing: they are exchangeable. All that is used here holds for
exchangeable rows, whatever the errors look like: heavy tails, rare classes, noise that depends on the features.

**Evidence.** An e-value of a row is a number e >= 0 of mean 1 (or less) while nothing changes, and larger after the
change that it is made for. A product of e-values from a row on is the evidence that the change began there. Where it
began is unknown, so the evidence M is that of all rows together, each with the same weight (Shiryaev and Roberts):

    M <- (M + weight) e          of mean sum of weights, row after row

The weights of all kinds of change add up to 1. So the sum of all M less the number of rows is a supermartingale, and
the rows until that sum first exceeds LIMIT = 10,000 / false_alarms are LIMIT or more on average (optional stopping; an
e-detector of Shin, Ramdas and Rinaldo). Nothing is calibrated; benchmarks/changes.py counts.

**Errors that grew.** Of n errors before and this one, the rank k (1 is the largest) is any of 1 to m = n + 1 with
probability 1/m (Vovk's conformal p-value k/m). For each of POWERS

    e = k^-power / mean of i^-power, i = 1 to m            power < 1

Equal errors have the mean of their ranks, which makes e smaller (Jensen). A response that is the most probable one, or
nearer to the prediction than LEAST_ERROR of what responses vary by, has error 0. The n errors are those of the later
half of the rows since the last change, N_BEFORE at most, and less the last few: the change would hide among its own.

**Errors that go with a feature.** With u the error over its deviation, z the feature, centred, over its own (for a
family times the root of the row's information over the usual one), both within BOUND, and b = shift z for each of
SHIFTS and both signs, the likelihood ratio of errors about b to errors about 0 is exp(b u - b^2 / 2). In its place is

    f = (1 + min(b u - b^2 / 2, MOST_EXPONENT) / 8)^8 / its mean for a normal u,      e = f / max(1, mean of f so far)

where the mean of f, this row included, makes the mean of e at most 1 for exchangeable rows of any distribution. A row
begins a change of a feature with a weight of at most z^2: where z is 0, nothing could begin.

**Held.** The model follows a change within few rows, and its errors are then small again. While the evidence that
errors grew is above SUSPICION, they are those that the model would have made with the coefficients it had before.

A model that still learns has errors that shrink, and its rows are not quite exchangeable: the evidence is less then.
What changed is found from the rows that are kept (`diagnosis.py`), half of N_RECENT rows after the alarm or at the
next one; until then it is a preliminary answer.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite, log, sqrt
from cython.cimports.libc.stdlib import free, realloc
from cython.cimports.libc.string import memcpy, memmove, memset
from cython.cimports.streamlasso.core.base.buffers import Doubles, copied, fill, in_doubles
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import CHECK, FINITE, READ, WEIGHT
from cython.cimports.streamlasso.core.linalg.kernels import dot, shift_features, standardise, twice_larger

from streamlasso.core.base.state import FEATURES, ROWS, WITH_INTERCEPT, Column, array, numbers
from streamlasso.core.monitor.attribution import N_FIELDS, exchanged_records, unpacked_change
from streamlasso.core.monitor.diagnosis import Diagnosis

POWERS = np.array([0.33, 0.6, 0.75, 0.875])
SHIFTS = np.array([0.5, -0.5, 1.0, -1.0])
#: Evidence of changes of either kind has half of the weight.
EITHER_KIND = cython.declare(cython.double, 0.5)
SUSPICION = cython.declare(cython.double, 2.5)
#: The rows for which errors may be those of held coefficients.
MOST_HELD = cython.declare(cython.Py_ssize_t, 64)
BOUND = cython.declare(cython.double, 3.0)
LEAST_EXPONENT, MOST_EXPONENT = cython.declare(cython.double, -6.0), cython.declare(cython.double, 3.5)
LEAST_ERROR = cython.declare(cython.double, 1e-3)
#: Rows before the first alarm, and from one to the next; as many more as there are features, up to MOST_MORE.
START = cython.declare(cython.Py_ssize_t, 30)
PAUSE = cython.declare(cython.Py_ssize_t, 20)
MOST_MORE = cython.declare(cython.Py_ssize_t, 100)
#: The fewest errors that a rank is among.
FEWEST = cython.declare(cython.Py_ssize_t, 10)
#: Rows over which means are taken, those of squared errors over fewer; and the most that one square counts.
MEAN_ROWS = cython.declare(cython.double, 1000.0)
SCALE_ROWS = cython.declare(cython.double, 200.0)
CAP = cython.declare(cython.double, 25.0)
#: Squares and deviations are at most this; a variance below this share of the squared mean is rounding.
LARGEST, ROUNDING = cython.declare(cython.double, 1e300), cython.declare(cython.double, 1e-20)
#: Steps of b, from 0 to the largest, for which the mean of f is in a table.
STEPS = cython.declare(cython.double, 32.0)


def _rank_values():
    """k^-power by 2 k, for each of POWERS."""
    twice = np.arange(2 * N_BEFORE + 3)
    return np.where(twice > 0, np.maximum(0.5 * twice, 0.5) ** -POWERS[:, None], 0.0)


def _rank_means():
    """The mean of i^-power, i = 1 to m, by m."""
    m = np.arange(N_BEFORE + 2)
    sums = np.cumsum(np.where(m > 0, np.maximum(m, 1.0) ** -POWERS[:, None], 0.0), axis=1)
    return np.maximum(sums, 1.0) / np.maximum(m, 1)


def _shift_shares():
    """1 over the mean of f for a normal u within BOUND, by b."""
    b = np.arange(np.ceil(BOUND * np.abs(SHIFTS).max() * STEPS) + 1)[:, None] / STEPS
    u = np.linspace(-8.0, 8.0, 4001)
    weight = np.exp(-0.5 * u**2)
    exponent = b * np.clip(u, -BOUND, BOUND) - 0.5 * b**2
    return 1.0 / ((1.0 + np.clip(exponent, LEAST_EXPONENT, MOST_EXPONENT) / 8.0) ** 8 @ (weight / weight.sum()))


#: The tables, for compiled code: one row after the other.
SHIFT = cython.declare(Doubles, in_doubles(SHIFTS))
RANK_VALUE = cython.declare(Doubles, in_doubles(_rank_values()))
RANK_MEAN = cython.declare(Doubles, in_doubles(_rank_means()))
SHIFT_SHARE = cython.declare(Doubles, in_doubles(_shift_shares()))
#: The numbers of a change that was found.
RECORD = cython.declare(cython.Py_ssize_t, N_FIELDS)


def _other_sign(values):
    """Of shifts: with errors of the other sign."""
    return np.ascontiguousarray(values[:, [1, 0, 3, 2]])


def _other_notes(notes):
    """Of two classes."""
    return notes * [-1.0, -1.0, 1.0, -1.0, 1.0] + [1.0, 0.0, 0.0, 0.0, 0.0]


#: Counts of a state.
ROWS_OF_ALARMS = ("n", "age", "n_errors", "n_held", "alarm_row", "alarm_feature", "alarm_kind")


@cython.cclass
class Changes(Stateful):
    """The changes of one model's stream. Without a family it is a sequence of errors, and there are no features."""

    STATE = (
        array("found", ROWS, N_FIELDS, exchanged=exchanged_records),
        array("mean", FEATURES),
        array("variance", FEATURES),
        array("grown", N_POWERS),
        array("errors", N_ERRORS),
        array("moved", WITH_INTERCEPT, N_SHIFTS, exchanged=_other_sign),
        array("usual", WITH_INTERCEPT, N_SHIFTS, new=1.0, exchanged=_other_sign),
        array("now", WITH_INTERCEPT, exchanged=np.negative),
        array("held", WITH_INTERCEPT, exchanged=np.negative),
        array("x", N_RECENT, FEATURES),
        array("notes", N_RECENT, N_NOTES, exchanged=_other_notes),
        array("past", N_PAST, WITH_INTERCEPT, exchanged=np.negative),
        numbers("scale", *map(Column, ("square", "n_scale", "information", "level", "deviation"))),
        numbers("rows", *map(Column, ROWS_OF_ALARMS), dtype=np.int64),
    )

    def __cinit__(self, p: cython.Py_ssize_t, family, false_alarms: float):
        self.p = p
        self.family = family
        self.limit = 1e4 / false_alarms
        self.scaled = family is None or family.has_scale
        self.whole = family is not None and family.whole
        self.quadratic = family is None or family.quadratic
        self.room = Doubles(
            2 * p + N_POWERS + N_ERRORS + (2 * N_SHIFTS + 4 + N_PAST) * (p + 1) + N_RECENT * (p + N_NOTES)
        )
        self.mean = self.room.at
        self.variance = self.mean + p
        self.grown = self.variance + p
        self.errors = self.grown + N_POWERS
        self.moved = self.errors + N_ERRORS
        self.usual = self.moved + N_SHIFTS * (p + 1)
        self.now = self.usual + N_SHIFTS * (p + 1)
        self.held = self.now + p + 1
        self.x = self.held + p + 1
        self.notes = self.x + N_RECENT * p
        self.past = self.notes + N_RECENT * N_NOTES
        self.z = self.past + N_PAST * (p + 1)
        self.total = self.z + p + 1
        fill(self.usual, N_SHIFTS * (p + 1), np.ones(N_SHIFTS * (p + 1)))
        self.found = cython.NULL
        self.n_found = 0
        self.square = self.n_scale = self.information = self.level = self.deviation = 0.0
        self.n = self.n_errors = self.n_held = self.count = self.alarm_row = self.alarm_feature = 0
        self.alarm_kind = NONE
        self.age = -START

    def __dealloc__(self):
        free(self.found)

    # --- rows ---------------------------------------------------------------------------------------------------

    def see(self, x, y, eta, loss, weight):
        """A row, and its prediction by the model `now`."""
        offset: cython.double
        error: cython.double
        score: cython.double = 0.0
        surprise: cython.double = 0.0
        self.restarted = False
        if not weight > 0.0:
            return 0
        offset = eta - self._linear(self.now, x)
        self._residual(y, eta)
        if not isfinite(self.residual * self.residual) or not isfinite(offset) or not isfinite(loss):
            return 0
        if self.n % BETWEEN == 0:
            self._copy(self.past + (self.n // BETWEEN) % N_PAST * (self.p + 1), self.now)
        if self.n >= FIRST_ROWS or self.family is None:
            self.evidence = self.largest = 0.0
            self.age += 1
            if self.n_scale >= 3.0 and self.square > 0.0:
                score = self._compare_moved(x)
            self._follow_scale()
            if self.n_held > 0:
                self._residual(y, offset + self._linear(self.held, x))
            error = self._error(y)
            surprise = self._compare_grown(error)
            self.errors[self.n_errors % N_ERRORS] = error
            self.n_errors += 1
        self._follow(x, y)
        self._note(x, y, offset, loss, score, surprise)
        self.n += 1
        if self.age > 0 and self.evidence > self.limit:
            self._raise_alarm()
        elif self.alarm_kind != NONE and self.n - self.alarm_row > N_RECENT // 2:
            self._keep()
        return 0

    def _linear(self, model, x):
        return model[0] + (dot(self.p, x, model + 1) if self.p > 0 else 0.0)

    def _copy(self, to, model):
        memcpy(to, model, (self.p + 1) * cython.sizeof(cython.double))

    def _residual(self, y, eta):
        """The error over what the family spreads by, and the root of the row's information about eta."""
        spread: cython.double = 1.0
        self.predicted = eta
        self.root = 1.0
        if self.family is not None and not self.quadratic:
            self.predicted = self.family.mean_at(eta)
            if self.scaled:
                spread = self.family.spread_at(eta)
            else:
                spread = sqrt(max(self.predicted * (1.0 - self.predicted), 1e-6))
        self.residual = (y - self.predicted) / spread
        if self.family is not None and not self.quadratic and self.residual != 0.0:
            self.root = fabs(self.family.slope_at(y, eta) / self.residual)
        return 0

    def _error(self, y):
        """How large the error is, 0 if there is none to speak of."""
        error: cython.double = fabs(self.residual)
        if not self.scaled:
            return error if fabs(y - self.predicted) > 0.5 else 0.0
        if error <= self._least_error() or (self.whole and 0.0 <= self.predicted - y < 1.0):
            return 0.0
        return error if error < LARGEST else LARGEST

    def _least_error(self):
        return LEAST_ERROR * (self.deviation if self.quadratic else 1.0)

    # --- evidence -----------------------------------------------------------------------------------------------

    def _compare_grown(self, error):
        """Evidence that errors grew, of which this is the next; -log of the share of errors as large."""
        q: cython.Py_ssize_t
        late: cython.Py_ssize_t = min(N_LATE, self.n_errors // 4)
        n: cython.Py_ssize_t = min(max(self.n_errors // 2, FEWEST), N_BEFORE)
        first: cython.Py_ssize_t = self.n_errors - late - n
        twice: cython.Py_ssize_t
        total: cython.double = 0.0
        if first < 0:
            return 0.0
        first %= N_ERRORS
        twice = 2 + twice_larger(min(n, N_ERRORS - first), self.errors + first, error)
        twice += twice_larger(max(first + n - N_ERRORS, 0), self.errors, error)
        for q in range(N_POWERS):
            self.grown[q] += EITHER_KIND / N_POWERS
            self.grown[q] *= RANK_VALUE.at[q * (2 * N_BEFORE + 3) + twice] / RANK_MEAN.at[q * (N_BEFORE + 2) + n + 1]
            if self.age <= 0:
                self.grown[q] = 0.0
            total += self.grown[q]
        self._weigh(total, BY_SURPRISE, 0)
        self._hold(total > SUSPICION)
        return log(2.0 * (n + 1) / twice)

    def _hold(self, suspicious):
        """The model that the next errors are of."""
        if not suspicious or self.n_held >= MOST_HELD:
            self.n_held = 0
            return
        if self.n_held == 0:
            self._copy(self.held, self.now)
        self.n_held += 1

    def _compare_moved(self, x):
        """Evidence that the error goes with a feature; the error over its deviation."""
        j: cython.Py_ssize_t
        square: cython.double = self.square if self.scaled else max(self.square, 1.0)
        u: cython.double = min(max(self.residual / sqrt(square), -BOUND), BOUND)
        root: cython.double = self.root / self.information if self.information > 0.0 else 1.0
        rate: cython.double = 1.0 / min(self.n_errors + 1.0, MEAN_ROWS)
        part: cython.double = (1.0 - EITHER_KIND) / (N_SHIFTS * (self.p + 1))
        if fabs(self.residual) <= self._least_error():
            u = 0.0
        self.z[0] = min(max(root, -BOUND), BOUND)
        standardise(self.p, x, self.mean, self.variance, root, ROUNDING, BOUND, self.z + 1)
        shift_features(
            self.p + 1,
            self.z,
            u,
            rate,
            LEAST_EXPONENT,
            MOST_EXPONENT,
            1.0 if self.age > 0 else 0.0,
            SHIFT.at,
            SHIFT_SHARE.at,
            STEPS,
            self.usual,
            self.moved,
            self.total,
        )
        # All features share their part of the weight.
        for j in range(self.p + 1):
            self._weigh(part * self.total[j], BY_SCORE, j)
        return u

    def _weigh(self, evidence, kind, feature):
        """Together with all other evidence of this row; the largest says what the alarm is about."""
        self.evidence += evidence
        if evidence > self.largest:
            self.largest = evidence
            self.kind = kind
            self.feature = feature

    # --- what is usual ------------------------------------------------------------------------------------------

    def _follow_scale(self):
        """The mean of squared errors, and of the information of a row."""
        square: cython.double = min(self.residual * self.residual, LARGEST)
        rate: cython.double
        self.n_scale += 1.0
        rate = 1.0 / min(self.n_scale, SCALE_ROWS)
        if self.n_scale > 3.0:
            square = min(square, CAP * self.square)
        self.square += rate * (square - self.square)
        self.square = max(self.square, self._least_error() * self._least_error() + 1e-200)
        self.information += rate * (min(self.root, LARGEST) - self.information)

    def _follow(self, x, y):
        """The means of the features and of the response, and how far they vary."""
        j: cython.Py_ssize_t
        d: cython.double
        rate: cython.double = 1.0 / min(self.n + 1.0, MEAN_ROWS)
        for j in range(self.p):
            d = x[j] - self.mean[j]
            self.mean[j] += rate * d
            self.variance[j] += rate * (min(d * (x[j] - self.mean[j]), LARGEST) - self.variance[j])
        self.level += rate * (y - self.level)
        self.deviation += rate * (min(fabs(y - self.level), LARGEST) - self.deviation)

    def _note(self, x, y, offset, loss, score, surprise):
        """What may be asked about the row after an alarm."""
        slot: cython.Py_ssize_t = self.n % N_RECENT
        notes: cython.p_double = self.notes + slot * N_NOTES
        if self.p > 0:
            memcpy(self.x + slot * self.p, x, self.p * cython.sizeof(cython.double))
        notes[RESPONSE] = y
        notes[OFFSET] = offset
        notes[LOSS] = loss
        notes[SCORE] = score
        notes[SURPRISE] = surprise

    # --- alarms -------------------------------------------------------------------------------------------------

    def _raise_alarm(self):
        """The evidence begins again, after a pause; what the last alarm was about is kept."""
        if self.alarm_kind != NONE:
            self._keep()
        self.alarm_kind, self.alarm_row, self.alarm_feature = self.kind, self.n - 1, self.feature
        memset(self.grown, 0, N_POWERS * cython.sizeof(cython.double))
        memset(self.moved, 0, N_SHIFTS * (self.p + 1) * cython.sizeof(cython.double))
        self.age = -PAUSE - min(self._n_varied(), MOST_MORE)
        self.n_errors = self.n_held = 0
        self.n_scale = min(self.n_scale, 10.0)
        self.restarted = True
        return 0

    def _n_varied(self):
        """Features that have varied so far: one that comes later counts as one that was always 0."""
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for j in range(self.p):
            n += self.variance[j] > 0.0
        return n

    def _keep(self):
        """The last alarm is a change that was found."""
        with cython.gil:
            record = self._last_record()
            if self.count == MOST_KEPT:
                self.count -= 1
                memmove(self.found, self.found + RECORD, self.count * RECORD * cython.sizeof(cython.double))
            elif not self._make_room(self.count + 1):
                raise MemoryError
            fill(self.found + self.count * RECORD, RECORD, record)
            self.count += 1
            self.alarm_kind = NONE
        return 0

    def _make_room(self, n):
        """For n changes; most streams have none. False where there is no memory."""
        found: cython.p_double
        if n > self.n_found:
            found = cython.cast(cython.p_double, realloc(self.found, n * RECORD * cython.sizeof(cython.double)))
            if found == cython.NULL:
                return False
            self.found = found
            self.n_found = n
        return True

    def watch(self, X: cython.const[cython.double][:, ::1], y, eta, loss, models: cython.const[cython.double][:, ::1]):
        """Rows, their predictions and losses, and the models after each; the rows that raised an alarm."""
        i: cython.Py_ssize_t
        found = []
        ys: cython.const[cython.double][::1] = y
        etas: cython.const[cython.double][::1] = eta
        losses: cython.const[cython.double][::1] = loss
        for i in range(X.shape[0]):
            self.see(cython.address(X[i, 0]), ys[i], etas[i], losses[i], 1.0)
            if self.restarted:
                found.append(i)
            self._copy(self.now, cython.address(models[i, 0]))
        return found

    def update(self, x: cython.double):
        """The next number of a sequence, whose mean is what the next ones are compared with; whether it is an alarm."""
        if self.n == 0:
            self.now[0] = x
        self.see(cython.NULL, x, self.now[0], 0.0, 1.0)
        if self.restarted:
            since = max(self._last().row, self.n - N_RECENT)
            recent = self.rows_kept()[1][np.arange(since, self.n) % N_RECENT, RESPONSE]
            self.now[0], self.n_scale = recent.mean(), len(recent)
        else:
            self.now[0] += (x - self.now[0]) / min(max(self.n_scale, 1.0), MEAN_ROWS)
        return self.restarted

    # --- what is reported ---------------------------------------------------------------------------------------

    @property
    def n_alarms(self):
        """So far, but for those that are no longer kept."""
        return self.count + (self.alarm_kind != NONE)

    def list(self):
        """The changes that were found, oldest first; MOST_KEPT and the one that is being looked at."""
        kept = copied(self.found, self.count * RECORD).reshape(self.count, RECORD)
        return [unpacked_change(record) for record in kept] + ([self._last()] if self.alarm_kind != NONE else [])

    @property
    def most_kept(self):
        return MOST_KEPT

    def evidence_so_far(self):
        """That errors grew, by power; and that they go with a feature, the intercept first, by shift."""
        moved = copied(self.moved, (self.p + 1) * N_SHIFTS)
        return copied(self.grown, N_POWERS), moved.reshape(self.p + 1, N_SHIFTS)

    def rows_kept(self):
        """The features and the notes of the newest rows, row i in the place i % N_RECENT."""
        x, notes = copied(self.x, N_RECENT * self.p), copied(self.notes, N_RECENT * N_NOTES)
        return x.reshape(N_RECENT, self.p), notes.reshape(N_RECENT, N_NOTES)

    def _last(self):
        """What the rows that are kept say about the last alarm."""
        return unpacked_change(self._last_record())

    def _last_record(self):
        feature = self.alarm_feature if self.alarm_kind == BY_SCORE else -1
        previous = self.found[(self.count - 1) * RECORD] if self.count > 0 else 0.0
        past = copied(self.past, N_PAST * (self.p + 1)).reshape(N_PAST, self.p + 1)
        diagnosis = Diagnosis(*self.rows_kept(), past, self.n, self.family, copied(self.mean, self.p))
        return diagnosis.find(copied(self.now, self.p + 1), self.alarm_row, feature, previous)

    def travel(self, tape):
        """Arrays that lie side by side, and whose numbers are of one kind, go together."""
        n: cython.Py_ssize_t = tape.rows(cython.address(self.count), MOST_KEPT)
        p: cython.Py_ssize_t = self.p
        if tape.mode == READ and not self._make_room(n):
            n = self.count = 0
            tape.lack()
        tape.doubles(self.found, n * RECORD, FINITE)
        if tape.mode == CHECK and tape.wrong == cython.NULL and not self._make_room(n):
            tape.lack()
        tape.doubles(self.mean, p, FINITE)
        tape.doubles(self.variance, p + N_POWERS + N_ERRORS + 2 * N_SHIFTS * (p + 1), WEIGHT)
        tape.doubles(self.now, (2 + N_PAST) * (p + 1) + N_RECENT * (p + N_NOTES), FINITE)
        tape.number(cython.address(self.square), WEIGHT)
        tape.number(cython.address(self.n_scale), WEIGHT)
        tape.number(cython.address(self.information), WEIGHT)
        tape.number(cython.address(self.level), FINITE)
        tape.number(cython.address(self.deviation), WEIGHT)
        rows: cython.Py_ssize_t = tape.count(cython.address(self.n))
        tape.indices(cython.address(self.age), 1, -START - PAUSE - MOST_MORE, rows + 1)
        tape.index(cython.address(self.n_errors), rows + 1)
        tape.index(cython.address(self.n_held), MOST_HELD + 1)
        alarm: cython.Py_ssize_t = tape.index(cython.address(self.alarm_row), rows + 1)
        tape.index(cython.address(self.alarm_feature), p + 1)
        kind: cython.int = tape.small(cython.address(self.alarm_kind), BY_SURPRISE + 1)
        tape.require(
            kind == NONE or max(rows - N_RECENT, 0) <= alarm < rows, b"the alarm is not among the rows that are kept"
        )
