"""A model that grows with its stream: new features, new classes, rows without a target."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor, checkpoint
from streamlasso._progressive import learn_rows
from streamlasso._text import number
from streamlasso.baselines import LAST, MEAN, SEASON, ClassBaselines, Compared, NumberBaselines
from streamlasso.core.base.record import RECORD, STATUS
from streamlasso.core.monitor.intervals import Quantiles
from streamlasso.data.encoding import Target
from streamlasso.data.encoding.encoder import Encoded
from streamlasso.estimators.base import Rows
from streamlasso.estimators.intervals import Ends, errors_of
from streamlasso.estimators.multiclass import best_class, losses_of, probabilities, sets_of, targets_of
from streamlasso.families import Family
from streamlasso.keyed.groups import Groups, groups_of
from streamlasso.keyed.models import Models
from streamlasso.model.competition import MODEL, Competition
from streamlasso.report.fit import Fit
from streamlasso.report.summarise import MOST_STRETCHES, SUMS, Snapshot
from streamlasso.run.keys import KeyModels

#: Stands for the second class until there is one.
NONE_YET = "(none yet)"
#: Stands between the classes of a set.
BETWEEN = "; "


class Outcomes(NamedTuple):
    """The predictions of some rows, and the model after each of them: one entry per row.

    eta, lam : (row, learner) eta before the row, and lam after it
    scored : whether its loss counts. Not that of the first row, which nothing could predict, nor without a target
    interval, covered : (row, low and high) before the row, and whether its target lies inside; NaN where not asked for
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
    covered: np.ndarray
    interval: np.ndarray
    fit: Fit
    lam: np.ndarray
    after: dict[str, np.ndarray]

    @property
    def sums(self) -> np.ndarray:
        """(row, column), with the columns SUMS of the summary."""
        return np.column_stack([getattr(self, name) for name in SUMS])


def covered(interval: np.ndarray, values: np.ndarray) -> np.ndarray:
    """1 where the value lies in its interval, else 0; NaN where there is no interval."""
    low, high = interval.T
    return np.where(np.isnan(low), np.nan, (low <= values) & (values <= high))


def finite(interval: np.ndarray) -> np.ndarray:
    """NaN where there is no end."""
    return np.where(np.isfinite(interval), interval, np.nan)


