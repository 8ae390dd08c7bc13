# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The step: Algorithm 1 of the paper, one observation (or one mini-batch) at a time.

1. predict with the state before the row; its loss is the honest, prequential one
2. the derivative dC/dlam = loss'(eta) deta/dlam (`curvature="previous"`: Algorithm 1 as printed)
3. the memory takes the row in
4. (`curvature="updated"`: the same derivative, with a Hessian that has the row in it)
5. the tuner moves lam, which is clamped to [0, lam_max]
6. solve for b(lam) from a warm start

Nothing of the row being predicted is in step 1; only the Hessian of step 4 has seen it.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, isfinite, isnan
from cython.cimports.streamlasso.core.base.buffers import Doubles, copied
from cython.cimports.streamlasso.core.base.checks import FIRST_ROWS, weight_of
from cython.cimports.streamlasso.core.base.record import N_STATUSES, WAITING, Record
from cython.cimports.streamlasso.core.base.tape import ANY, PENALTY
from cython.cimports.streamlasso.core.glm.likelihood import Likelihood
from cython.cimports.streamlasso.core.glm.proximal import Proximal
from cython.cimports.streamlasso.core.lasso.moments import Scaler
from cython.cimports.streamlasso.core.lasso.objective import LeastSquares
from cython.cimports.streamlasso.core.model import Engine
from cython.cimports.streamlasso.core.monitor.detector import Changes
from cython.cimports.streamlasso.core.monitor.intervals import Quantiles

from streamlasso.core.base.state import Column, array, numbers
from streamlasso.core.lasso.objective import problem_of
from streamlasso.core.model import one_for_all, unpacked

#: lam stays at lam_max, where the model is empty, for FIRST_ROWS, then starts at this share of it: after two rows all
#: standardised features are perfectly correlated with the response, and a model of one of them predicts anything.
FIRST_SHARE = cython.declare(cython.double, 0.1)


def whole_rows(history, batch_size, length):
    """How many rows are kept whole: at least a batch, so that each is in one exact solve, and at most the window."""
    whole = max(history, batch_size)
    return min(whole, length + 1) if length else whole


