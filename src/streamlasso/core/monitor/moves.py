# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What changed, when and where: what the rows around an alarm say (`detector.py`).

**Where.** From the change on, a coefficient has stayed as it was before, beta, or it is 0, or it is another one. With
features in units of their deviation since the change:

    stays ~ N(beta, s),    is 0,    is new ~ N(0, tau)              (the intercept: new ~ N(beta, tau))

where s is what the model before did not know, STAYS noise / rows before, at most MOST_APART noise in all, and
with shares of the three that are those of all features, and of PRIOR more. The posterior is that of each coefficient
given the means of all others (mean field; Carbonetto and Stephens, 2012), coefficient after coefficient, and after each
sweep noise, tau and shares are those that this posterior has. It begins with the coefficients as they are now, or were
before, whichever fit the rows better: the model has followed since, and knows of sparse models and of dense ones.

Named are features that have stayed with a probability below STAYED, and whose move is not small: NOTABLE deviations of
the noise per deviation of the feature, or half of the largest one.

In other families this is one step of iteratively reweighted least squares, from the model before.

**When.** The rows at which the change may have begun have probabilities in proportion to the likelihood of all rows,
those from there on under the moved coefficients, or, where none has moved, under errors that have grown.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, fabs, isfinite, log, sqrt
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.linalg.kernels import axpy, dot

STAYS = cython.declare(cython.double, 2.0)
#: The most that the errors of all coefficients before may add to those of predictions, in units of the noise.
MOST_APART = cython.declare(cython.double, 0.5)
MOST_BEFORE = cython.declare(cython.double, 300.0)
PRIOR = np.array([6.0, 2.0, 2.0])
STAYED, NOTABLE = cython.declare(cython.double, 0.3), cython.declare(cython.double, 0.9)
#: Sweeps over all coefficients end when none moves by more than this many deviations of the noise.
SWEEPS = cython.declare(cython.Py_ssize_t, 20)
STILL = cython.declare(cython.double, 1e-3)
#: The least noise, as a share of the mean of squares that the model before leaves.
EXACT = cython.declare(cython.double, 1e-12)
#: Rows before and after those that are at least this likely are left out.
LEAST_CHANCE = cython.declare(cython.double, 0.001)
#: Beyond these a link, what a model misses, a coefficient and a gain in log-likelihood count as this far out, so that
#: all sums are finite: an answer about a wild row may be poor, but learning goes on.
MOST_ETA, MOST_MISSED = cython.declare(cython.double, 100.0), cython.declare(cython.double, 1e50)
MOST_BETA, MOST_GAIN = cython.declare(cython.double, 1e6), cython.declare(cython.double, 1e12)
LEAST, TINY = cython.declare(cython.double, 1e-300), cython.declare(cython.double, 1e-120)
#: A record for Python: where features begin, how many there may be, where probabilities begin, and its length.
FEATURES_AT, MOST_FEATURES, CHANCES_AT = NAMED, MOST_NAMED, NAMED + 3 * MOST_NAMED
N_FIELDS = CHANCES_AT + MOST_ROWS


