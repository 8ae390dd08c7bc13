"""The river face of the sparse engine: dicts with names, any number of them, appearing at any time."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from river import base

from streamlasso.core.dict_rows import number
from streamlasso.core.sparse.model import Wide, learn_each_named, means_named
from streamlasso.estimators.multiclass import modelled
from streamlasso.estimators.turns import behind_the_gate_of, between_rows
from streamlasso.families import Binomial, Family
from streamlasso.wide.named_models import named_bytes, named_coef, named_model, restore_named
from streamlasso.wide.packed import Saved
from streamlasso.wide.parameters import METHOD, PARAMETERS, family_of

#: What features are, for both estimators.
NAMES = """Features have names, which are strings. A new name is a feature that was 0 until now; a name absent from a
    row is 0 there. A value that is text is a feature of its own: {"city": "Rome"} is {"city=Rome": 1}. Names are hashed
    with a secret key to 64 bits."""

#: The weight of a row without one: the object says that there is nothing to check.
ONE = 1.0

NAMED_PARAMETERS = f"""{PARAMETERS}
    keep_names : bool, default=False
        Whether names are kept, beside their hashes, for `coef_`. That takes as much memory again."""


class _Named(Saved):
    """What both estimators share."""

    models_: list[Wide]
    keep_names: bool

    def _new_model(self, family: Family) -> Wide:
        earlier = getattr(self, "models_", None)
        key = earlier[0].name_key if earlier else np.frombuffer(os.urandom(16), dtype=np.uint64)
        return named_model(family, self._get_params(), key, fixed_units=self._classes)  # type: ignore[attr-defined]

    #: Whether y are classes, which have no units.
    _classes = False

    @property
    def n_seen_(self) -> int:
        """Rows learnt."""
        return self.models_[0].n_seen

    @property
    @between_rows
    def n_live_(self) -> int:
        """Features with a record; for several classes, of all models together."""
        return sum(len(model.table) for model in self.models_)

    # --- bytes --------------------------------------------------------------------------------------------------------

    @between_rows
    def to_bytes(self) -> bytes:
        """The model as bytes, its live features only. `from_bytes` continues it to the bit."""
        settings = self._get_params()  # type: ignore[attr-defined]
        return named_bytes(self._kind(), settings, self.models_, self._labels())

    def _labels(self) -> list[Any] | None:
        return None

    @classmethod
    def _from(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        model = cls(**header["settings"])
        family = model.models_[0].family
        model.models_ = restore_named(lambda: model._new_model(family), header, arrays)
        model._relabel(header["classes"])
        return model

    def _relabel(self, labels: Any) -> None:
        if labels is not None:
            raise KeyError("classes")


class WideClassifier(_Named, base.Classifier):
    __doc__ = f"""Classes from millions of sparse features with names: a logistic regression without settings.

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

    def __init__(
        self, experts: int = 16, memory: str = "full", max_features: int | None = None, keep_names: bool = False
    ) -> None:
        self.experts = experts
        self.memory = memory
        self.max_features = max_features
        self.keep_names = keep_names
        self.classes_: list[Hashable] = []
        self._pair: tuple[Hashable, Hashable] | None = None
        self.models_ = [self._new_model(Binomial())]

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = ONE) -> None:
        """Learn a row of weight `w`."""
        pair = self._pair
        if pair is not None and w is ONE and (y is pair[0] or y is pair[1]):
            if self.models_[0].learn_if_free(x, 1.0 if y is pair[1] else 0.0, 1.0):
                return
        elif w is ONE and self._learn_known(x, y):
            return
        with self.models_[0].gate:
            self._learn_one(x, y, w)

    def _learn_known(self, x: dict[Any, Any], y: Any) -> bool:
        """Learn the row if its class is known and no other thread has the gate; whether it did."""
        models, labels = self.models_, self.classes_
        if len(labels) < 2 or y not in labels:
            return False
        targets = [float(y == label) for label in (labels if len(models) > 1 else labels[1:])]
        # Nobody comes between this look and the call.
        return models is self.models_ and learn_each_named(models, x, targets, 1.0)

    def _learn_one(self, x: dict[Any, Any], y: Any, w: float) -> None:
        """By the thread that has the gate: the class of a row may be new."""
        weight = 1.0 if w is ONE else _weight(w)
        y = y.item() if isinstance(y, np.generic) else y
        known = y in self.classes_
        if weight == 0 or not known:
            self.models_[0].check_named(x)
        if weight == 0:
            return
        if not known:
            self._add_class(y)
        if len(self.models_) == 1:
            self.models_[0].learn_named(x, float(len(self.classes_) == 2 and y == self.classes_[1]), weight)
            return
        learn_each_named(self.models_, x, [float(y == label) for label in self.classes_], weight)

    def _add_class(self, y: Any) -> None:
        if y is None or y != y or not isinstance(y, Hashable):
            raise ValueError(f"y={y!r} is not a class label: use a string, a number or a bool; nothing was learnt.")
        models = [self.models_[0].mirrored(), *self.models_] if len(self.classes_) == 2 else self.models_
        if len(self.classes_) >= 2:
            models = [*models, self._new_model(Binomial())]
        self._become(behind_the_gate_of(self, models), [*self.classes_, y])

    def _become(self, models: list[Wide], labels: list[Hashable]) -> None:
        """All at once, for those who look without the gate. Where there are two labels, most rows have one of these
        objects, and need no other look at it."""
        vars(self).update(models_=models, classes_=labels, _pair=tuple(labels) if len(labels) == 2 else None)

    def predict_proba_one(self, x: dict[Any, Any], **options: Any) -> dict[Any, float]:
        """The probability of each class, given a row."""
        pair = self._pair
        if pair is not None:
            mean = self.models_[0].predict_named(x)
            return {pair[0]: 1.0 - mean, pair[1]: mean}
        models, labels = self.models_, self.classes_
        if len(labels) < 2:
            return dict.fromkeys(labels, 1.0)
        if len(labels) == 2:
            return self.predict_proba_one(x)
        means = means_named(models, x)
        total = sum(means)
        if total == 0:
            return dict.fromkeys(labels, 1.0 / len(means))
        return {label: mean / total for label, mean in zip(labels, means, strict=True)}

    @property
    @between_rows
    def coef_(self) -> dict[Hashable, dict[str, float]]:
        labels = modelled(self.classes_)
        return {label: named_coef(model) for label, model in zip(labels, self.models_, strict=False)}

    @property
    @between_rows
    def intercept_(self) -> dict[Hashable, float]:
        labels = modelled(self.classes_)
        return {label: model.intercept for label, model in zip(labels, self.models_, strict=False)}

    def _labels(self) -> list[Any]:
        if not all(isinstance(label, bool | int | float | str) for label in self.classes_):
            raise ValueError(f"classes {self.classes_!r}: text, numbers and bools can be saved")
        return list(self.classes_)

    def _relabel(self, labels: Any) -> None:
        if len(self.models_) != (len(labels) if len(labels) > 2 else 1):
            raise KeyError("classes")
        if not all(isinstance(label, bool | int | float | str) for label in labels) or len({*labels}) < len(labels):
            raise ValueError("classes that no row can have had")
        self._become(self.models_, list(labels))


