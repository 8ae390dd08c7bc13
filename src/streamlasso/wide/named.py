"""The river face of the sparse engine: dicts with names, any number of them, appearing at any time."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from river import base

from streamlasso.core.dict_rows import number
from streamlasso.core.sparse.model import Wide, learn_each_named, means_named
from streamlasso.estimators.face import Saved
from streamlasso.estimators.multiclass import modelled
from streamlasso.estimators.turns import behind_the_gate_of, between_rows
from streamlasso.families import Binomial, Family
from streamlasso.wide import packed
from streamlasso.wide.named_models import named_coef, named_model, named_parts, restore_named
from streamlasso.wide.parameters import METHOD, PARAMETERS, NamedFamilyParameters, NamedParameters, family_of

#: What features are, for both estimators.
NAMES = """Features have names, which are strings. A new name is a feature that was 0 until now; a name absent from a
    row is 0 there. A value that is text is a feature of its own: {"city": "Rome"} is {"city=Rome": 1}. Names are hashed
    with a secret key to 64 bits."""

NAMED_PARAMETERS = f"""{PARAMETERS}
    keep_names : bool, default=False
        Whether names are kept, beside their hashes, for `coef_`. That takes as much memory again."""


class _Named(Saved):
    """What both estimators share."""

    _format = packed
    #: Whether y are classes, which have no units.
    _classes = False
    learners_: list[Wide]

    def _new_model(self, family: Family) -> Wide:
        earlier = getattr(self, "learners_", None)
        key = earlier[0].name_key if earlier else np.frombuffer(os.urandom(16), dtype=np.uint64)
        return named_model(family, self._get_params(), key, fixed_units=self._classes)  # type: ignore[attr-defined]

    def _fitted(self) -> list[Wide]:
        return self.learners_

    @property
    def n_seen_(self) -> int:
        """Rows learnt."""
        return self.learners_[0].n_seen

    @property
    @between_rows
    def coef_(self) -> Any:
        return self._by_model([named_coef(model) for model in self.learners_])

    @property
    @between_rows
    def intercept_(self) -> Any:
        return self._by_model([model.intercept for model in self.learners_])

    def _by_model(self, values: list[Any]) -> Any:
        return values[0]

    @property
    @between_rows
    def n_live_(self) -> int:
        """Features with a record; for several classes, of all models together."""
        return sum(len(model.table) for model in self.learners_)

    # --- bytes (`packed.py`) ------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return named_parts(self._get_params(), self.learners_, self._labels())  # type: ignore[attr-defined]

    def _labels(self) -> list[Any] | None:
        return None

    @classmethod
    def _from(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        model = cls(**header["settings"])
        family = model.learners_[0].family
        model.learners_ = restore_named(lambda: model._new_model(family), header, arrays)
        model._relabel(header["classes"])
        return model

    def _relabel(self, labels: Any) -> None:
        if labels is not None:
            raise KeyError("classes")


class WideClassifier(NamedParameters, _Named, base.Classifier):
    __doc__ = f"""Classification by millions of sparse features with names: logistic regression without settings.

    {METHOD}
    Classes appear as the stream shows them. Two are one model; several are one model per class against the rest.

    {NAMES}

    Parameters
    ----------
    {NAMED_PARAMETERS}

    Attributes
    ----------
    classes_ : list
        The labels, in order of appearance.
    coef_, intercept_ : dict
        One entry per model, by its class: the second of two, each of several.
    n_seen_, n_live_ : int
        Rows learnt, and features with a record.

    Examples
    --------
    >>> from streamlasso.river import WideClassifier
    >>> model = WideClassifier()
    >>> for _ in range(10):
    ...     model.learn_one({{"cheap": 1, "pills": 1, "from": "pharma"}}, "spam")
    ...     model.learn_one({{"lunch": 1, "noon": 1, "from": "Anna"}}, "ham")
    >>> model.predict_one({{"cheap": 1, "lunch": 1, "from": "pharma"}})
    'spam'
    """

    _classes = True

    def __post_init__(self) -> None:
        self.classes_: list[Hashable] = []
        self.learners_ = [self._new_model(Binomial())]

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        weight, first = _weight(w), self.learners_[0]
        with first.gate:
            known = y in self.classes_
            if weight == 0 or not known:
                self.learners_[0].check_named(x)
            if weight == 0:
                return
            if not known:
                self._add_class(y.item() if isinstance(y, np.generic) else y)
            k, models = self.classes_.index(y), self.learners_
            if len(models) == 1:
                first.learn_named(x, float(k), weight)
            else:
                learn_each_named(models, x, [float(k == place) for place in range(len(models))], weight)

    def _add_class(self, y: Any) -> None:
        if y is None or y != y or not isinstance(y, Hashable):
            raise ValueError(f"y={y!r} is not a class label: use a string, a number or a bool; nothing was learnt.")
        models = [self.learners_[0].mirrored(), *self.learners_] if len(self.classes_) == 2 else self.learners_
        if len(self.classes_) >= 2:
            models = [*models, self._new_model(Binomial())]
        vars(self).update(learners_=behind_the_gate_of(self, models), classes_=[*self.classes_, y])

    def predict_proba_one(self, x: dict[Any, Any], **options: Any) -> dict[Any, float]:
        """The probability of each class, given a row."""
        with self.learners_[0].gate:
            labels, models = self.classes_, self.learners_
            if len(labels) < 2:
                return dict.fromkeys(labels, 1.0)
            if len(labels) == 2:
                mean = models[0].predict_named(x)
                return {labels[0]: 1.0 - mean, labels[1]: mean}
            means = means_named(models, x)
        total = sum(means)
        if total == 0:
            return dict.fromkeys(labels, 1.0 / len(means))
        return {label: mean / total for label, mean in zip(labels, means, strict=True)}

    def _by_model(self, values: list[Any]) -> dict[Hashable, Any]:
        return dict(zip(modelled(self.classes_), values, strict=False))

    def _labels(self) -> list[Any]:
        return packed.plain_labels(self.classes_)

    def _relabel(self, labels: Any) -> None:
        if len(self.learners_) != (len(labels) if len(labels) > 2 else 1):
            raise KeyError("classes")
        self.classes_ = packed.plain_labels(labels)
        if len({*labels}) < len(labels):
            raise ValueError("classes that no row can have had")


class WideRegressor(NamedFamilyParameters, _Named, base.Regressor):
    __doc__ = f"""Regression or counts from millions of sparse features with names, without settings.

    {METHOD}
    The units of y and of the features do not matter.

    {NAMES}

    Parameters
    ----------
    family : {{"gaussian", "poisson"}}, default="gaussian"
        Squared error; or counts, with the log link.
    {NAMED_PARAMETERS}

    Attributes
    ----------
    coef_ : dict
        The coefficients now, by name.
    intercept_ : float
        The intercept now.
    n_seen_, n_live_ : int
        Rows learnt, and features with a record.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamlasso.river import WideRegressor
    >>> model = WideRegressor(keep_names=True)
    >>> for x, y in datasets.TrumpApproval():
    ...     model.learn_one(x, y)
    >>> sorted(model.coef_)[:2]
    ['gallup', 'ipsos']
    """

    def __post_init__(self) -> None:
        self.learners_ = [self._new_model(family_of(self.family))]

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        target, weight, model = number("y", y), _weight(w), self.learners_[0]
        complaint = model.family.check_target(np.array([target])) if target < 0 else None
        if complaint:
            raise ValueError(f"y={y!r}: {complaint}; family={self.family!r}. Nothing was learnt.")
        if weight > 0:
            model.learn_named(x, target, weight)
        else:
            model.check_named(x)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The mean of the response, given a row."""
        return self.learners_[0].predict_named(x)


def _weight(w: Any) -> float:
    weight = number("w", w)
    if weight < 0:
        raise ValueError(f"w={w!r}: a weight is a number, 0 (the row is skipped) or larger; nothing was learnt.")
    return weight
