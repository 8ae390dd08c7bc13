"""A stream of rows: encoded, predicted, learnt, compared with baselines, and recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streamlasso._progressive import learn_rows
from streamlasso.baselines import LAST, MEAN, ClassBaselines, Compared, NumberBaselines
from streamlasso.core.base.record import RECORD, STATUS
from streamlasso.core.monitor.intervals import Quantiles
from streamlasso.data.encoding import Encoder, Target
from streamlasso.data.encoding.cells import Encoded
from streamlasso.estimators.base import Rows
from streamlasso.estimators.intervals import Ends, errors_of
from streamlasso.estimators.multiclass import best_class, losses_of, probabilities, sets_of, targets_of
from streamlasso.families import Family
from streamlasso.keyed.groups import Groups, groups_of
from streamlasso.keyed.models import Models
from streamlasso.model.competition import MODEL, Competition
from streamlasso.model.keys import KeyModels
from streamlasso.model.outcomes import Outcomes, covered
from streamlasso.report.fit import Fit
from streamlasso.report.summarise import MOST_STRETCHES, Snapshot, Summariser
from streamlasso.report.summary import Summary

#: Stands for the second class until there is one.
NONE_YET = "(none yet)"
#: Stands between the classes of a set.
BETWEEN = "; "


class StreamModel:
    """An encoder and an estimator that learn row by row, the baselines they are compared with, and the record of it.

    It grows with its stream: features and classes appear, and rows may have no target. `state` is what `state()` gave
    when the estimator was saved.

    record : of all rows, for a report; None where none is wanted
    errors : how far targets fall from their predictions; None for classes, and for a model that Python saved
    coverage : of the intervals that are predicted; None if none are
    competition : where the baselines compete with the model, their weights
    keys : where rows have keys, the models of these; the estimator is then the pooled model
    n_known : rows with a target
    """

    most_stretches = MOST_STRETCHES

    def __init__(
        self, encoder: Encoder, estimator: Any, state: dict[str, Any] | None = None, record: Summariser | None = None
    ) -> None:
        state = state or {}
        self.encoder, self.estimator, self.record = encoder, estimator, record
        self.classes = self.target.classes is not None
        self.n_classes = state.get("n_classes", len(self.target.classes or []))
        self.baselines = self._new_baselines(**state.get("baselines", {}))
        self.coverage: float | None = state.get("coverage")
        self.errors: Quantiles | None = None
        if state.get("errors") is not None:
            self.errors = Quantiles(self.family)
            self.errors.unpack(bytes.fromhex(state["errors"]))
        self.competition: Competition | None = None
        if state.get("competition"):
            self.competition = self._competing()
            self.competition.unpack(bytes.fromhex(state["competition"]))
        self.keys: KeyModels | None = None
        self.n_known = state.get("n_known", 0)
        self.first = state.get("first", True)

    def begin(self, *, competes: bool = False, coverage: float | None = None) -> None:
        """Before the first row; `competes`: baselines of numbers compete with the model."""
        self.coverage = coverage
        if not self.classes:
            self.errors = None if self.family.binary else Quantiles(self.family)
            if competes and not np.isnan(self.family.least_loss(np.ones(1))[0]):
                self.competition = self._competing()

    def add_keys(self, max_keys: int | None, arrays: dict[str, np.ndarray] | None = None) -> None:
        """A model for every key, `max_keys` of them in memory; those that a checkpoint holds in `arrays`."""
        models = Models(self.learners[0], len(self.learners), max_keys)
        self.keys = KeyModels(models, self._new_baselines)
        if arrays is not None:
            self.keys.restore(arrays)

    def _new_baselines(self, **state: Any) -> ClassBaselines | NumberBaselines:
        """Of all rows, or of a key."""
        if self.classes:
            return ClassBaselines(**state)
        return NumberBaselines(self.family, **{"season": self.encoder.season, **state})

    def _competing(self) -> Competition:
        assert isinstance(self.baselines, NumberBaselines)
        return Competition(self.family, self.baselines.etas(np.empty(0)))

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the encoder, the estimator, the models of keys and the record."""
        found = {"baselines": self.baselines.state(), "first": self.first, "n_classes": self.n_classes}
        found |= {"n_known": self.n_known, "coverage": self.coverage}
        found["errors"] = self.errors and self.errors.pack().hex()
        return {**found, "competition": self.competition and self.competition.pack().hex()}

    @property
    def target(self) -> Target:
        return self.encoder.target

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
    def own_labels(self) -> list[Any]:
        """The classes as the estimator has them: all whole numbers, or all text."""
        return self.labels if all(isinstance(label, int) for label in self.labels) else list(map(str, self.labels))

    # --- rows ---------------------------------------------------------------------------------------------------------

    def learn(self, rows: Encoded) -> list[Outcomes]:
        """Predict, then learn; in pieces, since features and classes appear, and stretches end, between two rows."""
        return [self._learn_piece(rows, piece) for piece in self._pieces(rows)]

    def _pieces(self, rows: Encoded) -> Iterator[slice]:
        """Parts of the rows within which no feature or class appears, and no stretch of the record ends; before a part
        is given there is room for what it needs."""
        n_classes = np.maximum.accumulate(rows.target) + 1 if self.classes else np.zeros(len(rows.target), int)
        start = 0
        while start < len(n_classes):
            self._widen(self.encoder.features[: rows.width[start]])
            self._add_classes(int(n_classes[start]))
            same = (rows.width == rows.width[start]) & (n_classes <= self.n_classes)
            n_same = int(np.argmin(np.append(same[start:], False)))
            stop = start + min(sys.maxsize if self.record is None else self.record.room, n_same)
            yield slice(start, stop)
            start = stop

    def _widen(self, features: list[str]) -> None:
        """Make room for features that were 0 until now."""
        if len(features) > self.learners[0].n_features:
            self.estimator._add_features(features)
            self._grow_keys()

    def _add_classes(self, n_classes: int) -> None:
        """Make room for classes that were not there until now."""
        if n_classes > self.n_classes:
            self.n_classes = n_classes
            self.estimator._add_classes(self.own_labels)
            self._grow_keys()

    def _grow_keys(self) -> None:
        if self.keys is not None:
            self.keys.grow(self.learners)

    def _learn_piece(self, rows: Encoded, piece: slice) -> Outcomes:
        X = rows.part(piece)
        keys, weights = (None if each is None else each[piece] for each in (rows.keys, rows.weights))
        outcomes = self._learn(np.ascontiguousarray(X), rows.target[piece], keys, weights)
        if self.record is not None:
            last, time = self.record.last_snapshot, rows.when(piece.stop - 1)
            self.record.add(
                outcomes.sums,
                outcomes.fit,
                outcomes.lam,
                X if X.ndim == 2 else None,
                self.record.n_rows,
                lambda: self.snapshot_after(last),
                time,
            )
            self.record.status.update(outcomes.after["status"].tolist())
        return outcomes

    def _learn(self, X: np.ndarray, values: np.ndarray, keys: np.ndarray | None, given: np.ndarray | None) -> Outcomes:
        """Rows without a target are predicted only; `given` are weights."""
        there = self._known(values)
        targets = self._targets(values, there)
        weights = None if there.all() and given is None else there * (1.0 if given is None else given)
        self.n_known += int(there.sum())
        column = self._learn_rows(X, targets, weights)
        if self.keys is None or keys is None:
            return self._scored(column, values, there)
        groups, pooled = groups_of(keys, len(X)), column["eta"]
        column["eta"] = self.keys.learn(groups, Rows(X, targets, weights, self.learners), pooled)
        outcomes = self._scored(column, values, there, groups)
        losses = [outcomes.loss, self.losses(pooled, values), outcomes.baseline]
        least = outcomes.least_loss if self.family.deviance_name else 0.0
        self.keys.add(groups, outcomes.scored, *(loss - least for loss in losses))
        return outcomes

    def _learn_rows(
        self, X: np.ndarray, targets: list[np.ndarray], weights: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """RECORD by name, each (row, learner)."""
        record = learn_rows(Rows(X, targets, weights, self.learners))
        if self.target.may_grow:
            self.estimator._remember(X, np.ones(len(X)) if weights is None else weights)
        return {name: record[:, :, i].T for i, name in enumerate(RECORD)}

    # --- predictions of rows from which nothing is learnt -------------------------------------------------------------

    def predictor(self) -> Callable[[Encoded], np.ndarray]:
        """What gives eta (row, learner) of rows that follow one another; with keys, each as the next of its key."""
        follow = self._following()

        def eta_of(rows: Encoded) -> np.ndarray:
            if self.keys is not None and rows.keys is not None:
                return self.keys.predict(rows.keys, rows.X, self._each(rows.X))
            eta = follow(rows.X)
            if self.competition is None:
                return eta
            assert isinstance(self.baselines, NumberBaselines)
            etas = {MODEL: eta[:, 0], **self.baselines.etas(rows.target)}
            return self.competition.blend(etas, rows.target)[:, None]

        return eta_of

    def _following(self) -> Callable[[np.ndarray], np.ndarray]:
        residuals = [learner.residuals() for learner in self.learners]
        each = list(zip(self.learners, residuals, strict=True))
        return lambda X: np.column_stack([learner.decision(X, last) for learner, last in each])

    def predict_each(self, X: np.ndarray) -> np.ndarray:
        """eta (row, learner) of rows each of which may be the next one."""
        eta = self._each(np.ascontiguousarray(X[:, : self.learners[0].n_features]))
        if self.competition is None:
            return eta
        next_etas = NumberBaselines(self.family, **self.baselines.state()).etas(np.full(1, np.nan))
        etas = {MODEL: eta[:, 0], **{name: np.full(len(eta), each[0]) for name, each in next_etas.items()}}
        return self.competition.blend(etas, np.full(len(eta), np.nan))[:, None]

    def _each(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([learner.decision_each(X) for learner in self.learners])

    # --- losses -------------------------------------------------------------------------------------------------------

    def _known(self, values: np.ndarray) -> np.ndarray:
        """Rows with a target; not with a class that has never come, which has no probability."""
        return (values >= 0) & (values < self.n_classes) if self.classes else ~np.isnan(values)

    def _targets(self, values: np.ndarray, there: np.ndarray) -> list[np.ndarray]:
        """What each learner learns. Without a target, any value that the family accepts: such a row has weight 0."""
        return targets_of(values, self.n_classes) if self.classes else [np.where(there, values, 1.0)]

    def losses(self, eta: np.ndarray, values: np.ndarray) -> np.ndarray:
        """NaN without a target."""
        there = self._known(values)
        losses = np.full(len(values), np.nan)
        if there.any():
            targets = [target[there] for target in self._targets(values, there)]
            losses[there] = losses_of(self.family, targets, eta[there])
        return losses

    def _scored(
        self,
        column: dict[str, np.ndarray],
        values: np.ndarray,
        there: np.ndarray,
        groups: Groups | None = None,
    ) -> Outcomes:
        n, eta = len(values), column["eta"]
        least_loss = np.full(n, np.nan)
        compared = Compared(*(np.full(n, np.nan) for _ in Compared._fields))
        scored = there.copy()
        if self.first and there.any():
            scored[int(np.argmax(there))] = False
            self.first = False
        if isinstance(self.baselines, ClassBaselines):
            least_loss[there] = 0.0
            for column_of, known in zip(compared, self.baselines.compared(values[there], self.n_classes), strict=True):
                column_of[there] = known
            if self.keys is not None and groups is not None:
                compared = self.keys.compared(groups, values, self.n_classes, compared)
        else:
            etas = self.baselines.etas(values)
            if self.keys is not None and groups is not None:
                etas = self.keys.etas(groups, values, etas)
            least_loss[there] = self.family.least_loss(values[there])
            if self.competition is not None:
                eta = self.competition.blend({MODEL: eta[:, 0], **etas}, values, scored)[:, None]
            compared = self._compared(values, etas)
        interval = self._interval_before(eta, np.where(scored, values, np.nan))
        inside = covered(interval, values)
        if self.classes and self.coverage is not None:
            inside = self._sets(eta)[np.arange(n), values].astype(float)
        fit = self._fit(eta, values, interval)
        after = {name: column[name].mean(axis=1) for name in ("slope", "lam", "lam_max", "n_active")}
        after["effective_size"] = column["effective_size"][:, 0]
        after["status"] = np.array(STATUS)[column["status"].max(axis=1).astype(int)]
        return Outcomes(
            eta=eta,
            scored=scored,
            loss=self.losses(eta, values),
            least_loss=least_loss,
            error=np.abs(fit.actual - fit.predicted)[:, 0] if fit.classes is None else best_class(eta) != values,
            covered=inside,
            interval=interval,
            **compared._asdict(),
            fit=fit,
            lam=column["lam"],
            after=after,
        )

    # --- intervals ----------------------------------------------------------------------------------------------------

    def interval(self, eta: np.ndarray) -> np.ndarray:
        """(row, low and high) of rows from which nothing is learnt; NaN where none are asked for."""
        if self.coverage is None or self.classes:
            return np.full((len(eta), 2), np.nan)
        errors = self.errors or errors_of(self.learners[0])
        ends = Ends(errors, self.coverage)
        return ends.of(errors.around(np.ascontiguousarray(eta[:, 0]), ends.levels))

    def _interval_before(self, eta: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The same of rows that are learnt, each before it; those of NaN are not."""
        if self.errors is None:
            return np.full((len(eta), 2), np.nan)
        ends = None if self.coverage is None else Ends(self.errors, self.coverage)
        found = self.errors.walk(values, np.ascontiguousarray(eta[:, 0]), [] if ends is None else ends.levels)
        return np.full((len(eta), 2), np.nan) if ends is None else ends.of(found)

    @property
    def also_predicted(self) -> list[str]:
        """The names of the numbers that are predicted besides the prediction itself."""
        if self.classes:
            return ["probability"]
        return [] if self.coverage is None else ["low", "high"]

    def _fit(self, eta: np.ndarray, values: np.ndarray, interval: np.ndarray) -> Fit:
        if not self.classes:
            return Fit.of_numbers(values, self.family.means(eta[:, 0]), interval)
        return Fit.of_classes(values, best_class(eta), probabilities(self.family.means(eta)))

    def _compared(self, values: np.ndarray, etas: dict[str, np.ndarray]) -> Compared:
        """NaN without a target."""
        pair = etas[MEAN], etas[LAST]
        losses = (self.losses(eta[:, None], values) for eta in pair)
        return Compared(*losses, *(np.abs(values - self.family.means(eta)) for eta in pair))

    # --- what comes out -----------------------------------------------------------------------------------------------

    def predictions(self, eta: np.ndarray, n_listed: int, interval: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The prediction of each row with its interval, where one is asked for; for classes, its probability, and those
        of the first `n_listed` classes."""
        if not self.classes:
            ends = np.empty((len(eta), 0)) if interval is None else np.where(np.isfinite(interval), interval, np.nan)
            named = dict(zip(self.also_predicted, ends.T, strict=False))
            return {"prediction": self.family.means(eta[:, 0]), **named}
        best, labels, shares = best_class(eta), self.labels, probabilities(self.family.means(eta))
        named = {"prediction": np.array(labels, dtype=object)[best], "probability": shares[np.arange(len(best)), best]}
        if self.coverage is not None:
            names = np.array(list(map(str, labels)), dtype=object)
            named["set"] = np.array([BETWEEN.join(names[row]) for row in self._sets(eta)], dtype=object)
        return {**named, **{f"P({label})": shares[:, k] for k, label in enumerate(labels[:n_listed])}}

    def _sets(self, eta: np.ndarray) -> np.ndarray:
        """(row, class), of rows with the coverage that is asked for."""
        assert self.coverage is not None
        return sets_of(probabilities(self.family.means(eta)), self.coverage)

    def snapshot(self) -> Snapshot:
        """The model now; of a mixture, the selected one."""
        models = [learner.single() for learner in self.learners]
        coef = np.array([model.coef for model in models])
        lam, lam_max = (np.array([getattr(each, name) for each in self.learners]) for name in ("lam", "lam_max"))
        size = float(self.learners[0].effective_size)
        n_active = np.count_nonzero(coef, axis=1).astype(float)
        return Snapshot(lam, lam_max, coef, n_active, size, models[0].since)

    def snapshot_after(self, last: Snapshot | None) -> Snapshot:
        """The same at the end of a stretch, when `last` was taken at the end of the one before."""
        return self.snapshot()

    @property
    def features(self) -> list[str]:
        """The features that snapshots are of."""
        return self.encoder.features

    def summary(self) -> Summary:
        """The record so far, for tables, figures and reports."""
        assert self.record is not None
        labels = self.labels if self.classes else None
        found = self.record.summary(self.snapshot(), self.features, labels, self.family)
        detected = tuple(getattr(self.estimator, "changes_", ()))
        return replace(found, target=self.target.name, coverage=self.coverage, detected=detected)

    def described(self) -> dict[str, Any]:
        """Settings for the report."""
        settings = self.learners[0].settings
        return {"memory": settings["memory"] or "chosen by the mixture"}
