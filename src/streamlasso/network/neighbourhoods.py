# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Neighbourhood selection: each node of a network regressed on all others, on one covariance.

With S the weighted scatter of all p nodes, the regression of node i on the others is the lasso of `objective.py` with

    S = S,      c = S_i.,      v_i = infinity

its own column is barred, and its c is its row of S. So a time point enters S once, for all nodes (`SharedCovariance`);
what a node has to itself is its active set, its lam and what its tuner remembers. Otherwise it takes the steps of
`learner.py`, in their order.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.base.buffers import Pointers, copied
from cython.cimports.streamlasso.core.base.record import as_records
from cython.cimports.streamlasso.core.base.state import Stateful
from cython.cimports.streamlasso.core.base.tape import READ
from cython.cimports.streamlasso.core.lasso.active_set import ActiveSets
from cython.cimports.streamlasso.core.lasso.learner import Learner
from cython.cimports.streamlasso.core.lasso.objective import LeastSquares

from streamlasso.core.lasso.objective import problem_of


@cython.cclass
class SharedCovariance(LeastSquares):
    """The covariance of all nodes, which the factor of every node follows."""

    def give_to(self, nodes):
        """These nodes look at this covariance from now on."""
        self.nodes = Pointers(nodes)
        self.actives = ActiveSets([cython.cast(Node, node).active for node in nodes])

    def share(self):
        """S in full, the units, and each node's view of them."""
        i: cython.Py_ssize_t
        self.moments.flush()
        self._penalty_units()
        for i in range(self.nodes.n):
            cython.cast(Node, self.nodes.at[i]).refresh()


@cython.cclass
class Node(LeastSquares):
    """One node's regression. Its sums are views of the shared ones; `refresh` fetches the few numbers that are not."""

    def __cinit__(self, problem, scratch, shared: SharedCovariance, place: cython.Py_ssize_t):
        self.shared = shared
        self.place = place
        self.size = shared.size
        self.scaler.mean = shared.scaler.mean
        self.scaler.scatter = shared.scaler.scatter
        self.moments.S = shared.moments.S
        self.moments.mean = shared.moments.mean
        self.moments.c = shared.moments.S + place * self.p

    def refresh(self):
        self.unit = self.shared.unit
        self.n_seen = self.shared.n_seen
        self.scaler.weight = self.shared.scaler.weight
        self.moments.weight = self.shared.moments.weight
        self.moments.target_mean = self.shared.moments.mean[self.place]
        self.moments.target_scatter = self.shared.moments.S[self.place * self.p + self.place]

    def _penalty_units(self):
        memcpy(self.v, self.shared.v, self.p * cython.sizeof(cython.double))
        self.v[self.place] = INFINITY

    def residual_variance(self):
        """(S_ii - 2 b'c + b'Sb)/omega, where Sb = c - g."""
        q: cython.Py_ssize_t
        j: cython.Py_ssize_t
        rest: cython.double = self.moments.target_scatter
        if not self.scaler.weight > 0.0:
            return 0.0
        for q in range(self.active.k):
            j = self.active.members[q]
            rest -= self.active.b[q] * (self.moments.c[j] + self.active.g[j])
        return max(rest, 0.0) / self.scaler.weight

    def parts(self):
        return {"active.": self.active}

    def travel(self, tape):
        """No rows are kept here."""
        n_seen: cython.Py_ssize_t = tape.count(cython.address(self.n_seen))
        tape.index(cython.address(self.n_whole), 1)
        tape.index(cython.address(self.n_removed), 1)
        self._numbers(tape)
        self.active.travel(tape)
        tape.n_seen = n_seen


