"""A run's model of any number of features, as `Learning`; of its coefficients it follows the strongest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.baselines import NumberBaselines
from streamlasso.core.monitor.intervals import Quantiles
from streamlasso.data.encoding import Target
from streamlasso.data.encoding.encoder import Encoded
from streamlasso.families import Family
from streamlasso.report.summarise import Snapshot
from streamlasso.report.summary import STRONGEST
from streamlasso.run.learning import Learning
from streamlasso.run.wide_models import WideModels

#: All features are looked at when so many non-zeros have been learnt since, for each of them.
NONZEROS_PER_LOOK = 0.5
#: Stretches of the summary; fewer than elsewhere, since each may need a look at all features.
MOST_STRETCHES = 256


class WideLearning(Learning):
    """Rows are dicts of names and values.

    followed : the features that were among the strongest at some time, in the order of the columns of `Snapshot.coef`,
        with their keys
    nonzeros : those learnt since all features were looked at
    """

    estimator: WideModels
    most_stretches = MOST_STRETCHES

    def __init__(self, target: Target, estimator: WideModels, state: dict[str, Any] | None = None) -> None:
        super().__init__(target, estimator, state)
        self.followed: dict[str, int] = dict((state or {}).get("followed", []))
        self.nonzeros = (state or {}).get("nonzeros", 0)

    @classmethod
    def start_wide(
        cls,
        target: Target,
        key: bytes,
        *,
        season: int | None = None,
        competes: bool = False,
        coverage: float | None = None,
    ) -> WideLearning:
        """Of a stream that nothing has been learnt of; the options as in `Learning.start`."""
        learning = cls(target, WideModels(target.family, key, len(target.classes or [])))
        learning.coverage = coverage
        if target.classes is None:
            learning.errors = Quantiles(learning.family)
            learning.baselines = NumberBaselines(learning.family, season)
            if competes:
                learning.competition = learning._compete()
        return learning

    def state(self) -> dict[str, Any]:
        return {**super().state(), "followed": list(self.followed.items()), "nonzeros": self.nonzeros}

    def save(self, path: Path, notes: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        labels = list(self.target.classes or [])[: self.n_classes]
        self.estimator.save(path, labels, notes, arrays)

    @property
    def family(self) -> Family:
        return self.estimator.family

    @property
    def features(self) -> list[str]:
        return list(self.followed)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def widen(self, features: list[str]) -> None:
        """There is room for all."""

    def add_classes(self, n_classes: int) -> None:
        while self.n_classes < n_classes:
            self.estimator.add_class(self.n_classes)
            self.n_classes += 1

    def _learn_rows(
        self, X: np.ndarray, targets: list[np.ndarray], weights: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        models = self.estimator.models
        eta = np.empty((len(X), len(models)))
        weight = np.ones(len(X)) if weights is None else weights
        for k, (model, target) in enumerate(zip(models, targets, strict=True)):
            rows = zip(X.tolist(), target.tolist(), weight.tolist(), strict=True)
            eta[:, k] = [model.learn_named(x, y, w) if w > 0 else model.eta_named(x) for x, y, w in rows]
        self.nonzeros += sum(map(len, X))
        nothing = np.full_like(eta, np.nan)
        found = dict.fromkeys(("slope", "lam", "lam_max", "n_active", "effective_size"), nothing)
        return {**found, "eta": eta, "status": np.zeros_like(eta)}

    def predictor(self) -> Callable[[Encoded], np.ndarray]:
        return lambda rows: np.array([[model.eta_named(x) for model in self.estimator.models] for x in rows.X])

    # --- what comes out -----------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The model now."""
        every = [(model.names or {}, *model.spread_coef()) for model in self.estimator.models]
        strongest = [_strongest(coef, spread) for _, _, coef, spread in every]
        for (names, keys, _, _), places in zip(every, strongest, strict=True):
            self.followed |= {names[key]: key for key in keys[places].tolist()}
        columns = {key: j for j, key in enumerate(self.followed.values())}
        shown, spreads = np.zeros((len(every), len(columns))), np.zeros(len(columns))
        for k, (_, keys, coef, spread) in enumerate(every):
            shown[k, [columns[key] for key in keys[strongest[k]].tolist()]] = coef[strongest[k]]
            there = np.flatnonzero(np.isin(keys, np.array(list(columns), dtype=np.uint64)))
            at = [columns[key] for key in keys[there].tolist()]
            spreads[at] = np.maximum(spreads[at], spread[there])
        lam = np.full(len(every), np.nan)
        n_active = np.array([np.count_nonzero(coef) for _, _, coef, _ in every], dtype=float)
        return Snapshot(lam, lam, shown, n_active, float(self.estimator.n_seen_), 0, spreads, self.estimator.n_live)

    def snapshot_after(self, last: Snapshot | None) -> Snapshot:
        """The model now or, where too little was learnt for another look at all features, as it was last."""
        n_models = len(self.estimator.models)
        if last is None or len(last.n_active) != n_models or self.nonzeros >= NONZEROS_PER_LOOK * self.estimator.n_live:
            self.nonzeros = 0
            return self.snapshot()
        return last

    def shown(self, snapshot: Snapshot) -> dict[str, str]:
        return {"features": f"{self.estimator.n_live:,}"}

    def described(self) -> dict[str, Any]:
        experts = self.estimator.settings["experts"]
        return {"tuner": None, "learner": f"{experts} experts for any number of features (docs/wide.md)"}


def _strongest(coef: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The places of the features with the largest effects, in order."""
    effect = np.abs(coef * spread)
    few = np.argpartition(-effect, STRONGEST)[:STRONGEST] if len(effect) > STRONGEST else np.arange(len(effect))
    few = np.sort(few[effect[few] > 0])
    return few[np.argsort(-effect[few], kind="stable")]
