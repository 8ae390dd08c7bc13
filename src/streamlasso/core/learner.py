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
from cython.cimports.libc.math import INFINITY, fabs, isfinite, isnan
from cython.cimports.streamlasso.core.likelihood import Likelihood
from cython.cimports.streamlasso.core.objective import LeastSquares
from cython.cimports.streamlasso.families.gaussian import Gaussian

#: What `learn` notes of each row, in this order.
RECORD = ("eta", "loss", "slope", "lam", "lam_max", "n_active", "effective_size", "status")
N_RECORD = cython.declare(cython.Py_ssize_t, len(RECORD))
#: The words for the last of them.
STATUS = ("ok", "singular", "unfinished", "waiting")
WAITING = cython.declare(cython.int, 3)

#: Values and weights beyond this are refused: squares, times a weight, times its unit, would not fit a double.
LARGEST = 1e60
#: A row that weighs less than this after one step weighs nothing in doubles.
LEAST_DECAY = cython.declare(cython.double, 1e-100)

#: lam stays at lam_max, where the model is empty, for this many rows, then starts at this share of it: after two rows
#: all standardised features are perfectly correlated with the response, and a model of one of them predicts anything.
FIRST_ROWS = cython.declare(cython.Py_ssize_t, 10)
FIRST_SHARE = cython.declare(cython.double, 0.1)
#: The unit of weight is brought back by this factor, a power of four, when it has grown beyond its inverse.
SHRINK = cython.declare(cython.double, 2.0**-200)


def first_unfit(X: cython.const[cython.double][:, ::1]):
    """The place, counted along the rows, of the first value that is not finite or too large; -1 if there is none."""
    i: cython.Py_ssize_t
    n: cython.Py_ssize_t = X.shape[0] * X.shape[1]
    largest: cython.double = LARGEST
    bad: cython.Py_ssize_t = 0
    x: cython.pointer[cython.const[cython.double]]
    if n == 0:
        return -1
    x = cython.address(X[0, 0])
    for i in range(n):
        bad += not fabs(x[i]) <= largest
    if bad == 0:
        return -1
    i = 0
    while fabs(x[i]) <= largest:
        i += 1
    return i


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def weight_of(w: cython.pointer[cython.const[cython.double]], i: cython.Py_ssize_t) -> cython.double:
    return w[i] if w != cython.NULL else 1.0


def _refuse_shape(name, shape, expected):
    if tuple(shape) != expected:
        raise ValueError(f"{name} has the shape {tuple(shape)}; {expected} is needed")


def whole_rows(history, batch_size, length):
    """Rows kept whole: no row may be folded before it was in one exact solve, none is kept beyond the window."""
    whole = max(history, batch_size)
    return min(whole, length + 1) if length else whole


def _revive(n_features, settings, state):
    learner = Learner(n_features, **settings)
    learner.restore(state)
    return learner


