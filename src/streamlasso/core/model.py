# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What every engine shares, a single model's (`learner.py`) and a mixture's (`mixture.py`): rows in, records out."""

import cython
import numpy as np
from cython.cimports.streamlasso.core.base.buffers import Pointers
from cython.cimports.streamlasso.core.base.checks import weight_of
from cython.cimports.streamlasso.core.base.lock import Gate, seconds
from cython.cimports.streamlasso.core.base.record import Record, as_records
from cython.cimports.streamlasso.core.base.state import Stateful

from streamlasso.core.base.record import RECORD, STATUS
from streamlasso.core.base.selected import Selected

#: Seconds between two looks at signals. They need the GIL, for which another thread may make this one wait for 5 ms.
PATIENCE = cython.declare(cython.double, 0.05)
#: A model gives back room to spare after a call with as many rows; after one row it would take a tenth of the time.
MANY_ROWS = 32
#: Settings that are kept for other engines.
MOST_SETTINGS = 16
_settings = {}


def _refuse_shape(name, shape, expected):
    if tuple(shape) != expected:
        raise ValueError(f"{name} has the shape {tuple(shape)}; {expected} is needed")


def one_for_all(settings):
    """The settings, as a dict that all engines with equal ones share: parts are frozen, and a model takes few bytes."""
    like = tuple(
        (name, type(value), value.tobytes() if isinstance(value, np.ndarray) else repr(value))
        for name, value in settings.items()
    )
    known = _settings.get(like)
    if known is not None and all(_is_equal(known[name], value) for name, value in settings.items()):
        return known
    if len(_settings) >= MOST_SETTINGS:
        _settings.clear()
    _settings[like] = settings
    return settings


def _is_equal(a, b):
    return a is b or isinstance(a, np.ndarray) or a == b


def revive(cls, n_features, settings, state):
    """An engine of this class as it was."""
    engine = cls(n_features, **settings)
    engine.restore(state)
    return engine


def unpacked(cls, n_features, settings, data):
    """An engine of this class with the state that `pack` gave."""
    engine = cls(n_features, **settings)
    engine.unpack(data)
    return engine


def learn_together(
    learners, X: cython.const[cython.double][:, ::1], targets, weight=None, record=None, coef=None, learnt=None
):
    """Each learner learns the rows with its own targets, all of them a mini-batch before any of them the next.

    Other threads may read the learners between two mini-batches (`lock.py`, the first one's), and signals are handled
    there. A family or tuner written in Python may raise inside a row: all learners are then what they were before.

    record, coef : (learner, n, len(RECORD)) and (learner, n, p + 1), filled in where given
    learnt : an array of one whole number, to which the rows that were learnt are added, however the call ends
    """
    n, k = X.shape[0], len(learners)
    for learner in learners:
        _refuse_shape("X", (n, X.shape[1]), (n, learner.n_features))
    for y in targets:
        _refuse_shape("y", y.shape, (n,))
    if weight is not None:
        _refuse_shape("weight", weight.shape, (n,))
    for name, array, width in (("record", record, len(RECORD)), ("coef", coef, X.shape[1] + 1)):
        if array is not None:
            _refuse_shape(name, array.shape, (k, n, width))
            if n > 1:
                _refuse_shape(f"a row of {name}", array.strides[1:], (8 * width, 8))
    work = _Rows(
        learners, X, np.asarray(targets[0])[np.newaxis] if k == 1 else np.stack(targets), weight, record, coef, learnt
    )
    gate: Gate = cython.cast(Engine, learners[0]).gate
    gate.begin()
    try:
        work.learn()
        if n >= MANY_ROWS:
            for learner in learners:
                cython.cast(Engine, learner).rest()
    finally:
        gate.end()