class Learning:
    """An estimator that learns row by row, and the baselines that its predictions are compared with.

    `state` is what `state()` gave when the estimator was saved; a model that was saved from Python has none.

    errors : how far targets fall from their predictions; None for classes, and for a model that Python saved
    coverage : of the intervals that are predicted; None if none are
    competition : where the baselines compete with the model, their weights
    keys : where rows have keys, the models of these; the estimator is then the pooled model
    seasonal : the sums of the losses of the last season's value and of the least losses, and the number of rows
    n_known : rows with a target
    most_stretches : of the summary
    """

    most_stretches = MOST_STRETCHES

    def __init__(self, target: Target, estimator: Any, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.target, self.estimator = target, estimator
        self.classes = target.classes is not None
        self.n_classes = state.get("n_classes", len(target.classes or []))
        baselines = state.get("baselines", {})
        self.baselines: ClassBaselines | NumberBaselines
        self.baselines = ClassBaselines(**baselines) if self.classes else NumberBaselines(self.family, **baselines)
        self.coverage: float | None = state.get("coverage")
        self.errors: Quantiles | None = None
        if state.get("errors") is not None:
            self.errors = Quantiles(self.family)
            self.errors.unpack(bytes.fromhex(state["errors"]))
        self.competition: Competition | None = None
        if state.get("competition"):
            self.competition = self._compete()
            self.competition.unpack(bytes.fromhex(state["competition"]))
        self.keys: KeyModels | None = None
        self.seasonal = state.get("seasonal", [0.0, 0.0, 0])
        self.n_known = state.get("n_known", 0)
        self.first = state.get("first", True)

    @classmethod
    def start(
        cls,
        target: Target,
        settings: dict[str, Any],
        features: list[str],
        *,
        season: int | None = None,
        competes: bool = False,
        coverage: float | None = None,
    ) -> Learning:
        """Of a stream that nothing has been learnt of.

        `season` is the number of rows in one; `competes`: the model competes with the baselines of numbers.
        """
        if target.classes is None:
            learning = cls(target, RAPRegressor(family=target.family, **settings)._start(features))
            learning.baselines = NumberBaselines(learning.family, season)
            learning.coverage = coverage
            learning.errors = None if learning.family.binary else Quantiles(learning.family)
            if competes and not np.isnan(learning.family.least_loss(np.ones(1))[0]):
                learning.competition = learning._compete()
            return learning
        learning = cls(target, RAPClassifier(**settings))
        learning.coverage = coverage
        learning.estimator._start(features, learning._own_labels)
        return learning

    def _compete(self) -> Competition:
        assert isinstance(self.baselines, NumberBaselines)
        return Competition(self.family, self.baselines.etas(np.empty(0)))

    def add_keys(self, max_keys: int | None, arrays: dict[str, np.ndarray] | None = None) -> None:
        """A model for every key, `max_keys` of them in memory; those that a checkpoint holds in `arrays`."""
        models = Models(self.learners[0], len(self.learners), max_keys)
        self.keys = KeyModels(models, self._new_baselines)
        if arrays is not None:
            self.keys.restore(arrays)

    def _new_baselines(self, **state: Any) -> ClassBaselines | NumberBaselines:
        """Of a key."""
        if isinstance(self.baselines, ClassBaselines):
            return ClassBaselines(**state)
        return NumberBaselines(self.family, **{"season": self.baselines.season, **state})

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the estimator and the models of keys."""
        found = {"baselines": self.baselines.state(), "first": self.first, "n_classes": self.n_classes}
        found |= {"n_known": self.n_known, "seasonal": self.seasonal, "coverage": self.coverage}
        found["errors"] = self.errors and self.errors.pack().hex()
        return {**found, "competition": self.competition and self.competition.pack().hex()}

    def save(self, path: Path, notes: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """The model, with all that travels with it."""
        checkpoint.save(self.estimator, path, notes, arrays)

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
            self._grow_keys()

    def add_classes(self, n_classes: int) -> None:
        """Make room for classes that were not there until now."""
        if n_classes > self.n_classes:
            self.n_classes = n_classes
            self.estimator._add_classes(self._own_labels)
            self._grow_keys()

    def _grow_keys(self) -> None:
        if self.keys is not None:
            self.keys.grow(self.learners)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def pieces(
        self, rows: Encoded, features: list[str], room: Callable[[], int] = lambda: sys.maxsize
    ) -> Iterator[slice]:
        """Parts of the rows within which no feature or class appears, of `room` rows at most; before a part is given
        there is room for those that it needs."""
        n_rows, start = len(rows.target), 0
        n_classes = np.maximum.accumulate(rows.target) + 1 if self.classes else np.zeros(n_rows, int)
        while start < n_rows:
            self.widen(features[: rows.width[start]])
            self.add_classes(int(n_classes[start]))
            same = (rows.width == rows.width[start]) & (n_classes <= self.n_classes)
            n_same = int(np.argmin(np.append(same[start:], False)))
            stop = start + min(room(), n_same)
            yield slice(start, stop)
            start = stop

    def learn(
        self, X: np.ndarray, values: np.ndarray, keys: np.ndarray | None = None, given: np.ndarray | None = None
    ) -> Outcomes:
        """Predict, then learn; rows without a target are predicted only. `given` are weights."""
        X = np.ascontiguousarray(X)
        there = values >= 0 if self.classes else ~np.isnan(values)
        targets = self.targets(values, there)
        weights = None if there.all() and given is None else there * (1.0 if given is None else given)
        self.n_known += int(there.sum())
        column = self._learn_rows(X, targets, weights)
        if self.keys is None or keys is None:
            return self._scored(column, targets, values, there)
        groups, pooled = groups_of(keys, len(X)), column["eta"]
        column["eta"] = self.keys.learn(groups, Rows(X, targets, weights, self.learners), pooled)
        outcomes = self._scored(column, targets, values, there, groups)
        losses = [outcomes.loss, self._loss(pooled, targets, values, there), outcomes.baseline]
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

    def predictor(self) -> Callable[[Encoded], np.ndarray]:
        """What gives eta (row, learner) of rows that follow one another."""
        residuals = [learner.residuals() for learner in self.learners]

        def eta_of(rows: Encoded) -> np.ndarray:
            each = zip(self.learners, residuals, strict=True)
            return np.column_stack([learner.decision(rows.X, last) for learner, last in each])

        return eta_of

    def _loss(self, eta: np.ndarray, targets: list[np.ndarray], values: np.ndarray, there: np.ndarray) -> np.ndarray:
        """NaN without a target."""
        if not self.classes:
            return self._losses(values, eta[:, 0])
        loss = np.full(len(values), np.nan)
        loss[there] = losses_of(self.family, [target[there] for target in targets], eta[there])
        return loss

    def blended(self, eta: np.ndarray, values: np.ndarray) -> np.ndarray:
        """eta of rows from which nothing is learnt: the weights of the competition stay."""
        if self.competition is None:
            return eta
        assert isinstance(self.baselines, NumberBaselines)
        return self.competition.blend({MODEL: eta[:, 0], **self.baselines.etas(values)}, values)[:, None]

    def blended_each(self, eta: np.ndarray) -> np.ndarray:
        """eta of rows each of which may be the next one; nothing counts."""
        if self.competition is None:
            return eta
        etas = NumberBaselines(self.family, **self.baselines.state()).etas(np.full(1, np.nan))
        competing = {MODEL: eta[:, 0], **{name: np.full(len(eta), each[0]) for name, each in etas.items()}}
        return self.competition.blend(competing, np.full(len(eta), np.nan))[:, None]

    def targets(self, values: np.ndarray, there: np.ndarray) -> list[np.ndarray]:
        """What each learner learns. Without a target, any value that the family accepts: such a row has weight 0."""
        return targets_of(values, self.n_classes) if self.classes else [np.where(there, values, 1.0)]

    def _scored(
        self,
        column: dict[str, np.ndarray],
        targets: list[np.ndarray],
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
            eta = self._with_baselines(eta, etas, values, least_loss, scored)
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
            loss=self._loss(eta, targets, values, there),
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

    def _with_baselines(
        self,
        eta: np.ndarray,
        etas: dict[str, np.ndarray],
        values: np.ndarray,
        least_loss: np.ndarray,
        scored: np.ndarray,
    ) -> np.ndarray:
        """eta where the baselines compete with the model; the weights learn from the scored rows."""
        if SEASON in etas:
            seasonal = self._losses(values, etas[SEASON])
            for loss, least in zip(seasonal[scored].tolist(), least_loss[scored].tolist(), strict=True):
                total, least_total, n = self.seasonal
                self.seasonal = [total + loss, least_total + least, n + 1]
        if self.competition is None:
            return eta
        return self.competition.blend({MODEL: eta[:, 0], **etas}, values, scored)[:, None]

    def _compared(self, values: np.ndarray, etas: dict[str, np.ndarray]) -> Compared:
        """NaN without a target."""
        pair = etas[MEAN], etas[LAST]
        losses = (self._losses(values, eta) for eta in pair)
        return Compared(*losses, *(np.abs(values - self.family.means(eta)) for eta in pair))

    def _losses(self, values: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """NaN without a target."""
        there = ~np.isnan(values)
        losses = np.full(len(values), np.nan)
        losses[there] = self.family.losses(values[there], eta[there])
        return losses

    # --- what comes out -----------------------------------------------------------------------------------------------

    def predictions(self, eta: np.ndarray, n_listed: int, interval: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The prediction of each row with its interval, where one is asked for; for classes, its probability, and those
        of the first `n_listed` classes."""
        if not self.classes:
            ends = {} if interval is None else dict(zip(self.also_predicted, finite(interval).T, strict=False))
            return {"prediction": self.family.means(eta[:, 0]), **ends}
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

    @property
    def mean_seasonal(self) -> float | None:
        """The mean loss of the last season's value, as the summary shows losses; None without a season."""
        total, least, n = self.seasonal
        return (total - (least if self.family.deviance_name else 0.0)) / n if n else None

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
    def features(self) -> list[str] | None:
        """The features that snapshots are of, where these are not the encoder's."""
        return None

    def shown(self, snapshot: Snapshot) -> dict[str, str]:
        """Numbers for people who watch."""
        assert snapshot.coef is not None
        n_active = int(np.any(snapshot.coef != 0, axis=0).sum())
        return {
            "lam": number(snapshot.lam[0]),
            "active": f"{n_active} of {self.learners[0].n_features}",
            "memory": f"{snapshot.effective_size:,.0f} rows",
        }

    def described(self) -> dict[str, Any]:
        """Settings for the report."""
        settings = self.learners[0].settings
        return {"memory": settings["memory"] or "chosen by the mixture"}
