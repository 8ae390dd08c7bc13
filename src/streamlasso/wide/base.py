"""What both scikit-learn estimators of the sparse engine share: rows, coefficients, bytes; nothing numerical."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from streamlasso.compact import array_of
from streamlasso.core.sparse.model import Wide, learn_each
from streamlasso.estimators.face import Saved
from streamlasso.estimators.multiclass import n_models
from streamlasso.estimators.turns import behind_the_gate_of, between_rows, learning, publish
from streamlasso.estimators.validation import NOTED, refuse_no_target, refuse_no_weight, weights_of
from streamlasso.families import Family
from streamlasso.wide import packed
from streamlasso.wide.parameters import Parameters, engine_settings
from streamlasso.wide.validation import rows_of


class WideEstimator(Parameters, Saved, BaseEstimator):
    """What both estimators share: one engine, or one per class."""

    _format = packed
    #: Whether y are classes, which have no units.
    _classes = False
    learners_: list[Wide]
    n_features_in_: int
    classes_: np.ndarray

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _family(self) -> Family:
        raise NotImplementedError

    def _new_model(self) -> Wide:
        return Wide(self._family(), fixed_units=self._classes, **engine_settings(self.get_params(deep=False)))

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order, each once."""
        refuse_no_weight(sample_weight)
        self._take(X, y, sample_weight, reset=True)
        return self

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, reset: bool = False) -> np.ndarray:
        """Check everything, learn each row; the etas as they were predicted before (row, model)."""
        with learning(self):
            refuse_no_target(self, y)
            reset = reset or not hasattr(self, "learners_")
            rows, labels = rows_of(self, X, reset=reset)
            targets, known = self._targets(y, rows[3], classes, reset=reset)
            weights = weights_of(sample_weight, rows[3])
            models = behind_the_gate_of(self, [self._new_model() for _ in targets]) if reset else self.learners_
            eta = np.empty((len(targets), rows[3]))
            learn_each(models, rows[:3], targets, weights, eta)
            if labels is not None:
                gone = tuple(name for name in NOTED if name not in labels)
                publish(self, models, labels | ({} if known is None else {"classes_": known}), gone)
            return eta.T

    def _targets(self, y: Any, n_rows: int, classes: Any, *, reset: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
        raise NotImplementedError

    @between_rows
    def _decide(self, X: Any) -> np.ndarray:
        models = self._fitted()
        rows, _ = rows_of(self, X, reset=False)
        return np.column_stack([model.decide(*rows[:3]) for model in models])

    def _fitted(self) -> list[Wide]:
        if not hasattr(self, "learners_"):
            raise NotFittedError(f"This {type(self).__name__} has seen no rows yet: call fit or partial_fit first.")
        return self.learners_

    # --- what it is ---------------------------------------------------------------------------------------------------

    @property
    @between_rows
    def coef_(self) -> sparse.csr_array:
        """The coefficients now, sparse: (1, n_features), or one row per class."""
        rows = [model.coef() for model in self._fitted()]
        starts = np.cumsum([0, *(np.count_nonzero(values) for _, values in rows)])
        columns = np.concatenate([keys[values != 0].astype(np.int64) for keys, values in rows])
        values = np.concatenate([values[values != 0] for _, values in rows])
        coef = sparse.csr_array((values, columns, starts), shape=(len(rows), self.n_features_in_))
        coef.sort_indices()
        return coef

    @property
    @between_rows
    def intercept_(self) -> Any:
        intercepts = np.array([model.intercept for model in self._fitted()])
        return intercepts if self._classes else float(intercepts[0])

    @property
    def n_seen_(self) -> int:
        return self._fitted()[0].n_seen

    @property
    @between_rows
    def n_live_(self) -> int:
        return sum(len(model.table) for model in self._fitted())

    @property
    @between_rows
    def nbytes_(self) -> int:
        return sum(model.nbytes for model in self._fitted())

    # --- bytes (`packed.py`) ------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        names, classes = getattr(self, "feature_names_in_", None), getattr(self, "classes_", None)
        settings = self.get_params(deep=False).items()
        header = {
            "settings": {name: value.item() if isinstance(value, np.generic) else value for name, value in settings},
            "labels": {"n_features_in_": self.n_features_in_},
            "names": None if names is None else names.tolist(),
            "classes": None if classes is None else _as_json(classes),
            "models": len(self.learners_),
        }
        return header, packed.states_of(self.learners_)

    @classmethod
    def _from(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        model = cls(**header["settings"])
        model.learners_ = packed.restored(model._new_model, int(header["models"]), arrays)
        model.n_features_in_ = n_features = header["labels"]["n_features_in_"]
        live = max(int(max(each.table.keys(), default=0)) for each in model.learners_)
        if type(n_features) is not int or not live < n_features < 2**63:
            raise ValueError(f"{n_features!r} is not their number of features")
        if header["names"] is not None:
            model.feature_names_in_ = array_of("object", header["names"])
            if len(header["names"]) != n_features or not all(isinstance(name, str) for name in header["names"]):
                raise ValueError("names and features do not belong together")
        if (header["classes"] is not None) != cls._classes:
            raise ValueError("classes do not fit")
        if header["classes"] is not None:
            kind, labels = header["classes"]
            model.classes_ = array_of(kind, labels)
            in_order = np.array_equal(model.classes_, np.unique(model.classes_))
            if len(labels) < 2 or n_models(len(labels)) != len(model.learners_) or not in_order:
                raise ValueError("classes and models do not belong together")
        return model


def _as_json(classes: np.ndarray) -> tuple[str, list[Any]]:
    return "object" if classes.dtype.kind == "O" else classes.dtype.str, packed.plain_labels(classes.tolist())
