# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Experts with different memories and penalties, averaged by how well they have predicted.

1. every expert predicts the row; the mixture's eta is their average, `total_e` the weights (`shares.py`)
2. each is evaluated on its prequential loss, in units of the noise (below), and the weights are updated
3. all learn the row, each with its memory and its lam
4. every few rows a memory restarts: the one with the lowest weight among those that may

Averaging eta is averaging coefficients, so the mixture is one linear model at every moment. Only an expert whose eta
lies further outside the bounds (`bounds.py`) than these are apart is held there: a thousandth of ten thousand is ten.

**Restarts.** A memory that never forgets but began right after the last change is the best there is. When that was is
unknown, so one restarts every EVERY rows, or less often where few may: no more than half of them should be young. Each
is kept until it has had YOUNG rows; then the one with the lowest weight is the next to restart. Those that began just
after a change stay for as long as they predict well. The memory that began with the first row always stays.

**Exact models.** For families other than the Gaussian a path is made of quadratics (`path.py`): each row is expanded
once, where it was first fitted. Where noise is low, fits sharpen for as long as rows come in, and the quadratics of the
first rows hold them back. So where penalties compete, a model of the exact likelihood (`likelihood.py`), whose lam is
moved by `LogRMS`, is added to the longest of the memories that stay and to the middle one.

**Units of the noise.** An expert's excess D_e is its loss less the least loss that any eta could have had. In units of
the dispersion phi, a fading mean of 2D for the mixture itself, it is a log-likelihood, so there is no learning rate to
set, and multiplying y by a million changes nothing. Real noise has heavy tails, and one outlier must not decide
everything, so no row moves the odds between two experts, or phi, by more than ODDS_CAP allows:

    l_e = min(D_e / phi, ODDS_CAP),        phi <- fading mean of 2 min(D, ODDS_CAP phi)

A class has no scale and no tails (`Family.has_scale`): there phi is 1, and there is no cap. An expert is evaluated on
its own prediction, before it is held within the bounds: its coefficients are averaged, not its predictions.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, isfinite, isnan
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.streamlasso.core.bounds import Bounds
from cython.cimports.streamlasso.core.carry import N_CHOICES, N_LAGS, Carry
from cython.cimports.streamlasso.core.engine import Engine
from cython.cimports.streamlasso.core.experts import Experts, ModelExperts, PathExperts
from cython.cimports.streamlasso.core.learner import Learner
from cython.cimports.streamlasso.core.path import STALE_ROWS, Path
from cython.cimports.streamlasso.core.pointers import Pointers
from cython.cimports.streamlasso.core.record import N_STATUSES, WAITING, Record
from cython.cimports.streamlasso.core.shares import N_SHARES, Shares
from cython.cimports.streamlasso.core.values import FIRST_ROWS, weight_of

from streamlasso.core.objective import problem_of
from streamlasso.core.selected import Selected
from streamlasso.core.state import COUNT, FIXED, NOT_NEGATIVE, WEIGHT, WITH_INTERCEPT, Column, array, below, numbers
from streamlasso.memories import Forgetting
from streamlasso.tuners import LogRMS

#: Rows from one restart to the next, at least.
EVERY = cython.declare(cython.Py_ssize_t, 4)
#: A memory is young, and stays, until it has had this many rows: FIRST_ROWS to learn from and a few to be evaluated on.
YOUNG = cython.declare(cython.Py_ssize_t, FIRST_ROWS + 2)
#: The most that one row can change the log odds between two experts.
ODDS_CAP = cython.declare(cython.double, 6.0)
#: The forgetting factor of the dispersion.
DISPERSION_DECAY = cython.declare(cython.double, 0.98)

LAM = cython.declare(cython.int, 0)
LAM_MAX = cython.declare(cython.int, 1)
SIZE = cython.declare(cython.int, 2)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _from_the_least(loss: cython.double[::1]) -> cython.bint:
    """Losses less the least of them; whether there is one."""
    i: cython.Py_ssize_t
    least: cython.double = INFINITY
    for i in range(loss.shape[0]):
        least = min(least, loss[i])
    if least < INFINITY:
        for i in range(loss.shape[0]):
            loss[i] -= least
    return least < INFINITY


