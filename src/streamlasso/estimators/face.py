"""What every estimator of dense rows has, whether it is scikit-learn's or river's: what it has learnt, and its files.

A new attribute is one property here and one of the engines (`core/model.py`). A face says how the values of its models
are put together: one model's alone, one per class, by the names of the features or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np

from streamlasso import checkpoint
from streamlasso._html import learnt_html
from streamlasso.core.base.selected import Selected
from streamlasso.core.model import Engine
from streamlasso.estimators.changes import FindsChanges
from streamlasso.estimators.multiclass import modelled, n_models
from streamlasso.estimators.turns import CopiedWhole, between_rows

#: A number of each model, its coefficients, and its selected model, as this face puts them together.
Number = TypeVar("Number")
Vector = TypeVar("Vector")
Best = TypeVar("Best")


class Saved(CopiedWhole):
    """An estimator that is also a file, and bytes."""

    #: The module that knows the format: it has `save`, `load`, `to_bytes` and `from_bytes`.
    _format: Any = checkpoint

    def save(self, path: Any) -> None:
        """Write the model to `path`; the file appears whole or not at all.

        While another thread learns, it is the model between two rows.
        """
        self._fitted()
        self._format.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The model that `save` wrote. Loading runs no code of the file's, and refuses a file that is not whole."""
        return cls._format.load(cls, path)

    @between_rows
    def to_bytes(self) -> bytes:
        """The model as bytes, for a database or a message; `save` writes the same."""
        self._fitted()
        return self._format.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The model that `to_bytes` gave. No code of theirs is run, and bytes that are not whole are refused."""
        return cls._format.from_bytes(cls, data)

    def _fitted(self) -> Any:
        """What has learnt; an error where nothing has."""
        raise NotImplementedError


class Face(Saved, FindsChanges, Generic[Number, Vector, Best]):
    """One model, or one per class; subclasses take rows, and say what comes out."""

    learners_: list[Engine]

    # --- what it has learnt -------------------------------------------------------------------------------------------

    @property
    @between_rows
    def n_seen_(self) -> int:
        """Rows learnt."""
        return self._first.n_seen

    @property
    @between_rows
    def effective_size_(self) -> float:
        """The weight omega of the rows in memory."""
        return self._first.effective_size

    @property
    @between_rows
    def coef_(self) -> Vector:
        """The coefficients now; of a mixture, their average."""
        return self._by_model([self._by_feature(learner.coef) for learner in self._fitted()])

    @property
    @between_rows
    def intercept_(self) -> Number:
        """The intercept now."""
        return self._by_model([learner.intercept for learner in self._fitted()])

    @property
    @between_rows
    def lambda_(self) -> Number:
        """The penalty now; of a mixture, the average."""
        return self._by_model([learner.lam for learner in self._fitted()])

    @property
    @between_rows
    def lambda_max_(self) -> Number:
        """The smallest lam at which all coefficients are 0."""
        return self._by_model([learner.lam_max for learner in self._fitted()])

    @property
    @between_rows
    def selected_(self) -> Best:
        """Of a mixture, one sparse model to read (docs/what_matters.md)."""
        return self._by_model([self._named_model(learner.selected()) for learner in self._fitted()])

    @property
    @between_rows
    def inclusion_(self) -> Any:
        """Of each feature, the probability that it matters, from 0 to 1. Of a single model, 1 where it has a
        coefficient and 0 elsewhere. One for each class where there are several.
        """
        return self._by_model([self._by_feature(learner.inclusion()) for learner in self._fitted()])

    # --- how a face puts it together ----------------------------------------------------------------------------------

    def _by_model(self, values: list[Any]) -> Any:
        """Of each model one: with a single model the value itself."""
        return values[0]

    def _by_feature(self, values: np.ndarray) -> Any:
        """Of each feature one."""
        raise NotImplementedError

    def _named_model(self, model: Selected) -> Selected:
        """With coefficients that go by the names of the features, if these have names."""
        raise NotImplementedError

    def _labels(self) -> list[Any] | None:
        """The classes so far; None where there are none to come."""
        return None

    def _model_labels(self) -> Sequence[Any]:
        """The class of each model, or None."""
        labels = self._labels()
        return [None] if labels is None else modelled(labels)

    def _sparse_models(self) -> dict[Any, Selected]:
        """One model per class, or one by the name None; of a mixture the selected one."""
        models = [learner.single() for learner in self._fitted()]
        return dict(zip(self._model_labels(), models, strict=False))

    @between_rows
    def _learnt_html(self) -> str:
        """In a notebook: what it has learnt; "" where that is nothing."""
        if not hasattr(self, "learners_") or not self.n_seen_:
            return ""
        return learnt_html(type(self).__name__, self.learners_, self._sparse_models(), self._names)

    # --- its models ---------------------------------------------------------------------------------------------------

    def _fitted(self) -> list[Engine]:
        return self.learners_

    @property
    def _first(self) -> Engine:
        return self._fitted()[0]

    def _whole(self) -> bool:
        """Do the labels belong to the learners? A checkpoint asks before it hands out a model."""
        labels, kept = self._labels(), getattr(self, "_recent", None)
        return (
            self._fits(self._first.n_features)
            and len(self.learners_) == (1 if labels is None else n_models(len(labels)))
            and len(set(labels or [])) == len(labels or [])
            and (kept is None or kept.n_features == self._first.n_features)
        )

    def _fits(self, n_features: int) -> bool:
        """Are these as many features as there are names?"""
        raise NotImplementedError
