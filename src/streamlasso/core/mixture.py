# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Experts of several kinds, with different memories and penalties, averaged by how well they have predicted.

1. every expert predicts the row; the mixture's eta is their average, `total_e` the weights (`shares.py`)
2. each is evaluated on its prequential loss, in units of the noise (below), and the weights are updated
3. all learn the row, each with its memory and its lam
4. every few rows a group restarts: the one with the lowest weight among those that may

Averaging eta is averaging coefficients, so the mixture is one linear model at every moment. Only an expert whose eta
lies further outside the bounds (`bounds.py`) than these are apart is held there: a thousandth of ten thousand is ten.

**No group speaks far beyond what it has seen.** A memory of few rows in which a feature hardly moved may give it a
large coefficient. Its predicted means are held within the range of the responses that it has seen, widened by REACH,
and widened to the prediction of the first group, which has seen the most: where that one follows, the others may. What
is held is what an expert is evaluated on.

Classes have no range to leave, but a group that has seen n_1 rows of class 1 knows little about what is certain to be
class 1. Had all these rows had the same features, and none of class 0 had, their odds would be 2 n_1 + 1 (the estimate
of Krichevsky and Trofimov). Features can say more together than one of them does; CONFIDENCE is how much:

    -CONFIDENCE log(2 n_0 + 1)  <=  eta  <=  CONFIDENCE log(2 n_1 + 1)

Without this, quadratics that have met one rare event predict the next with certainty: rows of the other class have next
to no curvature there, and do not resist. Models of the exact likelihood do not overshoot like that, and are not held.

What an expert is, is its own affair (`experts/`): here are only predictions, losses and weights.

**Restarts.** A memory that never forgets but began right after the last change is the best there is. When that was is
unknown, so of each kind one restarts every EVERY rows, or less often where few may: no more than half of them should be
young. Each is kept until it has had YOUNG rows; then the one with the lowest weight is the next to restart. Those that
began just after a change stay for as long as they predict well.

**Units of the noise.** An expert's excess D_e is its loss less the least loss that any eta could have had. In units of
the dispersion phi, a fading mean of 2D for the mixture itself, it is a log-likelihood, so there is no learning rate to
set, and multiplying y by a million changes nothing. Real noise has heavy tails, and one outlier must not decide
everything, so no row moves the odds between two experts, or phi, by more than ODDS_CAP allows:

    l_e = min(D_e / phi, ODDS_CAP),        phi <- fading mean of 2 min(D, ODDS_CAP phi)

A class has no scale and no tails (`Family.has_scale`): there phi is 1, and there is no cap. An expert is evaluated on
its own prediction, before it is held within the bounds: its coefficients are averaged, not its predictions.