def competing(memory, tuner):
    """The memories that stay, those of the setting or of the tuner, and how many more restart."""
    if memory is not None:
        return list(memory.members()), 0
    return [Forgetting(1.0), *(Forgetting(r) for r in tuner.factors)], tuner.starts


def exact_among(memories):
    """The longest of the memories, and the middle one."""
    by_length = sorted(memories, key=lambda memory: memory.decay)
    return [by_length[i] for i in sorted({(len(by_length) - 1) // 2, len(by_length) - 1})]


@cython.cclass
class MixtureLearner(Engine):
    """A mixture on one stream. All settings are checked by the faces; see `streamlasso.RAPRegressor`."""

    STATE = (
        numbers("dispersion", Column("dispersion", WEIGHT), Column("dispersion_weight", WEIGHT)),
        array("began", FIXED, attribute="beginnings", range=COUNT, computed=True, dtype=np.int64),
        array("model", WITH_INTERCEPT, exchanged=np.negative),
        numbers("lam", Column("lam", NOT_NEGATIVE)),
        numbers("seen", Column("n_seen", COUNT), Column("code", below(N_STATUSES)), dtype=np.int64),
    )

    def __cinit__(self, n_features: int, *, memory, tuner, batch_size=1, **settings):
        m: cython.Py_ssize_t
        self.settings = dict(settings, memory=memory, tuner=tuner, batch_size=batch_size)
        self.p = n_features
        self.family = settings["family"]
        self.family.check()
        tuner.check()
        self.batch_size = batch_size
        stay, starts = competing(memory, tuner)
        self.experts = [self._experts(memory) for memory in stay]
        if self.experts[0].n > 1 and not self.family.quadratic:
            self.experts += [self._exact(memory) for memory in exact_among(stay)]
        self.n_permanent = len(self.experts)
        self.every = max(EVERY, 2 * YOUNG // max(starts, 1) + 1)
        self.experts += [self._experts(Forgetting(1.0)) for _ in range(starts)]
        self.n_memories = len(self.experts)
        self.compiled = self.family.compiled and tuner.compiled
        self.each = Pointers(self.experts)
        self.K = self.experts[0].n
        self.n = self.n_memories * self.K
        self.began = np.where(np.arange(self.n_memories) < self.n_permanent, 0, -1)
        self.bounds = Bounds(self.p, self.family)
        self.carry = Carry(self.family)
        self.carries = tuner.carry and settings["fit_intercept"]
        self.shares = Shares(self.n_memories, self.K)
        for m in range(self.n_permanent):
            self.shares.enter(m)
        self.shares.start()
        self.scaled = self.family.has_scale
        self.dispersion = 0.0 if self.scaled else 1.0
        self.dispersion_weight = 0.0
        self.loss = np.zeros(self.n)
        self.share_loss = np.zeros(N_SHARES)
        self.predicted = np.zeros(batch_size)
        self.own = np.zeros(batch_size)
        self.lags = np.zeros((batch_size, N_LAGS))
        self.targets = np.zeros(batch_size)
        self.weight = np.zeros(batch_size)
        self.rows = np.zeros((batch_size, self.p))
        self.etas = np.zeros((batch_size, self.n))
        self.model = np.zeros(self.p + 1)
        self.n_seen = 0
        self.lam = 0.0
        self.busy = False
        self.code = WAITING

    def _experts(self, memory):
        """The experts with this memory: a path of penalties, or one with a tuner."""
        tuner = self.settings["tuner"]
        settings = {**self.settings, "memory": memory}
        if not tuner.competes:
            return ModelExperts(Learner(self.p, **settings), memory)
        return PathExperts(Path(problem_of(settings, memory), tuner.powers_for(self.family)), memory)

    def _exact(self, memory):
        """A model of the likelihood itself, beside the paths of quadratics."""
        learner = Learner(self.p, **{**self.settings, "memory": memory, "tuner": LogRMS()})
        return ModelExperts(learner, memory, self.experts[0].n, STALE_ROWS)

    # --- learning -----------------------------------------------------------------------------------------------

    def _step(self, n, X, y, w, out):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        seen: cython.double = 0.0
        record: cython.pointer[Record]
        for i in range(n):
            record = out + i
            for j in range(self.p):
                self.rows[i, j] = self.bounds.clip(j, X[i * self.p + j])
            self._predict_all(cython.address(self.rows[i, 0]), cython.address(self.etas[i, 0]))
            self.own[i] = self._prediction(cython.address(self.etas[i, 0]))
            memcpy(
                cython.address(self.lags[i, 0]),
                cython.address(self.lags[i - 1, 0]) if i > 0 else cython.address(self.carry.lags[0]),
                N_LAGS * cython.sizeof(cython.double),
            )
            if self.carries and i > 0:
                self.carry.expect(cython.address(self.lags[i, 0]), self.own[i - 1])
            record.eta = self._carried(cython.address(self.lags[i, 0]), self.own[i])
            record.loss = self.family.loss_at(y[i], record.eta)
            record.slope = 0.0
            seen += weight_of(w, i)
        if seen > 0.0:
            for i in range(n):
                self.targets[i] = self.bounds.clip_y(y[i])
                self.weight[i] = weight_of(w, i) * self.bounds.trust(X + i * self.p, y[i])
                if weight_of(w, i) > 0.0:
                    self._evaluate(i)
            self._learn_all(n)
            self._blend()
        for i in range(n):
            record = out + i
            record.lam = self.lam
            record.lam_max = self._average(LAM_MAX)
            record.n_active = self._n_active()
            record.effective_size = self._average(SIZE)
            record.status = self.code
        return 0

    def _carried(self, lags, eta):
        """eta with what the last residuals add to it."""
        if not self.carries:
            return eta
        return self.bounds.clip_eta(eta + self.carry.offset(lags, eta))

    def _evaluate(self, i):
        """Update the weights, and what the residuals say, by the i-th row of the mini-batch."""
        y: cython.double = self.targets[i]
        least: cython.double
        if self.n_seen == 0:
            return 0
        least = self.bounds.least_loss(y)
        if self.scaled:
            self._measure_noise(2.0 * max(self.family.loss_at(y, self.own[i]) - least, 0.0))
        if self.dispersion > 0.0:
            self._evaluate_experts(y, self.weight[i], least, cython.address(self.etas[i, 0]))
        if self.carries:
            self._learn_carry(y, self.weight[i], least, self.own[i], cython.address(self.lags[i, 0]))
        return 0

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
        e: cython.Py_ssize_t
        eta: cython.double
        for e in range(self.n):
            self.loss[e] = INFINITY
            if self.shares.alive[e // self.K]:
                self.loss[e] = self._loss_of(y, weight, least, etas[e])
        for e in range(N_SHARES):
            eta = self._average_of(cython.address(self.shares.w[e, 0]), etas)
            self.share_loss[e] = self._loss_of(y, weight, least, eta)
        if _from_the_least(self.loss) and _from_the_least(self.share_loss):
            self.shares.update(cython.address(self.loss[0]), cython.address(self.share_loss[0]))
        return 0

    def _loss_of(self, y, weight, least, eta):
        """A loss in units of the noise; infinite where eta is not finite."""
        cap: cython.double = ODDS_CAP if self.scaled else INFINITY
        if not isfinite(eta):
            return INFINITY
        return weight * min((self.family.loss_at(y, eta) - least) / self.dispersion, cap)

    def _measure_noise(self, deviance):
        if self.dispersion > 0.0:
            deviance = min(deviance, 2.0 * ODDS_CAP * self.dispersion)
        self.dispersion_weight = DISPERSION_DECAY * self.dispersion_weight + 1.0
        self.dispersion += (deviance - self.dispersion) / self.dispersion_weight

    def _learn_all(self, n):
        """All experts learn the rows, whatever their weight; then a memory may restart."""
        i: cython.Py_ssize_t
        m: cython.Py_ssize_t
        for m in range(self.n_memories):
            if self.began[m] < 0:
                continue
            for i in range(n):
                self.predicted[i] = self._prediction_of(m, cython.address(self.etas[i, m * self.K]))
            cython.cast(Experts, self.each.at[m]).learn(
                n,
                cython.address(self.rows[0, 0]),
                cython.address(self.targets[0]),
                cython.address(self.weight[0]),
                cython.address(self.predicted[0]),
                cython.address(self.shares.total[m * self.K]),
                self.shares.leader(m),
                self.bounds.eta_low if self.n_seen >= FIRST_ROWS else -INFINITY,
                self.bounds.eta_high if self.n_seen >= FIRST_ROWS else INFINITY,
            )
        for i in range(n):
            if self.weight[i] > 0.0:
                self.bounds.see(cython.address(self.rows[i, 0]), self.targets[i])
                self.n_seen += 1
                if self.n_memories > self.n_permanent and self.n_seen % self.every == 0:
                    self._restart()
        return 0

    def _prediction_of(self, m, etas):
        """The average prediction of the experts with one memory."""
        k: cython.Py_ssize_t
        total: cython.double = self.shares.memory_weight(m)
        eta: cython.double = 0.0
        for k in range(self.K):
            eta += self.shares.total[m * self.K + k] / total * self.bounds.clip_eta(etas[k])
        return eta if total > 0.0 else self.bounds.clip_eta(etas[0])

    def _restart(self):
        """A memory that is not there yet, or the one with the lowest weight of those that are not young any more."""
        m: cython.Py_ssize_t
        chosen: cython.Py_ssize_t = -1
        for m in range(self.n_permanent, self.n_memories):
            if self.began[m] < 0:
                chosen = m
                break
            if self.n_seen - self.began[m] > YOUNG and (
                chosen < 0 or self.shares.memory_weight(m) < self.shares.memory_weight(chosen)
            ):
                chosen = m
        if chosen < 0:
            return
        if self.began[chosen] >= 0:
            self.shares.leave(chosen)
        self.began[chosen] = self.n_seen
        cython.cast(Experts, self.each.at[chosen]).forget()
        self.shares.enter(chosen)

    def _blend(self):
        """The averaged model, and what is noted of it."""
        m: cython.Py_ssize_t
        memset(cython.address(self.model[0]), 0, (self.p + 1) * cython.sizeof(cython.double))
        for m in range(self.n_memories):
            if self.began[m] >= 0:
                cython.cast(Experts, self.each.at[m]).blend(
                    cython.address(self.shares.total[m * self.K]), cython.address(self.model[0])
                )
        self.lam = self._average(LAM)
        m = self._leading_memory()
        self.code = cython.cast(Experts, self.each.at[m]).code_of(self.shares.leader(m))

    def _average(self, what):
        """lam, lam_max or the effective size, over all experts by their weights."""
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        weight: cython.double
        all_weight: cython.double = 0.0
        total: cython.double = 0.0
        for m in range(self.n_memories):
            if self.began[m] < 0:
                continue
            weight = self.shares.memory_weight(m)
            all_weight += weight
            if what == LAM:
                for k in range(self.K):
                    total += self.shares.total[m * self.K + k] * cython.cast(Experts, self.each.at[m]).lam_of(k)
            elif what == LAM_MAX:
                total += weight * cython.cast(Experts, self.each.at[m]).lam_max_of()
            else:
                total += weight * cython.cast(Experts, self.each.at[m]).size_of()
        return total / all_weight

    def _leading_memory(self):
        """The memory of the expert with the largest weight."""
        m: cython.Py_ssize_t
        best: cython.Py_ssize_t = 0
        weight: cython.double
        most: cython.double = -1.0
        for m in range(self.n_memories):
            weight = self._weight_of(m, self.shares.leader(m))
            if self.began[m] >= 0 and weight > most:
                best = m
                most = weight
        return best

    def _weight_of(self, m, k):
        """The weight of one expert: one model in all places has what all of them have."""
        if cython.cast(Experts, self.each.at[m]).alike:
            return self.shares.memory_weight(m)
        return self.shares.total[m * self.K + k]

    def _n_active(self):
        j: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for j in range(1, self.p + 1):
            n += self.model[j] != 0.0
        return n

    # --- predicting ---------------------------------------------------------------------------------------------

    def eta_at(self, x):
        """The average prediction of the row that follows the last one learnt."""
        row: cython.p_double = cython.cast(cython.p_double, malloc((self.p + self.n) * cython.sizeof(cython.double)))
        eta: cython.double = self._carried(cython.address(self.carry.lags[0]), self._own_eta(x, row))
        free(row)
        return eta

    def predict_rows(self, n, X, etas, residuals):
        """What the last residuals say fades from row to row."""
        i: cython.Py_ssize_t
        eta: cython.double
        row: cython.p_double = cython.cast(cython.p_double, malloc((self.p + self.n) * cython.sizeof(cython.double)))
        for i in range(n):
            eta = self._own_eta(X + i * self.p, row)
            etas[i] = self._carried(residuals, eta)
            if self.carries:
                self.carry.expect(residuals, eta)
        free(row)
        return 0

    def residuals(self):
        return np.array(self.carry.lags)

    def _own_eta(self, x, row):
        """The average prediction of a row alone; `row` has room for it and for the etas of all experts."""
        j: cython.Py_ssize_t
        for j in range(self.p):
            row[j] = self.bounds.clip(j, x[j])
        self._predict_all(row, row + self.p)
        return self._prediction(row + self.p)

    def _predict_all(self, row, etas):
        """eta of every expert for a row within the bounds."""
        m: cython.Py_ssize_t
        for m in range(self.n_memories):
            if self.began[m] >= 0:
                cython.cast(Experts, self.each.at[m]).predict(row, etas + m * self.K)
        return 0

    def _prediction(self, etas):
        """b0 + x'b, but that no expert pulls further than from one width outside the bounds."""
        return self._average_of(cython.address(self.shares.total[0]), etas) if self.n_seen > 0 else 0.0

    def _average_of(self, weights, etas):
        e: cython.Py_ssize_t
        width: cython.double = self.bounds.eta_high - self.bounds.eta_low
        low: cython.double = self.bounds.eta_low - width
        high: cython.double = self.bounds.eta_high + width
        eta: cython.double = 0.0
        for e in range(self.n):
            if weights[e] > 0.0 and not isnan(etas[e]):
                eta += weights[e] * min(max(etas[e], low), high)
        return self.bounds.clip_eta(eta)

    def write_model(self, model):
        j: cython.Py_ssize_t
        shift: cython.double = 0.0
        scale: cython.double = 1.0
        if self.carries:
            self.carry.linear(cython.address(shift), cython.address(scale))
        for j in range(self.p + 1):
            model[j] = scale * self.model[j]
        model[0] += shift

    # --- what a person wants to see -----------------------------------------------------------------------------

    @property
    def lam_max(self):
        return self._average(LAM_MAX)

    @property
    def effective_size(self):
        return self._average(SIZE)

    @property
    def weights(self):
        """(memory, penalty); a memory that is not there has none."""
        return np.array(self.shares.total).reshape(self.n_memories, self.K)

    @property
    def memories(self):
        """Of each memory: what it is, and the rows seen when it began; None where there is none."""
        return [
            (experts.memory, int(began)) if began >= 0 else None
            for experts, began in zip(self.experts, self.began, strict=True)
        ]

    def selected(self):
        m, k, weight = self.selected_expert()
        memory, since = self.memories[m]
        lam, lam_max, model = self.expert(m, k)
        return Selected(memory, since, lam, lam_max, weight, float(model[0]), model[1:])

    def single(self):
        return self.selected()

    def selected_expert(self):
        """The memory of the expert with the largest weight, and with it the largest penalty that has at least half of
        that: of two models that predict about as well, the sparser; and its weight."""
        m: cython.Py_ssize_t = self._leading_memory()
        weights = self.weights[m]
        k: cython.Py_ssize_t = np.argmax(weights >= 0.5 * weights.max())
        return m, k, self._weight_of(m, k)

    def expert(self, m: cython.Py_ssize_t, k: cython.Py_ssize_t):
        """lam, lam_max and (b0, b) of one expert."""
        experts: Experts = self.experts[m]
        weights: cython.double[::1] = np.where(np.arange(self.K) == k, 1.0, 0.0)
        model = np.zeros(self.p + 1)
        out: cython.double[::1] = model
        experts.blend(cython.address(weights[0]), cython.address(out[0]))
        return experts.lam_of(k), experts.lam_max_of(), model

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        experts = {f"experts{m}/": each for m, each in enumerate(self.experts)}
        return {**experts, "bounds/": self.bounds, "shares/": self.shares, "carry/": self.carry}

    @property
    def beginnings(self):
        """The rows seen with the first of each memory; 0 where there is none."""
        return np.asarray(self.began) + 1

    @beginnings.setter
    def beginnings(self, rows):
        np.asarray(self.began)[:] = rows - 1

    def _check_together(self, state):
        there = state["began"] > 0
        if np.any(state["began"] - 1 > state["seen"][0]):
            raise ValueError("a memory began after the last row")
        if not np.all(there[: self.n_permanent]) or np.any((state["shares/alive"] != 0) != there):
            raise ValueError("memories that are not there have weight")
