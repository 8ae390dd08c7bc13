"""Two models of different rows as one of all of them.

Weighted sums add up: with W the weights, m the means and S the scatter of two sets of rows,

    W = W_1 + W_2,     m = (W_1 m_1 + W_2 m_2) / W,     S = S_1 + S_2 + W_1 W_2 / W (m_1 - m_2)(m_1 - m_2)'

and so do products with the response. The first model's rows are older by as many rows as the second has seen, so with
a forgetting factor r its sums are multiplied by r to that power. Of a Gaussian model that is all there is to know. Of
the other families rows that the first model still keeps whole are expanded to quadratics at its minimiser, as they
would have been soon.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from streamlasso.compact import from_bytes, to_bytes
from streamlasso.core.lasso.learner import Learner
from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.turns import gate_of

Model = TypeVar("Model", RAPRegressor, RAPClassifier)
State = dict[str, np.ndarray]


def merge(a: Model, b: Model) -> Model:
    """The model that has seen the rows of `a` and then those of `b`; both stay as they are.

    So history can be learnt in parallel, and handed to the stream. Both need the same settings, one tuner that moves
    one `lam` (or `Fixed`), and a memory that forgets by a factor or not at all (`memory=1.0`); the order then does not
    matter. Coefficients of Gaussian models are exactly those of one model that saw all rows with this `lam`; `lam`, and
    what the tuner remembers, are those of `b`. For other families see docs/many.md.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso import RAPRegressor, merge
    >>> from streamlasso.tuners import Fixed
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4))
    >>> y = X[:, 0] + rng.normal(size=1000)
    >>> model = RAPRegressor(memory=1.0, tuner=Fixed(0.1))
    >>> first, second = RAPRegressor(memory=1.0, tuner=Fixed(0.1)), RAPRegressor(memory=1.0, tuner=Fixed(0.1))
    >>> merged = merge(first.fit(X[:600], y[:600]), second.fit(X[600:], y[600:]))
    >>> bool(np.allclose(merged.coef_, model.fit(X, y).coef_, rtol=1e-10))
    True
    """
    _refuse_unlike(a, b)
    a, b, merged = _copy(a), _copy(b), _copy(b)
    for learner, one, other in zip(*map(_learners, (merged, a, b)), strict=True):
        first, second = _older_first(one, other)
        learner.restore(_merged(first, second))
        learner.settle()
    return merged


def _copy(model: Model) -> Model:
    """As it is between two rows, if another thread learns it."""
    with gate_of(model):
        return from_bytes([type(model)], to_bytes(model))


def _refuse_unlike(a: Any, b: Any) -> None:
    if type(a) is not type(b) or not isinstance(a, RAPRegressor | RAPClassifier):
        raise TypeError(f"a={a!r}, b={b!r}: two models of one class are merged, RAPRegressor or RAPClassifier")
    one, other = a._fitted()[0], b._fitted()[0]
    if not isinstance(one, Learner) or not isinstance(other, Learner):
        raise ValueError('the default is many models, with memories of their own: merge models with tuner="logrms"')
    unlike = [name for name in one.settings if not np.array_equal(one.settings[name], other.settings[name])]
    if unlike:
        raise ValueError(f"a and b differ in {unlike[0]}: merge models with the same settings")
    if one.settings["memory"].length:
        raise ValueError(f"memory={one.settings['memory']!r} keeps the last rows: merge models that forget by a factor")
    if a._names != b._names or len(a.learners_) != len(b.learners_) or not _same_classes(a, b):
        raise ValueError("a and b have other features or other classes: merge models of the same ones")


def _learners(model: Any) -> list[Learner]:
    return model.learners_


def _same_classes(a: Any, b: Any) -> bool:
    return np.array_equal(getattr(a, "classes_", []), getattr(b, "classes_", []))


def _older_first(one: Learner, other: Learner) -> tuple[Learner, Learner]:
    """Where nothing is forgotten, the one with fewer rows is the older: rows that are kept whole stay so."""
    forgets = one.settings["memory"].decay < 1.0
    if not forgets and other.n_seen < one.n_seen:
        return other, one
    kept = len(other.state()["ring.x"])
    if kept and one.n_seen and kept == other.n_seen:
        raise ValueError(
            f"b has seen {other.n_seen} rows, and keeps all of them whole: let a learn them, or give b more"
        )
    return one, other


def _merged(first: Learner, second: Learner) -> State:
    """The state of the second model with the sums of the first added; it is solved anew after that."""
    older, state = first.folded().state(), second.state()
    factor = float(state["unit"][0] / older["unit"][0] * first.settings["memory"].decay ** second.n_seen)
    _add_scaler(state, older, factor)
    _add_moments(state, older, factor, centred=second.settings["fit_intercept"])
    state["counts"][0] += older["counts"][0]
    state["seen"][0] += older["seen"][0]
    if not state["seen"][2]:
        for name in ("lam", "tuner"):
            state[name] = older[name]
        state["seen"][2] = older["seen"][2]
    for name in [name for name in state if name.endswith(".factor")]:
        state[name.replace(".factor", ".age")][0] = 1
        state[name] = np.zeros(0)
    return state


def _add_scaler(state: State, older: State, factor: float) -> None:
    (w1, y1, ss1), (w2, y2, ss2) = older["scaler.sums"] * [factor, 1.0, factor], state["scaler.sums"]
    total = w1 + w2
    if not total > 0.0:
        return
    k, d = w1 * w2 / total, older["scaler.mean"] - state["scaler.mean"]
    state["scaler.scatter"] += factor * older["scaler.scatter"] + k * d * d
    state["scaler.mean"] += w1 / total * d
    state["scaler.sums"][:] = total, y2 + w1 / total * (y1 - y2), ss1 + ss2 + k * (y1 - y2) ** 2


def _add_moments(state: State, older: State, factor: float, *, centred: bool) -> None:
    (w1, t1, ss1), (w2, t2, ss2) = older["moments.sums"] * [factor, 1.0, factor], state["moments.sums"]
    total = w1 + w2
    k = w1 * w2 / total if centred and total > 0.0 else 0.0
    share = w1 / total if total > 0.0 else 0.0
    d = older["moments.mean"] - state["moments.mean"]
    state["moments.S"] = _whole(state) + factor * _whole(older) + k * np.outer(d, d)
    state["moments.c"] += factor * older["moments.c"] + k * d * (t1 - t2)
    state["moments.mean"] += share * d
    state["moments.sums"][:] = total, t2 + share * (t1 - t2), ss1 + ss2 + k * (t1 - t2) ** 2
    for name in ("moments.rows", "moments.signed"):
        state[name] = state[name][:0]


def _whole(state: State) -> np.ndarray:
    """S with the rows that wait to be added."""
    return state["moments.S"] + state["moments.rows"].T @ state["moments.signed"]