@cython.cclass
class Moves:
    """The rows that are kept, and what is found in them.

    x, notes : the rows, row i in the place i % len(x)
    past : models from before each BETWEEN rows, intercept first
    seen : how many rows there were
    mean : of the features
    """

    def __cinit__(self, x, notes, past, seen: cython.Py_ssize_t, family, mean):
        self.x, self.notes, self.past, self.mean = x, notes, past, mean
        self.family = family
        self.scaled = family is None or family.has_scale
        self.quadratic = family is None or family.quadratic
        self.p = self.x.shape[1]
        self.n = min(seen, self.x.shape[0])
        self.first = seen - self.n
        self.columns = np.empty((self.p + 1, self.n))
        self.before, self.move = np.zeros(self.p + 1), np.zeros(self.p + 1)
        self.beta, self.unit, self.stays = np.zeros(self.p + 1), np.zeros(self.p + 1), np.ones(self.p + 1)
        self.named = np.zeros(self.p + 1, dtype=np.int8)
        self.target, self.root, self.left = np.zeros(self.n), np.ones(self.n), np.zeros(self.n)
        self.chance, self.prior, self.share = np.zeros(self.n), PRIOR, PRIOR.copy()

    def find(self, now: cython.const[cython.double][::1], alarm: cython.Py_ssize_t, feature, previous: float):
        """The change that raised an alarm.

        now : the model as it is
        alarm : the row
        feature : that errors went with, 0 for the intercept; or -1 if they grew
        previous : the row of the change before
        """
        turn: cython.Py_ssize_t
        self.last = alarm - self.first
        self.begin = self._score_start(feature) if feature >= 0 else self._surprise_start()
        for turn in range(2):
            self.since = self.begin
            self.rows_before = min(max(self.first + self.since - previous, 1.0), MOST_BEFORE)
            self._compare(self.since)
            self._explain(self.since, now)
            if self.n_named == 0:
                self.since = self._surprise_start()
            self.begin = self._date(self.since)
            if self.begin == self.since:
                break
        return self

    def _notes_of(self, i):
        return cython.address(self.notes[(self.first + i) % self.notes.shape[0], 0])

    # --- a first answer to when ---------------------------------------------------------------------------------

    def _score_start(self, feature):
        """Where the sum of the scores is largest for its variance, counted back from the alarm."""
        i: cython.Py_ssize_t
        best: cython.Py_ssize_t = self.last
        z: cython.double = 1.0
        total: cython.double = 0.0
        squares: cython.double = 0.0
        most: cython.double = -1.0
        for i in range(self.last, -1, -1):
            if feature > 0:
                z = self.x[(self.first + i) % self.x.shape[0], feature - 1] - self.mean[feature - 1]
            total += self._notes_of(i)[SCORE] * z
            squares += z * z
            if total * total / max(squares, LEAST) >= most:
                most = total * total / max(squares, LEAST)
                best = i
        return best

    def _surprise_start(self):
        """Where the likelihood of larger surprises from there on, over that of usual ones, is largest."""
        i: cython.Py_ssize_t
        best: cython.Py_ssize_t = self.last
        n: cython.double
        mean: cython.double
        total: cython.double = 0.0
        most: cython.double = -1.0
        for i in range(self.last, -1, -1):
            n = self.last - i + 1.0
            total += self._notes_of(i)[SURPRISE]
            mean = max(total / n, 1.0)
            if n * (mean - 1.0 - log(mean)) >= most:
                most = n * (mean - 1.0 - log(mean))
                best = i
        return best

    # --- what the model before misses ---------------------------------------------------------------------------

    def _compare(self, since):
        """What the model from before misses of each row, and the features, both times the root of the row's weight."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        x: cython.pointer(cython.const[cython.double])
        z: cython.double
        most: cython.double = LEAST
        seen: cython.Py_ssize_t = self.first + self.n
        k: cython.Py_ssize_t = max((self.first + since) // BETWEEN, (seen - 1) // BETWEEN - N_PAST + 1)
        k = max(k, 0) % self.past.shape[0]
        for j in range(self.p + 1):
            self.before[j] = self.past[k, j]
        for i in range(self.n):
            z = self._notes_of(i)[OFFSET] + self.before[0]
            if self.p > 0:
                x = cython.address(self.x[(self.first + i) % self.x.shape[0], 0])
                z += dot(self.p, x, cython.address(self.before[1]))
            self._miss(i, z)
            most = max(most, self.root[i])
        for i in range(self.n):
            if not self.quadratic:
                z = max(self.root[i], 1e-3 * most)
                self.target[i] = min(max(self.target[i] / z, -MOST_MISSED), MOST_MISSED)
                self.root[i] = sqrt(z)
                self.target[i] = self.root[i] * self.target[i] if isfinite(self.target[i]) else 0.0
            self.columns[0, i] = self.root[i]
        for j in range(self.p):
            for i in range(self.n):
                z = self.root[i] * (self.x[(self.first + i) % self.x.shape[0], j] - self.mean[j])
                self.columns[j + 1, i] = min(max(z, -MOST_MISSED), MOST_MISSED)
        return 0

    def _miss(self, i, eta):
        """The negative slope and the curvature of the row's loss."""
        y: cython.double = self._notes_of(i)[RESPONSE]
        if self.quadratic:
            self.target[i] = min(max(y - eta, -MOST_MISSED), MOST_MISSED)
            return 0
        eta = min(max(eta, -MOST_ETA), MOST_ETA)
        self.family.slopes_at(y, eta, cython.address(self.target[i]), cython.address(self.root[i]))
        self.target[i] = -self.target[i]
        return 0

    # --- where --------------------------------------------------------------------------------------------------

    def _explain(self, since, now):
        """What is missed from this row on, by moved coefficients."""
        turn: cython.Py_ssize_t
        self._scale(since)
        self._start(since, now)
        for turn in range(SWEEPS):
            if not self._sweep(since) > STILL * STILL * self.noise:
                break
        self._name()

    def _scale(self, since):
        """Units of the features and of what is missed: from here on, the squares of both have mean 1 in these rows."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        square: cython.double
        self.weight = self._squares(since, cython.address(self.root[0]))
        self.n_varied = 0
        square = self._squares(since, cython.address(self.target[0])) / (self.n - since)
        self.size = sqrt(square) if self.scaled and square > TINY else 1.0
        for i in range(self.n):
            self.target[i] /= self.size
        for j in range(self.p + 1):
            square = self._squares(since, cython.address(self.columns[j, 0])) / self.weight
            self.unit[j] = 1.0 / sqrt(square) if square > TINY else 0.0
            self.n_varied += square > TINY
            self.beta[j] = 0.0
            if j > 0 and square > TINY:
                self.beta[j] = min(max(self.before[j] / self.unit[j] / self.size, -MOST_BETA), MOST_BETA)

    def _squares(self, since, values):
        return dot(self.n - since, values + since, values + since)

    def _start(self, since, now):
        """With the coefficients as they are now, or with those before."""
        j: cython.Py_ssize_t
        apart: cython.double
        none: cython.double = self._squares(since, cython.address(self.target[0]))
        squares: cython.double = 0.0
        self.move[0] = now[0] - self.before[0]
        for j in range(1, self.p + 1):
            self.move[j] = now[j] - self.before[j]
            self.move[0] += self.move[j] * self.mean[j - 1]
        for j in range(self.p + 1):
            self.move[j] = self.move[j] / self.unit[j] / self.size if self.unit[j] > 0.0 else 0.0
        self._leave(since)
        self.noise = self._squares(since, cython.address(self.left[0]))
        if not self.noise < none:
            memset(cython.address(self.move[0]), 0, (self.p + 1) * cython.sizeof(cython.double))
            self._leave(since)
            self.noise = none
        self.noise = max(self.noise / (self.n - since), EXACT) if self.scaled else 1.0
        for j in range(self.p + 1):
            apart = self.beta[j] + self.move[j]
            squares += apart * apart
        self.tau = (squares + self.noise) / (self.n_varied + 1.0)
        for j in range(N_WAYS):
            self.share[j] = self.prior[j]

    def _leave(self, since):
        """What moved coefficients leave of what is missed."""
        j: cython.Py_ssize_t
        left: cython.p_double = cython.address(self.left[0])
        memcpy(left, cython.address(self.target[0]), self.n * cython.sizeof(cython.double))
        for j in range(self.p + 1):
            axpy(self.n - since, -self.move[j] * self.unit[j], cython.address(self.columns[j, since]), left + since)

    def _sweep(self, since):
        """The posterior of each coefficient given the means of the others; the largest square of a step."""
        j: cython.Py_ssize_t
        step: cython.double
        product: cython.double
        beta: cython.double
        mean: cython.double[N_WAYS]
        chance: cython.double[N_WAYS]
        variance: cython.double
        noise: cython.double = self.noise
        n: cython.double = self.n - since
        before: cython.double = (
            noise * n / self.weight * min(STAYS / self.rows_before, MOST_APART / max(self.n_varied, 1))
        )
        narrow: cython.double = 1.0 / (self.weight / noise + 1.0 / before)
        wide: cython.double = 1.0 / (self.weight / noise + 1.0 / self.tau)
        total: cython.double = self.share[STAY] + self.share[ZERO] + self.share[NEW]
        prior_stay: cython.double = log(self.share[STAY] / total) + 0.5 * log(narrow / before)
        prior_zero: cython.double = log(self.share[ZERO] / total)
        prior_new: cython.double = log(self.share[NEW] / total) + 0.5 * log(wide / self.tau)
        squares: cython.double = 0.0
        spread: cython.double = 0.0
        most: cython.double = 0.0
        left: cython.p_double = cython.address(self.left[since])
        for j in range(N_WAYS):
            self.share[j] = self.prior[j]
        for j in range(self.p + 1):
            if not self.unit[j] > 0.0:
                continue
            beta = self.beta[j]
            product = self.unit[j] * dot(self.n - since, cython.address(self.columns[j, since]), left)
            product += self.weight * self.move[j]
            mean[STAY] = narrow * product / noise
            mean[ZERO] = -beta
            mean[NEW] = wide * (product / noise - beta / self.tau)
            chance[STAY] = prior_stay + 0.5 * mean[STAY] * mean[STAY] / narrow
            chance[ZERO] = prior_zero - beta * (product + 0.5 * self.weight * beta) / noise
            chance[NEW] = prior_new + 0.5 * mean[NEW] * mean[NEW] / wide - 0.5 * beta * beta / self.tau
            if j == 0:
                chance[ZERO] = -INFINITY
            _normalise(chance)
            step = chance[STAY] * mean[STAY] + chance[ZERO] * mean[ZERO] + chance[NEW] * mean[NEW]
            variance = chance[STAY] * (narrow + mean[STAY] * mean[STAY]) + chance[ZERO] * beta * beta
            variance += chance[NEW] * (wide + mean[NEW] * mean[NEW]) - step * step
            spread += self.weight * max(variance, 0.0)
            squares += chance[NEW] * ((mean[NEW] + beta) * (mean[NEW] + beta) + wide)
            self.stays[j] = chance[STAY]
            self.share[STAY] += chance[STAY]
            self.share[ZERO] += chance[ZERO]
            self.share[NEW] += chance[NEW]
            step -= self.move[j]
            axpy(self.n - since, -step * self.unit[j], cython.address(self.columns[j, since]), left)
            self.move[j] += step
            most = max(most, step * step)
        if self.scaled:
            self.noise = max((self._squares(since, cython.address(self.left[0])) + spread) / n, EXACT)
        self.tau = (squares + self.noise) / (self.share[NEW] - self.prior[NEW] + 1.0)
        return most

    def _name(self):
        """Those that have moved, and by enough."""
        j: cython.Py_ssize_t
        largest: cython.double = 0.0
        least: cython.double
        self.n_named = 0
        for j in range(self.p + 1):
            if self.unit[j] > 0.0 and self.stays[j] < STAYED:
                largest = max(largest, fabs(self.move[j]))
        least = min(NOTABLE * sqrt(self.noise), 0.5 * largest)
        for j in range(self.p + 1):
            self.named[j] = self.unit[j] > 0.0 and self.stays[j] < STAYED and fabs(self.move[j]) >= least > 0.0
            self.n_named += self.named[j]
        self.n_named = min(self.n_named, MOST_NAMED)

    # --- when ---------------------------------------------------------------------------------------------------

    def _date(self, since):
        """How likely each row until the alarm is the first after the change; the likeliest."""
        i: cython.Py_ssize_t
        best: cython.Py_ssize_t = 0
        total: cython.double = 0.0
        ratio: cython.double = 0.0
        for i in range(since, self.last + 1):
            ratio += self._notes_of(i)[SURPRISE] / (self.last + 1 - since)
        self._leave(0)
        for i in range(self.last, -1, -1):
            total += self._gain(i, max(ratio, 1.1))
            self.chance[i] = total
        for i in range(self.last + 1):
            if self.chance[i] > self.chance[best]:
                best = i
        total = self.chance[best]
        for i in range(self.last + 1):
            self.chance[i] = exp(self.chance[i] - total)
        return best

    def _gain(self, i, ratio):
        """Of a row, the log-likelihood after the change less that before; the ratio is that of surprises."""
        gain: cython.double
        if self.n_named == 0:
            return self._notes_of(i)[SURPRISE] * (1.0 - 1.0 / ratio) - log(ratio)
        gain = 0.5 * (self.target[i] * self.target[i] - self.left[i] * self.left[i]) / self.noise
        return min(max(gain, -MOST_GAIN), MOST_GAIN) if isfinite(gain) else 0.0

    def _cost(self):
        """The losses from the change on, above those that were usual."""
        i: cython.Py_ssize_t
        usual: cython.double = 0.0
        cost: cython.double = 0.0
        if self.begin == 0:
            return 0.0
        for i in range(self.begin):
            usual += self._notes_of(i)[LOSS] / self.begin
        for i in range(self.begin, self.n):
            cost += self._notes_of(i)[LOSS] - usual
        return cost

    # --- as numbers ---------------------------------------------------------------------------------------------

    def write(self, record: cython.double[::1]):
        """The change that was found, as N_FIELDS numbers."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        record[:] = 0.0
        record[ROW] = self.first + self.begin
        record[DETECTED] = self.first + self.last
        record[COST] = self._cost()
        record[N_NAMED] = self.n_named
        for i in range(self.n_named):
            j = self._largest()
            record[NAMED + 3 * i] = j - 1
            record[NAMED + 3 * i + 1] = self.before[j]
            record[NAMED + 3 * i + 2] = self.before[j] + self.move[j] * self.unit[j] * self.size
            self.named[j] = False
        self._write_chances(record)

    def _largest(self):
        """Of the named moves that are left."""
        j: cython.Py_ssize_t
        best: cython.Py_ssize_t = -1
        for j in range(self.p + 1):
            if self.named[j] and (best < 0 or fabs(self.move[j]) > fabs(self.move[best])):
                best = j
        return best

    def _write_chances(self, record):
        """Of MOST_ROWS in a row those that hold the most, without unlikely ones at both ends."""
        i: cython.Py_ssize_t
        start: cython.Py_ssize_t = 0
        stop: cython.Py_ssize_t = min(MOST_ROWS, self.last + 1)
        total: cython.double = 0.0
        held: cython.double = 0.0
        most: cython.double
        for i in range(self.last + 1):
            total += self.chance[i]
        for i in range(stop):
            held += self.chance[i]
        most = held
        for i in range(stop, self.last + 1):
            held += self.chance[i] - self.chance[i - MOST_ROWS]
            if held > most:
                most = held
                start, stop = i + 1 - MOST_ROWS, i + 1
        while self.chance[start] <= LEAST_CHANCE * total:
            start += 1
        while self.chance[stop - 1] <= LEAST_CHANCE * total:
            stop -= 1
        held = 0.0
        for i in range(start, stop):
            held += self.chance[i]
        record[FIRST] = self.first + start
        for i in range(start, stop):
            record[NAMED + 3 * MOST_NAMED + i - start] = self.chance[i] / held


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _normalise(logs: cython.p_double) -> cython.void:
    """Probabilities of three ways from their logarithms, up to a constant."""
    k: cython.Py_ssize_t
    most: cython.double = max(logs[0], logs[1], logs[2])
    total: cython.double = 0.0
    for k in range(N_WAYS):
        logs[k] = exp(logs[k] - most)
        total += logs[k]
    for k in range(N_WAYS):
        logs[k] /= total
