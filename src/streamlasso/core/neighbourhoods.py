# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Neighbourhood selection: each node of a network regressed on all others, on one covariance.

With S the weighted scatter of all p nodes, the regression of node i on the others is the lasso of `objective.py` with

    S = S,      c = S_i.,      v_i = infinity

its own column is barred, and its c is its row of S. So a time point enters S once, for all nodes (`Commons`); what a
node has to itself is its active set, its lam and what its tuner remembers. Otherwise it takes the steps of
`learner.py`, in their order.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy
from cython.cimports.streamlasso.core.learner import Learner
from cython.cimports.streamlasso.core.objective import LeastSquares
from cython.cimports.streamlasso.core.record import Record, as_records


@cython.cclass
class Commons(LeastSquares):
    """The covariance of all nodes, whose changes are passed on to the factor of every node."""

    def __cinit__(self, *args):
        self.nodes = []
        self.n = 0

    def __dealloc__(self):
        free(self.each)

    def give_to(self, nodes):
        """These nodes look at this covariance from now on."""
        i: cython.Py_ssize_t
        self.nodes = nodes
        self.n = len(nodes)
        # Borrowed from the list, for loops without the GIL.
        self.each = cython.cast(cython.pointer[cython.p_void], malloc(self.n * cython.sizeof(cython.p_void)))
        for i in range(self.n):
            self.each[i] = cython.cast(cython.p_void, self.nodes[i])

    def share(self):
        """S in full, the units, and each node's view of them."""
        i: cython.Py_ssize_t
        self.moments.flush()
        self._penalty_units()
        for i in range(self.n):
            cython.cast(Node, self.each[i]).refresh()

    def _gained(self, z):
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(Node, self.each[i]).active.absorb(z)

    def _lost(self, z):
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(Node, self.each[i]).active.expel(z)

    def _lost_track(self):
        i: cython.Py_ssize_t
        for i in range(self.n):
            cython.cast(Node, self.each[i]).active.broken = True

    def rescale(self, factor):
        i: cython.Py_ssize_t
        LeastSquares.rescale(self, factor)
        for i in range(self.n):
            cython.cast(Node, self.each[i]).active.factor.scale(factor)


@cython.cclass
class Node(LeastSquares):
    """One node's regression. Its sums are views of the commons; `refresh` fetches the few numbers that are not."""

    def look_at(self, commons: Commons, place: cython.Py_ssize_t):
        self.commons = commons
        self.place = place
        self.size = commons.size
        self.scaler.mean = commons.scaler.mean
        self.scaler.scatter = commons.scaler.scatter
        self.moments.S = commons.moments.S
        self.moments.mean = commons.moments.mean
        self.moments.c = commons.moments.S[place]
        return self

    def refresh(self):
        self.unit = self.commons.unit
        self.n_seen = self.commons.n_seen
        self.scaler.weight = self.commons.scaler.weight
        self.moments.weight = self.commons.moments.weight
        self.moments.target_mean = self.commons.moments.mean[self.place]
        self.moments.target_scatter = self.commons.moments.S[self.place, self.place]

    def _penalty_units(self):
        memcpy(cython.address(self.v[0]), cython.address(self.commons.v[0]), self.p * cython.sizeof(cython.double))
        self.v[self.place] = INFINITY

    def residual_variance(self):
        """(S_ii - 2 b'c + b'Sb)/omega, where Sb = c - g."""
        q: cython.Py_ssize_t
        j: cython.Py_ssize_t
        rest: cython.double = self.moments.target_scatter
        if not self.scaler.weight > 0.0:
            return 0.0
        for q in range(self.active.factor.k):
            j = self.active.members[q]
            rest -= self.active.b[q] * (self.moments.c[j] + self.active.g[j])
        return max(rest, 0.0) / self.scaler.weight

    def parts(self):
        return {"active.": self.active}

    def _check_together(self, state):
        """No rows are kept here."""
        return


