"""A model that grows with its stream: new features, new classes, rows without a target."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.core.engine import RECORD, STATUS
from streamlasso.core.mixture import MixtureLearner
from streamlasso.encoding import Target
from streamlasso.estimators._estimators import Rows
from streamlasso.families import Binomial, Family
from streamlasso.report.summarise import SUMS, Snapshot
from streamlasso.run.baselines import ClassRivals, NumberRivals
from streamlasso.selection import selected
from streamlasso.settings import build_learner
from streamlasso.trace import learn_rows, losses_of

#: The rows that a class which appears late is told it was not in.
N_RECENT = 256
#: Stands for the second class until there is one.
NONE_YET = "(none yet)"


class Taken(NamedTuple):
    """What was said of some rows before, and what was so after each: a column each.

    said, lam : (row, learner) eta before the row, and lam after it
    judged : could its loss be counted? Not of the first row, which nothing could predict, and not without a target
    """

    said: np.ndarray
    judged: np.ndarray
    loss: np.ndarray
    baseline: np.ndarray
    persistence: np.ndarray
    least: np.ndarray
    right: np.ndarray
    squared: np.ndarray
    lam: np.ndarray
    after: dict[str, np.ndarray]

    @property
    def sums(self) -> np.ndarray:
        """A row each, in the order of `digester.SUMS`."""
        return np.column_stack([getattr(self, name) for name in SUMS])


class Learning:
    """An estimator, taught row by row; what it said of each row is compared with what came."""

    def __init__(
        self, target: Target, settings: dict[str, Any], features: list[str], estimator: Any = None, rivals: Any = None
    ) -> None:
        self.target = target
        self.classes = target.classes is not None
        self.estimator = estimator or self._fresh(settings, features)
        family = self.learners[0].settings["family"]
        self.rivals = ClassRivals(**(rivals or {})) if self.classes else NumberRivals(family, **(rivals or {}))
        self.n_classes = 0 if target.classes is None else len(target.classes)
        self.recent = np.empty((0, len(features)))
        self.first = estimator is None

    def _fresh(self, settings: dict[str, Any], features: list[str]) -> RAPRegressor | RAPClassifier:
        if self.target.classes is None:
            estimator: Any = RAPRegressor(family=self.target.family, **settings)
        else:
            estimator = RAPClassifier(**settings)
        parameters = {**estimator.get_params(deep=False), "family": self.target.family}
        n = 1 if self.target.classes is None or len(self.target.classes) <= 2 else len(self.target.classes)
        estimator.learners_ = [build_learner(len(features), parameters) for _ in range(n)]
        return estimator

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

    def label_estimator(self, features: list[str]) -> None:
        """What the estimator is asked for by name."""
        self.estimator.n_features_in_ = len(features)
        self.estimator.feature_names_in_ = np.array(features, dtype=object)
        if self.classes:
            whole = all(isinstance(label, int) for label in self.labels)
            self.estimator.classes_ = np.array(self.labels if whole else list(map(str, self.labels)))

    # --- growing ------------------------------------------------------------------------------------------------------

    def widen(self, width: int) -> None:
        """Make room for features that were 0 until now."""
        if width > self.learners[0].n_features:
            self.estimator.learners_ = [learner.grown(width) for learner in self.learners]
            self.recent = np.pad(self.recent, [(0, 0), (0, width - self.recent.shape[1])])

    def add_classes(self, n_classes: int) -> None:
        """Make room for classes. The third needs a model for each; a new one learns of the last rows it was not in."""
        while self.n_classes < n_classes:
            self.n_classes += 1
            if self.n_classes == 3:
                only = self.learners[0]
                self.estimator.learners_ = [only.mirrored(), only]
            if self.n_classes >= 3:
                newcomer = type(self.learners[0])(self.learners[0].n_features, **self.learners[0].settings)
                if len(self.recent):
                    newcomer.learn(np.ascontiguousarray(self.recent), np.zeros(len(self.recent)))
                self.estimator.learners_ = [*self.learners, newcomer]

    # --- rows ---------------------------------------------------------------------------------------------------------

    def take(self, X: np.ndarray, values: np.ndarray, known: np.ndarray) -> Taken:
        """Predict, then learn; rows without a target, or without a past, are predicted only."""
        X = np.ascontiguousarray(X)
        there = values >= 0 if self.classes else ~np.isnan(values)
        learnt = there & known
        targets = self.targets(values, there)
        weights = None if learnt.all() else learnt.astype(float)
        record, _ = learn_rows(Rows(X, targets, weights, self.learners), coef=False, progress=False)
        column = {name: record[:, :, i].T for i, name in enumerate(RECORD)}
        self._remember(X[learnt])
        return self._judged(column, targets, values, there)

    def targets(self, values: np.ndarray, there: np.ndarray) -> list[np.ndarray]:
        """What each learner is taught."""
        if not self.classes:
            # Any value that the family accepts: a row of weight 0 is not learnt.
            return [np.where(there, values, 1.0)]
        positive = [1] if len(self.learners) == 1 else range(len(self.learners))
        return [(values == k).astype(float) for k in positive]

    def _remember(self, X: np.ndarray) -> None:
        """Only where a class may still appear."""
        if self.target.may_grow:
            self.recent = np.vstack([self.recent, X])[-N_RECENT:]

    def _judged(
        self, column: dict[str, np.ndarray], targets: list[np.ndarray], values: np.ndarray, there: np.ndarray
    ) -> Taken:
        n = len(values)
        loss, baseline, persistence, least = (np.full(n, np.nan) for _ in range(4))
        judged, right, squared = there.copy(), np.zeros(n, bool), np.zeros(n)
        if there.any():
            loss[there] = losses_of(self.family, [target[there] for target in targets], column["eta"][there])
            baseline[there], persistence[there] = self.rivals.losses(values[there], self.n_classes)
            least[there] = 0.0 if self.classes else self.family.least_loss(values[there])
            if self.first:
                judged[int(np.argmax(there))] = False
                self.first = False
        if not self.classes:
            squared[there] = (values[there] - Family.mean(self.family, column["eta"][there, 0])) ** 2
        if self.classes:
            right = there & (self._best(column["eta"]) == values)
        after = {name: column[name].mean(axis=1) for name in ("slope", "lam", "lam_max", "n_active")}
        after["effective_size"] = column["effective_size"][:, 0]
        after["status"] = np.array(STATUS)[column["status"].max(axis=1).astype(int)]
        return Taken(column["eta"], judged, loss, baseline, persistence, least, right, squared, column["lam"], after)

    def _best(self, eta: np.ndarray) -> np.ndarray:
        return (eta[:, 0] > 0).astype(int) if eta.shape[1] == 1 else eta.argmax(axis=1)

    # --- what a person wants to see -----------------------------------------------------------------------------------

    def answers(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The prediction of each row and, for classes, its probability."""
        if not self.classes:
            return Family.mean(self.family, eta[:, 0]), None
        best = self._best(eta)
        share = Binomial().mean(eta)
        if share.shape[1] == 1:
            probability = np.where(best == 1, share[:, 0], 1 - share[:, 0])
        else:
            total = share.sum(axis=1)
            probability = np.where(total > 0, share[np.arange(len(best)), best] / np.where(total > 0, total, 1), 0.0)
        return np.array(self.labels, dtype=object)[best], probability

    def snapshot(self) -> Snapshot:
        """The model now; of a mixture, the single sparse model that speaks for it."""
        models = [selected(learner) if isinstance(learner, MixtureLearner) else learner for learner in self.learners]
        coef = np.array([model.coef for model in models])
        lam, lam_max = (np.array([getattr(each, name) for each in self.learners]) for name in ("lam", "lam_max"))
        since = getattr(models[0], "since", 0)
        size = float(self.learners[0].effective_size)
        return Snapshot(lam, lam_max, coef, np.count_nonzero(coef, axis=1).astype(float), size, int(since))

    # --- for checkpoints ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {"rivals": self.rivals.state(), "first": self.first, "n_classes": self.n_classes}

    @classmethod
    def from_state(cls, target: Target, estimator: Any, state: dict[str, Any], recent: np.ndarray) -> Learning:
        learning = cls(target, {}, list(estimator.feature_names_in_), estimator, state["rivals"])
        learning.first, learning.n_classes, learning.recent = state["first"], state["n_classes"], recent
        return learning