@cython.final
@cython.cclass
class _Rows:
    """Rows on their way into learners; `done` of them are learnt."""

    def __cinit__(self, learners, X, Y, weight, record, coef, learnt):
        first: Engine = learners[0]
        self.gate = first.gate
        self.each = Pointers(learners)
        self.X, self.Y = X, Y
        self.n = X.shape[0]
        self.batch_size = first.batch_size
        self.weighted = weight is not None
        self.recorded = record is not None
        self.traced = coef is not None
        self.w = weight if self.weighted else _NOTHING
        size = (1, min(self.batch_size, self.n), len(RECORD))
        self.record = record if self.recorded else np.empty(size)
        self.coef = coef if self.traced else _NO_MODELS
        self.done = 0
        self.learnt = np.zeros(1, dtype=np.int64) if learnt is None else learnt

    def learn(self):
        """All of them; or, after an error inside a row, none."""
        learners = self.each.objects
        before = None if all(learner.compiled for learner in learners) else [learner.pack() for learner in learners]
        try:
            with cython.nogil:
                self._loop()
        except BaseException:
            if before is not None:
                self.learnt[0] -= self.done
                for learner, state in zip(learners, before, strict=True):
                    learner.unpack(state)
            raise

    def _loop(self):
        checked: cython.double = seconds()
        now: cython.double
        while self.done < self.n:
            self._step(min(self.batch_size, self.n - self.done))
            if self.gate.wanted > 0:
                with cython.gil:
                    self.gate.give_way()
            now = seconds()
            if not 0.0 <= now - checked < PATIENCE:
                checked = now
                with cython.gil:
                    self.gate.pause()
        return 0

    def _step(self, size):
        k: cython.Py_ssize_t
        i: cython.Py_ssize_t = self.done
        q: cython.Py_ssize_t
        out: cython.pointer[Record]
        for k in range(self.each.n):
            out = as_records(
                cython.address(self.record[k, i, 0]) if self.recorded else cython.address(self.record[0, 0, 0])
            )
            cython.cast(Engine, self.each.at[k]).step(
                size,
                cython.address(self.X[i, 0]),
                cython.address(self.Y[k, i]),
                cython.address(self.w[i]) if self.weighted else cython.NULL,
                out,
            )
            if self.recorded:
                cython.cast(Engine, self.each.at[k]).complete(size, out)
            if self.traced:
                for q in range(i, i + size):
                    cython.cast(Engine, self.each.at[k]).write_model(cython.address(self.coef[k, q, 0]))
        self.done += size
        self.learnt[0] += size
        return 0