@cython.cclass
class Neighbourhoods(Stateful):
    """The nodes `first` to `last - 1` of a network of p; all settings are checked by `streamlasso.network`."""

    def __cinit__(self, p: cython.Py_ssize_t, first: cython.Py_ssize_t, last: cython.Py_ssize_t, **settings):
        i: cython.Py_ssize_t
        learner: Learner
        problem = problem_of({**settings, "penalty_factor": np.ones(p)}, settings["memory"])
        self.p = p
        self.n = last - first
        self.first = first
        self.slope = np.zeros(self.n)
        self.shared = SharedCovariance(problem)
        self.learners = [Learner(p, **settings) for _ in range(self.n)]
        for i in range(self.n):
            learner = self.learners[i]
            learner.objective = Node(problem, None, self.shared, first + i)
            learner.quantiles = None
        self.shared.give_to([cython.cast(Learner, learner).objective for learner in self.learners])
        self.each = Pointers(self.learners)

    def learn(self, X: cython.const[cython.double][:, ::1], record, coef, variance):
        """Learn time points in order. Filled in for each node and time point: `record` (node, time, len(RECORD)),
        `coef` (node, time, p + 1) and the residual variance (node, time); the last two may be None."""
        t: cython.Py_ssize_t
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = X.shape[0]
        traced: cython.bint = coef is not None
        records: cython.double[:, :, ::1] = record
        models: cython.double[:, :, ::1] = coef if traced else _NO_COEF
        variances: cython.double[:, ::1] = variance if traced else _NO_VARIANCE
        with cython.nogil:
            for t in range(n):
                self._learn_point(cython.address(X[t, 0]), records, t)
                if traced:
                    for i in range(self.n):
                        variances[i, t] = self._write(
                            cython.cast(Learner, self.each.at[i]), cython.address(models[i, t, 0])
                        )

    def _learn_point(self, x, records, t):
        """Algorithm 1 for every node, with the steps that are common to them taken once."""
        i: cython.Py_ssize_t
        for i in range(self.n):
            self._before(cython.cast(Learner, self.each.at[i]), i, x, as_records(cython.address(records[i, t, 0])))
        self.shared.absorb(x, 0.0, 1.0)
        self.shared.share()
        for i in range(self.n):
            self._after(cython.cast(Learner, self.each.at[i]), i, x, as_records(cython.address(records[i, t, 0])))
        return 0

    def _before(self, learner, i, x, record):
        """The steps before the time point is in S."""
        learner.look(1, x, x + self.first + i, cython.NULL, record)
        self.slope[i] = learner.slope_before(1, x, x + self.first + i, cython.NULL, record)
        return 0

    def _after(self, learner, i, x, record):
        learner.answer(self.slope[i], 1, x, x + self.first + i, cython.NULL, record)
        learner.note(1, record)
        return 0

    def _write(self, learner, model):
        """The model of a node now; returns its residual variance."""
        learner.write_model(model)
        return cython.cast(Node, learner.objective).residual_variance()

    @property
    def n_seen(self):
        return self.shared.n_seen

    def constant(self):
        """Of all p nodes, which have not moved."""
        return copied(self.shared.size, self.p) == 0.0

    def now(self):
        """Intercepts and coefficients (node, p + 1), and residual variances, of each node."""
        coef, variance = np.empty((self.n, self.p + 1)), np.empty(self.n)
        models: cython.double[:, ::1] = coef
        variances: cython.double[::1] = variance
        i: cython.Py_ssize_t
        for i in range(self.n):
            variances[i] = self._write(cython.cast(Learner, self.each.at[i]), cython.address(models[i, 0]))
        return coef, variance

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def pieces(self):
        """The bytes of the covariance, the same whichever nodes are here, and of each node."""
        return [self.shared.pack(), *(learner.pack() for learner in self.learners)]

    def take_pieces(self, pieces):
        """What `pieces` gave."""
        self.unpack(b"".join(pieces))

    def parts(self):
        """The covariance, and each node."""
        nodes = {f"node{self.first + i}/": self.learners[i] for i in range(self.n)}
        return {"covariance/": self.shared, **nodes}

    def travel(self, tape):
        i: cython.Py_ssize_t
        n_seen: cython.Py_ssize_t
        self.shared.travel(tape)
        n_seen = tape.n_seen
        for i in range(self.n):
            cython.cast(Learner, self.each.at[i]).travel(tape)
            tape.require(tape.n_seen == n_seen, b"nodes have not seen the rows of their covariance")
        if tape.mode == READ:
            self.shared.share()


_NO_COEF = np.zeros((1, 1, 1))
_NO_VARIANCE = np.zeros((1, 1))
