"""Two models of different rows as one of all of them; `Learner.merged` adds them up."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from streamlasso.compact import from_bytes
from streamlasso.estimators import RAPClassifier, RAPRegressor

Model = TypeVar("Model", RAPRegressor, RAPClassifier)


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
    if type(a) is not type(b) or not isinstance(a, RAPRegressor | RAPClassifier):
        raise TypeError(f"a={a!r}, b={b!r}: two models of one class are merged, RAPRegressor or RAPClassifier")
    # Between two rows, if another thread learns them.
    older, merged = (from_bytes([type(model)], model.to_bytes()) for model in (a, b))
    _refuse_unlike(older, merged)
    pairs = zip(merged.learners_, older.learners_, strict=True)
    merged.learners_ = [learner.merged(before) for learner, before in pairs]
    return merged


def _refuse_unlike(a: Any, b: Any) -> None:
    one, other = a.learners_[0].settings, b.learners_[0].settings
    unlike = [name for name in one if not np.array_equal(one[name], other[name])]
    if unlike:
        raise ValueError(f"a and b differ in {unlike[0]}: merge models with the same settings")
    if a._names != b._names or a._labels() != b._labels():
        raise ValueError("a and b have other features or other classes: merge models of the same ones")
