# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The experts that share a memory, as a mixture sees them: a path of penalties, or one lam with its tuner.

All memories of a mixture have as many experts. A model that has one lam stands for all of them.
"""

import cython
import numpy as np
from cython.cimports.streamlasso.core.record import as_records
from cython.cimports.streamlasso.core.state import Stateful
from cython.cimports.streamlasso.core.values import weight_of

from streamlasso.core.record import RECORD

#: A model with less weight than this need not be up to date.
STALE_MODEL = cython.declare(cython.double, 0.03)


@cython.cclass
class Experts(Stateful):
    """`n` experts with one memory; they are `alike` where it is one model."""

    def predict(self, x, eta):
        """eta of each expert."""
        return 0

    def learn(self, n, X, y, w, predicted, weight, leader, eta_low, eta_high):
        """Learn n rows. `predicted`: the average prediction of each row; `weight`, `leader`: of the experts."""
        return 0

    def blend(self, weight, model):
        """model += sum_k weight_k (b0_k, b_k)"""
        return

    def lam_of(self, k):
        return 0.0

    def lam_max_of(self):
        return 0.0

    def size_of(self):
        return 0.0

    def code_of(self, k):
        return 0

    def forget(self):
        """Restart with no rows; only experts that may restart can."""
        return


@cython.cclass
class PathExperts(Experts):
    """An expert for each power."""

    def __cinit__(self, path: Path, memory):
        self.path = path
        self.memory = memory
        self.n = path.n

    def predict(self, x, eta):
        self.path.predict_all(x, eta)
        return 0

    def learn(self, n, X, y, w, predicted, weight, leader, eta_low, eta_high):
        i: cython.Py_ssize_t
        self.path.leader = leader
        self.path.eta_low = eta_low
        self.path.eta_high = eta_high
        for i in range(n):
            if weight_of(w, i) > 0.0:
                self.path.predicted = predicted[i]
                self.path.absorb(X + i * self.path.p, y[i], weight_of(w, i))
        self.path.settle(weight)
        return 0

    def blend(self, weight, model):
        self.path.blend(weight, model)

    def lam_of(self, k):
        return self.path.lam[k]

    def lam_max_of(self):
        return self.path.lam_max

    def size_of(self):
        return self.path.effective_size()

    def code_of(self, k):
        return self.path.code[k]

    def forget(self):
        self.path.forget()

    def parts(self):
        return {"": self.path}


@cython.cclass
class ModelExperts(Experts):
    """One model whose own tuner moves its lam, in all of n places.

    `stale_rows`: where it has little weight, it is solved once in so many rows; they all enter its memory.
    """

    def __cinit__(self, learner: Learner, memory, n: cython.Py_ssize_t = 1, stale_rows: cython.Py_ssize_t = 1):
        self.learner = learner
        self.memory = memory
        self.n = n
        self.alike = True
        self.stale_rows = stale_rows
        self.notes = np.zeros((learner.batch_size, len(RECORD)))
        self.model = np.zeros(learner.p + 1)

    def predict(self, x, eta):
        k: cython.Py_ssize_t
        eta[0] = self.learner.eta_at(x)
        for k in range(1, self.n):
            eta[k] = eta[0]
        return 0

    def learn(self, n, X, y, w, predicted, weight, leader, eta_low, eta_high):
        turn: cython.Py_ssize_t = self.learner.n_seen // self.stale_rows
        if self._total(weight) < STALE_MODEL and self.learner.started:
            if (self.learner.n_seen + n) // self.stale_rows == turn:
                return self.learner.take_in(n, X, y, w)
        return self.learner._step(n, X, y, w, as_records(cython.address(self.notes[0, 0])))

    def _total(self, weight):
        k: cython.Py_ssize_t
        total: cython.double = 0.0
        for k in range(self.n):
            total += weight[k]
        return total

    def blend(self, weight, model):
        j: cython.Py_ssize_t
        total: cython.double = self._total(weight)
        self.learner.write_model(cython.address(self.model[0]))
        for j in range(self.learner.p + 1):
            model[j] += total * self.model[j]

    def lam_of(self, k):
        return self.learner.lam

    def lam_max_of(self):
        return self.learner.objective.lam_max

    def size_of(self):
        return self.learner.objective.effective_size()

    def code_of(self, k):
        return self.learner.code

    def parts(self):
        return {"": self.learner}
