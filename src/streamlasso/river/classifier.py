"""The classifier of river: classes are known when they appear."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from river import base

from streamlasso.core.base.selected import Selected
from streamlasso.core.dict_rows import DictRows
from streamlasso.core.model import Engine, learn_together
from streamlasso.estimators.coefficients import SelectedByClass
from streamlasso.estimators.intervals import refuse_coverage
from streamlasso.estimators.multiclass import (
    KeepsRecent,
    Recent,
    best_class,
    modelled,
    probabilities,
    sets_of,
    targets_of,
    with_new_class,
)
from streamlasso.estimators.parameters import ATTRIBUTES, METHOD, NAMED_PARAMETERS
from streamlasso.estimators.turns import (
    behind_the_gate_of,
    between_rows,
    claimed,
    counting,
    gate_of,
    publish,
)
from streamlasso.families import Binomial
from streamlasso.river.base import NAMES, RAP
from streamlasso.river.frames import as_long, label_of, names_of, rows_of, weights_of


class RAPClassifier(
    KeepsRecent,
    RAP[dict[Hashable, float], dict[Hashable, dict[Hashable, float]], dict[Hashable, Selected]],
    base.MiniBatchClassifier,
):
    __doc__ = f"""Sparse classification on a stream that may change: a logistic regression that tunes itself.

    {METHOD}
    Classes appear as the stream shows them, and may be any hashable labels. Two are one model; several are one model
    per class against the rest, each with its own lam; their probabilities are divided by their sum. The model of a
    class that appears late first learns the last 256 rows, as rows of other classes.

    {NAMES}

    Parameters
    ----------
    {NAMED_PARAMETERS}

    Attributes
    ----------
    classes_ : list
        The labels, in order of appearance.
    coef_, intercept_, lambda_, lambda_max_, selected_ : dict
        One entry per model, by its class: the second of two, each of several.
    {ATTRIBUTES}

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamlasso.river import RAPClassifier
    >>> model = RAPClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.83%
    """

    def __post_init__(self) -> None:
        self.classes_: list[Hashable] = []
        self._start({**self._get_params(), "family": Binomial()})
        self._recent = Recent(self.columns_.width)

    @property
    def _multiclass(self) -> bool:
        return True

    # --- learning ---------------------------------------------------------------------------------------------------

    def _learn_one(self, x: dict[Any, Any], y: Any, w: float) -> None:
        label = label_of(y)
        gate = gate_of(self)
        # The gate is for the row, which all who use these columns write into.
        with claimed(gate), gate:
            known = self.columns_.fill(x)
            if known and len(self.classes_) > 1 and label in self.classes_ and self.learners_[0].compiled:
                self._learn_known(label, w)
                return
            columns, learners = (self.columns_, self.learners_) if known else self._room_for(x)
            columns.fill(x)
            columns.weigh(w)
            self._learn(columns, learners, columns.row, [label], columns.weight)

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = 1.0) -> None:
        """Learn the rows in order, as `learn_one` would, with a weight for all or one each.

        A mini-batch ends where a class appears for the first time. A refused batch changes nothing.
        """
        with self._telling(), claimed(gate_of(self)):
            columns, learners = self._room_for(names_of(X))
            rows, weights = rows_of(columns, X), weights_of(w, X)
            labels = [label_of(label) for label in as_long(y, X)]
            self._learn(columns, learners, rows, labels, weights)

    def _learn_known(self, label: Hashable, w: float) -> None:
        """The row at hand, whose names and class are known: what most rows are, without any arrays made for them."""
        weight = self.columns_.weigh(w)
        if weight > 0:
            self.columns_.take(self.learners_, [float(label == own) for own in modelled(self.classes_)])
            self._recent.add_one(self.columns_.row[0], weight)

    def _learn(
        self, columns: DictRows, learners: list[Engine], rows: np.ndarray, labels: list[Hashable], weights: np.ndarray
    ) -> None:
        """Piece by piece, each without new classes."""
        if not weights.any():
            return
        # A tuner or family written in Python may raise half-way: then nothing must have changed. Compiled ones cannot,
        # and may be interrupted: then the model is that after the rows so far. Copying it costs more than a row does.
        compiled = all(learner.compiled for learner in learners)
        learners = learners if compiled else [copy(learner) for learner in learners]
        recent = self._recent if self._recent.n_features == columns.width else self._recent.grown(columns.width)
        recent = recent if compiled else copy(recent)
        places = {label: k for k, label in enumerate(self.classes_)}
        with counting(len(rows)) as learnt:
            for piece, label in _pieces(labels, weights, places):
                if label is not None:
                    places[label] = len(places)
                    learners = behind_the_gate_of(self, with_new_class(learners, len(places), recent))
                if compiled:
                    self._become(columns, learners, places, recent)
                _learn_piece(learners, places, rows[piece], labels[piece], weights[piece], learnt)
                with gate_of(self):
                    recent.add(rows[piece], weights[piece])
            self._become(columns, learners, places, recent)

    def _become(self, columns: DictRows, learners: list[Engine], places: dict[Hashable, int], recent: Recent) -> None:
        publish(self, learners, {"columns_": columns, "classes_": list(places), "_recent": recent})

    # --- predicting -------------------------------------------------------------------------------------------------

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """The most probable class, given a row; None before the first one."""
        with gate_of(self):
            eta = [[self.columns_.eta(learner, x) for learner in self.learners_]]
            return self._likeliest(np.array(eta))[0]

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The probability of each class seen so far, given a row."""
        with gate_of(self):
            mean = [self.columns_.predict(learner, x) for learner in self.learners_]
            if len(self.classes_) == 2:
                return {self.classes_[0]: 1 - mean[0], self.classes_[1]: mean[0]}
            return dict(zip(self.classes_, self._probabilities(np.array([mean]))[0].tolist(), strict=True))

    def predict_set_one(self, x: dict[Any, Any], coverage: float = 0.9) -> set[Any]:
        """The most probable classes that have this probability together, given a row; none before the first one."""
        refuse_coverage(coverage)
        shares = self.predict_proba_one(x)
        inside = sets_of(np.array([[*shares.values()]]), coverage)[0] if shares else []
        return {label for label, there in zip(shares, inside, strict=True) if there}

    @between_rows
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The most probable class, given each row."""
        return pd.Series(self._likeliest(self._decide(X)), index=X.index, dtype=None if self.classes_ else object)

    @between_rows
    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probability of each class seen so far, given each row."""
        table = self._probabilities(Binomial().mean(self._decide(X)))
        return pd.DataFrame(table, index=X.index, columns=pd.Index(self.classes_, tupleize_cols=False))

    def _decide(self, X: pd.DataFrame) -> np.ndarray:
        """eta (row, model)."""
        names_of(X)
        rows = rows_of(self.columns_, X)
        return np.column_stack([learner.decision_each(rows) for learner in self.learners_])

    def _likeliest(self, eta: np.ndarray) -> list[Any]:
        if len(self.classes_) < 2:
            return (self.classes_ or [None]) * len(eta)
        return [self.classes_[k] for k in best_class(eta).tolist()]

    def _probabilities(self, mean: np.ndarray) -> np.ndarray:
        n = len(self.classes_)
        return probabilities(mean) if n > 1 else np.ones((len(mean), n))

    # --- what it is -------------------------------------------------------------------------------------------------

    def _labels(self) -> list[Hashable]:
        return self.classes_

    def _by_model(self, values: list[Any]) -> dict[Hashable, Any]:
        found = dict(zip(modelled(self.classes_), values, strict=False))
        return SelectedByClass(found) if values and isinstance(values[0], Selected) else found


def _pieces(
    labels: list[Hashable], weights: np.ndarray, places: dict[Hashable, int]
) -> Iterator[tuple[slice, Hashable | None]]:
    """Stretches of rows without new classes, each with the class that is new in its first row, or None."""
    known, start, new = set(places), 0, None
    for t, label in enumerate(labels):
        if weights[t] > 0 and label not in known:
            known.add(label)
            if t > start:
                yield slice(start, t), new
            start, new = t, label
    yield slice(start, len(labels)), new


def _learn_piece(
    learners: list[Engine],
    places: dict[Hashable, int],
    rows: np.ndarray,
    labels: list[Hashable],
    weights: np.ndarray,
    learnt: np.ndarray,
) -> None:
    """Learn rows of known classes. A label of weight 0 may be unknown, and is not learnt."""
    found = np.array([places.get(label, -1) for label in labels])
    learn_together(learners, rows, targets_of(found, len(places)), weights, learnt=learnt)