**What was predicted counts.** Behind a running scaler, as river's, a row is not the same when it is learnt as when it
was predicted: the scaler has learnt it in between. Experts are evaluated on what they predicted (`ask`), if the row
learnt is about the one that was predicted last; otherwise, as where labels come late, on the row as it is learnt.
"""

from functools import lru_cache

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, NAN, fabs, isfinite, log
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.bounds import Bounds
from cython.cimports.streamlasso.core.calibration import Calibration
from cython.cimports.streamlasso.core.carry import N_CHOICES, N_LAGS, Carry
from cython.cimports.streamlasso.core.changes import Changes
from cython.cimports.streamlasso.core.choice import Choice
from cython.cimports.streamlasso.core.engine import Engine
from cython.cimports.streamlasso.core.experts.base import Batch, Experts
from cython.cimports.streamlasso.core.kernels import dot, hold, in_units
from cython.cimports.streamlasso.core.pointers import Pointers, copied
from cython.cimports.streamlasso.core.quantiles import Quantiles
from cython.cimports.streamlasso.core.record import N_STATUSES, WAITING, Record
from cython.cimports.streamlasso.core.relevance import Relevance
from cython.cimports.streamlasso.core.shares import N_SHARES, Shares
from cython.cimports.streamlasso.core.statistics import Scaler
from cython.cimports.streamlasso.core.tape import FINITE, PENALTY, READ, WEIGHT, WRITE
from cython.cimports.streamlasso.core.two_cores import Work, add, together
from cython.cimports.streamlasso.core.values import FIRST_ROWS, weight_of

from streamlasso.core.experts import KINDS
from streamlasso.core.experts.base import MOST_SHARED
from streamlasso.core.record import STATUS
from streamlasso.core.selected import Selected
from streamlasso.core.state import WITH_INTERCEPT, Column, array, numbers
from streamlasso.memories import Forgetting

#: Rows from one restart to the next, at least.
EVERY = cython.declare(cython.Py_ssize_t, 4)
#: A group is young, and stays, until it has had this many rows: FIRST_ROWS to learn from and a few to be evaluated on.
YOUNG = cython.declare(cython.Py_ssize_t, FIRST_ROWS + 2)
#: The most that one row can change the log odds between two experts.
ODDS_CAP = cython.declare(cython.double, 6.0)
#: The forgetting factor of the dispersion.
DISPERSION_DECAY = cython.declare(cython.double, 0.98)
#: How far beyond the responses that it has seen a group may predict, as a share of their range; with few rows further,
#: by 1/n^2 of the range of all.
REACH = cython.declare(cython.double, 0.2)
#: 1 serves streams where events are rare, and costs up to a fifth where classes have no noise or come in runs.
CONFIDENCE = cython.declare(cython.double, 2.0)
#: A row is the one that was predicted last where no feature differs by more than this share of its range.
NEARBY = cython.declare(cython.double, 0.1)
#: Groups times p^2 from which on two threads learn a row together: p = 100 for the default, where the groups take 59 of
#: 72 us. Where two begin to pay has not been measured on a quiet machine; it may be at fewer.
WORTH_TWO = cython.declare(cython.Py_ssize_t, 160_000)
#: What looks at the model after every row leaves out experts with less than this share of the largest weight.
OUTLINE = cython.declare(cython.double, 1e-3)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _from_the_least(n: cython.Py_ssize_t, loss: cython.p_double) -> cython.bint:
    """Losses less the least of them; whether there is one."""
    i: cython.Py_ssize_t
    least: cython.double = INFINITY
    for i in range(n):
        least = min(least, loss[i])
    if least < INFINITY:
        for i in range(n):
            loss[i] -= least
    return least < INFINITY


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _learn_share_of(learner: cython.p_void, second: cython.bint) -> cython.int:
    return cython.cast(MixtureLearner, learner)._learn_share(second)


def _other_class(experience):
    """Of two classes: how often each was seen."""
    return experience[:, [HIGH, LOW, ROWS_SEEN]]


def competing(memory, tuner):
    """The memories that stay, those of the setting or of the tuner, and how many more restart."""
    if memory is not None:
        return list(memory.members()), 0
    return [_forgetting(1.0), *map(_forgetting, tuner.factors)], tuner.starts


@lru_cache(typed=True)
def _forgetting(r):
    """One for all mixtures."""
    return Forgetting(r)


def all_groups(n_features, settings, stay, starts):
    """The groups of all kinds, first those that stay; then those that restart, kind by kind."""
    found = [group for kind in KINDS for group in kind.groups(n_features, settings, stay, starts)]
    return sorted(found, key=lambda group: group.restarts)


def _from_both_ends(groups):
    """Places of the groups, for two threads that begin at either end and meet at those that take the least time."""
    by_time = sorted(range(len(groups)), key=lambda m: (not groups[m].exact, not groups[m].sparse))
    return np.array(by_time[::2] + by_time[1::2][::-1], dtype=np.intp)


def _pools(groups):
    """(first, end, rows between restarts) of the groups of each kind that restart."""
    kinds = [group.kind if group.restarts else None for group in groups]
    found = []
    for kind in dict.fromkeys(filter(None, kinds)):
        size = kinds.count(kind)
        found.append((kinds.index(kind), kinds.index(kind) + size, max(EVERY, -(-2 * YOUNG // size))))
    return found


@cython.cclass
class MixtureLearner(Engine):
    """A mixture on one stream. All settings are checked by the faces; see `streamlasso.RAPRegressor`."""

    STATE = (
        numbers("dispersion", Column("dispersion"), Column("dispersion_weight")),
        array("experience", "M", N_EXPERIENCE, exchanged=_other_class),
        array("model", WITH_INTERCEPT, exchanged=np.negative),
        numbers("lam", Column("all_lam"), Column("all_lam_max"), Column("all_size")),
        numbers("seen", Column("n_seen"), Column("code"), dtype=np.int64),
        array("began", "M", dtype=np.int64),
    )

    def __cinit__(self, n_features: int, *, memory, tuner, batch_size=1, **settings):
        self.settings = dict(settings, memory=memory, tuner=tuner, batch_size=batch_size)
        self.p = n_features
        self.family = settings["family"]
        self.family.check()
        self.linked = not self.family.quadratic
        tuner.check()
        self.batch_size = batch_size
        self.compiled = self.family.compiled and tuner.compiled
        quiet = {**self.settings, "false_alarms": 0.0}
        self.experts = all_groups(n_features, quiet, *competing(memory, tuner))
        self.each = Pointers(self.experts)
        self.M = len(self.experts)
        self.divides = self._divides()
        if self.divides:
            self.order = _from_both_ends(self.experts)
        pools = _pools(self.experts)
        self.n_pools = len(pools)
        self.n_permanent = pools[0][0] if pools else self.M
        self.shares = Shares([group.n for group in self.experts])
        self.n = self.shares.n
        for m in range(self.n_permanent):
            self.shares.enter(m)
        self.shares.start()
        self.doubts = self.experts[0].first_is_empty
        self.choice = Choice(self.shares, self.experts, self.p)
        self._make_room(pools)
        self.bounds = Bounds(self.p, self.family)
        self.stream = Scaler(self.p)
        self.relevance = Relevance(self.p)
        self.carry = Carry(self.family)
        self.carries = tuner.carry and settings["fit_intercept"]
        self.scaled = self.family.has_scale
        self.calibrates = self.carries and not self.scaled
        self.calibration = Calibration(self.family)
        self.dispersion = 0.0 if self.scaled else 1.0
        self.dispersion_weight = 0.0
        self.is_asked = False
        self.is_blended = self.is_summarised = True
        self.n_seen = 0
        self.all_lam = self.all_lam_max = self.all_size = 0.0
        self.code = WAITING
        self.quantiles = Quantiles(self.family) if self.family.has_scale else None
        false_alarms = settings.get("false_alarms", 0.0)
        self.changes = Changes(n_features, self.family, false_alarms) if false_alarms > 0.0 else None

    def _divides(self):
        """Whether two threads are worth it, and may be: groups of few features share the space that they solve in."""
        return self.compiled and self.M > 1 and self.p > MOST_SHARED and self.M * self.p * self.p >= WORTH_TWO

    def _make_room(self, pools):
        """For the numbers by group, by expert and by row, in one piece."""
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t
        p, n, M, rows = self.p, self.n, self.M, self.batch_size
        by_row = 3 + p + n + N_LAGS
        self.room = Doubles(
            (N_EXPERIENCE + 2) * M + 2 * p + 1 + 3 * n + rows * by_row + 3 * len(pools) + (M + p + 7) // 8
        )
        self.experience = self.room.at
        self.fades = self.experience + self.M * N_EXPERIENCE
        self.model = self.fades + self.M
        self.loss = self.model + self.p + 1
        self.pulls = self.loss + self.n
        self.asked = self.pulls + self.n
        self.targets = self.asked + self.p + self.n
        self.weight = self.targets + self.batch_size
        self.own = self.weight + self.batch_size
        self.rows = self.own + self.batch_size
        self.etas = self.rows + self.batch_size * self.p
        self.lags = self.etas + self.batch_size * self.n
        self.began = cython.cast(cython.pointer[cython.Py_ssize_t], self.lags + self.batch_size * N_LAGS)
        self.pools = self.began + self.M
        self.free = cython.cast(cython.pointer[cython.schar], self.pools + 3 * self.n_pools)
        self.used = self.free + self.M
        for m in range(self.M):
            self.began[m] = 0 if m < self.n_permanent else -1
            self.fades[m] = 1.0 - self.experts[m].memory.decay
            self.free[m] = self.experts[m].exact and not self.family.has_scale
        for i in range(self.n_pools):
            self.pools[3 * i], self.pools[3 * i + 1], self.pools[3 * i + 2] = pools[i]

    # --- learning -----------------------------------------------------------------------------------------------

    def _step(self, n, X, y, w, out):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        seen: cython.double = 0.0
        record: cython.pointer[Record]
        for i in range(n):
            record = out + i
            for j in range(self.p):
                self.rows[i * self.p + j] = self.bounds.clip(j, X[i * self.p + j])
            self._predict_all(self.rows + i * self.p, self.etas + i * self.n)
            self.own[i] = self._prediction(self.etas + i * self.n, self.pulls)
            memcpy(
                self.lags + i * N_LAGS,
                self.lags + (i - 1) * N_LAGS if i > 0 else self.carry.lags,
                N_LAGS * cython.sizeof(cython.double),
            )
            if self.carries and i > 0:
                self.carry.expect(self.lags + i * N_LAGS, self.own[i - 1])
            record.eta = self._carried(self.lags + i * N_LAGS, self.own[i])
            record.loss = self.family.loss_at(y[i], record.eta)
            record.slope = 0.0
            seen += weight_of(w, i)
        self.is_asked = self._was_asked(n, X)
        if seen > 0.0:
            for i in range(n):
                self.targets[i] = self.bounds.clip_y(y[i])
                self.weight[i] = weight_of(w, i) * self.bounds.trust(X + i * self.p, y[i])
                if weight_of(w, i) > 0.0:
                    self._evaluate(i)
            self._learn_all(n)
            self.is_summarised = False
            self._outline()
            self.relevance.update(self.model + 1)
            self.choice.update(self.relevance.effect)
        self.is_asked = False
        return 0

    def complete(self, n, out):
        i: cython.Py_ssize_t
        n_active: cython.Py_ssize_t = self._n_active()
        self._summarise()
        for i in range(n):
            out[i].lam = self.all_lam
            out[i].lam_max = self.all_lam_max
            out[i].n_active = n_active
            out[i].effective_size = self.all_size
            out[i].status = self.code
        return 0

    def _carried(self, lags, eta):
        """eta with what the last residuals add to it; of classes, calibrated."""
        if not self.carries:
            return eta
        eta = self.bounds.clip_eta(eta + self.carry.offset(lags, eta))
        return self.calibration.of(eta) if self.calibrates else eta

    def _evaluate(self, i):
        """Update the weights, and what the residuals say, by the i-th row of the mini-batch."""
        y: cython.double = self.targets[i]
        own: cython.double = self.own[i]
        carried: cython.double
        etas: cython.p_double = self.etas + i * self.n
        least: cython.double
        if self.n_seen == 0:
            return 0
        if self.is_asked:
            etas = self.asked + self.p
            own = self._prediction(etas, self.pulls)
        least = self.bounds.least_loss(y)
        if self.scaled:
            self._measure_noise(2.0 * max(self.family.loss_at(y, own) - least, 0.0))
        if self.dispersion > 0.0:
            self._evaluate_experts(y, self.weight[i], least, etas)
        if self.calibrates:
            carried = self.bounds.clip_eta(own + self.carry.offset(self.lags + i * N_LAGS, own))
            self.calibration.see(y, carried, self.weight[i])
        if self.carries:
            self._learn_carry(y, self.weight[i], least, own, self.lags + i * N_LAGS)
        return 0

    def _was_asked(self, n, x):
        """Is it the row that was predicted last? A scaler that has learnt it since shows it a little differently."""
        j: cython.Py_ssize_t
        if not self.is_asked or n != 1:
            return False
        for j in range(self.p):
            if fabs(x[j] - self.asked[j]) > NEARBY * (self.bounds.high[j] - self.bounds.low[j]):
                return False
        return True

    def _learn_carry(self, y, weight, least, eta, lags):
        h: cython.Py_ssize_t
        loss: cython.double[N_CHOICES]
        if self.dispersion > 0.0:
            for h in range(N_CHOICES):
                loss[h] = self._loss_of(y, weight, least, self.carry.choice(h, lags, eta))
            self.carry.weigh(loss)
        return self.carry.learn(lags, y, eta, weight)

    def _evaluate_experts(self, y, weight, least, etas):
        """By the losses of the experts and of the shares' averages, in units of the noise."""
        h: cython.Py_ssize_t
        gain: cython.double
        empty: cython.double
        loss: cython.p_double = self.loss
        share_loss: cython.double[N_SHARES]
        self.family.losses_of(self.n, y, etas, loss)
        in_units(self.n, etas, least, self.dispersion, ODDS_CAP if self.scaled else INFINITY, weight, loss)
        self._hold(etas, self.pulls)
        self.shares.averages(self.pulls, share_loss)
        gain = self._gain(y, weight, least, share_loss) if self.doubts else 0.0
        for h in range(N_SHARES):
            share_loss[h] = self._loss_of(y, weight, least, self.bounds.clip_eta(share_loss[h]))
        if _from_the_least(self.n, loss) and _from_the_least(N_SHARES, share_loss):
            if self.doubts:
                empty = self.bounds.clip_eta(self.pulls[0])
                self.shares.doubt(gain, self.family.curvature_at(self.family.mean_at(empty), empty))
            self.shares.update(loss, share_loss)
        return 0

    def _gain(self, y, weight, least, averages):
        """By how much the loss of the average over shares is above that of the empty model."""
        h: cython.Py_ssize_t
        eta: cython.double = 0.0
        for h in range(N_SHARES):
            eta += self.shares.pi[h] * averages[h]
        return self._loss_of(y, weight, least, self.bounds.clip_eta(eta)) - self._loss_of(
            y, weight, least, self.bounds.clip_eta(self.pulls[0])
        )

    def _loss_of(self, y, weight, least, eta):
        """A loss in units of the noise; infinite where eta is not finite."""
        return self._in_units(self.family.loss_at(y, eta), weight, least) if isfinite(eta) else INFINITY

    def _in_units(self, loss, weight, least):
        return weight * min((loss - least) / self.dispersion, ODDS_CAP if self.scaled else INFINITY)

    def _measure_noise(self, deviance):
        if self.dispersion > 0.0:
            deviance = min(deviance, 2.0 * ODDS_CAP * self.dispersion)
        self.dispersion_weight = DISPERSION_DECAY * self.dispersion_weight + 1.0
        self.dispersion += (deviance - self.dispersion) / self.dispersion_weight

    def _learn_all(self, n):
        """All experts learn the rows, whatever their weight; then a group may restart.

        Groups share nothing that they write to: which of two threads (`two_cores.py`) learns which of them, and when,
        changes no bit.
        """
        e: cython.Py_ssize_t
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t
        bounded: cython.bint = self.n_seen >= FIRST_ROWS
        batch: Batch
        for i in range(n if self.linked else 0):
            for e in range(self.n):
                self.etas[i * self.n + e] = self.bounds.clip_eta(self.etas[i * self.n + e])
        batch.n = n
        batch.X = self.rows
        batch.y = self.targets
        batch.w = self.weight
        batch.stride = self.n
        batch.eta_low = self.bounds.eta_low if bounded else -INFINITY
        batch.eta_high = self.bounds.eta_high if bounded else INFINITY
        if self.divides:
            self.batch = cython.address(batch)
            self.taken = 0
            together(cython.cast(Work, _learn_share_of), cython.cast(cython.p_void, self))
        else:
            for m in range(self.M):
                self._learn_group(m, cython.address(batch))
        for i in range(n):
            if self.weight[i] > 0.0:
                for m in range(self.M):
                    if self.began[m] >= 0:
                        self._experience(m, self.targets[i])
                self.bounds.see(self.rows + i * self.p, self.targets[i])
                self.relevance.see(self.rows + i * self.p)
                self.stream.add(self.rows + i * self.p, self.targets[i], self.weight[i])
                self.n_seen += 1
                self._restart_in_turn()
        return 0

    def _learn_group(self, m, batch):
        """One that is there."""
        if self.began[m] < 0:
            return 0
        batch.etas = self.etas + self.shares.first[m]
        batch.weight = self.shares.total + self.shares.first[m]
        return cython.cast(Experts, self.each.at[m]).learn(batch)

    def _learn_share(self, second):
        """Groups from one end of their order, until this thread and the one at the other end have taken all."""
        place: cython.Py_ssize_t = self.M - 1 if second else 0
        batch: Batch = self.batch[0]
        while add(cython.address(self.taken), 1) < self.M:
            self._learn_group(self.order[place], cython.address(batch))
            place += -1 if second else 1
        return 0

    def _restart_in_turn(self):
        """One group of each kind that restarts, every few rows."""
        i: cython.Py_ssize_t
        if self.n_seen < FIRST_ROWS:
            return 0
        for i in range(self.n_pools):
            pool: cython.pointer[cython.Py_ssize_t] = self.pools + 3 * i
            if self.n_seen % pool[2] == 0:
                self._restart(pool[0], pool[1], self.n_seen // pool[2])
        return 0

    def _restart(self, first, end, turn):
        """A group that is not there yet, or the one with the lowest weight of those that are not young any more."""
        m: cython.Py_ssize_t
        chosen: cython.Py_ssize_t = -1
        for m in range(first, end):
            if self.began[m] < 0:
                chosen = m
                break
            if self.n_seen - self.began[m] > YOUNG and (
                chosen < 0 or self.shares.weight_of(m) < self.shares.weight_of(chosen)
            ):
                chosen = m
        if chosen < 0:
            return 0
        if self.began[chosen] >= 0:
            self.shares.leave(chosen)
            self.choice.forget(chosen)
        self.began[chosen] = self.n_seen
        self.experience[chosen * N_EXPERIENCE + ROWS_SEEN] = 0.0
        if cython.cast(Experts, self.each.at[chosen]).begins_at_model(turn):
            self._outline()
        cython.cast(Experts, self.each.at[chosen]).restart(
            self.stream,
            self.family.best_eta(self.stream.y_mean, self.bounds.eta_low, self.bounds.eta_high),
            self.model,
            turn,
        )
        self.shares.enter(chosen)
        return 0

    def _summarise(self):
        """What is noted of the averaged model, when it is asked for."""
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        first: cython.Py_ssize_t
        best: cython.Py_ssize_t = 0
        place: cython.Py_ssize_t = 0
        weight: cython.double
        total: cython.double = 0.0
        most: cython.double = -1.0
        if self.is_summarised:
            return 0
        self.is_summarised = True
        self.all_lam = self.all_lam_max = self.all_size = 0.0
        for m in range(self.M):
            if self.began[m] < 0:
                continue
            first = self.shares.first[m]
            weight = self.shares.weight_of(m)
            total += weight
            self.all_lam_max += weight * cython.cast(Experts, self.each.at[m]).lam_max_of()
            self.all_size += weight * cython.cast(Experts, self.each.at[m]).size_of()
            self.all_lam += cython.cast(Experts, self.each.at[m]).sum_lam(self.shares.total + first)
            for k in range(self.shares.first[m + 1] - first):
                if self.shares.total[first + k] > most:
                    most = self.shares.total[first + k]
                    best = m
                    place = k
        self.code = cython.cast(Experts, self.each.at[best]).code_of(place)
        self.all_lam /= total
        self.all_lam_max /= total
        self.all_size /= total
        return 0

    def _outline(self):
        """The averaged model of the experts that matter, for those who look at it after every row."""
        e: cython.Py_ssize_t
        most: cython.double = 0.0
        total: cython.double = 0.0
        weights: cython.p_double = self.pulls
        shares: cython.p_double = self.shares.total
        for e in range(self.n):
            most = max(most, shares[e])
        most *= OUTLINE
        for e in range(self.n):
            weights[e] = 0.0
            if shares[e] >= most:
                weights[e] = shares[e]
                total += shares[e]
        for e in range(self.n):
            if weights[e] > 0.0:
                weights[e] /= total
        self.is_blended = False
        return self._add_models(weights)

    def blend(self):
        """The averaged model, made when it is asked for."""
        if self.is_blended:
            return 0
        self.is_blended = True
        return self._add_models(self.shares.total)

    def _add_models(self, weights):
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        used: cython.bint
        memset(self.model, 0, (self.p + 1) * cython.sizeof(cython.double))
        for m in range(self.M):
            used = False
            for e in range(self.shares.first[m], self.shares.first[m + 1]):
                used = used or weights[e] > 0.0
            if used and self.began[m] >= 0:
                cython.cast(Experts, self.each.at[m]).add_coef(weights + self.shares.first[m], self.model)
        return 0

    def _n_active(self):
        """Features that an expert uses. The ridges, which use all that vary, come last."""
        m: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        memset(self.used, 0, self.p)
        for m in range(self.M - 1, -1, -1):
            if self.began[m] >= 0 and n < self.p:
                n += cython.cast(Experts, self.each.at[m]).mark(self.shares.total + self.shares.first[m], self.used)
        return n

    # --- predicting ---------------------------------------------------------------------------------------------

    def eta_at(self, x):
        """The average prediction of the row that follows the last one learnt."""
        row: cython.p_double = self._scratch()
        eta: cython.double = self._carried(self.carry.lags, self._own_eta(x, row))
        free(row)
        return eta

    def ask(self, x):
        """The predictions of all experts are kept: if this row is learnt next, they are evaluated on these."""
        j: cython.Py_ssize_t
        etas: cython.p_double = self.asked + self.p
        for j in range(self.p):
            self.asked[j] = self.bounds.clip(j, x[j])
        self._predict_all(self.asked, etas)
        memcpy(self.asked, x, self.p * cython.sizeof(cython.double))
        self.is_asked = True
        return self._carried(self.carry.lags, self._prediction(etas, self.pulls))

    def predict_rows(self, n, X, etas, residuals):
        """What the last residuals say fades from row to row."""
        i: cython.Py_ssize_t
        eta: cython.double
        row: cython.p_double = self._scratch()
        for i in range(n):
            eta = self._own_eta(X + i * self.p, row)
            etas[i] = self._carried(residuals, eta)
            if self.carries:
                self.carry.expect(residuals, eta)
        free(row)
        return 0

    def residuals(self):
        return copied(self.carry.lags, N_LAGS)

    def _scratch(self):
        """Room for a row, and for the etas of all experts."""
        return cython.cast(cython.p_double, malloc((self.p + self.n) * cython.sizeof(cython.double)))

    def _own_eta(self, x, row):
        """The average prediction of a row alone."""
        j: cython.Py_ssize_t
        for j in range(self.p):
            row[j] = self.bounds.clip(j, x[j])
        self._predict_all(row, row + self.p)
        return self._prediction(row + self.p, row + self.p)

    def _predict_all(self, row, etas):
        """eta of every expert for a row within the bounds; no number where a group is not there."""
        e: cython.Py_ssize_t
        m: cython.Py_ssize_t
        reference: cython.double = 0.0
        for m in range(self.M):
            if self.began[m] >= 0:
                cython.cast(Experts, self.each.at[m]).predict(row, etas + self.shares.first[m])
                if m == 0:
                    if not self.scaled:
                        self._hold_back(m, 0.0, etas)
                    reference = self._reference(etas)
                    if self.scaled:
                        reference = self.family.mean_at(reference)
                else:
                    self._hold_back(m, reference, etas)
            else:
                for e in range(self.shares.first[m], self.shares.first[m + 1]):
                    etas[e] = NAN
        return 0

    def _reference(self, etas):
        """The average prediction of the first group, which has seen the most; within the bounds."""
        k: cython.Py_ssize_t
        eta: cython.double = 0.0
        total: cython.double = 0.0
        for k in range(self.shares.first[1]):
            eta += self.shares.total[k] * self.bounds.clip_eta(etas[k])
            total += self.shares.total[k]
        return eta / total if total > 0.0 else self.bounds.clip_eta(etas[0])

    def _hold_back(self, m, reference, etas):
        """No group speaks far beyond the responses that it has seen, unless the first group does too. What that one
        predicts is `reference`: a mean, of classes eta."""
        e: cython.Py_ssize_t
        low: cython.double = self.experience[m * N_EXPERIENCE + LOW]
        high: cython.double = self.experience[m * N_EXPERIENCE + HIGH]
        seen: cython.double = self.experience[m * N_EXPERIENCE + ROWS_SEEN]
        room: cython.double
        if seen == 0.0 or self.free[m]:
            return 0
        if self.scaled:
            room = REACH * (high - low) + (self.bounds.y_high - self.bounds.y_low) / (seen * seen)
            low = self._eta_of(min(low, reference) - room)
            high = self._eta_of(max(high, reference) + room)
        else:
            low = min(-CONFIDENCE * log(2.0 * low + 1.0), reference)
            high = max(CONFIDENCE * log(2.0 * high + 1.0), reference)
        for e in range(self.shares.first[m], self.shares.first[m + 1]):
            # What is no number stays so.
            if etas[e] < low:
                etas[e] = low
            elif etas[e] > high:
                etas[e] = high
        return 0

    def _eta_of(self, mean):
        """The eta of a mean; where there is a link, no mean beyond the bounds has one."""
        if not self.linked:
            return mean
        mean = max(mean, self.family.mean_at(self.bounds.eta_low))
        mean = min(mean, self.family.mean_at(self.bounds.eta_high))
        return self.family.best_eta(mean, self.bounds.eta_low, self.bounds.eta_high)

    def _experience(self, m, y):
        """The range of the responses that a group has seen; where it forgets, the range shrinks towards the newest.

        Of classes, how often each was seen.
        """
        fade: cython.double = self.fades[m]
        row: cython.p_double = self.experience + m * N_EXPERIENCE
        if row[ROWS_SEEN] == 0.0:
            row[LOW] = row[HIGH] = y if self.scaled else 0.0
        if self.scaled:
            row[LOW] = min(y, row[LOW] + fade * (y - row[LOW]))
            row[HIGH] = max(y, row[HIGH] + fade * (y - row[HIGH]))
        else:
            row[LOW] = (1.0 - fade) * row[LOW] + 1.0 - y
            row[HIGH] = (1.0 - fade) * row[HIGH] + y
        row[ROWS_SEEN] = (1.0 - fade) * row[ROWS_SEEN] + 1.0

    def _prediction(self, etas, pulls):
        """b0 + x'b, but that no expert pulls further than from one width outside the bounds."""
        if self.n_seen == 0:
            return 0.0
        self._hold(etas, pulls)
        return self._average(self.shares.total, pulls)

    def _hold(self, etas, pulls):
        width: cython.double = self.bounds.eta_high - self.bounds.eta_low
        hold(self.n, etas, self.bounds.eta_low - width, self.bounds.eta_high + width, pulls)

    def _average(self, weights, pulls):
        return self.bounds.clip_eta(dot(self.n, weights, pulls))

    def write_model(self, model):
        self.blend()
        self.write_outline(model)

    def write_outline(self, model):
        j: cython.Py_ssize_t
        shift: cython.double = 0.0
        scale: cython.double = 1.0
        more: cython.double
        factor: cython.double
        if self.carries:
            self.carry.linear(cython.address(shift), cython.address(scale))
        if self.calibrates:
            self.calibration.linear(cython.address(more), cython.address(factor))
            shift = more + factor * shift
            scale *= factor
        for j in range(self.p + 1):
            model[j] = scale * self.model[j]
        model[0] += shift

    # --- what a person wants to see -----------------------------------------------------------------------------

    @property
    def lam(self):
        self._summarise()
        return self.all_lam

    @property
    def lam_max(self):
        self._summarise()
        return self.all_lam_max

    @property
    def effective_size(self):
        self._summarise()
        return self.all_size

    @property
    def status(self):
        self._summarise()
        return STATUS[self.code]

    @property
    def weights(self):
        """(group, penalty); a group of one has its weight in the first place, one that is not there has none."""
        found = np.zeros((self.M, max(group.n for group in self.experts)))
        for m, group in enumerate(self.experts):
            first: cython.Py_ssize_t = self.shares.first[m]
            found[m, : group.n] = copied(self.shares.total + first, group.n)
        return found

    @property
    def memories(self):
        """Of each group: its memory, and the rows seen when it began; None where it is not there."""
        began = [self.began[m] for m in range(self.M)]
        return [
            (experts.memory, since) if since >= 0 else None for experts, since in zip(self.experts, began, strict=True)
        ]

    def selected(self):
        m, k, weight = self.selected_expert()
        memory, since = self.memories[m]
        lam, lam_max, model = self.expert(m, k)
        return Selected(memory, since, lam, lam_max, weight, float(model[0]), model[1:], self.experts[m].kind)

    def single(self):
        return self.selected()

    def selected_expert(self):
        """Its group, its place in it, and its weight (`choice.py`)."""
        m, k = self.choice.selected()
        return m, k, float(self.weights[m, k])

    def inclusion(self):
        """Of the experts that choose features: a ridge uses them all, and says nothing."""
        m: cython.Py_ssize_t
        k: cython.Py_ssize_t
        j: cython.Py_ssize_t
        weight: cython.double
        choosing: cython.double = 0.0
        found = np.zeros(self.p)
        total: cython.double[::1] = found
        model: cython.double[::1] = np.zeros(self.p + 1)
        only: cython.double[::1] = np.zeros(max(group.n for group in self.experts))
        for m in range(self.M):
            if self.began[m] < 0 or not self.choice.sparse[m]:
                continue
            for k in range(self.shares.first[m + 1] - self.shares.first[m]):
                weight = self.shares.total[self.shares.first[m] + k]
                if not weight > 0.0:
                    continue
                choosing += weight
                memset(cython.address(model[0]), 0, (self.p + 1) * cython.sizeof(cython.double))
                only[k] = 1.0
                cython.cast(Experts, self.each.at[m]).add_coef(cython.address(only[0]), cython.address(model[0]))
                only[k] = 0.0
                for j in range(self.p):
                    total[j] += weight if model[1 + j] != 0.0 else 0.0
        return np.clip(found / max(choosing, 1e-300), 0.0, 1.0)

    def feature_means(self):
        return copied(self.stream.mean, self.p)

    def feature_deviations(self):
        return self.relevance.deviations()

    def relevant(self):
        return self.relevance.relevant()

    def expert(self, m: cython.Py_ssize_t, k: cython.Py_ssize_t):
        """lam, lam_max and (b0, b) of one expert."""
        experts: Experts = self.experts[m]
        weights: cython.double[::1] = np.where(np.arange(experts.n) == k, 1.0, 0.0)
        model = np.zeros(self.p + 1)
        out: cython.double[::1] = model
        experts.add_coef(cython.address(weights[0]), cython.address(out[0]))
        return experts.lam_of(k), experts.lam_max_of(), model

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        experts = {f"experts{m}/": each for m, each in enumerate(self.experts)}
        rest = {"bounds/": self.bounds, "stream/": self.stream, "shares/": self.shares, "carry/": self.carry}
        rest |= {"choice/": self.choice, "relevance/": self.relevance}
        last = {"calibration/": self.calibration} if self.quantiles is None else {"errors/": self.quantiles}
        return {**experts, **rest, **last, **({} if self.changes is None else {"changes/": self.changes})}

    def travel(self, tape):
        m: cython.Py_ssize_t
        n_seen: cython.Py_ssize_t
        began: cython.pointer[cython.const[cython.Py_ssize_t]]
        if tape.mode == WRITE:
            self.blend()
            self._summarise()
        tape.number(cython.address(self.dispersion), WEIGHT)
        tape.number(cython.address(self.dispersion_weight), WEIGHT)
        tape.doubles(self.experience, self.M * N_EXPERIENCE, FINITE if self.scaled else WEIGHT)
        tape.doubles(self.model, self.p + 1, FINITE)
        tape.number(cython.address(self.all_lam), PENALTY)
        tape.number(cython.address(self.all_lam_max), PENALTY)
        tape.number(cython.address(self.all_size), PENALTY)
        n_seen = tape.count(cython.address(self.n_seen))
        tape.small(cython.address(self.code), N_STATUSES)
        began = tape.indices(self.began, self.M, -1, n_seen + 1)
        for m in range(self.n_permanent):
            tape.require(began[m] >= 0, b"a memory that stays is not there")
        for m in range(self.M):
            cython.cast(Experts, self.each.at[m]).travel(tape)
        self.bounds.travel(tape)
        self.stream.travel(tape)
        self.shares.travel(tape)
        self.carry.travel(tape)
        self.choice.travel(tape)
        tape.require(began[self.choice.travelled] >= 0, b"the memory of the selected expert is not there")
        self.relevance.travel(tape)
        if self.quantiles is not None:
            self.quantiles.travel(tape)
        else:
            self.calibration.travel(tape)
        if self.changes is not None:
            self.changes.travel(tape)
        if tape.mode == READ:
            self.is_asked = False
            self.is_blended = self.is_summarised = True
            self.shares.n_alive = 0
            for m in range(self.M):
                self.shares.alive[m] = began[m] >= 0
                self.shares.n_alive += self.shares.alive[m]
