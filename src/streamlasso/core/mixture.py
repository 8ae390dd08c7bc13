# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Experts of several kinds, with different memories and penalties, averaged by how well they have predicted.

1. every expert predicts the row, no further out than its group has seen (`experience.py`); the mixture's eta is their
   average, `total_e` the weights (`shares.py`)
2. each is evaluated on its prequential loss, in units of the noise (`noise.py`), and the weights are updated
3. all learn the row, each with its memory and its lam
4. every few rows a group restarts: the one with the lowest weight among those that may (`restarts.py`)

Averaging eta is averaging coefficients, so the mixture is one linear model at every moment (`average.py`). Only an
expert whose eta lies further outside the bounds (`bounds.py`) than these are apart is held there: a thousandth of ten
thousand is ten. An expert is evaluated on its own prediction, before that: its coefficients are averaged, not its
predictions.

What an expert is, is its own affair (`experts/`): here are only predictions, losses and weights.

**What was predicted counts.** Behind a running scaler, as river's, a row is not the same when it is learnt as when it
was predicted: the scaler has learnt it in between. Experts are evaluated on what they predicted (`ask`), if the row
learnt is about the one that was predicted last; otherwise, as where labels come late, on the row as it is learnt.
"""

import cython
import numpy as np
from cython.cimports.cpython.mem import PyMem_RawFree, PyMem_RawMalloc
from cython.cimports.libc.math import INFINITY, NAN, fabs
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.active_set import Scratch, spare, spare_scratch
from cython.cimports.streamlasso.core.average import Average
from cython.cimports.streamlasso.core.bounds import Bounds
from cython.cimports.streamlasso.core.calibration import Calibration
from cython.cimports.streamlasso.core.carry import N_CHOICES, N_LAGS, Carry
from cython.cimports.streamlasso.core.changes import Changes
from cython.cimports.streamlasso.core.choice import Choice
from cython.cimports.streamlasso.core.engine import Engine
from cython.cimports.streamlasso.core.experience import Experience
from cython.cimports.streamlasso.core.experts.base import Batch, Experts
from cython.cimports.streamlasso.core.kernels import dot, hold
from cython.cimports.streamlasso.core.noise import Noise
from cython.cimports.streamlasso.core.pointers import Doubles, Pointers, copied
from cython.cimports.streamlasso.core.quantiles import Quantiles
from cython.cimports.streamlasso.core.record import N_STATUSES, WAITING, Record
from cython.cimports.streamlasso.core.relevance import Relevance
from cython.cimports.streamlasso.core.restarts import Pool, Restarts
from cython.cimports.streamlasso.core.shares import N_SHARES, Shares
from cython.cimports.streamlasso.core.statistics import Scaler
from cython.cimports.streamlasso.core.tape import PENALTY, READ, WRITE
from cython.cimports.streamlasso.core.values import FIRST_ROWS, weight_of

from streamlasso.core.active_set import MOST_SHARED
from streamlasso.core.engine import one_for_all
from streamlasso.core.groups import all_groups, competing
from streamlasso.core.record import STATUS
from streamlasso.core.selected import Selected
from streamlasso.core.state import Column, numbers

#: A row is the one that was predicted last where no feature differs by more than this share of its range.
NEARBY = cython.declare(cython.double, 0.1)


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


@cython.cclass
class MixtureLearner(Engine):
    """A mixture on one stream. All settings are checked by the faces; see `streamlasso.RAPRegressor`."""

    STATE = (
        *Noise.STATE,
        *Experience.STATE,
        *Average.STATE,
        numbers("lam", Column("all_lam"), Column("all_lam_max"), Column("all_size")),
        numbers("seen", Column("n_seen"), Column("code"), dtype=np.int64),
        *Restarts.STATE,
    )

    def __cinit__(self, n_features: int, *, memory, tuner, batch_size=1, **settings):
        self.settings = one_for_all(dict(settings, memory=memory, tuner=tuner, batch_size=batch_size))
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
        self.shares = Shares([group.n for group in self.experts])
        self.n = self.shares.n
        # A ridge is left behind in the scratch space, and that is kept.
        self.lends = self.p <= MOST_SHARED and settings["penalty"].l1_ratio == 1.0
        self.asleep = False
        self.restarts = Restarts(self.experts, self.shares)
        for m in range(self.restarts.n_permanent):
            self.shares.enter(m, 0)
        self.shares.start()
        self.doubts = self.experts[0].first_is_empty
        self.choice = Choice(self.shares, self.experts, self.p)
        self.average = Average(self.p, self.each, self.shares)
        self.bounds = Bounds(self.p, self.family)
        self.experience = Experience(self.experts, self.family, self.bounds)
        self.noise = Noise(self.family)
        self.stream = Scaler(self.p)
        self.relevance = Relevance(self.p)
        self.carry = Carry(self.family)
        self.carries = tuner.carry and settings["fit_intercept"]
        self.calibrates = self.carries and not self.family.has_scale
        self.calibration = Calibration(self.family)
        self.is_asked = False
        self.is_summarised = True
        self.n_seen = 0
        self.all_lam = self.all_lam_max = self.all_size = 0.0
        self.code = WAITING
        self.quantiles = Quantiles(self.family) if self.family.has_scale else None
        false_alarms = settings.get("false_alarms", 0.0)
        self.changes = Changes(n_features, self.family, false_alarms) if false_alarms > 0.0 else None
        self._make_room()

    def _make_room(self):
        """For the numbers by expert and by row, in one piece."""
        p, n, rows = self.p, self.n, self.batch_size
        self.room = Doubles(p + 3 * n + rows * (3 + p + n + N_LAGS))
        self.loss = self.room.at
        self.pulls = self.loss + self.n
        self.asked = self.pulls + self.n
        self.targets = self.asked + self.p + self.n
        self.weight = self.targets + self.batch_size
        self.own = self.weight + self.batch_size
        self.rows = self.own + self.batch_size
        self.etas = self.rows + self.batch_size * self.p
        self.lags = self.etas + self.batch_size * self.n

    def wake(self):
        scratch: Scratch
        if self.asleep:
            scratch = spare_scratch(self.p)
            for group in self.experts:
                cython.cast(Experts, group).exchange(scratch)
            self.asleep = False
        return 0

    def rest(self):
        scratch: Scratch = None
        for group in self.experts:
            cython.cast(Experts, group).rest()
            if self.lends and not self.asleep:
                scratch = cython.cast(Experts, group).exchange(None) or scratch
        if scratch is not None:
            self.asleep = True
            spare(scratch)
        return 0

    # --- learning -----------------------------------------------------------------------------------------------

    def _step(self, n, X, y, w, out):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        seen: cython.double = 0.0
        record: cython.pointer[Record]
        if self.asleep:
            with cython.gil:
                self.wake()
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
            self.average.outline()
            self.relevance.update(self.average.model + 1)
            self.choice.update(self.relevance.effect)
        self.is_asked = False
        return 0

    def complete(self, n, out):
        i: cython.Py_ssize_t
        n_active: cython.Py_ssize_t = self.average.n_active()
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
        self.noise.measure(y, own, least)
        if self.noise.dispersion > 0.0:
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
        if self.noise.dispersion > 0.0:
            for h in range(N_CHOICES):
                loss[h] = self.noise.loss_of(y, self.carry.choice(h, lags, eta), weight, least)
            self.carry.weigh(loss)
        return self.carry.learn(lags, y, eta, weight)

    def _evaluate_experts(self, y, weight, least, etas):
        """By the losses of the experts and of the shares' averages, in units of the noise."""
        h: cython.Py_ssize_t
        gain: cython.double
        empty: cython.double
        loss: cython.p_double = self.loss
        share_loss: cython.double[N_SHARES]
        self.noise.losses_of(self.n, y, etas, weight, least, loss)
        self._hold(etas, self.pulls)
        self.shares.averages(self.pulls, share_loss)
        gain = self._gain(y, weight, least, share_loss) if self.doubts else 0.0
        for h in range(N_SHARES):
            share_loss[h] = self.noise.loss_of(y, self.bounds.clip_eta(share_loss[h]), weight, least)
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
        return self.noise.loss_of(y, self.bounds.clip_eta(eta), weight, least) - self.noise.loss_of(
            y, self.bounds.clip_eta(self.pulls[0]), weight, least
        )

    def _learn_all(self, n):
        """All experts learn the rows, whatever their weight; then a group may restart."""
        e: cython.Py_ssize_t
        i: cython.Py_ssize_t
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
        self._learn_groups(cython.address(batch))
        for i in range(n):
            if self.weight[i] > 0.0:
                self.experience.see(self.shares.alive, self.targets[i])
                self.bounds.see(self.rows + i * self.p, self.targets[i])
                self.relevance.see(self.rows + i * self.p)
                self.stream.add(self.rows + i * self.p, self.targets[i], self.weight[i])
                self.n_seen += 1
                self._restart_in_turn()
        return 0

    def _learn_groups(self, batch):
        """Each that is there, with the predictions and the weights of its own experts."""
        m: cython.Py_ssize_t
        for m in range(self.M):
            if self.shares.alive[m]:
                batch.etas = self.etas + self.shares.first[m]
                batch.weight = self.shares.total + self.shares.first[m]
                cython.cast(Experts, self.each.at[m]).learn(batch)
        return 0

    def _restart_in_turn(self):
        """One group of each kind that restarts, every few rows."""
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t
        pool: cython.pointer[Pool]
        for i in range(self.restarts.n_pools):
            pool = self.restarts.pools + i
            m = self.restarts.due(pool, self.n_seen)
            if m >= 0:
                self._restart(m, pool.every)
        return 0

    def _restart(self, m, every):
        """A group, `every` rows after the last restart of its kind. As long as the response is constant nothing can be
        judged, and none has weight at once."""
        turn: cython.Py_ssize_t = self.n_seen // every
        if self.shares.alive[m]:
            self.shares.leave(m)
            self.choice.forget(m)
        self.restarts.began[m] = self.n_seen
        self.experience.forget(m)
        if cython.cast(Experts, self.each.at[m]).begins_at_model(turn):
            self.average.outline()
        cython.cast(Experts, self.each.at[m]).restart(
            self.stream,
            self.family.best_eta(self.stream.y_mean, self.bounds.eta_low, self.bounds.eta_high),
            self.average.model,
            turn,
        )
        judged: cython.bint = self.noise.dispersion > 0.0
        self.shares.enter(m, every if judged and cython.cast(Experts, self.each.at[m]).begins_anew(turn) else 0)
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
            if not self.shares.alive[m]:
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

    # --- predicting ---------------------------------------------------------------------------------------------

    def eta_at(self, x):
        """The average prediction of the row that follows the last one learnt."""
        row: cython.p_double = self._scratch()
        try:
            return self._carried(self.carry.lags, self._own_eta(x, row))
        finally:
            PyMem_RawFree(row)

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
        try:
            for i in range(n):
                eta = self._own_eta(X + i * self.p, row)
                etas[i] = self._carried(residuals, eta)
                if self.carries:
                    self.carry.expect(residuals, eta)
        finally:
            PyMem_RawFree(row)
        return 0

    def residuals(self):
        return copied(self.carry.lags, N_LAGS)

    def _scratch(self):
        """Room for a row, and for the etas of all experts: several threads may predict at a time."""
        room: cython.p_void = PyMem_RawMalloc((self.p + self.n) * cython.sizeof(cython.double))
        if room == cython.NULL:
            with cython.gil:
                raise MemoryError
        return cython.cast(cython.p_double, room)

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
        n: cython.Py_ssize_t
        first: cython.Py_ssize_t
        reference: cython.double = 0.0
        for m in range(self.M):
            first = self.shares.first[m]
            n = self.shares.first[m + 1] - first
            if self.shares.alive[m]:
                cython.cast(Experts, self.each.at[m]).predict(row, etas + first)
                self.experience.hold_back(m, reference, n, etas + first)
            else:
                for e in range(first, first + n):
                    etas[e] = NAN
            if m == 0:
                reference = self.experience.reference(n, self.shares.total, etas)
        return 0

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
        self.average.whole()
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
            model[j] = scale * self.average.model[j]
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
        began = [self.restarts.began[m] for m in range(self.M)]
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
        return self.average.inclusion()

    def feature_means(self):
        return copied(self.stream.mean, self.p)

    def feature_deviations(self):
        return self.relevance.deviations()

    def relevant(self):
        return self.relevance.relevant()

    def expert(self, m: cython.Py_ssize_t, k: cython.Py_ssize_t):
        """lam, lam_max and (b0, b) of one expert."""
        experts: Experts = self.experts[m]
        return experts.lam_of(k), experts.lam_max_of(), self.average.model_of(m, k)

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        experts = {f"experts{m}/": each for m, each in enumerate(self.experts)}
        rest = {"bounds/": self.bounds, "stream/": self.stream, "shares/": self.shares, "carry/": self.carry}
        rest |= {"choice/": self.choice, "relevance/": self.relevance}
        last = {"calibration/": self.calibration} if self.quantiles is None else {"errors/": self.quantiles}
        return {**experts, **rest, **last, **({} if self.changes is None else {"changes/": self.changes})}

    def travel(self, tape):
        m: cython.Py_ssize_t
        began: cython.pointer[cython.const[cython.Py_ssize_t]]
        if tape.mode == WRITE:
            self._summarise()
        self.noise.travel(tape)
        self.experience.travel(tape)
        self.average.travel(tape)
        tape.number(cython.address(self.all_lam), PENALTY)
        tape.number(cython.address(self.all_lam_max), PENALTY)
        tape.number(cython.address(self.all_size), PENALTY)
        tape.n_seen = tape.count(cython.address(self.n_seen))
        tape.small(cython.address(self.code), N_STATUSES)
        began = self.restarts.travelled(tape)
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
            self.is_summarised = True
            self.shares.n_alive = 0
            for m in range(self.M):
                self.shares.alive[m] = began[m] >= 0
                self.shares.n_alive += self.shares.alive[m]
