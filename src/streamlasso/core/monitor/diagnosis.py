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
from cython.cimports.libc.math import INFINITY, exp, log, sqrt
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.linalg.kernels import axpy, dot

from streamlasso.core.monitor.attribution import MOST_FEATURES, MOST_PROBABLE, packed_change

STAYS = cython.declare(cython.double, 2.0)
#: The most that the errors of all coefficients before may add to those of predictions, in units of the noise.
MOST_APART = cython.declare(cython.double, 0.5)
MOST_BEFORE = cython.declare(cython.double, 300.0)
PRIOR = np.array([6.0, 2.0, 2.0])
STAYED, NOTABLE = 0.3, 0.9
#: Sweeps over all coefficients end when none moves by more than this many deviations of the noise.
SWEEPS, STILL = 20, 1e-3
#: The least noise, as a share of the mean of squares that the model before leaves.
EXACT = cython.declare(cython.double, 1e-12)
#: Rows before and after those that are at least this likely are left out.
LEAST_CHANCE = 0.001
#: Beyond these a link, what a model misses, a coefficient and a gain in log-likelihood count as this far out, so that
#: all sums are finite: an answer about an outlier may be poor, but learning goes on.
MOST_ETA, MOST_MISSED = cython.declare(cython.double, 100.0), cython.declare(cython.double, 1e50)
MOST_BETA, MOST_GAIN = cython.declare(cython.double, 1e6), 1e12
SMALLEST, TINY = cython.declare(cython.double, 1e-300), cython.declare(cython.double, 1e-120)


def _sums(values):
    """Of each row and all after it, in the order from the last to the first."""
    return np.cumsum(values[::-1])[::-1]


def _largest_at(values):
    """The first place of the largest number."""
    return int(np.argmax(np.where(np.isnan(values), -1.0, values)))


