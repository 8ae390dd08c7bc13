# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Changes, found in the errors of a model that follows them: errors that go with a feature, and errors that grew.

Of each row there is the error r of its prediction, in units of the family's spread. Two kinds of statistics watch them.

**Scores.** A coefficient that moved leaves errors that go with its feature, though the loss may hardly show it. For
the intercept and each feature j, over windows that fade by d = 1 - 1/L, L of WINDOWS, with u the error over its
deviation, held within CLIP, and z_j the feature less its mean:

    T_j = sum d^i u z_j / sqrt(k_j sum d^2i z_j^2)        of variance 1 while nothing changes

where k_j is the mean of u^2 z_j^2 over that of z_j^2, for a long time: the noise may depend on the features. (Of a
class the variance of u^2 is known, and stands beside each z_j^2.)

**Surprises.** The surprise of an error is e = -log P(an error as large), exponential with mean 1 while nothing changes,
whatever the scale and the tails are: errors follow Student's t with one of TAILS degrees of freedom, each with its own
scale, weighted by how well it has described them. For each of RATIOS a sum of log-likelihood ratios of surprises whose
mean is that ratio to those of mean 1, never below 0 (Page):

    W <- max(0, W + e (1 - 1/ratio) - log ratio)

One error, however large, is no change: e is at most MOST_SURPRISE.

A class has no scale and no tails: what is unlikely is the less probable class, whose probability q the model gave, and
the sums are of log-likelihood ratios of classes that come with odds of ratio q / (1 - q) to those that come with q.

**Held.** The model follows a change within few rows, and its errors are then small again. While W is above SUSPICION
the errors are those that the model would have made with the coefficients that it had before.