@cython.cclass
class Engine(Stateful):
    """A model on a stream: `_step` learns a mini-batch, `eta_at` predicts a row, `write_model` writes it out."""

    #: Whether there are several models, of which one is selected.
    selects = False

    def __cinit__(self, *_, **__):
        self.gate = Gate()
        self.n_unpredicted = 1

    # --- learning -----------------------------------------------------------------------------------------------

    def learn(
        self,
        X: cython.const[cython.double][:, ::1],
        y: cython.const[cython.double][::1],
        weight=None,
        record=None,
        coef=None,
    ):
        """Learn the rows in order. `record` (n, len(RECORD)) and `coef` (n, p + 1) are filled in where given."""
        learn_together(
            [self],
            X,
            [y],
            weight,
            None if record is None else record[np.newaxis],
            None if coef is None else coef[np.newaxis],
        )

    def take(self, x, y, w, record):
        """`learn` for one row in arrays that are at hand already; what it costs to wrap new ones is what it saves."""
        if not self.compiled:
            self.learn(x, y, w)
            return 0
        self.gate.begin(True)
        try:
            self.step(
                1,
                cython.address(x[0, 0]),
                cython.address(y[0]),
                cython.address(w[0]),
                as_records(cython.address(record[0, 0])),
            )
        finally:
            self.gate.end()
        return 0

    def step(self, n, X, y, w, out):
        """`_step`, what the errors were, and whether they say that the stream has changed."""
        i: cython.Py_ssize_t
        first: cython.bint = self.n_seen < self.n_unpredicted
        learnt: cython.bint = False
        self._step(n, X, y, w, out)
        # Nothing could predict the first rows: their errors say nothing of the next.
        if self.quantiles is not None and not first:
            for i in range(n):
                self.quantiles.see(y[i], out[i].eta, weight_of(w, i))
        if self.changes is not None:
            for i in range(n):
                self.changes.see(X + i * self.p, y[i], out[i].eta, out[i].loss, weight_of(w, i))
                learnt = learnt or weight_of(w, i) > 0.0
        if learnt:
            self.write_model(self.changes.now)
        return 0

    def rest(self):
        """Give back room to spare, after many rows: a process may hold many models, and few learn at the same time."""
        return 0

    def _step(self, n, X, y, w, out):
        """One mini-batch of n rows; w may be NULL. A row of weight 0 is predicted and otherwise passed over."""
        return 0

    def complete(self, n, out):
        """What `_step` leaves out of its records, where they are kept: it takes time."""
        return 0

    def eta_at(self, x):
        """eta of the next row."""
        return 0.0

    def ask(self, x):
        """`eta_at` of the row that is learnt next, unless another one comes."""
        return self.eta_at(x)

    def predict_rows(self, n, X, etas, residuals):
        """eta of n rows that follow one another."""
        i: cython.Py_ssize_t
        for i in range(n):
            etas[i] = self.eta_at(X + i * self.p)
        return 0

    def write_model(self, model):
        """Intercept and coefficients now, into p + 1 numbers."""
        return

    # --- what a person wants to see -----------------------------------------------------------------------------

    def decision(self, X: cython.const[cython.double][:, ::1], residuals=None):
        """eta of rows that follow one another and the last one learnt; or those that left `residuals` behind.

        `residuals` is what `self.residuals()` gave, and is brought up to date for the rows that follow these.
        """
        last: cython.double[::1] = self.residuals() if residuals is None else residuals
        _refuse_shape("X", (X.shape[0], X.shape[1]), (X.shape[0], self.p))
        out = np.empty(X.shape[0])
        etas: cython.double[::1] = out
        if X.shape[0] > 0:
            with cython.nogil:
                self.predict_rows(X.shape[0], cython.address(X[0, 0]), cython.address(etas[0]), cython.address(last[0]))
        return out

    def decision_each(self, X: cython.const[cython.double][:, ::1]):
        """eta of each row as the next one."""
        i: cython.Py_ssize_t
        _refuse_shape("X", (X.shape[0], X.shape[1]), (X.shape[0], self.p))
        out = np.empty(X.shape[0])
        etas: cython.double[::1] = out
        with cython.nogil:
            for i in range(X.shape[0]):
                etas[i] = self.eta_at(cython.address(X[i, 0]))
        return out

    def residuals(self):
        """What the prediction of the next row takes from the rows before, beside the model."""
        return np.zeros(1)

    @property
    def coef(self):
        return self._coefficients()[1:]

    @property
    def intercept(self):
        return float(self._coefficients()[0])

    def _coefficients(self):
        out = np.empty(self.p + 1)
        model: cython.double[::1] = out
        self.write_model(cython.address(model[0]))
        return out

    @property
    def n_features(self):
        return self.p

    @property
    def status(self):
        """How the last step went, in a word of STATUS."""
        return STATUS[self.code]

    def selected(self):
        """Of several models, the one that has the features that matter alone."""
        raise AttributeError(
            "selected_: there is one model only; tuner=Mixture() or memory=AdaptiveForgetting() select"
        )

    def inclusion(self):
        """Of each feature, the probability that it matters; of one model, whether it has a coefficient."""
        return (self.coef != 0.0).astype(float)

    def feature_deviations(self):
        """Of the rows that are remembered."""
        raise NotImplementedError(f"{type(self).__name__} has no feature_deviations")

    def feature_means(self):
        """Of the rows that are remembered."""
        raise NotImplementedError(f"{type(self).__name__} has no feature_means")

    def single(self):
        """One sparse model to show: this one, or of several the selected one."""
        importance = np.abs(self.coef) * self.feature_deviations()
        return Selected(self.intercept, self.coef, 0, self.inclusion(), importance)

    def merged(self, older):
        """A model of the rows of `older`, which has the same settings, and then of these."""
        raise ValueError('the default is many models, with memories of their own: merge models with tuner="logrms"')

    # --- for checkpoints ----------------------------------------------------------------------------------------

    def grown(self, n_features):
        """The same engine with more features, as if they had been there all along and 0."""
        extra = n_features - self.p
        factor = np.append(self.settings["penalty_factor"], np.ones(extra))
        return revive(type(self), n_features, {**self.settings, "penalty_factor": factor}, self._grown(extra))

    def mirrored(self):
        """The same engine of the binomial family with its two classes exchanged."""
        return revive(type(self), self.p, self.settings, self._mirrored())

    def __reduce__(self):
        with self.gate:
            return unpacked, (type(self), self.p, self.settings, self.pack())


_NOTHING = np.zeros(1)
_NO_MODELS = np.zeros((1, 1, 1))