@cython.cclass
class Learner(Engine):
    """One model on one stream. All settings are checked by the faces; see `streamlasso.RAPRegressor`."""

    STATE = (
        array("tuner", "n_tuner", attribute="tuner_state"),
        numbers("lam", Column("lam")),
        numbers("seen", Column("n_seen"), Column("code"), Column("started"), dtype=np.int64),
    )

    def __cinit__(
        self,
        n_features: int,
        *,
        family,
        memory,
        penalty,
        tuner,
        gradient="exact",
        curvature="updated",
        lambda_init=None,
        penalty_factor=None,
        fit_intercept=True,
        standardize=True,
        history=64,
        batch_size=1,
        false_alarms=0.0,
    ):
        if penalty_factor is None:
            penalty_factor = np.ones(n_features)
        settings = dict(
            family=family,
            memory=memory,
            penalty=penalty,
            tuner=tuner,
            gradient=gradient,
            curvature=curvature,
            lambda_init=lambda_init,
            penalty_factor=penalty_factor,
            fit_intercept=fit_intercept,
            standardize=standardize,
            history=history,
            batch_size=batch_size,
            false_alarms=false_alarms,
        )
        self.settings = one_for_all(settings)
        family, tuner = self.settings["family"], self.settings["tuner"]
        family.check()
        tuner.check()
        asked: cython.bint = penalty.l1_ratio is None
        kind = Proximal if asked else LeastSquares if family.quadratic else Likelihood
        rows_kept = 0 if kind is LeastSquares else whole_rows(history, batch_size, memory.length)
        self.p = n_features
        self.family = family
        self.tuner = tuner
        self.n_tuner = max(tuner.n_state, 1)
        self.tuner_state = Doubles(self.n_tuner)
        self.compiled = family.compiled and tuner.compiled and not asked
        self.in_place = True
        self.clamped = tuner.clamped
        self.updated = curvature == "updated"
        self.batch_size = batch_size
        self.n_seen = 0
        self.code = WAITING
        if lambda_init is None:
            lambda_init = tuner.lambda_init
        self.started = lambda_init is not None
        self.lam = lambda_init if self.started else 0.0
        self.objective = kind(problem_of(self.settings, memory, rows_kept))
        self.quantiles = None if family.binary else Quantiles(family)
        self.changes = Changes(n_features, family, false_alarms) if false_alarms > 0.0 else None

    # --- learning -----------------------------------------------------------------------------------------------

    def rest(self):
        self.objective.actives.trim()
        return 0

    def _step(self, n, X, y, w, out):
        slope: cython.double
        if self.look(n, X, y, w, out) > 0.0:
            slope = self.slope_before(n, X, y, w, out)
            self.take_in(n, X, y, w)
            self.answer(slope, n, X, y, w, out)
        self.note(n, out)
        return 0

    def take_in(self, n, X, y, w):
        """The rows enter the memory; the model stays as it is."""
        i: cython.Py_ssize_t
        for i in range(n):
            if weight_of(w, i) > 0.0:
                self.objective.absorb(X + i * self.p, y[i], weight_of(w, i))
        self.n_seen = self.objective.n_seen
        return 0

    def look(self, n, X, y, w, out):
        """Predict the rows and compute their losses; returns the sum of their weights."""
        i: cython.Py_ssize_t
        seen: cython.double = 0.0
        record: cython.pointer[Record]
        for i in range(n):
            record = out + i
            record.eta = self.objective.predict(X + i * self.p)
            record.loss = self.family.loss_at(y[i], record.eta)
            record.slope = 0.0
            seen += weight_of(w, i)
        return seen

    def slope_before(self, n, X, y, w, out):
        return 0.0 if self.updated else self._slope(n, X, y, w, out)

    def answer(self, slope, n, X, y, w, out):
        """Move lam and solve, after the rows have entered the memory."""
        self.n_seen = self.objective.n_seen
        if self.updated:
            slope = self._slope(n, X, y, w, out)
        self._move(slope)
        self._solve()
        return 0

    def note(self, n, out):
        """The state after the rows, for the record of each."""
        i: cython.Py_ssize_t
        record: cython.pointer[Record]
        for i in range(n):
            record = out + i
            record.lam = self.lam
            record.lam_max = self.objective.lam_max
            record.n_active = self._n_active()
            record.effective_size = self.objective.effective_size()
            record.status = self.code

    def _slope(self, n, X, y, w, out):
        """dC/dlam of each row, noted; returns their weighted sum."""
        i: cython.Py_ssize_t
        record: cython.pointer[Record]
        total: cython.double = 0.0
        self.objective.n_slope = 0
        self.objective.norm = 0.0
        if not self.started or not self.objective.lam_max > 0.0:
            return 0.0
        self.objective.differentiate(self.lam)
        for i in range(n):
            if weight_of(w, i) > 0.0:
                record = out + i
                record.slope = self.family.slope_at(y[i], record.eta) * self.objective.slope_of(X + i * self.p)
                total += weight_of(w, i) * record.slope
        return total

    def _move(self, slope):
        """Let the tuner move lam, clamped to the new lam_max. If that is 0, there is nothing to fit, and lam stays."""
        lam_max: cython.double
        before: cython.double = self.lam
        if self.objective.n_slope > 0 and isfinite(slope):
            self.lam = self.tuner.move(
                self.lam, slope, self.objective.norm, self.objective.lam_max, self.tuner_state.at, self.n_tuner
            )
            if isnan(self.lam) or (not self.clamped and not 0.0 <= self.lam < INFINITY):
                self._refuse_lam(before)
        self.objective.measure()
        lam_max = self.objective.lam_max
        if not self.started:
            self.started = self.n_seen >= FIRST_ROWS and lam_max > 0.0
            self.lam = FIRST_SHARE * lam_max if self.started else lam_max
        elif self.clamped:
            self.lam = min(max(self.lam, 0.0), lam_max) if lam_max > 0.0 else before
        return 0

    def _refuse_lam(self, before):
        """Keep lam if a built-in rule overflowed; raise if the rule is the user's own."""
        if not self.compiled:
            with cython.gil:
                raise ValueError(f"tuner={self.tuner!r} returned lam={self.lam}: a number, 0 or larger, is needed")
        self.lam = before
        return 0

    def _solve(self):
        self.code = self.objective.solve(self.lam)
        if not self.started or not self.objective.lam_max > 0.0:
            self.code = WAITING
        return 0

    def _n_active(self):
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for i in range(self.objective.active.k):
            if self.objective.active.b[i] != 0.0:
                n += 1
        return n

    def eta_at(self, x):
        return self.objective.predict(x)

    def write_model(self, model):
        q: cython.Py_ssize_t
        model[0] = self.objective.intercept
        for q in range(self.p):
            model[1 + q] = 0.0
        for q in range(self.objective.active.k):
            model[1 + self.objective.active.members[q]] = self.objective.active.b[q]

    # --- what a person wants to see -----------------------------------------------------------------------------

    @property
    def lam_max(self):
        return self.objective.lam_max

    @property
    def effective_size(self):
        return self.objective.effective_size()

    def feature_means(self):
        return copied(self.objective.scaler.mean, self.p)

    def feature_deviations(self):
        scaler: Scaler = self.objective.scaler
        return np.sqrt(np.maximum(copied(scaler.scatter, self.p), 0.0) / max(scaler.weight, 1e-300))

    # --- merging ------------------------------------------------------------------------------------------------

    def merged(self, older: Learner):
        """A model of the rows of `older` and then of these. Weighted sums add up; the older rows have faded by as many
        rows as this model has seen, so with a forgetting factor r their sums are multiplied by r to that power. Rows
        that they still keep whole become quadratics at their minimiser, as they would have soon.
        """
        decay: cython.double = self.settings["memory"].decay
        if self.settings["memory"].length:
            raise ValueError(
                f"memory={self.settings['memory']!r} keeps the last rows: merge models that forget by a factor"
            )
        # Where nothing is forgotten the one with fewer rows is the older: rows that are kept whole stay so.
        first: Learner = older
        last: Learner = self
        if decay == 1.0 and self.n_seen < first.n_seen:
            first, last = self, older
        elif last.objective.n_whole and first.n_seen and last.objective.n_whole == last.n_seen:
            raise ValueError(
                f"b has seen {last.n_seen} rows, and keeps all of them whole: let a learn them, or give b more"
            )
        both: Learner = unpacked(type(self), self.p, self.settings, last.pack())
        first = unpacked(type(self), self.p, self.settings, first.pack())
        while first.objective.n_whole > 0:
            first.objective.fold_oldest()
        both.objective.join(first.objective, last.objective.unit / first.objective.unit * decay**last.n_seen)
        both.n_seen += first.n_seen
        if not both.started:
            both.lam, both.started = first.lam, first.started
            both.tuner_state = first.tuner_state
        both.objective.n_slope = 0
        both._move(0.0)
        both._solve()
        return both

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def travel(self, tape):
        tape.doubles(self.tuner_state.at, self.n_tuner, ANY)
        tape.number(cython.address(self.lam), PENALTY)
        tape.count(cython.address(self.n_seen))
        tape.small(cython.address(self.code), N_STATUSES)
        tape.flag(cython.address(self.started))
        self.objective.travel(tape)
        if self.quantiles is not None:
            self.quantiles.travel(tape)
        if self.changes is not None:
            self.changes.travel(tape)

    def parts(self):
        rest = {"errors.": self.quantiles, "changes.": self.changes}
        return {"": self.objective, **{name: part for name, part in rest.items() if part is not None}}
