# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One model of the exact likelihood, whose own tuner moves its lam."""

import cython
import numpy as np
from cython.cimports.streamlasso.core.base.record import as_records
from cython.cimports.streamlasso.core.lasso.learner import Learner
from cython.cimports.streamlasso.core.mixture.groups.base import STALE_ROWS, Experts

from streamlasso.core.base.record import RECORD
from streamlasso.tuners import LogRMS

#: A model with less weight than this is solved once in STALE_ROWS rows.
STALE_MODEL = cython.declare(cython.double, 0.03)
#: One model among others need not be solved to more digits than its weight has.
SHARED_TOLERANCE = cython.declare(cython.double, 1e-8)


#: Of the group before the first row.
PRIOR = 0.3


def join(parts):
    """One for each memory, where the tuner moves one lam. Where penalties compete and rows are expanded to quadratics,
    one for the longest memory and one for the middle one: the quadratics of the first rows hold back fits that
    sharpen for as long as rows come in."""
    first, tuner, family = parts.n, parts.tuner, parts.family
    if not tuner.competes:
        for memory in parts.memories:
            parts.add(ModelExperts(_learner(parts, memory, tuner), memory))
    elif not family.quadratic and len(tuner.powers) > 1:
        for memory in longest_and_middle(parts.memories):
            parts.add(ModelExperts(_learner(parts, memory, LogRMS()), memory, STALE_ROWS))
    if parts.n > first:
        parts.group("exact", first, parts.n - first, PRIOR)


def _learner(parts, memory, tuner):
    return Learner(parts.n_features, **{**parts.settings, "memory": memory, "tuner": tuner})


def longest_and_middle(memories):
    by_length = sorted(memories, key=lambda memory: memory.decay)
    return [by_length[i] for i in sorted({(len(by_length) - 1) // 2, len(by_length) - 1})]


@cython.cclass
class ModelExperts(Experts):
    """A single model; with little weight it is solved once in `stale_rows`."""

    kind = "lasso"
    exact = True

    def __cinit__(self, learner: Learner, memory, stale_rows: cython.Py_ssize_t = 1):
        self.learner = learner
        self.learner.quantiles = None
        self.memory = memory
        self.n = 1
        self.stale_rows = stale_rows
        self.notes = np.zeros((learner.batch_size, len(RECORD)))
        self.model = np.zeros(learner.p + 1)
        if stale_rows > 1:
            learner.objective.tolerance = SHARED_TOLERANCE

    def predict(self, x, eta):
        eta[0] = self.learner.eta_at(x)
        return 0

    def learn(self, batch):
        turn: cython.Py_ssize_t = self.learner.n_seen // self.stale_rows
        if batch.weight[0] < STALE_MODEL and self.learner.started:
            if (self.learner.n_seen + batch.n) // self.stale_rows == turn:
                return self.learner.take_in(batch.n, batch.X, batch.y, batch.w)
        return self.learner._step(batch.n, batch.X, batch.y, batch.w, as_records(cython.address(self.notes[0, 0])))

    def add_coef(self, weight, model):
        j: cython.Py_ssize_t
        self.learner.write_model(cython.address(self.model[0]))
        for j in range(self.learner.p + 1):
            model[j] += weight[0] * self.model[j]
        return 0

    def mark(self, weight, used):
        return self.learner.objective.active.mark(used) if weight[0] > 0.0 else 0

    def lam_of(self, k):
        return self.learner.lam

    def lam_max_of(self):
        return self.learner.objective.lam_max

    def size_of(self):
        return self.learner.objective.effective_size()

    def keeps_sums(self):
        return self.learner.objective.keeps_sums()

    def write_sums(self, sums):
        self.learner.objective.write_sums(sums)

    def code_of(self, k):
        return self.learner.code

    def travel(self, tape):
        self.learner.travel(tape)

    def parts(self):
        return {"": self.learner}