class WideRegressor(_Named, base.Regressor):
    __doc__ = f"""Numbers or counts from millions of sparse features with names, without settings.

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

    def __init__(
        self,
        family: str = "gaussian",
        experts: int = 16,
        memory: str = "full",
        max_features: int | None = None,
        keep_names: bool = False,
    ) -> None:
        self.family = family
        self.experts = experts
        self.memory = memory
        self.max_features = max_features
        self.keep_names = keep_names
        self.models_ = [self._new_model(family_of(family))]

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = ONE) -> None:
        """Learn a row of weight `w`."""
        target, weight = number("y", y), 1.0 if w is ONE else _weight(w)
        complaint = self.models_[0].family.check_target(np.array([target])) if target < 0 else None
        if complaint:
            raise ValueError(f"y={y!r}: {complaint}; family={self.family!r}. Nothing was learnt.")
        if weight > 0:
            self.models_[0].learn_named(x, target, weight)
        else:
            self.models_[0].check_named(x)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The mean of the response, given a row."""
        return self.models_[0].predict_named(x)

    @property
    @between_rows
    def coef_(self) -> dict[str, float]:
        return named_coef(self.models_[0])

    @property
    def intercept_(self) -> float:
        return self.models_[0].intercept


def _weight(w: Any) -> float:
    weight = number("w", w)
    if weight < 0:
        raise ValueError(f"w={w!r}: a weight is a number, 0 (the row is skipped) or larger; nothing was learnt.")
    return weight