@cython.cclass
class Diagnosis:
    """The rows that are kept, and what is found in them.

    x, notes : the rows, row i in the place i % len(x)
    past : models from before each BETWEEN rows, intercept first
    seen : how many rows there were
    mean : of the features
    """

    def __cinit__(self, x, notes, past, seen: cython.Py_ssize_t, family, mean):
        self.n, self.p = min(seen, len(x)), x.shape[1]
        self.first = seen - self.n
        order = np.arange(self.first, seen) % len(x)
        self.x, self.notes, self.past, self.mean = x[order], notes[order], past, mean
        self.family = family
        self.scaled = family is None or family.has_scale
        self.quadratic = family is None or family.quadratic
        self.columns = np.empty((self.p + 1, self.n))
        self.before, self.move, self.beta, self.unit = np.zeros((4, self.p + 1))
        self.stays = np.ones(self.p + 1)
        self.target, self.left = np.zeros((2, self.n))
        self.root = np.ones(self.n)
        self.prior, self.share = PRIOR, PRIOR.copy()

    def find(self, now: cython.const[cython.double][::1], alarm: cython.Py_ssize_t, feature, previous: float):
        """The change that raised an alarm, as a record (`attribution.py`).

        now : the model as it is
        alarm : the row
        feature : that errors went with, 0 for the intercept; or -1 if they grew
        previous : the row of the change before
        """
        turn: cython.Py_ssize_t
        self.last = alarm - self.first
        with np.errstate(all="ignore"):
            self.begin = self._score_start(feature) if feature >= 0 else self._surprise_start()
            for turn in range(2):
                self.since = self.begin
                self.rows_before = min(max(self.first + self.since - previous, 1.0), MOST_BEFORE)
                self._compare()
                self._scale()
                self._start(now)
                for _ in range(SWEEPS):
                    if not self._sweep() > STILL * STILL * self.noise:
                        break
                self._name()
                if not len(self.named):
                    self.since = self._surprise_start()
                self.begin = self._date()
                if self.begin == self.since:
                    break
            return self._record()

    # --- a first answer to when ---------------------------------------------------------------------------------

    def _score_start(self, feature):
        """Where the sum of the scores is largest for its variance, counted back from the alarm."""
        rows = slice(self.last + 1)
        z = self.x[rows, feature - 1] - self.mean[feature - 1] if feature > 0 else np.ones(self.last + 1)
        total = _sums(self.notes[rows, SCORE] * z)
        return _largest_at(total * total / np.maximum(_sums(z * z), SMALLEST))

    def _surprise_start(self):
        """Where the likelihood of larger surprises from there on, over that of usual ones, is largest."""
        n = np.arange(self.last + 1.0, 0.0, -1.0)
        mean = np.maximum(_sums(self.notes[: self.last + 1, SURPRISE]) / n, 1.0)
        return _largest_at(n * (mean - 1.0 - np.log(mean)))

    # --- what the model before misses ---------------------------------------------------------------------------

    def _compare(self):
        """What the model from before misses of each row, and the features, both times the root of the row's weight."""
        i: cython.Py_ssize_t
        eta: cython.double
        x: cython.const[cython.double][:, ::1] = self.x
        seen: cython.Py_ssize_t = self.first + self.n
        k: cython.Py_ssize_t = max((self.first + self.since) // BETWEEN, (seen - 1) // BETWEEN - N_PAST + 1)
        y: cython.double[::1] = self.notes[:, RESPONSE].copy()
        offset: cython.double[::1] = self.notes[:, OFFSET].copy()
        self.before = self.past[max(k, 0) % len(self.past)].copy()
        for i in range(self.n):
            eta = offset[i] + self.before[0]
            if self.p > 0:
                eta += dot(self.p, cython.address(x[i, 0]), cython.address(self.before[1]))
            if self.quadratic:
                self.target[i] = min(max(y[i] - eta, -MOST_MISSED), MOST_MISSED)
                continue
            eta = min(max(eta, -MOST_ETA), MOST_ETA)
            self.family.slopes_at(y[i], eta, cython.address(self.target[i]), cython.address(self.root[i]))
            self.target[i] = -self.target[i]
        if not self.quadratic:
            weight = np.asarray(self.root)
            weight = np.maximum(weight, 1e-3 * max(weight.max(), SMALLEST))
            root = np.sqrt(weight)
            target = np.clip(np.asarray(self.target) / weight, -MOST_MISSED, MOST_MISSED)
            self.target, self.root = np.where(np.isfinite(target), root * target, 0.0), root
        columns = np.asarray(self.columns)
        columns[0] = self.root
        columns[1:] = np.clip(np.asarray(self.root) * (self.x - self.mean).T, -MOST_MISSED, MOST_MISSED)
        return 0

    # --- where --------------------------------------------------------------------------------------------------

    def _scale(self):
        """Units of the features and of what is missed: from here on, the squares of both have mean 1 in these rows."""
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        square: cython.double
        self.weight = self._squares(cython.address(self.root[0]))
        self.n_varied = 0
        square = self._squares(cython.address(self.target[0])) / (self.n - self.since)
        self.size = sqrt(square) if self.scaled and square > TINY else 1.0
        for i in range(self.n):
            self.target[i] /= self.size
        for j in range(self.p + 1):
            square = self._squares(cython.address(self.columns[j, 0])) / self.weight
            self.unit[j] = 1.0 / sqrt(square) if square > TINY else 0.0
            self.n_varied += square > TINY
            self.beta[j] = 0.0
            if j > 0 and square > TINY:
                self.beta[j] = min(max(self.before[j] / self.unit[j] / self.size, -MOST_BETA), MOST_BETA)

    def _squares(self, values):
        """The sum of squares from the change on."""
        return dot(self.n - self.since, values + self.since, values + self.since)

    def _start(self, now):
        """With the coefficients as they are now, or with those before."""
        j: cython.Py_ssize_t
        apart: cython.double
        mean: cython.const[cython.double][::1] = self.mean
        none: cython.double = self._squares(cython.address(self.target[0]))
        squares: cython.double = 0.0
        self.move[0] = now[0] - self.before[0]
        for j in range(1, self.p + 1):
            self.move[j] = now[j] - self.before[j]
            self.move[0] += self.move[j] * mean[j - 1]
        for j in range(self.p + 1):
            self.move[j] = self.move[j] / self.unit[j] / self.size if self.unit[j] > 0.0 else 0.0
        self._leave(self.since)
        self.noise = self._squares(cython.address(self.left[0]))
        if not self.noise < none:
            memset(cython.address(self.move[0]), 0, (self.p + 1) * cython.sizeof(cython.double))
            self._leave(self.since)
            self.noise = none
        self.noise = max(self.noise / (self.n - self.since), EXACT) if self.scaled else 1.0
        for j in range(self.p + 1):
            apart = self.beta[j] + self.move[j]
            squares += apart * apart
        self.tau = (squares + self.noise) / (self.n_varied + 1.0)
        self.share[:] = self.prior
        return 0

    def _leave(self, since):
        """What moved coefficients leave of what is missed, from a row on."""
        j: cython.Py_ssize_t
        left: cython.p_double = cython.address(self.left[0])
        memcpy(left, cython.address(self.target[0]), self.n * cython.sizeof(cython.double))
        for j in range(self.p + 1):
            axpy(self.n - since, -self.move[j] * self.unit[j], cython.address(self.columns[j, since]), left + since)

    def _sweep(self):
        """The posterior of each coefficient given the means of the others; the largest square of a step."""
        j: cython.Py_ssize_t
        step: cython.double
        product: cython.double
        beta: cython.double
        mean: cython.double[N_WAYS]
        chance: cython.double[N_WAYS]
        variance: cython.double
        noise: cython.double = self.noise
        n: cython.double = self.n - self.since
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
        left: cython.p_double = cython.address(self.left[self.since])
        for j in range(N_WAYS):
            self.share[j] = self.prior[j]
        for j in range(self.p + 1):
            if not self.unit[j] > 0.0:
                continue
            beta = self.beta[j]
            product = self.unit[j] * dot(self.n - self.since, cython.address(self.columns[j, self.since]), left)
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
            axpy(self.n - self.since, -step * self.unit[j], cython.address(self.columns[j, self.since]), left)
            self.move[j] += step
            most = max(most, step * step)
        if self.scaled:
            self.noise = max((self._squares(cython.address(self.left[0])) + spread) / n, EXACT)
        self.tau = (squares + self.noise) / (self.share[NEW] - self.prior[NEW] + 1.0)
        return most

    def _name(self):
        """Those that have moved, and by enough, the largest first."""
        moved = (np.asarray(self.unit) > 0.0) & (np.asarray(self.stays) < STAYED)
        size = np.where(moved, np.abs(self.move), 0.0)
        least = min(NOTABLE * np.sqrt(self.noise), 0.5 * size.max())
        named = np.flatnonzero(size >= least) if least > 0.0 else np.zeros(0, dtype=int)
        self.named = named[np.argsort(-size[named], kind="stable")][:MOST_FEATURES]

    # --- when ---------------------------------------------------------------------------------------------------

    def _date(self):
        """How likely each row until the alarm is the first after the change; the likeliest."""
        surprise = self.notes[: self.last + 1, SURPRISE]
        if len(self.named):
            self._leave(0)
            target, left = np.asarray(self.target)[: self.last + 1], np.asarray(self.left)[: self.last + 1]
            gain = 0.5 * (target * target - left * left) / self.noise
            gain = np.where(np.isfinite(gain), np.clip(gain, -MOST_GAIN, MOST_GAIN), 0.0)
        else:
            # Of errors that have grown by this ratio.
            ratio: cython.double = max(np.cumsum(surprise[self.since :] / (self.last + 1 - self.since)).item(-1), 1.1)
            gain = surprise * (1.0 - 1.0 / ratio) - log(ratio)
        gains = _sums(gain)
        best = int(np.argmax(gains))
        self.chance = np.array([exp(each) for each in (gains - gains[best]).tolist()])
        return best

    def _record(self):
        loss, begin = self.notes[:, LOSS], self.begin
        cost = np.cumsum(loss[begin:] - np.cumsum(loss[:begin] / begin).item(-1)).item(-1) if begin > 0 else 0.0
        moved = [self.before[j] + self.move[j] * self.unit[j] * self.size for j in self.named]
        features = np.column_stack([self.named - 1, np.asarray(self.before)[self.named], moved])
        start, chances = self._likely_rows()
        return packed_change(self.first + begin, self.first + self.last, cost, features, self.first + start, chances)

    def _likely_rows(self):
        """Of MOST_PROBABLE rows in a row those that hold the most, without unlikely ones at both ends."""
        chance, total = self.chance, np.cumsum(self.chance).item(-1)
        held = np.cumsum(chance[:MOST_PROBABLE]).item(-1)
        start = int(np.argmax(np.cumsum(np.append(held, chance[MOST_PROBABLE:] - chance[:-MOST_PROBABLE]))))
        likely = start + np.flatnonzero(chance[start : start + MOST_PROBABLE] > LEAST_CHANCE * total)
        chances = chance[likely[0] : likely.item(-1) + 1]
        return likely[0], chances / np.cumsum(chances).item(-1)


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
