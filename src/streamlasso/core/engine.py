# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What every engine shares, a single model's (`learner.py`) and a mixture's (`mixture.py`): rows in, records out."""

import cython
import numpy as np
from cython.cimports.streamlasso.core.record import as_records
from cython.cimports.streamlasso.core.state import Stateful

from streamlasso.core.record import RECORD, STATUS
from streamlasso.core.selected import Selected


def _refuse_shape(name, shape, expected):
    if tuple(shape) != expected:
        raise ValueError(f"{name} has the shape {tuple(shape)}; {expected} is needed")


def revive(cls, n_features, settings, state):
    """An engine of this class as it was."""
    engine = cls(n_features, **settings)
    engine._fill(state)
    return engine


@cython.cclass
class Engine(Stateful):
    """A model on a stream: `_step` learns a mini-batch, `eta_at` predicts a row, `write_model` writes it out."""

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
        _refuse_shape("X", (n, X.shape[1]), (n, self.p))
        _refuse_shape("y", (y.shape[0],), (n,))
        for name, array, shape in (
            ("weight", weight, (n,)),
            ("record", record, (n, len(RECORD))),
            ("coef", coef, (n, self.p + 1)),
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
                self._fill(before)
            raise
        finally:
            self.busy = False

    def _refuse_if_busy(self):
        """The GIL is not held while rows are learnt; no other thread may touch the state then."""
        if self.busy:
            raise RuntimeError("this model is learning in another thread; give every thread a model of its own")

    def take(self, x, y, w, record):
        """`learn` for one row in arrays that are at hand already; what it costs to wrap new ones is what it saves."""
        self._refuse_if_busy()
        if self.compiled:
            self._step(
                1,
                cython.address(x[0, 0]),
                cython.address(y[0]),
                cython.address(w[0]),
                as_records(cython.address(record[0, 0])),
            )
        else:
            self.learn(x, y, w)
        return 0

    def _learn(self, X, y, weight, record, coef):
        n: cython.Py_ssize_t = X.shape[0]
        i: cython.Py_ssize_t = 0
        q: cython.Py_ssize_t
        size: cython.Py_ssize_t
        weighted: cython.bint = weight is not None
        recorded: cython.bint = record is not None
        traced: cython.bint = coef is not None
        w: cython.const[cython.double][::1] = weight if weighted else _NOTHING
        out: cython.double[:, ::1] = record if recorded else np.empty((min(self.batch_size, n), len(RECORD)))
        model: cython.double[:, ::1] = coef if traced else _NO_ROWS
        with cython.nogil:
            while i < n:
                size = min(self.batch_size, n - i)
                self._step(
                    size,
                    cython.address(X[i, 0]),
                    cython.address(y[i]),
                    cython.address(w[i]) if weighted else cython.NULL,
                    as_records(cython.address(out[i if recorded else 0, 0])),
                )
                if traced:
                    for q in range(i, i + size):
                        self.write_model(cython.address(model[q, 0]))
                i += size

    def _step(self, n, X, y, w, out):
        """One mini-batch of n rows; w may be NULL. A row of weight 0 is predicted and otherwise passed over."""
        return 0

    def eta_at(self, x):
        """eta of the next row."""
        return 0.0

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
        self._refuse_if_busy()
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
        self._refuse_if_busy()
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
        """Of several models, the sparsest of those that predict about best."""
        raise AttributeError(
            "selected_: there is one model only; tuner=Mixture() or memory=AdaptiveForgetting() select"
        )

    def single(self):
        """One sparse model to show: this one, or of several the selected one."""
        return Selected(self.settings["memory"], 0, self.lam, self.lam_max, 1.0, self.intercept, self.coef)

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
        return revive, (type(self), self.p, self.settings, self.state())


_NOTHING = np.zeros(1)
_NO_ROWS = np.zeros((1, 1))
