"""What scikit-learn's regressor and classifier share: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from streamlasso.core.base.selected import Selected
from streamlasso.core.model import Engine, learn_together
from streamlasso.estimators.coefficients import Coefficients, with_names
from streamlasso.estimators.explanation import explained, explained_change
from streamlasso.estimators.face import Best, Face, Number
from streamlasso.estimators.nested import NestedParts
from streamlasso.estimators.parameters import Parameters
from streamlasso.estimators.turns import behind_the_gate_of, between_rows, counting, learning, publish
from streamlasso.estimators.validation import (
    NOTED,
    checked_features,
    dense,
    features_of,
    names_with_new,
    refuse_no_weight,
    weights_of,
)
from streamlasso.settings import build_learner, is_all


class Rows(NamedTuple):
    """Rows that passed every check, and what takes them.

    learners : those of a new model are new
    labels : what becomes the model's with them; None if it is the model's already
    """

    X: np.ndarray
    targets: list[np.ndarray]
    weights: np.ndarray | None
    learners: list[Engine]
    classes: np.ndarray | None = None
    labels: Mapping[str, Any] | None = None

    def first(self, n: int) -> Rows:
        weights = None if self.weights is None else self.weights[:n]
        return self._replace(X=self.X[:n], targets=[y[:n] for y in self.targets], weights=weights)

    def shuffled(self) -> Rows:
        """The same rows in another order, always the same one."""
        order = np.random.default_rng(0).permutation(len(self.X))
        weights = None if self.weights is None else self.weights[order]
        return self._replace(X=self.X[order], targets=[y[order] for y in self.targets], weights=weights)


class RAP(Face[Number, np.ndarray, Best], Parameters, NestedParts):
    """A model on a stream; subclasses say what y is (`_targets`, `_settings`) and what comes out (`_predictions`)."""

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
        0.51
        """
        refuse_no_weight(sample_weight)
        return self._take(X, y, sample_weight, reset=True, ordered=not is_all(self.memory))

    def _take(self, *batch: Any, reset: bool = False, ordered: bool = True) -> Self:
        with self._telling(reset), learning(self):
            rows = self._ready(*batch, reset=reset or not hasattr(self, "learners_"))
            rows = rows if ordered else rows.shuffled()
            with counting(len(rows.X)) as learnt, self._settled(rows, learnt):
                learn_together(rows.learners, rows.X, rows.targets, rows.weights, learnt=learnt)
        return self

    @contextmanager
    def _settled(self, rows: Rows, learnt: np.ndarray) -> Iterator[None]:
        """What learns the rows is the model's from the start, if it cannot refuse a row, or when they are learnt.

        An older model stays until then. Ctrl-C may come at any moment, so rows that are not the model's are not told.
        """
        if not hasattr(self, "learners_") and all(learner.compiled for learner in rows.learners):
            self._settle(rows)
        try:
            try:
                yield
            finally:
                if learnt[0]:
                    self._settle(rows)
        except BaseException:
            if getattr(self, "learners_", None) is not rows.learners:
                learnt[0] = 0
            raise

    def _ready(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, reset: bool) -> Rows:
        """Check everything before the first row is learnt. New columns of a frame, after the known ones, were 0."""
        reset_columns = reset or bool(names_with_new(self, X))
        X, labels = checked_features(self, dense(X), reset=reset_columns)
        targets, known = self._targets(y, len(X), classes, reset=reset)
        weights = weights_of(sample_weight, len(X))
        if labels is None:
            return Rows(X, targets, weights, self.learners_, known)
        learners = self._new_learners(X.shape[1], len(targets)) if reset else self._grown(X.shape[1])
        if known is not None:
            labels["classes_"] = known
        return Rows(X, targets, weights, learners, known, labels)

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        """What each learner learns, and the classes."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """What `build_learner` takes."""
        return self.get_params(deep=False)

    def _new_learners(self, n_features: int, n: int) -> list[Engine]:
        return behind_the_gate_of(self, [build_learner(n_features, self._settings()) for _ in range(n)])

    def _grown(self, n_features: int) -> list[Engine]:
        return behind_the_gate_of(self, [learner.grown(n_features) for learner in self.learners_])

    def _settle(self, rows: Rows) -> Self:
        """The rows are learnt: the learners that were made for them are the model's."""
        if rows.labels is not None:
            publish(self, rows.learners, rows.labels, gone=tuple(name for name in NOTED if name not in rows.labels))
        return self

    # --- for a stream that shows its features as it goes --------------------------------------------------------------

    def _start(self, names: Sequence[str]) -> Self:
        """A model that has seen no rows, with these features."""
        publish(self, self._new_learners(len(names), 1), _names(names))
        return self

    def _add_features(self, names: Sequence[str]) -> None:
        """Make room for features that were 0 until now; `names` are those of all features."""
        publish(self, self._grown(len(names)), _names(names))

    def _name(self, names: Sequence[str]) -> None:
        """Rows came without names, and these are the features' names."""
        publish(self, self.learners_, _names(names))

    # --- predicting ---------------------------------------------------------------------------------------------------

    @between_rows
    def _decide(self, X: Any) -> np.ndarray:
        """eta (row, learner). New columns of a frame, after the known ones, have no coefficient yet."""
        learners = self._fitted()
        if names_with_new(self, X):
            X = X[list(self.feature_names_in_)]
        X = features_of(self, X)
        return np.column_stack([learner.decision(X) for learner in learners])

    # --- what it is ---------------------------------------------------------------------------------------------------

    def _fitted(self) -> list[Engine]:
        if not hasattr(self, "learners_"):
            raise NotFittedError(f"This {type(self).__name__} has seen no rows yet: call fit or partial_fit first.")
        return self.learners_

    def _by_feature(self, values: np.ndarray) -> Coefficients:
        return Coefficients(values, self._names)

    @between_rows
    def explain(self, x: Any, before: Self | None = None) -> Any:
        """Why a row is predicted as it is: an `Explanation`, or one for each class where there are several.

        With `before`, an earlier state of the model (say, a copy, or one that was loaded), why the prediction has
        changed since: eta is the change, and the contributions are those of the coefficients that moved.

        >>> import numpy as np
        >>> from streamlasso import RAPRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 3))
        >>> model = RAPRegressor().fit(X, 2 * X[:, 0] - X[:, 1] + 0.01 * rng.normal(size=500))
        >>> why = model.explain([1.0, 2.0, 0.0])
        >>> why.contributions[:2].round(1)
        array([ 2.3, -1.9])
        >>> bool(np.isclose(why.baseline + why.contributions.sum(), why.eta))
        True
        """
        learners = self._fitted()
        row = features_of(self, x if hasattr(x, "columns") else np.atleast_2d(x))
        if len(row) != 1:
            raise ValueError(f"x holds {len(row)} rows: explain takes one")
        if before is None:
            found = [explained(learner, row[0], self._names) for learner in learners]
        else:
            found = self._explained_change(learners, before, row[0])
        return self._by_model(found)

    def _explained_change(self, learners: list[Engine], before: Self, row: np.ndarray) -> list[Any]:
        if not isinstance(before, RAP) or len(before._fitted()) != len(learners):
            raise ValueError(f"before={before!r} is not an earlier state of this model: use a copy, or one loaded")
        own = before._names
        places = np.array([own.index(name) if name in own else -1 for name in self._names])
        pairs = zip(learners, before._fitted(), strict=True)
        return [explained_change(learner, old, row, self._names, places) for learner, old in pairs]

    # --- in a notebook ------------------------------------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        return self._learnt_html() + super()._repr_html_inner()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._learnt_html() + bundle["text/html"]
        return bundle

    def _named_model(self, model: Selected) -> Selected:
        return with_names(model, self._names) if hasattr(self, "feature_names_in_") else model

    @property
    def _names(self) -> list[str]:
        """Of the features."""
        return list(map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])))

    def _fits(self, n_features: int) -> bool:
        return self.n_features_in_ == n_features == len(getattr(self, "feature_names_in_", range(n_features)))


def _names(names: Sequence[str]) -> dict[str, Any]:
    """As scikit-learn notes them."""
    return {"n_features_in_": len(names), "feature_names_in_": np.array(names, dtype=object)}