@cython.cclass
class Neighbourhoods:
    """The nodes `first` to `last - 1` of a network of p; all settings are checked by `streamlasso.network`."""

    def __cinit__(self, p: cython.Py_ssize_t, first: cython.Py_ssize_t, last: cython.Py_ssize_t, **settings):
        i: cython.Py_ssize_t
        learner: Learner
        memory, penalty = settings["memory"], settings["penalty"]
        self.p = p
        self.n = last - first
        self.first = first
        self.slope = np.zeros(self.n)
        sums = (
            settings["family"],
            np.ones(p),
            penalty.l1_ratio,
            settings["fit_intercept"],
            settings["standardize"],
            settings["gradient"] == "diagonal",
            memory.decay,
            memory.length,
            0,
        )
        self.commons = Commons(p, *sums)
        self.learners = [Learner(p, **settings) for _ in range(self.n)]
        self.each = cython.cast(cython.pointer[cython.p_void], malloc(self.n * cython.sizeof(cython.p_void)))
        nodes = []
        for i in range(self.n):
            learner = self.learners[i]
            learner.objective = Node(p, *sums).look_at(self.commons, first + i)
            nodes.append(learner.objective)
            self.each[i] = cython.cast(cython.p_void, learner)
        self.commons.give_to(nodes)

    def __dealloc__(self):
        free(self.each)

    def learn(self, X: cython.const[cython.double][:, ::1], record, coef, variance):
        """Learn time points in order. Filled in for each node and time point: `record` (node, time, len(RECORD)),
        `coef` (node, time, p + 1) and the residual variance (node, time); the last two may be None."""
        t: cython.Py_ssize_t
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = X.shape[0]
        traced: cython.bint = coef is not None
        notes: cython.double[:, :, ::1] = record
        paths: cython.double[:, :, ::1] = coef if traced else _NO_COEF
        rests: cython.double[:, ::1] = variance if traced else _NO_VARIANCE
        records: cython.pointer[cython.pointer[Record]] = cython.cast(
            cython.pointer[cython.pointer[Record]], malloc(max(self.n, 1) * cython.sizeof(cython.p_void))
        )
        try:
            with cython.nogil:
                for t in range(n):
                    for i in range(self.n):
                        records[i] = as_records(cython.address(notes[i, t, 0]))
                    self._learn_point(cython.address(X[t, 0]), records)
                    if traced:
                        for i in range(self.n):
                            cython.cast(Learner, self.each[i])._trace(cython.address(paths[i, t, 0]))
                            rests[i, t] = cython.cast(
                                Node, cython.cast(Learner, self.each[i]).objective
                            ).residual_variance()
        finally:
            free(records)

    def _learn_point(self, x, records):
        """Algorithm 1 for every node, with the steps that are common to them taken once."""
        i: cython.Py_ssize_t
        y: cython.pointer[cython.const[cython.double]] = x + self.first
        for i in range(self.n):
            cython.cast(Learner, self.each[i]).look(1, x, y + i, cython.NULL, records[i])
            self.slope[i] = cython.cast(Learner, self.each[i]).slope_before(1, x, y + i, cython.NULL, records[i])
        self.commons.absorb(x, 0.0, 1.0)
        self.commons.share()
        for i in range(self.n):
            cython.cast(Learner, self.each[i]).answer(self.slope[i], 1, x, y + i, cython.NULL, records[i])
            cython.cast(Learner, self.each[i]).note(1, records[i])
        return 0

    @property
    def n_seen(self):
        return self.commons.n_seen

    def constant(self):
        """Of all p nodes, which have not moved."""
        return np.array(self.commons.size) == 0.0

    def now(self):
        """Intercepts and coefficients (node, p + 1), and residual variances, of each node."""
        variance = [cython.cast(Node, node).residual_variance() for node in self.commons.nodes]
        coef = [np.append(learner.intercept, learner.coef) for learner in self.learners]
        return np.array(coef), np.array(variance)

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def parts(self):
        """The commons, the same whichever nodes are here, and each node."""
        return {"commons/": self.commons, **{f"node{self.first + i}/": self.learners[i] for i in range(self.n)}}

    def _check_together(self, state):
        seen = state["commons/counts"][0]
        if any(tuple(state[f"node{self.first + i}/counts"]) != (seen, 0, 0) for i in range(self.n)):
            raise ValueError("nodes have not seen the rows of their covariance")

    def _filled(self):
        self.commons.share()


_NO_COEF = np.zeros((1, 1, 1))
_NO_VARIANCE = np.zeros((1, 1))
