"""`KeyedRegressor` and `KeyedClassifier`: rows with keys go to the models of their keys."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from streamlasso.core.base.lock import Gate
from streamlasso.core.base.record import RECORD
from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.base import Rows
from streamlasso.estimators.face import Saved
from streamlasso.estimators.multiclass import probabilities
from streamlasso.estimators.turns import between_rows
from streamlasso.estimators.validation import features_of, names_with_new
from streamlasso.families import Binomial
from streamlasso.keyed import files
from streamlasso.keyed.groups import Groups, groups_of
from streamlasso.keyed.models import Models

ETA = RECORD.index("eta")

#: With more keys than this the pooled model learns a sample of the rows, at least this share: its memory is then
#: shorter than one row of each key, and a sample tells it as much.
FEW_KEYS, LEAST_SHARE = 1000, 1 / 8
#: Rows are taken whose number times this one, the golden ratio, has a small fraction: evenly, but at no fixed distance,
#: since keys may come in turn.
GOLDEN = 0.6180339887498949


class Keyed(Saved):
    """A model for every key; subclasses say what comes out."""

    _format = files

    kind: type[RAPRegressor | RAPClassifier]

    def __init__(self, model: Any = None, max_keys: int | None = None, *, pooled: bool = True) -> None:
        model = self.kind() if model is None else model
        if not isinstance(model, self.kind):
            raise TypeError(f"model={model!r} is not a {self.kind.__name__}: use one that has seen no rows")
        if max_keys is not None and (not isinstance(max_keys, int | np.integer) or max_keys < 1):
            raise ValueError(f"max_keys={max_keys!r} must be a whole number, 1 or larger, or None for no limit")
        if model.get_params()["batch_size"] != 1:
            raise ValueError(f"model={model!r}: models of keys learn row by row; use batch_size=1")
        self.max_keys = max_keys
        self.pools = pooled
        #: The model that sees all rows; before the first, the settings of all models.
        self.pooled = clone(model)
        self._models: Models | None = None
        #: The pooled model as bytes, where it learns nothing.
        self._settings_bytes: bytes | None = None
        #: Rows so far, learnt by the pooled model or not.
        self._n_rows = 0
        self._gate = Gate()

    def _still(self) -> Any:
        """Until the end of a call that learns in another thread. A fork waits for the reader, who may move models to
        the disk and back."""
        return self._gate.whole()

    def _fitted(self) -> Any:
        return self.pooled._fitted()

    @between_rows
    def __getstate__(self) -> dict[str, Any]:
        if self._models is not None:
            return {"data": self.to_bytes()}
        return {"settings": (clone(self.pooled), self.max_keys), "pooled": self.pools}

    def __setstate__(self, state: dict[str, Any]) -> None:
        cls = type(self)
        new = cls.from_bytes(state["data"]) if "data" in state else cls(*state["settings"], pooled=state["pooled"])
        vars(self).update(vars(new))

    def __repr__(self) -> str:
        settings = [repr(clone(self.pooled))]
        settings += [] if self.max_keys is None else [f"max_keys={self.max_keys}"]
        settings += [] if self.pools else ["pooled=False"]
        return f"{type(self).__name__}({', '.join(settings)})"

    @between_rows
    def __len__(self) -> int:
        """The number of keys."""
        return 0 if self._models is None else len(self._models.places)

    @between_rows
    def __contains__(self, key: Hashable) -> bool:
        return self._models is not None and key in self._models.places

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.keys())

    # --- learning -----------------------------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, keys: Any, sample_weight: Any, classes: Any = None) -> np.ndarray:
        """eta (row, learner) of each row before it was learnt. A refused batch changes nothing."""
        # For this call alone: another that learns is refused, and all that read wait, as does a fork.
        with self._gate.alone():
            new = self._models is None
            if not new and names_with_new(self.pooled, X):
                raise ValueError("X has new columns, and models of keys keep theirs. No row was learnt.")
            rows = self.pooled._ready(X, y, sample_weight, classes, reset=new)
            if not rows.learners[0].compiled:
                raise ValueError(
                    f"model={self.pooled!r} has a part written in Python: use streamlasso's own parts for keys"
                )
            groups = groups_of(keys, len(rows.X))
            models = Models(rows.learners[0], len(rows.learners), self.max_keys) if new else self._models
            assert models is not None
            weights = self._pooled_weights(models, groups, rows.weights) if self.pools else None
            pooled = [self._pooled_etas(rows, weights, c) if self.pools else None for c in range(len(rows.learners))]
            self.pooled._settle(rows)
            self._models = models
            self._n_rows += len(rows.X)
            return models.learn(groups, rows, pooled)

    def _pooled_weights(self, models: Models, groups: Groups, weights: np.ndarray | None) -> np.ndarray | None:
        """The weights of the rows for the pooled model: 0 for those that it only predicts."""
        n_rows = len(groups.order)
        new = [g for g, key in enumerate(groups.keys) if key not in models.places]
        if len(models.places) + len(new) <= FEW_KEYS:
            return weights
        came = np.zeros(n_rows, dtype=np.int64)
        came[groups.order[groups.first[new]]] = 1
        share = np.maximum(FEW_KEYS / np.maximum(len(models.places) + np.cumsum(came), FEW_KEYS), LEAST_SHARE)
        learns = np.arange(self._n_rows, self._n_rows + n_rows) * GOLDEN % 1.0 < share
        return np.where(learns, 1.0 if weights is None else weights, 0.0)

    def _pooled_etas(self, rows: Rows, weights: np.ndarray | None, c: int) -> np.ndarray:
        record = np.empty((len(rows.X), len(RECORD)))
        rows.learners[c].learn(rows.X, rows.targets[c], weights, record)
        return np.ascontiguousarray(record[:, ETA])

    # --- predicting ---------------------------------------------------------------------------------------------------

    @between_rows
    def _decide(self, X: Any, keys: Any) -> np.ndarray:
        """eta (row, learner), each row as the next one of its key."""
        learners = self.pooled._fitted()
        assert self._models is not None
        X = features_of(self.pooled, X)
        groups = groups_of(keys, len(X))
        pooled = [learner.decision_each(X) if self.pools else None for learner in learners]
        return self._models.predict(groups, X, pooled)

    # --- models -------------------------------------------------------------------------------------------------------

    @between_rows
    def keys(self) -> list[Hashable]:
        """All keys, in the order in which they came."""
        return [] if self._models is None else list(self._models.places)

    @between_rows
    def model(self, key: Hashable) -> Any:
        """What the model of a key has learnt, as an estimator of its own: a copy."""
        states = self._known(key).states(key)
        model = clone(self.pooled)
        vars(model).update({name: value for name, value in vars(self.pooled).items() if name.endswith("_")})
        model.learners_ = [self._known(key).engine(state) for state, _ in states]
        return model

    @between_rows
    def weight(self, key: Hashable) -> float:
        """The weight of a key's own model in its predictions; the rest is that of the pooled model."""
        return float(np.mean([weight for _, weight in self._known(key).states(key)]))

    @between_rows
    def evict(self, key: Hashable) -> Self:
        """Forget the model of a key."""
        self._known(key).evict(key)
        return self

    def _known(self, key: Hashable) -> Models:
        if self._models is None or key not in self:
            raise KeyError(f"no row of {key!r} has been learnt")
        return self._models

    @property
    @between_rows
    def n_bytes(self) -> int:
        """What the models of all keys in memory take."""
        return 0 if self._models is None else self._models.n_bytes


