# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Experts of several kinds, averaged in groups, and these averaged by how well they have predicted.

1. every expert predicts the row
2. each group (`groups/`) averages its experts, and adds what its last residuals say of the next row (`residuals.py`)
3. the mixture's eta is the average of the groups by the weights of a gate; a class is then calibrated
4. gate and groups are updated by the losses of what they averaged, in units of the noise (`dispersion.py`,
   `hedge.py`), from the third row on: by one row nobody knows where zero is
5. all learn the row, each with its memory and its lam

The gate sees averages, so no group pays for the number of experts in another. Averaging eta is averaging coefficients,
so the mixture is one linear model at every moment (`average.py`). Only an expert whose eta lies further outside the
bounds (`bounds.py`) than these are apart is held there: a thousandth of ten thousand is ten. An expert is evaluated on
its own prediction, before that: its coefficients are averaged, not its predictions.

**What was predicted counts.** Behind a running scaler, as river's, a row is not the same when it is learnt as when it
was predicted: the scaler has learnt it in between. Experts are evaluated on what they predicted (`ask`), if the row
learnt is about the one that was predicted last; otherwise, as where labels come late, on the row as it is learnt.
"""

import cython
import numpy as np
from cython.cimports.cpython.mem import PyMem_RawFree, PyMem_RawMalloc
from cython.cimports.libc.math import INFINITY, fabs
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.buffers import Doubles, Pointers, copied
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS, weight_of
from cython.cimports.streamlasso.core.base.hedge import Hedge
from cython.cimports.streamlasso.core.base.record import Record
from cython.cimports.streamlasso.core.base.tape import READ
from cython.cimports.streamlasso.core.lasso.moments import Scaler, Sums
from cython.cimports.streamlasso.core.linalg.kernels import dot, hold
from cython.cimports.streamlasso.core.mixture.average import Average
from cython.cimports.streamlasso.core.mixture.bounds import Bounds
from cython.cimports.streamlasso.core.mixture.calibration import Calibration
from cython.cimports.streamlasso.core.mixture.dispersion import Noise
from cython.cimports.streamlasso.core.mixture.groups.base import Batch, Experts, Group, Judged
from cython.cimports.streamlasso.core.mixture.residuals import N_CHOICES, N_LAGS
from cython.cimports.streamlasso.core.mixture.selection import Selection, new_sums
from cython.cimports.streamlasso.core.model import Engine
from cython.cimports.streamlasso.core.monitor.detector import Changes
from cython.cimports.streamlasso.core.monitor.intervals import Quantiles

from streamlasso.core.base.record import STATUS
from streamlasso.core.base.selected import Selected
from streamlasso.core.base.state import Column, numbers
from streamlasso.core.mixture.groups import composed
from streamlasso.core.model import one_for_all

#: Whole groups err together less than their experts do, and a wrong one costs more: the gate trusts a row by half.
GATE_RATE = 0.5
GATE_SHARE = 0.005
LEAST_INFORMATION = cython.declare(cython.double, 1e-3)
#: A row is the one that was predicted last where no feature differs by more than this share of its range.
NEARBY = cython.declare(cython.double, 0.1)


def _shares(groups, name):
    weights = np.array([getattr(group, name) for group in groups])
    return weights / weights.sum()


@cython.cclass
class MixtureLearner(Engine):
    """A mixture on one stream. All settings are checked by the faces; see `streamlasso.RAPRegressor`."""

    selects = True

    STATE = (
        *Noise.STATE,
        numbers("seen", Column("n_seen"), dtype=np.int64),
    )

    def __cinit__(self, n_features: int, *, memory, tuner, batch_size=1, **settings):
        settings = self.settings = one_for_all(dict(settings, memory=memory, tuner=tuner, batch_size=batch_size))
        self.p = n_features
        self.family = settings["family"]
        self.family.check()
        self.linked = not self.family.quadratic
        tuner.check()
        self.batch_size = batch_size
        self.compiled = self.family.compiled and tuner.compiled
        experts, groups = composed(n_features, self.settings)
        self.experts = experts
        self.groups = groups
        self.each = Pointers(experts)
        self.group = Pointers(groups)
        self.M = len(experts)
        self.G = len(groups)
        self.hedge = Hedge(_shares(groups, "prior"), GATE_RATE, GATE_SHARE, _shares(groups, "start"))
        self.average = Average(self.p, self.each, self.group, self.hedge)
        self.average.add_up()
        self.n = self.average.n
        self.bounds = Bounds(self.p, self.family)
        self.noise = Noise(self.family)
        self.stream = Scaler(self.p)
        self.selection = Selection(self.p, settings["penalty_factor"])
        self.carries = groups[0].carry is not None
        self.calibrates = self.carries and self.family.binary
        self.calibration = Calibration(self.family)
        self.is_asked = False
        self.n_unpredicted = 2
        self.n_seen = 0
        self.quantiles = None if self.family.binary else Quantiles(self.family)
        false_alarms = settings.get("false_alarms", 0.0)
        self.changes = Changes(n_features, self.family, false_alarms) if false_alarms > 0.0 else None
        self._make_room()

    def _make_room(self):
        """For the numbers by expert, by group and by row, in one piece."""
        p: cython.Py_ssize_t = self.p
        n: cython.Py_ssize_t = self.n
        G: cython.Py_ssize_t = self.G
        rows: cython.Py_ssize_t = self.batch_size
        self.room = Doubles(p + 3 * n + 2 * G + rows * (2 + p + n + G * N_LAGS))
        self.loss = self.room.at
        self.pulls = self.loss + n
        self.asked = self.pulls + n
        self.own = self.asked + p + n
        self.carried = self.own + G
        self.targets = self.carried + G
        self.weight = self.targets + rows
        self.rows = self.weight + rows
        self.etas = self.rows + rows * p
        self.lags = self.etas + rows * n

    def rest(self):
        for experts in self.experts:
            cython.cast(Experts, experts).rest()
        return 0

    # --- learning -----------------------------------------------------------------------------------------------

    def _step(self, n, X, y, w, out):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        seen: cython.double = 0.0
        lags: cython.p_double
        record: cython.pointer[Record]
        for i in range(n):
            record = out + i
            for j in range(self.p):
                self.rows[i * self.p + j] = self.bounds.clip(j, X[i * self.p + j])
            self._predict_all(self.rows + i * self.p, self.etas + i * self.n)
            lags = self.lags + i * self.G * N_LAGS
            if i == 0:
                self._write_lags(lags)
            else:
                memcpy(lags, lags - self.G * N_LAGS, self.G * N_LAGS * cython.sizeof(cython.double))
                self._expect(lags, self.own)
            record.eta = self._prediction(self.etas + i * self.n, lags, self.pulls, self.own, self.carried)
            record.loss = self.family.loss_at(y[i], record.eta)
            record.slope = 0.0
            seen += weight_of(w, i)
        self.is_asked = self._was_asked(n, X)
        if seen > 0.0:
            for i in range(n):
                self.targets[i] = self.bounds.clip_y(y[i])
                self.weight[i] = weight_of(w, i) * self.bounds.trust(X + i * self.p, y[i])
                if weight_of(w, i) > 0.0 and self.n_seen >= self.n_unpredicted:
                    self._evaluate(i)
            self._learn_all(n)
            self._select()
        self.is_asked = False
        return 0

    def complete(self, n, out):
        i: cython.Py_ssize_t
        n_active: cython.Py_ssize_t = self.average.n_active()
        self.average.summarise(self.n_seen)
        for i in range(n):
            out[i].lam = self.average.lam
            out[i].lam_max = self.average.lam_max
            out[i].n_active = n_active
            out[i].effective_size = self.average.size
            out[i].status = self.average.code
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

    def _evaluate(self, i):
        """Update all weights by the i-th row of the mini-batch, and what the residuals say."""
        g: cython.Py_ssize_t
        eta: cython.double
        lags: cython.p_double = self.lags + i * self.G * N_LAGS
        loss: cython.p_double = self.carried
        row: Judged
        row.y = self.targets[i]
        row.weight = self.weight[i]
        row.etas = self.asked + self.p if self.is_asked else self.etas + i * self.n
        row.least = self.bounds.least_loss(row.y)
        row.loss = self.loss
        eta = self._prediction(row.etas, lags, self.pulls, self.own, self.carried)
        self.noise.measure(row.y, eta, row.least)
        if self.calibrates:
            self.calibration.see(row.y, self._gated(self.carried), row.weight)
        if self.noise.dispersion > 0.0:
            self.noise.losses_of(self.n, row.y, row.etas, row.weight, row.least, self.loss)
            for g in range(self.G):
                loss[g] = self.noise.loss_of(row.y, self.carried[g], row.weight, row.least)
                cython.cast(Group, self.group.at[g]).evaluate(cython.address(row), self.own[g], self.noise)
            self.hedge.update(loss)
        for g in range(self.G if self.carries else 0):
            if cython.cast(Group, self.group.at[g]).carry is not None:
                self._learn_carry(g, cython.address(row), lags + g * N_LAGS)
        return 0

    def _learn_carry(self, g, row, lags):
        h: cython.Py_ssize_t
        eta: cython.double = self.own[g]
        loss: cython.double[N_CHOICES]
        if self.noise.dispersion > 0.0:
            for h in range(N_CHOICES):
                loss[h] = self.noise.loss_of(
                    row.y, cython.cast(Group, self.group.at[g]).carry.choice(h, lags, eta), row.weight, row.least
                )
            cython.cast(Group, self.group.at[g]).carry.weigh(loss)
        trust: cython.double = self.noise.trust(row.y, eta, row.least)
        return cython.cast(Group, self.group.at[g]).carry.learn(lags, row.y, eta, row.weight, trust)

    def _learn_all(self, n):
        """All experts learn the rows, whatever their weight; then one of those that restart may."""
        e: cython.Py_ssize_t
        i: cython.Py_ssize_t
        bounded: cython.bint = self.n_seen >= FIRST_ROWS
        batch: Batch
        if self.n_seen == 0:
            self._start(n)
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
        self._learn_experts(cython.address(batch))
        for i in range(n):
            if self.weight[i] > 0.0:
                self._see(self.rows + i * self.p, self.targets[i], self.weight[i])
        return self._add_up()

    def _start(self, n):
        """Those that predict from the first row on begin with what it looks like."""
        g: cython.Py_ssize_t
        i: cython.Py_ssize_t = 0
        while not self.weight[i] > 0.0:
            i += 1
        self.stream.add(self.rows + i * self.p, self.targets[i], self.weight[i])
        for g in range(self.G):
            cython.cast(Group, self.group.at[g]).begin_group(self.stream)
        self.stream.clear()
        return 0

    def _learn_experts(self, batch):
        """With their own predictions and weights."""
        m: cython.Py_ssize_t
        for m in range(self.M):
            batch.etas = self.etas + self.average.first[m]
            batch.weight = self.average.total + self.average.first[m]
            cython.cast(Experts, self.each.at[m]).learn(batch)
        return 0

    def _see(self, x, y, weight):
        """A row that all experts have learnt."""
        g: cython.Py_ssize_t
        self.bounds.see(x, y)
        self.stream.add(x, y, weight)
        self.n_seen += 1
        eta: cython.double = self._mean_eta()
        for g in range(self.G):
            cython.cast(Group, self.group.at[g]).see(self.stream, eta, self.n_seen)
        return 0

    def _mean_eta(self):
        """eta of the mean response."""
        return self.family.best_eta(self.stream.y_mean, self.bounds.eta_low, self.bounds.eta_high)

    def _add_up(self):
        """The weights of all experts. What a row with the mean response says about eta is 4 loss'', at most 1; of a
        class 4 p (1 - p). The less that is, the longer the groups take to find that there is nothing to learn."""
        eta: cython.double = self._mean_eta()
        information: cython.double = 4.0 * self.family.curvature_at(self.family.mean_at(eta), eta)
        self.average.is_constant = not self.stream.y_scatter > 0.0
        self.average.doubt = 1.0 / min(max(information, LEAST_INFORMATION), 1.0)
        self.average.add_up()
        return 0

    def _select(self):
        """Look at which features matter, by the sums of one memory."""
        sums: Sums
        m: cython.Py_ssize_t = self._readable()
        if m < 0:
            self.average.add_models()
            self.selection.look_at(self.average.model + 1, self.n_seen)
            return 0
        if not self.selection.is_due(cython.cast(Experts, self.each.at[m]).size_of(), self.n_seen):
            return 0
        new_sums(self.p, cython.address(sums))
        try:
            cython.cast(Experts, self.each.at[m]).write_sums(cython.address(sums))
            self.selection.look(cython.address(sums), self.n_seen)
        finally:
            PyMem_RawFree(sums.S)
        return 0

    def _readable(self):
        """The memory that says most: of those that keep sums the one with the largest weight times its rows; -1 where
        there is none."""
        m: cython.Py_ssize_t
        found: cython.Py_ssize_t = -1
        says: cython.double
        most: cython.double = 0.0
        for m in range(self.M):
            if not cython.cast(Experts, self.each.at[m]).keeps_sums():
                continue
            says = self.average.weight_of(m) * cython.cast(Experts, self.each.at[m]).size_of()
            if says > most:
                most = says
                found = m
        return found

    # --- predicting ---------------------------------------------------------------------------------------------

    def eta_at(self, x):
        """The average prediction of the row that follows the last one learnt."""
        room: cython.p_double = self._scratch()
        try:
            self._write_lags(room + self._row_size())
            return self._eta(x, room, room + self._row_size())
        finally:
            PyMem_RawFree(room)

    def ask(self, x):
        """The predictions of all experts are kept: if this row is learnt next, they are evaluated on these."""
        j: cython.Py_ssize_t
        etas: cython.p_double = self.asked + self.p
        for j in range(self.p):
            self.asked[j] = self.bounds.clip(j, x[j])
        self._predict_all(self.asked, etas)
        memcpy(self.asked, x, self.p * cython.sizeof(cython.double))
        self.is_asked = True
        self._write_lags(self.lags)
        return self._prediction(etas, self.lags, self.pulls, self.own, self.carried)

    def predict_rows(self, n, X, etas, residuals):
        """What the last residuals say fades from row to row."""
        i: cython.Py_ssize_t
        room: cython.p_double = self._scratch()
        try:
            for i in range(n):
                etas[i] = self._eta(X + i * self.p, room, residuals)
                self._expect(residuals, room + self.p + 2 * self.n)
        finally:
            PyMem_RawFree(room)
        return 0

    def residuals(self):
        lags: cython.p_double = cython.cast(
            cython.p_double, PyMem_RawMalloc(max(self.G * N_LAGS, 1) * cython.sizeof(cython.double))
        )
        if lags == cython.NULL:
            raise MemoryError
        try:
            self._write_lags(lags)
            return copied(lags, self.G * N_LAGS)
        finally:
            PyMem_RawFree(lags)

    def _row_size(self):
        """Numbers for a row, for the predictions of all experts, held and not, and for two of each group."""
        return self.p + 2 * self.n + 2 * self.G

    def _scratch(self):
        """Room for these and for residuals: several threads may predict at a time."""
        size: cython.Py_ssize_t = self._row_size() + self.G * N_LAGS
        room: cython.p_void = PyMem_RawMalloc(size * cython.sizeof(cython.double))
        if room == cython.NULL:
            with cython.gil:
                raise MemoryError
        return cython.cast(cython.p_double, room)

    def _write_lags(self, lags):
        """The last residuals of all groups."""
        g: cython.Py_ssize_t
        for g in range(self.G if self.carries else 0):
            if cython.cast(Group, self.group.at[g]).carry is not None:
                memcpy(
                    lags + g * N_LAGS,
                    cython.cast(Group, self.group.at[g]).carry.lags,
                    N_LAGS * cython.sizeof(cython.double),
                )

    def _expect(self, lags, own):
        """They as they would be after a row of which the groups' own predictions were these."""
        g: cython.Py_ssize_t
        for g in range(self.G if self.carries else 0):
            if cython.cast(Group, self.group.at[g]).carry is not None:
                cython.cast(Group, self.group.at[g]).carry.expect(lags + g * N_LAGS, own[g])
        return 0

    def _eta(self, x, room, lags):
        j: cython.Py_ssize_t
        etas: cython.p_double = room + self.p
        own: cython.p_double = etas + 2 * self.n
        for j in range(self.p):
            room[j] = self.bounds.clip(j, x[j])
        self._predict_all(room, etas)
        return self._prediction(etas, lags, etas + self.n, own, own + self.G)

    def _predict_all(self, row, etas):
        """eta of every expert for a row within the bounds."""
        m: cython.Py_ssize_t
        for m in range(self.M):
            cython.cast(Experts, self.each.at[m]).predict(row, etas + self.average.first[m])
        return 0

    def _prediction(self, etas, lags, pulls, own, carried):
        """The mixture's eta; on the way those of the groups, without what their last residuals say and with it."""
        g: cython.Py_ssize_t
        eta: cython.double
        width: cython.double = self.bounds.eta_high - self.bounds.eta_low
        if self.n_seen == 0:
            for g in range(self.G):
                own[g] = carried[g] = 0.0
            return 0.0
        hold(self.n, etas, self.bounds.eta_low - width, self.bounds.eta_high + width, pulls)
        for g in range(self.G):
            own[g] = carried[g] = self.bounds.clip_eta(cython.cast(Group, self.group.at[g]).average(pulls))
            if cython.cast(Group, self.group.at[g]).carry is not None:
                carried[g] = self.bounds.clip_eta(
                    own[g] + cython.cast(Group, self.group.at[g]).carry.offset(lags + g * N_LAGS, own[g])
                )
        eta = self._gated(carried)
        return self.calibration.of(eta) if self.calibrates else eta

    def _gated(self, etas):
        """The average of the groups."""
        return self.bounds.clip_eta(dot(self.G, self.average.gate, etas))

    def write_model(self, model):
        j: cython.Py_ssize_t
        shift: cython.double = 0.0
        scale: cython.double = 1.0
        self.average.add_models()
        if self.calibrates:
            self.calibration.linear(cython.address(shift), cython.address(scale))
        for j in range(self.p + 1):
            model[j] = scale * self.average.model[j]
        model[0] += shift

    # --- what a person wants to see -----------------------------------------------------------------------------

    @property
    def lam(self):
        self.average.summarise(self.n_seen)
        return self.average.lam

    @property
    def lam_max(self):
        self.average.summarise(self.n_seen)
        return self.average.lam_max

    @property
    def effective_size(self):
        self.average.summarise(self.n_seen)
        return self.average.size

    @property
    def status(self):
        self.average.summarise(self.n_seen)
        return STATUS[self.average.code]

    @property
    def weights(self):
        """(memory, penalty); experts that are alone with their memory have their weight in the first place."""
        found = np.zeros((self.M, max(experts.n for experts in self.experts)))
        for m, experts in enumerate(self.experts):
            first: cython.Py_ssize_t = self.average.first[m]
            found[m, : experts.n] = copied(self.average.total + first, experts.n)
        return found

    @property
    def group_weights(self):
        """What the gate gives to each group, by its name."""
        return {group.name: float(weight) for group, weight in zip(self.groups, self.average.gates(), strict=True)}

    @property
    def memories(self):
        """Of all experts: their memory, and the rows seen when it began; None where it has not."""
        began = [0] * self.M
        for group in self.groups:
            for k, since in enumerate(group.beginnings()):
                began[self._memory_of(group.first + k)] = since
        return [
            (experts.memory, since) if since >= 0 else None for experts, since in zip(self.experts, began, strict=True)
        ]

    def _memory_of(self, e):
        """The place of the experts to which one belongs."""
        m: cython.Py_ssize_t = 0
        while self.average.first[m + 1] <= e:
            m += 1
        return m

    def selected(self):
        sums: Sums
        m: cython.Py_ssize_t = self._readable()
        found, importance = self._coefficients(), np.abs(self.coef)
        model: cython.double[::1] = found
        effect: cython.double[::1] = importance
        if m < 0 or self.n_seen == 0:
            found[1:][~self.selection.support()] = 0.0
            return Selected(float(found[0]), found[1:], self.selection.since, self.inclusion(), importance)
        new_sums(self.p, cython.address(sums))
        cython.cast(Experts, self.each.at[m]).write_sums(cython.address(sums))
        self.selection.measure(cython.address(sums), cython.address(model[1]), cython.address(effect[0]))
        self.selection.refit(cython.address(sums), cython.address(model[0]))
        PyMem_RawFree(sums.S)
        return Selected(float(found[0]), found[1:], self.selection.since, self.inclusion(), importance)

    def single(self):
        return self.selected()

    def inclusion(self):
        return self.selection.probabilities()

    def feature_means(self):
        return copied(self.stream.mean, self.p)

    def expert(self, m: cython.Py_ssize_t, k: cython.Py_ssize_t):
        """lam, lam_max and (b0, b) of one expert."""
        experts: Experts = self.experts[m]
        return experts.lam_of(k), experts.lam_max_of(), self.average.model_of(m, k)

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        experts = {f"experts{m}/": each for m, each in enumerate(self.experts)}
        groups = {f"{group.name}/": group for group in self.groups}
        rest = {"hedge/": self.hedge, "bounds/": self.bounds, "stream/": self.stream, "selection/": self.selection}
        last = {"calibration/": self.calibration} if self.quantiles is None else {"errors/": self.quantiles}
        return {**experts, **groups, **rest, **last, **({} if self.changes is None else {"changes/": self.changes})}

    def travel(self, tape):
        g: cython.Py_ssize_t
        m: cython.Py_ssize_t
        n_seen: cython.Py_ssize_t
        self.noise.travel(tape)
        n_seen = tape.count(cython.address(self.n_seen))
        for m in range(self.M):
            cython.cast(Experts, self.each.at[m]).travel(tape)
        tape.n_seen = n_seen
        for g in range(self.G):
            cython.cast(Group, self.group.at[g]).travel(tape)
        self.hedge.travel(tape)
        self.bounds.travel(tape)
        self.stream.travel(tape)
        tape.n_seen = n_seen
        self.selection.travel(tape)
        if self.quantiles is not None:
            self.quantiles.travel(tape)
        else:
            self.calibration.travel(tape)
        if self.changes is not None:
            self.changes.travel(tape)
        if tape.mode == READ:
            self.is_asked = False
            self._add_up()
