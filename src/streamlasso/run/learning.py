"""A model that grows with its stream: new features, new classes, rows without a target."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso._progressive import learn_rows
from streamlasso.baselines import ClassBaselines, Compared, NumberBaselines
from streamlasso.core.record import RECORD, STATUS
from streamlasso.encoding import Target
from streamlasso.estimators.base import Rows
from streamlasso.estimators.multiclass import best_class, losses_of, probabilities, targets_of
from streamlasso.families import Family
from streamlasso.report.fit import Fit
from streamlasso.report.summarise import SUMS, Snapshot

#: Stands for the second class until there is one.
NONE_YET = "(none yet)"


class Outcomes(NamedTuple):
    """The predictions of some rows, and the model after each of them: one entry per row.

    eta, lam : (row, learner) eta before the row, and lam after it
    scored : whether its loss counts. Not that of the first row, which nothing could predict, nor without a target
    """

    eta: np.ndarray
    scored: np.ndarray
    loss: np.ndarray
    baseline: np.ndarray
    persistence: np.ndarray
    least_loss: np.ndarray
    error: np.ndarray
    baseline_error: np.ndarray
    persistence_error: np.ndarray
    fit: Fit
    lam: np.ndarray
    after: dict[str, np.ndarray]

    @property
    def sums(self) -> np.ndarray:
        """(row, column), with the columns SUMS of the summary."""
        return np.column_stack([getattr(self, name) for name in SUMS])


class Learning:
    """An estimator that learns row by row, and the baselines that its predictions are compared with.

    `state` is what `state()` gave when the estimator was saved; a model that was saved from Python has none.
    """

    def __init__(self, target: Target, estimator: Any, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.target, self.estimator = target, estimator
        self.classes = target.classes is not None
        self.n_classes = state.get("n_classes", len(target.classes or []))
        baselines = state.get("baselines", {})
        self.baselines = ClassBaselines(**baselines) if self.classes else NumberBaselines(self.family, **baselines)
        self.first = state.get("first", True)

    @classmethod
    def start(cls, target: Target, settings: dict[str, Any], features: list[str]) -> Learning:
        """Of a stream that nothing has been learnt of."""
        if target.classes is None:
            return cls(target, RAPRegressor(family=target.family, **settings)._start(features))
        learning = cls(target, RAPClassifier(**settings))
        learning.estimator._start(features, learning._own_labels)
        return learning

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the estimator."""
        return {"baselines": self.baselines.state(), "first": self.first, "n_classes": self.n_classes}

    @property
    def learners(self) -> list[Any]:
        return self.estimator.learners_

    @property
    def family(self) -> Family:
        return self.learners[0].settings["family"]

    @property
    def labels(self) -> list[Any]:
        """The classes, two at least."""
        classes = list(self.target.classes or [])[: self.n_classes]
        return [*classes, *([NONE_YET] if len(classes) < 2 else [])]

    @property
    def _own_labels(self) -> list[Any]:
        """The classes as the estimator has them: all whole numbers, or all text."""
        whole = all(isinstance(label, int) for label in self.labels)
        return self.labels if whole else list(map(str, self.labels))

    # --- growing ------------------------------------------------------------------------------------------------------

    def widen(self, features: list[str]) -> None:
        """Make room for features that were 0 until now."""
        if len(features) > self.learners[0].n_features:
            self.estimator._add_features(features)

    def add_classes(self, n_classes: int) -> None:
        """Make room for classes that were not there until now."""
        if n_classes > self.n_classes:
            self.n_classes = n_classes
            self.estimator._add_classes(self._own_labels)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def learn(self, X: np.ndarray, values: np.ndarray, has_past: np.ndarray) -> Outcomes:
        """Predict, then learn; rows without a target, or without a past, are predicted only."""
        X = np.ascontiguousarray(X)
        there = values >= 0 if self.classes else ~np.isnan(values)
        learnt = there & has_past
        targets = self.targets(values, there)
        weights = None if learnt.all() else learnt.astype(float)
        record, _ = learn_rows(Rows(X, targets, weights, self.learners), coef=False, progress=False)
        if self.target.may_grow:
            self.estimator._remember(X, learnt.astype(float))
        column = {name: record[:, :, i].T for i, name in enumerate(RECORD)}
        return self._scored(column, targets, values, there)

    def targets(self, values: np.ndarray, there: np.ndarray) -> list[np.ndarray]:
        """What each learner learns. Without a target, any value that the family accepts: such a row has weight 0."""
        return targets_of(values, self.n_classes) if self.classes else [np.where(there, values, 1.0)]

    def _scored(
        self, column: dict[str, np.ndarray], targets: list[np.ndarray], values: np.ndarray, there: np.ndarray
    ) -> Outcomes:
        n, eta = len(values), column["eta"]
        loss, least_loss = np.full(n, np.nan), np.full(n, np.nan)
        compared = Compared(*(np.full(n, np.nan) for _ in Compared._fields))
        scored, fit = there.copy(), self._fit(eta, values)
        if there.any():
            loss[there] = losses_of(self.family, [target[there] for target in targets], eta[there])
            for column_of, known in zip(compared, self.baselines.compared(values[there], self.n_classes), strict=True):
                column_of[there] = known
            least_loss[there] = 0.0 if self.classes else self.family.least_loss(values[there])
            if self.first:
                scored[int(np.argmax(there))] = False
                self.first = False
        after = {name: column[name].mean(axis=1) for name in ("slope", "lam", "lam_max", "n_active")}
        after["effective_size"] = column["effective_size"][:, 0]
        after["status"] = np.array(STATUS)[column["status"].max(axis=1).astype(int)]
        return Outcomes(
            eta=eta,
            scored=scored,
            loss=loss,
            least_loss=least_loss,
            error=np.abs(fit.actual - fit.predicted)[:, 0] if fit.classes is None else best_class(eta) != values,
            **compared._asdict(),
            fit=fit,
            lam=column["lam"],
            after=after,
        )

    def _fit(self, eta: np.ndarray, values: np.ndarray) -> Fit:
        if not self.classes:
            return Fit.of_numbers(values, self.family.means(eta[:, 0]))
        return Fit.of_classes(values, best_class(eta), probabilities(self.family.means(eta)))

    # --- what comes out -----------------------------------------------------------------------------------------------

    def predictions(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The prediction of each row and, for classes, its probability."""
        if not self.classes:
            return self.family.means(eta[:, 0]), None
        best = best_class(eta)
        probability = probabilities(self.family.means(eta))[np.arange(len(best)), best]
        return np.array(self.labels, dtype=object)[best], probability

    def snapshot(self) -> Snapshot:
        """The model now; of a mixture, the selected one."""
        models = [learner.single() for learner in self.learners]
        coef = np.array([model.coef for model in models])
        lam, lam_max = (np.array([getattr(each, name) for each in self.learners]) for name in ("lam", "lam_max"))
        size = float(self.learners[0].effective_size)
        return Snapshot(lam, lam_max, coef, np.count_nonzero(coef, axis=1).astype(float), size, models[0].since)