An alarm is a T or a W beyond its limit (`limits`, calibrated by benchmarks/changes.py). What changed is found from the
rows that are kept (`attribution.py`), half of N_RECENT rows after the alarm or at the next one; until then it is a
preliminary answer.
"""

import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, isfinite, log, sqrt
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.kernels import dot
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.tape import FINITE, WEIGHT
from cython.cimports.streamlasso.core.values import FIRST_ROWS
from scipy.special import gammaln, stdtr

from streamlasso.core.attribution import DETECTED, N_FIELDS, exchanged_records, found_in, packed_change, unpacked_change
from streamlasso.core.state import FEATURES, FIXED, ROWS, WITH_INTERCEPT, Column, array, numbers

WINDOWS = np.array([8.0, 16.0, 32.0, 64.0, 128.0])
RATIOS = np.array([1.5, 2.5, 4.0, 8.0])
TAILS = np.array([2.0, 4.0, 10.0, 1000.0])
CLIP = cython.declare(cython.double, 3.0)
MOST_SURPRISE = cython.declare(cython.double, 8.0)
SUSPICION = cython.declare(cython.double, 2.0)
#: The rows for which errors may be those of held coefficients.
MOST_HELD = cython.declare(cython.Py_ssize_t, 64)
#: Rows from one alarm to the next; as many more as there are features, up to MOST_MORE; and more before the first.
PAUSE = cython.declare(cython.Py_ssize_t, 30)
MOST_MORE = cython.declare(cython.Py_ssize_t, 100)
START = cython.declare(cython.Py_ssize_t, 30)
#: The scale of the errors is a mean over SCALE_ROWS; over fewer at first, the later ones weighing more.
SCALE_ROWS = cython.declare(cython.double, 200.0)
EARLY = cython.declare(cython.double, 2.0)
#: Of the means of the features, of the weights of the tails, and of the mean surprise.
MEAN_ROWS = cython.declare(cython.double, 1000.0)
TAIL_ROWS = cython.declare(cython.double, 500.0)
#: The most that one square changes a scale, in units of it; and the least scale, as a share of the response.
CAP = cython.declare(cython.double, 25.0)
LEAST_SCALE = cython.declare(cython.double, 1e-8)
#: The least variance that a class may have, however sure the model is.
LEAST_VARIANCE = cython.declare(cython.double, 0.05)
#: What is known beforehand about how the noise goes with a feature, in rows.
KNOWN = cython.declare(cython.double, 50.0)
#: Rows between two models that are kept.
BETWEEN = cython.declare(cython.Py_ssize_t, 16)
#: The surprises of errors of e^FIRST to e^LAST scales are in a table, with STEPS for each power of e.
FIRST, LAST, STEPS = cython.declare(cython.double, -4.0), 8.0, cython.declare(cython.double, 32.0)
N_TABLE = cython.declare(cython.Py_ssize_t, 385)
#: Alarms per row where nothing changes, of scores beyond h and of surprises beyond w (benchmarks/changes.py):
#: SCORE_RATE (p + 1) h phi(h) and SURPRISE_RATE exp(-SURPRISE_SLOPE w).
SCORE_RATE, SURPRISE_RATE, SURPRISE_SLOPE = 0.045, 0.35, 1.2
#: A sequence has its own mean for a model, which does not follow it as a model does: there are as many times fewer.
SEQUENCE_SHARE = 0.5


def limits(false_alarms, n_features):
    """Of scores and surprises, so that each raises half of so many false alarms per 10,000 rows."""
    rate = 0.5e-4 * false_alarms
    low, high = 1.0, 40.0
    while high - low > 1e-9:
        h = 0.5 * (low + high)
        crossings = SCORE_RATE * (n_features + 1) * h * np.exp(-0.5 * h * h) / np.sqrt(2.0 * np.pi)
        low, high = (h, high) if crossings > rate else (low, h)
    return high, max(np.log(SURPRISE_RATE / rate) / SURPRISE_SLOPE, 1.0)


def _tables():
    """-log P(|t| > z) by log z, for each of TAILS."""
    z = np.exp(np.linspace(FIRST, LAST, N_TABLE))
    return np.array([-np.log(np.maximum(2.0 * stdtr(tail, -z), 1e-300)) for tail in TAILS])


TABLES = _tables()
CONSTANTS = gammaln((TAILS + 1.0) / 2.0) - gammaln(TAILS / 2.0) - 0.5 * np.log(TAILS * np.pi)


def _other_notes(notes):
    """Of two classes."""
    return notes * [-1.0, -1.0, 1.0, -1.0, 1.0] + [1.0, 0.0, 0.0, 0.0, 0.0]


@cython.cclass
class Changes(Stateful):
    """The changes of one model's stream. Without a family it is a sequence of errors, and there are no features."""

    STATE = (
        array("found", ROWS, FIXED, exchanged=exchanged_records),
        array("mean", FEATURES),
        array("sums", FIXED),
        array("square", FIXED),
        array("evidence", FIXED),
        array("now", WITH_INTERCEPT, exchanged=np.negative),
        array("held", WITH_INTERCEPT, exchanged=np.negative),
        array("S", FIXED, WITH_INTERCEPT, exchanged=np.negative),
        array("V", FIXED, WITH_INTERCEPT),
        array("squares", WITH_INTERCEPT),
        array("products", WITH_INTERCEPT),
        array("x", FIXED, FEATURES),
        array("notes", FIXED, FIXED, exchanged=_other_notes),
        array("past", FIXED, WITH_INTERCEPT, exchanged=np.negative),
        numbers("scale", Column("n_scale"), Column("usual")),
        numbers(
            "rows",
            Column("n"),
            Column("age"),
            Column("n_held"),
            Column("alarm_row"),
            Column("alarm_start"),
            Column("alarm_feature"),
            Column("alarm_kind"),
            dtype=np.int64,
        ),
        array("since", FIXED, dtype=np.int64),
    )

    def __cinit__(self, p: int, family, false_alarms: float):
        self.p = p
        self.more = min(p, MOST_MORE)
        self.family = family
        share = 1.0 if family is not None else SEQUENCE_SHARE
        self.score_limit, self.surprise_limit = limits(share * false_alarms, p)
        self.scaled = family is None or family.has_scale
        self.decay, self.ratio = 1.0 - 1.0 / WINDOWS, 1.0 - 1.0 / RATIOS
        self.odds, self.log_ratio = RATIOS, np.log(RATIOS)
        self.tail, self.constant, self.table = TAILS, CONSTANTS, TABLES
        self.mean = np.zeros(p)
        self.sums = np.zeros(N_RATIOS)
        self.since = np.zeros(N_RATIOS, dtype=np.intp)
        self.square = np.zeros(N_TAILS)
        self.evidence = np.zeros(N_TAILS)
        self.now, self.held = np.zeros(p + 1), np.zeros(p + 1)
        self.S, self.V = np.zeros((N_WINDOWS, p + 1)), np.zeros((N_WINDOWS, p + 1))
        self.factors = np.ones(p + 1)
        self.squares, self.products = np.zeros(p + 1), np.zeros(p + 1)
        self.x, self.notes = np.zeros((N_RECENT, p)), np.zeros((N_RECENT, N_NOTES))
        self.past = np.zeros((N_PAST, p + 1))
        self.found = np.zeros((MOST_KEPT, N_FIELDS))
        self.n_scale, self.usual = 0.0, 1.0
        self.n = self.n_held = self.count = self.alarm_row = self.alarm_start = self.alarm_feature = 0
        self.alarm_kind = NONE
        self._restart()
        self.age -= START

    # --- rows ---------------------------------------------------------------------------------------------------

    def see(self, x, y, eta, loss, weight):
        """A row, and its prediction by the model `now`."""
        j: cython.Py_ssize_t
        r: cython.double
        surprise: cython.double = 0.0
        score: cython.double = 0.0
        largest: cython.double = 0.0
        variance: cython.double = 1.0
        offset: cython.double
        kind: cython.int = NONE
        slot: cython.Py_ssize_t = self.n % N_RECENT
        self.restarted = False
        if not weight > 0.0:
            return 0
        offset = eta - self.now[0] - (dot(self.p, x, cython.address(self.now[1])) if self.p > 0 else 0.0)
        if self.n_held > 0:
            eta = offset + self.held[0] + (dot(self.p, x, cython.address(self.held[1])) if self.p > 0 else 0.0)
        r = self._residual(y, eta)
        if not isfinite(r * r) or not isfinite(offset) or not isfinite(loss):
            return 0
        if self.n % BETWEEN == 0:
            memcpy(
                cython.address(self.past[(self.n // BETWEEN) % N_PAST, 0]),
                cython.address(self.now[0]),
                (self.p + 1) * cython.sizeof(cython.double),
            )
        if self.square[0] > 0.0 and self.n_scale >= 3.0:
            score = min(max(r / self._deviation(), -CLIP), CLIP)
            self.age += 1
            if self.scaled:
                surprise = self._surprise(r) / max(self.usual, 1.0)
                largest = self._add_surprise(surprise)
            else:
                surprise = self._unlikely(y, self.family.mean_at(eta))
                variance = self.chance * (1.0 - self.chance)
                variance = max(variance, LEAST_VARIANCE) / (self._deviation() * self._deviation())
                largest = self._add_class(surprise)
            if largest > self.surprise_limit:
                kind = BY_SURPRISE
            if self._add_score(x, score, variance) > self.score_limit:
                kind = BY_SCORE
        if largest > SUSPICION and self.n_held < MOST_HELD:
            if self.n_held == 0:
                memcpy(
                    cython.address(self.held[0]),
                    cython.address(self.now[0]),
                    (self.p + 1) * cython.sizeof(cython.double),
                )
            self.n_held += 1
        else:
            self.n_held = 0
        if self.p > 0:
            memcpy(cython.address(self.x[slot, 0]), x, self.p * cython.sizeof(cython.double))
        self.notes[slot, RESPONSE] = y
        self.notes[slot, OFFSET] = offset
        self.notes[slot, LOSS] = loss
        self.notes[slot, SCORE] = score
        self.notes[slot, SURPRISE] = surprise
        if self.n >= FIRST_ROWS or self.family is None:
            self._follow(r, LEAST_SCALE * fabs(y))
        for j in range(self.p):
            self.mean[j] += (x[j] - self.mean[j]) / min(self.n + 1.0, MEAN_ROWS)
        self.n += 1
        if kind != NONE:
            self._raise_alarm(kind, self.started)
        elif self.alarm_kind != NONE and self.n - self.alarm_row > N_RECENT // 2:
            self._keep()
        return 0

    def _residual(self, y, eta):
        if self.family is None:
            return y - eta
        return (y - self.family.mean_at(eta)) / self.family.spread_at(eta)

    def _surprise(self, r):
        """-log of the probability that an error is as large."""
        m: cython.Py_ssize_t
        i: cython.Py_ssize_t
        at: cython.double
        weight: cython.double
        total: cython.double = 0.0
        probability: cython.double = 0.0
        most: cython.double = self.evidence[0]
        for m in range(1, N_TAILS):
            most = max(most, self.evidence[m])
        for m in range(N_TAILS):
            weight = exp(self.evidence[m] - most)
            at = (0.5 * log(r * r / self.square[m] + 1e-300) - FIRST) * STEPS
            at = min(max(at, 0.0), N_TABLE - 1.000001)
            i = cython.cast(cython.Py_ssize_t, at)
            at -= i
            total += weight
            probability += weight * exp(-((1.0 - at) * self.table[m, i] + at * self.table[m, i + 1]))
        return min(-log(probability / total + 1e-300), MOST_SURPRISE)

    def _deviation(self):
        """The average of the scales."""
        m: cython.Py_ssize_t
        weight: cython.double
        total: cython.double = 0.0
        square: cython.double = 0.0
        most: cython.double = self.evidence[0]
        for m in range(1, N_TAILS):
            most = max(most, self.evidence[m])
        for m in range(N_TAILS):
            weight = exp(self.evidence[m] - most)
            total += weight
            square += weight * self.square[m]
        return sqrt(square / total)

    def _unlikely(self, y, mean):
        """-log of the probability of the less probable class where it is that, otherwise 0."""
        self.chance = min(max(min(mean, 1.0 - mean), exp(-MOST_SURPRISE)), 0.5)
        return -log(self.chance) if fabs(y - mean) > 0.5 else 0.0

    def _add_class(self, surprise):
        """The largest sum."""
        q: cython.Py_ssize_t
        for q in range(N_RATIOS):
            self.sums[q] -= log(1.0 - self.chance + self.odds[q] * self.chance)
            if surprise > 0.0:
                self.sums[q] += self.log_ratio[q]
        return self._largest_sum()

    def _add_surprise(self, surprise):
        """The largest sum. Surprises whose mean has long been above 1 count less."""
        q: cython.Py_ssize_t
        for q in range(N_RATIOS):
            self.sums[q] += surprise * self.ratio[q] - self.log_ratio[q]
        surprise *= max(self.usual, 1.0)
        self.usual += (min(surprise, 5.0) - self.usual) / min(self.n + 50.0, 2.0 * MEAN_ROWS)
        return self._largest_sum()

    def _largest_sum(self):
        """No sum is below 0; `started` is where the largest one began, the next row if all are 0."""
        q: cython.Py_ssize_t
        largest: cython.double = 0.0
        self.started = self.n + 1
        for q in range(N_RATIOS):
            if self.sums[q] <= 0.0 or self.age <= self.more:
                self.sums[q] = 0.0
                self.since[q] = self.n + 1
            if self.sums[q] > largest:
                largest = self.sums[q]
                self.started = self.since[q]
        return largest

    def _add_score(self, x, score, variance):
        """The largest statistic; `feature` is 0 for the intercept, or the place of the feature and 1."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        d: cython.double
        z: cython.double
        largest: cython.double = 0.0
        found: cython.double
        S: cython.p_double
        V: cython.p_double
        self._measure(x, score, variance)
        for k in range(N_WINDOWS):
            d = self.decay[k]
            S = cython.address(self.S[k, 0])
            V = cython.address(self.V[k, 0])
            S[0] = d * S[0] + score
            V[0] = d * d * V[0] + self.factors[0] * variance
            for j in range(self.p):
                z = x[j] - self.mean[j]
                S[j + 1] = d * S[j + 1] + score * z
                V[j + 1] = d * d * V[j + 1] + self.factors[j + 1] * variance * z * z
            for j in range(self.p + 1):
                found = S[j] * S[j]
                if found > largest * V[j]:
                    largest = found / V[j]
                    self.feature = j
        return sqrt(largest) if self.age > self.more else 0.0

    def _measure(self, x, score, variance):
        """How the noise goes with each feature; at first as if it did not."""
        j: cython.Py_ssize_t
        z: cython.double = 1.0
        square: cython.double = score * score
        n: cython.double = min(self.n + 1.0, MEAN_ROWS)
        for j in range(self.p + 1):
            if j > 0:
                z = x[j - 1] - self.mean[j - 1]
            self.squares[j] += (variance * z * z - self.squares[j]) / n
            self.products[j] += (square * z * z - self.products[j]) / n
            self.factors[j] = 1.0
            if self.squares[j] > 0.0:
                self.factors[j] = (KNOWN + n * self.products[j] / self.squares[j]) / (KNOWN + n)

    def _follow(self, r, floor):
        """The scales of the errors, and how well each tail describes them."""
        m: cython.Py_ssize_t
        square: cython.double
        rate: cython.double
        fade: cython.double = 1.0 - 1.0 / TAIL_ROWS
        floor = floor * floor + 1e-200
        self.n_scale += 1.0
        rate = max((EARLY + 1.0) / (self.n_scale + EARLY), 1.0 / SCALE_ROWS)
        for m in range(N_TAILS):
            if self.n_scale <= 3.0:
                self.square[m] += (r * r - self.square[m]) / self.n_scale
            else:
                square = r * r / self.square[m]
                self.evidence[m] = (
                    fade * self.evidence[m]
                    + self.constant[m]
                    - 0.5 * (log(self.square[m]) + (self.tail[m] + 1.0) * log(1.0 + square / self.tail[m]))
                )
                square = min(square, CAP)
                self.square[m] *= 1.0 + rate * ((self.tail[m] + 1.0) * square / (self.tail[m] + square) - 1.0)
            self.square[m] = max(self.square[m], floor)

    # --- alarms -------------------------------------------------------------------------------------------------

    def _restart(self):
        """The statistics begin again, after a pause."""
        memset(cython.address(self.S[0, 0]), 0, N_WINDOWS * (self.p + 1) * cython.sizeof(cython.double))
        memset(cython.address(self.V[0, 0]), 0, N_WINDOWS * (self.p + 1) * cython.sizeof(cython.double))
        memset(cython.address(self.sums[0]), 0, N_RATIOS * cython.sizeof(cython.double))
        self.age = -PAUSE
        self.n_scale = min(self.n_scale, 10.0)
        self.n_held = 0

    def _raise_alarm(self, kind, start):
        """A change, unless it began before the last one was found: a model that follows slowly shows it again."""
        with cython.gil:
            before = self.alarm_kind, self.alarm_row, self.alarm_start, self.alarm_feature
            now = kind, self.n - 1, start, self.feature
            self._look_at(now)
            again = self._last().row <= self._last_found(*before)
            self._look_at(before)
            if not again:
                if self.alarm_kind != NONE:
                    self._keep()
                self._look_at(now)
        self.restarted = True
        self._restart()
        return 0

    def _look_at(self, alarm):
        self.alarm_kind, self.alarm_row, self.alarm_start, self.alarm_feature = alarm

    def _last_found(self, kind, row, *_):
        """The row at which the last change was found, or -1."""
        if kind != NONE:
            return row
        return int(self.found[self.count - 1, DETECTED]) if self.count > 0 else -1

    def _keep(self):
        """The last alarm is a change that was found."""
        with cython.gil:
            if self.count == MOST_KEPT:
                np.asarray(self.found)[:] = np.roll(self.found, -1, axis=0)
                self.count -= 1
            np.asarray(self.found)[self.count] = packed_change(self._last())
            self.count += 1
            self.alarm_kind = NONE
        return 0

    def watch(self, X: cython.const[cython.double][:, ::1], y, eta, loss, models: cython.const[cython.double][:, ::1]):
        """Rows, their predictions and losses, and the models after each; the rows that raised an alarm."""
        i: cython.Py_ssize_t
        found = []
        ys: cython.const[cython.double][::1] = y
        etas: cython.const[cython.double][::1] = eta
        losses: cython.const[cython.double][::1] = loss
        for i in range(X.shape[0]):
            self.see(cython.address(X[i, 0]), ys[i], etas[i], losses[i], 1.0)
            if self.alarm_kind != NONE and self.alarm_row == self.n - 1:
                found.append(i)
            memcpy(cython.address(self.now[0]), cython.address(models[i, 0]), (self.p + 1) * 8)
        return found

    def update(self, x: cython.double):
        """The next number of a sequence, whose mean is what the next ones are compared with; whether it is an alarm."""
        alarmed: cython.bint
        if self.n == 0:
            self.now[0] = x
        self.see(cython.NULL, x, self.now[0], 0.0, 1.0)
        alarmed = self.alarm_kind != NONE and self.alarm_row == self.n - 1
        if self.restarted:
            since = max(self._last().row, self.n - N_RECENT)
            recent = np.array(self.notes)[np.arange(since, self.n) % N_RECENT, RESPONSE]
            self.now[0], self.n_scale = recent.mean(), len(recent)
        else:
            self.now[0] += (x - self.now[0]) / min(max(self.n_scale, 1.0), MEAN_ROWS)
        return alarmed

    # --- what is said -------------------------------------------------------------------------------------------

    @property
    def n_alarms(self):
        """So far, but for those that are no longer kept."""
        return self.count + (self.alarm_kind != NONE)

    def list(self):
        """The changes that were found, oldest first; MOST_KEPT and the one that is being looked at."""
        kept = [unpacked_change(record) for record in np.array(self.found)[: self.count]]
        return kept + ([self._last()] if self.alarm_kind != NONE else [])

    def _last(self):
        """What the rows that are kept say about the last alarm."""
        first = max(self.n - N_RECENT, 0)
        order = np.arange(first, self.n) % N_RECENT
        return found_in(
            rows=np.arange(first, self.n),
            X=np.array(self.x)[order],
            notes=np.array(self.notes)[order],
            before=self._before,
            family=self.family,
            alarm=self.alarm_row,
            start=max(self.alarm_start, first),
            feature=self.alarm_feature if self.alarm_kind == BY_SCORE else -1,
            mean=np.array(self.mean),
        )

    def _before(self, row):
        """The model that is kept from just before a row, intercept first."""
        k = max(row // BETWEEN, (self.n - 1) // BETWEEN - N_PAST + 1, 0)
        return np.array(self.past)[k % N_PAST]

    def travel(self, tape):
        n: cython.Py_ssize_t = tape.rows(cython.address(self.count), MOST_KEPT)
        p: cython.Py_ssize_t = self.p
        if n > 0:
            tape.doubles(cython.address(self.found[0, 0]), n * self.found.shape[1], FINITE)
        if p > 0:
            tape.doubles(cython.address(self.mean[0]), p, FINITE)
        tape.doubles(cython.address(self.sums[0]), N_RATIOS, WEIGHT)
        tape.doubles(cython.address(self.square[0]), N_TAILS, WEIGHT)
        tape.doubles(cython.address(self.evidence[0]), N_TAILS, FINITE)
        tape.doubles(cython.address(self.now[0]), p + 1, FINITE)
        tape.doubles(cython.address(self.held[0]), p + 1, FINITE)
        tape.doubles(cython.address(self.S[0, 0]), N_WINDOWS * (p + 1), FINITE)
        tape.doubles(cython.address(self.V[0, 0]), N_WINDOWS * (p + 1), WEIGHT)
        tape.doubles(cython.address(self.squares[0]), p + 1, WEIGHT)
        tape.doubles(cython.address(self.products[0]), p + 1, WEIGHT)
        if p > 0:
            tape.doubles(cython.address(self.x[0, 0]), N_RECENT * p, FINITE)
        tape.doubles(cython.address(self.notes[0, 0]), N_RECENT * N_NOTES, FINITE)
        tape.doubles(cython.address(self.past[0, 0]), N_PAST * (p + 1), FINITE)
        tape.number(cython.address(self.n_scale), WEIGHT)
        tape.number(cython.address(self.usual), WEIGHT)
        rows: cython.Py_ssize_t = tape.count(cython.address(self.n))
        tape.indices(cython.address(self.age), 1, -START - PAUSE, rows + 1)
        tape.index(cython.address(self.n_held), MOST_HELD + 1)
        tape.index(cython.address(self.alarm_row), rows + 1)
        tape.index(cython.address(self.alarm_start), rows + 1)
        tape.index(cython.address(self.alarm_feature), p + 1)
        tape.small(cython.address(self.alarm_kind), BY_SURPRISE + 1)
        tape.indices(cython.address(self.since[0]), N_RATIOS, 0, rows + 2)