class KeyedRegressor(Keyed):
    """A `RAPRegressor` for every key of a stream (shop, meter, patient), and one for all of them.

    A key predicts with the pooled model, which sees every row, until its own predicts better: the two compete as
    everything does here, for each key. Rows are learnt in compiled code, those of a key in the order in which they
    come, on all cores.

    Parameters
    ----------
    model : RAPRegressor, default=None
        The settings of all models; None is `RAPRegressor()`, which takes tens of kilobytes for a key. With
        `tuner="logrms"` it is a few.
    max_keys : int, default=None
        Models in memory at a time. The least recently used go to a temporary file, and come back to the bit.
    pooled : bool, default=True
        False: no pooled model; every key is on its own. It costs as much as the models of the keys do, or with more
        than 1,000 keys, where it learns a sample of the rows, some fifth of that.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.keyed import KeyedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> shop = np.array(["north", "south"])[rng.integers(2, size=600)]
    >>> y = X[:, 0] + np.where(shop == "north", 2.0, -2.0) * X[:, 1] + 0.1 * rng.normal(size=600)
    >>> models = KeyedRegressor(RAPRegressor(memory=100, tuner="logrms")).partial_fit(X, y, shop)
    >>> models.keys()
    ['south', 'north']
    >>> models.model("north").coef_.round(1)
    array([1., 2., 0.])
    >>> models.predict([[1.0, 1.0, 0.0]] * 2, ["south", "a new shop"]).round(1)
    array([-1. ,  0.8])
    """

    kind = RAPRegressor

    def partial_fit(self, X: Any, y: Any, keys: Any, sample_weight: Any = None) -> Self:
        """Learn each row once, with the model of its key and the pooled one. A refused batch changes nothing."""
        self._learn(X, y, keys, sample_weight)
        return self

    def progressive(self, X: Any, y: Any, keys: Any, sample_weight: Any = None) -> np.ndarray:
        """Predict each row, then learn it: what was predicted."""
        return self._means(self._learn(X, y, keys, sample_weight))

    def predict(self, X: Any, keys: Any) -> np.ndarray:
        """The mean of the response, of each row as the next one of its key."""
        return self._means(self._decide(X, keys))

    def _means(self, eta: np.ndarray) -> np.ndarray:
        return self.pooled._first.settings["family"].means(eta[:, 0])


class KeyedClassifier(Keyed):
    """A `RAPClassifier` for every key of a stream, and one for all of them; see `KeyedRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso.keyed import KeyedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> card = np.arange(400) % 2
    >>> y = np.where((card == 0) == (X[:, 0] > 0), "fraud", "fine")
    >>> models = KeyedClassifier().partial_fit(X, y, card, classes=["fine", "fraud"])
    >>> models.predict([[2.0, 0.0], [2.0, 0.0]], [0, 1])
    array(['fraud', 'fine'], dtype='<U5')
    """

    kind = RAPClassifier

    def partial_fit(self, X: Any, y: Any, keys: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn each row once, with the model of its key and the pooled one. A refused batch changes nothing.

        The first call names all `classes`, unless its rows show them.
        """
        self._learn(X, y, keys, sample_weight, classes)
        return self

    def progressive(self, X: Any, y: Any, keys: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Predict the probability of each class, then learn the row: what was predicted."""
        return probabilities(Binomial().mean(self._learn(X, y, keys, sample_weight, classes)))

    def predict_proba(self, X: Any, keys: Any) -> np.ndarray:
        """The probability of each class, of each row as the next one of its key."""
        return probabilities(Binomial().mean(self._decide(X, keys)))

    def predict(self, X: Any, keys: Any) -> np.ndarray:
        """The most probable class, of each row as the next one of its key."""
        return self.pooled._predictions(self._decide(X, keys))

    @property
    def classes_(self) -> np.ndarray:
        """All classes."""
        return self.pooled.classes_