@cython.cclass
class Learner:
    """One model on one stream. All settings are checked by the faces; see `streamlasso.RAPRegressor`."""

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
    ):
        if penalty_factor is None:
            penalty_factor = np.ones(n_features)
        gaussian = type(family) is Gaussian
        kind = LeastSquares if gaussian else Likelihood
        self.settings = dict(
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
        )
        family.check()
        tuner.check()
        self.family = family
        self.tuner = tuner
        self.tuner_state = np.zeros(max(tuner.n_state, 1))
        self.compiled = family.compiled and tuner.compiled
        self.clamped = tuner.clamped
        self.updated = curvature == "updated"
        self.decay = max(memory.decay, LEAST_DECAY)
        self.unit = 1.0
        self.batch_size = batch_size
        self.n_seen = 0
        self.busy = False
        self.code = WAITING
        if lambda_init is None:
            lambda_init = tuner.lambda_init
        self.started = lambda_init is not None
        self.lam = lambda_init if self.started else 0.0
        self.objective = kind(
            n_features,
            family,
            penalty_factor,
            penalty.l1_ratio,
            fit_intercept,
            standardize,
            gradient == "diagonal",
            memory.length,
            0 if gaussian else whole_rows(history, batch_size, memory.length),
        )

    # --- learning -----------------------------------------------------------------------------------------------

    def learn(
        self,
        X: cython.const[cython.double][:, ::1],
        y: cython.const[cython.double][::1],
        weight=None,
        record=None,
        coef=None,
    ):
        """Learn the rows in order. `record` (n, len(RECORD)) and `coef` (n, p + 1) are filled in where given.

        A family or tuner written in Python may raise: the state is then what it was before the call.
        """
        n = X.shape[0]
        _refuse_shape("X", (n, X.shape[1]), (n, self.objective.p))
        _refuse_shape("y", (y.shape[0],), (n,))
        for name, array, shape in (
            ("weight", weight, (n,)),
            ("record", record, (n, len(RECORD))),
            ("coef", coef, (n, self.objective.p + 1)),
        ):
            if array is not None:
                _refuse_shape(name, array.shape, shape)
        self._refuse_if_busy()
        before = None if self.compiled else self.state()
        self.busy = True
        try:
            self._learn(X, y, weight, record, coef)
        except BaseException:
            if before is not None:
                self.restore(before)
            raise
        finally:
            self.busy = False

    def _refuse_if_busy(self):
        """The GIL is not held while rows are learnt; nobody else may touch the state then."""
        if self.busy:
            raise RuntimeError("this model is learning in another thread; give every thread a model of its own")

    def take(self, x, y, w, out):
        """`learn` for one row in arrays that are at hand already; what it costs to wrap new ones is what it saves."""
        self._refuse_if_busy()
        if self.compiled:
            self._step(
                1, cython.address(x[0, 0]), cython.address(y[0]), cython.address(w[0]), cython.address(out[0, 0])
            )
        else:
            self.learn(x, y, w)
        return 0

    def _learn(self, X, y, weight, record, coef):
        n: cython.Py_ssize_t = X.shape[0]
        i: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        weighted: cython.bint = weight is not None
        recorded: cython.bint = record is not None
        traced: cython.bint = coef is not None
        w: cython.const[cython.double][::1] = weight if weighted else _NOTHING
        out: cython.double[:, ::1] = record if recorded else np.empty((min(self.batch_size, n), len(RECORD)))
        path: cython.double[:, ::1] = coef if traced else _NO_ROWS
        with cython.nogil:
            while i < n:
                size = min(self.batch_size, n - i)
                self._step(
                    size,
                    cython.address(X[i, 0]),
                    cython.address(y[i]),
                    cython.address(w[i]) if weighted else cython.NULL,
                    cython.address(out[i if recorded else 0, 0]),
                )
                if traced:
                    self._trace(path, i, i + size)
                i += size

    def _step(self, n, X, y, w, out):
        """One mini-batch of n rows; w may be NULL. A row of weight 0 is predicted and otherwise passed over."""
        i: cython.Py_ssize_t
        p: cython.Py_ssize_t = self.objective.p
        seen: cython.double = 0.0
        slope: cython.double = 0.0
        note: cython.p_double
        for i in range(n):
            note = out + i * N_RECORD
            note[0] = self.objective.predict(X + i * p)
            note[1] = self.family.loss_at(y[i], note[0])
            note[2] = 0.0
            seen += weight_of(w, i)
        if seen > 0.0:
            if not self.updated:
                slope = self._slope(n, X, y, w, out)
            for i in range(n):
                if weight_of(w, i) > 0.0:
                    self._grow_unit()
                    self.objective.absorb(X + i * p, y[i], weight_of(w, i) * self.unit)
                    self.n_seen += 1
            if self.updated:
                slope = self._slope(n, X, y, w, out)
            self._move(slope)
            self._solve()
        for i in range(n):
            note = out + i * N_RECORD
            note[3] = self.lam
            note[4] = self.objective.lam_max
            note[5] = self._n_active()
            note[6] = self.objective.scaler.weight / self.unit
            note[7] = self.code
        return 0

    def _slope(self, n, X, y, w, out):
        """dC/dlam of each row, noted; returns their weighted sum."""
        i: cython.Py_ssize_t
        note: cython.p_double
        total: cython.double = 0.0
        self.objective.n_slope = 0
        self.objective.norm = 0.0
        if not self.started or not self.objective.lam_max > 0.0:
            return 0.0
        self.objective.differentiate(self.lam)
        for i in range(n):
            if weight_of(w, i) > 0.0:
                note = out + i * N_RECORD
                note[2] = self.family.slope_at(y[i], note[0]) * self.objective.slope_of(X + i * self.objective.p)
                total += weight_of(w, i) * note[2]
        return total

    def _grow_unit(self):
        """The newest row weighs more where all older ones should fade; before that overflows, all are scaled back."""
        if self.n_seen == 0:
            return
        self.unit /= self.decay
        while self.unit > 1.0 / SHRINK:
            self.objective.rescale(SHRINK)
            self.unit *= SHRINK

    def _move(self, slope):
        """The tuner moves lam, clamped to the new lam_max; where that is 0 there is nothing to fit, and lam waits."""
        lam_max: cython.double
        before: cython.double = self.lam
        if self.objective.n_slope > 0 and isfinite(slope):
            self.lam = self.tuner.move(self.lam, slope, self.objective.norm, self.objective.lam_max, self.tuner_state)
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
        """A built-in rule that overflowed leaves lam where it was; one of the user's own is wrong."""
        if not self.compiled:
            with cython.gil:
                raise ValueError(f"tuner={self.tuner!r} returned lam={self.lam}: a number, 0 or larger, is needed")
        self.lam = before
        return 0

    def _solve(self):
        self.code = self.objective.solve(self.lam, self.objective.scaler.weight / self.unit)
        if not self.started or not self.objective.lam_max > 0.0:
            self.code = WAITING
        return 0

    def _n_active(self):
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = 0
        for i in range(self.objective.active.factor.k):
            if self.objective.active.b[i] != 0.0:
                n += 1
        return n

    def _trace(self, path, start, stop):
        """Intercept and coefficients, after each row of start to stop."""
        i: cython.Py_ssize_t
        q: cython.Py_ssize_t
        for i in range(start, stop):
            path[i, 0] = self.objective.intercept
            for q in range(self.objective.p):
                path[i, 1 + q] = 0.0
            for q in range(self.objective.active.factor.k):
                path[i, 1 + self.objective.active.members[q]] = self.objective.active.b[q]

    # --- what a person wants to see -----------------------------------------------------------------------------

    def decision(self, X: cython.const[cython.double][:, ::1]):
        """eta = b0 + x'b for each row."""
        i: cython.Py_ssize_t
        _refuse_shape("X", (X.shape[0], X.shape[1]), (X.shape[0], self.objective.p))
        self._refuse_if_busy()
        out = np.empty(X.shape[0])
        etas: cython.double[::1] = out
        with cython.nogil:
            for i in range(X.shape[0]):
                etas[i] = self.objective.predict(cython.address(X[i, 0]))
        return out

    @property
    def coef(self):
        q: cython.Py_ssize_t
        out = np.zeros(self.objective.p)
        for q in range(self.objective.active.factor.k):
            out[self.objective.active.members[q]] = self.objective.active.b[q]
        return out

    @property
    def intercept(self):
        return self.objective.intercept

    @property
    def n_features(self):
        return self.objective.p

    @property
    def lam_max(self):
        return self.objective.lam_max

    @property
    def effective_size(self):
        return self.objective.scaler.weight / self.unit

    @property
    def status(self):
        """How the last step went, in a word of STATUS."""
        return STATUS[self.code]

    # --- for checkpoints, and for features that appear mid-stream -----------------------------------------------

    def state(self):
        """What the next row needs, as named arrays: exactly what a checkpoint holds."""
        return {
            **self.objective.state(),
            "tuner": np.array(self.tuner_state),
            "lam": np.array([self.lam, self.unit]),
            "seen": np.array([self.n_seen, self.code, self.started], dtype=np.int64),
        }

    def restore(self, state):
        """The state that `state` gave; a ValueError, and no change, where it does not fit these settings."""
        before = self.state()
        if set(state) != set(before):
            raise ValueError(f"the state of another learner: {sorted(set(state) ^ set(before))}")
        try:
            self._restore(state)
        except BaseException:
            self._restore(before)
            raise

    def _restore(self, state):
        if state["tuner"].shape != np.asarray(self.tuner_state).shape or not 0 <= state["seen"][1] < len(STATUS):
            raise ValueError("the tuner or the status is not one of these settings")
        self.objective.restore(state)
        np.asarray(self.tuner_state)[:] = state["tuner"]
        self.lam, self.unit = state["lam"]
        self.n_seen, self.code, self.started = state["seen"]

    def __reduce__(self):
        return _revive, (self.objective.p, self.settings, self.state())

    def grown(self, n_features):
        """The same learner with more features, as if they had been there all along and 0."""
        extra = n_features - self.objective.p
        settings = dict(self.settings)
        settings["penalty_factor"] = np.append(settings["penalty_factor"], np.ones(extra))
        state = self.state()
        for name in (
            "scaler.mean",
            "scaler.scatter",
            "scaler.peak",
            "moments.c",
            "moments.mean",
            "units.g",
            "units.size",
        ):
            state[name] = np.append(state[name], np.zeros(extra))
        for name in ("moments.rows", "moments.signed", "ring.x"):
            state[name] = np.pad(state[name], ((0, 0), (0, extra)))
        state["moments.S"] = np.pad(state["moments.S"], ((0, extra), (0, extra)))
        state["units.v"] = np.append(state["units.v"], np.full(extra, np.inf))
        return _revive(n_features, settings, state)

    def mirrored(self):
        """The same learner of the binomial family with its two classes exchanged."""
        state = self.state()
        for name in ("moments.c", "units.g", "active.solution", "null.solution", "null_intercept"):
            state[name] = -state[name]
        state["scaler.sums"][1] = 1.0 - state["scaler.sums"][1]
        state["moments.sums"][1] *= -1.0
        state["ring.rest"][:, 0] = 1.0 - state["ring.rest"][:, 0]
        state["ring.rest"][:, 3] *= -1.0
        state["point"][0] *= -1.0
        return _revive(self.objective.p, self.settings, state)


_NOTHING = np.zeros(1)
_NO_ROWS = np.zeros((1, 1))
