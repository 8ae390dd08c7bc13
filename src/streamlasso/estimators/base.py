"""What the regressor and the classifier share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from streamlasso import checkpoint
from streamlasso._html import learnt_html
from streamlasso.core.engine import Engine
from streamlasso.core.selected import Selected
from streamlasso.estimators.coefficients import with_names
from streamlasso.estimators.nested import NestedParts
from streamlasso.estimators.parameters import Parameters
from streamlasso.estimators.validation import (
    as_before_if_refused,
    dense,
    features_of,
    names_with_new,
    refuse_no_weight,
    weights_of,
)
from streamlasso.settings import build_learner, is_all


class Rows(NamedTuple):
    """Rows that passed every check, and the learners to take them: those of a new model are new."""

    X: np.ndarray
    targets: list[np.ndarray]
    weights: np.ndarray | None
    learners: list[Engine]
    classes: np.ndarray | None = None

    def shuffled(self) -> Rows:
        """The same rows in another order, always the same one."""
        order = np.random.default_rng(0).permutation(len(self.X))
        weights = None if self.weights is None else self.weights[order]
        return self._replace(X=self.X[order], targets=[y[order] for y in self.targets], weights=weights)


class RAP(Parameters, NestedParts):
    """A model on a stream; subclasses say what y is (`_targets`, `_settings`) and what comes out (`_predictions`)."""

    learners_: list[Engine]
    n_features_in_: int
    feature_names_in_: np.ndarray
    classes_: np.ndarray

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order, each once.

        The rows are taken as a stream. Older ones are forgotten where that predicts the next better, so `score` on the
        same rows can be low. For a table whose rows have no order use `memory="all"`: all rows weigh the same, and are
        learnt in an order of their own, since a table may be sorted.

        >>> from sklearn.datasets import load_diabetes
        >>> from streamlasso import RAPRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> round(RAPRegressor(memory="all").fit(X, y).score(X, y), 2)
        0.52
        """
        refuse_no_weight(sample_weight)
        return self._take(X, y, sample_weight, reset=True, ordered=not is_all(self.memory))

    def _take(self, *batch: Any, reset: bool, ordered: bool = True) -> Self:
        with as_before_if_refused(self):
            rows = self._ready(*batch, reset=reset)
            rows = rows if ordered else rows.shuffled()
            self._learn(rows)
        return self._settle(rows)

    def _ready(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, reset: bool) -> Rows:
        """Check everything before the first row is learnt. New columns of a frame, after the known ones, were 0."""
        new = [] if reset else names_with_new(self, X)
        if new:
            self._name(new)
        X = features_of(self, dense(X), reset=reset)
        targets, classes = self._targets(y, len(X), classes, reset=reset)
        weights = weights_of(sample_weight, len(X))
        learners = self._new_learners(X.shape[1], len(targets)) if reset else self.learners_
        learners = [learner.grown(len(new)) for learner in learners] if new else learners
        return Rows(X, targets, weights, learners, classes)

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """What each learner learns, and the classes."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """What `build_learner` takes."""
        return self.get_params(deep=False)

    def _new_learners(self, n_features: int, n: int) -> list[Engine]:
        return [build_learner(n_features, self._settings()) for _ in range(n)]

    def _learn(self, rows: Rows) -> None:
        """All learners take the rows, or none does."""
        states = [learner.state() for learner in rows.learners] if len(rows.learners) > 1 else []
        try:
            for learner, y in zip(rows.learners, rows.targets, strict=True):
                learner.learn(rows.X, y, rows.weights)
        except BaseException:
            for learner, state in zip(rows.learners, states, strict=False):
                learner.restore(state)
            raise

    def _settle(self, rows: Rows) -> Self:
        """The rows are learnt: the learners that were made for them are the model's."""
        if rows.classes is not None:
            self.classes_ = rows.classes
        self.learners_ = rows.learners
        return self

    # --- for a stream that shows its features as it goes --------------------------------------------------------------

    def _start(self, names: Sequence[str]) -> Self:
        """A model that has seen no rows, with these features."""
        self.learners_ = self._new_learners(len(names), 1)
        self._name(names)
        return self

    def _add_features(self, names: Sequence[str]) -> None:
        """Make room for features that were 0 until now; `names` are those of all features."""
        self.learners_ = [learner.grown(len(names)) for learner in self.learners_]
        self._name(names)

    def _name(self, names: Sequence[str]) -> None:
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    # --- predicting ---------------------------------------------------------------------------------------------------

    def _decide(self, X: Any) -> np.ndarray:
        """eta (row, learner). New columns of a frame, after the known ones, have no coefficient yet."""
        learners = self._fitted()
        if names_with_new(self, X):
            X = X[list(self.feature_names_in_)]
        X = features_of(self, dense(X), reset=False)
        return np.column_stack([learner.decision(X) for learner in learners])

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    def n_seen_(self) -> int:
        return self._first.n_seen

    @property
    def effective_size_(self) -> float:
        return self._first.effective_size

    @property
    def _first(self) -> Engine:
        return self._fitted()[0]

    def _fitted(self) -> list[Engine]:
        if not hasattr(self, "learners_"):
            raise NotFittedError(f"This {type(self).__name__} has seen no rows yet: call fit or partial_fit first.")
        return self.learners_

    # --- in a notebook ------------------------------------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        return self._learnt_html() + super()._repr_html_inner()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._learnt_html() + bundle["text/html"]
        return bundle

    def _learnt_html(self) -> str:
        """What stands above scikit-learn's diagram, which is about parameters."""
        if not hasattr(self, "learners_") or not self.n_seen_:
            return ""
        return learnt_html(type(self).__name__, self.learners_, self._sparse_models(), self._names)

    def _sparse_models(self) -> dict[Any, Selected]:
        """One model per class, or one by the name None; of a mixture the selected one."""
        return {None: self._first.single()}

    def _named_model(self, model: Selected) -> Selected:
        """Its coefficients have the names of the features, if these have names."""
        return with_names(model, self._names) if hasattr(self, "feature_names_in_") else model

    @property
    def _names(self) -> list[str]:
        """Of the features."""
        return list(map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])))

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to `path` (safetensors); the file appears whole or not at all."""
        self._fitted()
        checkpoint.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The model that `save` wrote. Loading runs no code of the file's, and refuses a file that is not whole."""
        return checkpoint.load(cls, path)

    def _whole(self) -> bool:
        """Do the labels belong to the learners? A checkpoint asks before it hands out a model."""
        return len(self.learners_) == 1 and self._named_right

    @property
    def _named_right(self) -> bool:
        p = self._first.n_features
        return self.n_features_in_ == p and len(getattr(self, "feature_names_in_", range(p))) == p
