"""A `StreamModel` of any number of features, whose rows are dicts of names and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from streamlasso import checkpoint
from streamlasso.core.sparse.model import Wide
from streamlasso.data.encoding import Encoder
from streamlasso.estimators.multiclass import N_RECENT, n_models
from streamlasso.families import FAMILIES, Family
from streamlasso.model.stream_model import StreamModel
from streamlasso.report.summarise import Snapshot, Summariser
from streamlasso.report.summary import STRONGEST
from streamlasso.settings import as_family
from streamlasso.wide.named_models import named_bytes, named_model, restore_named
from streamlasso.wide.packed import unpack

#: The classes of `streamlasso.river` that load such a file, for classes and for numbers.
CLASSIFIER, REGRESSOR = "river.WideClassifier", "river.WideRegressor"
SETTINGS = {"experts": 16, "memory": "full", "max_features": None, "keep_names": True}
#: All features are looked at when so many non-zeros have been learnt since, for each of them.
NONZEROS_PER_LOOK = 0.5


class WideModels:
    """One model, or one per class, of features by name.

    key : what names are hashed with, 16 bytes: with the same one, and the same rows, a run has the same bits
    """

    def __init__(self, family: str, key: bytes, n_classes: int = 2, settings: Mapping[str, Any] = SETTINGS) -> None:
        wide = [word for word, each in FAMILIES.items() if each.goes_wide]
        if family not in wide:
            raise ValueError(f"--family {family} is not for so many features: use {', '.join(wide[1:])} or {wide[0]}")
        self.name, self.settings = family, dict(settings)
        self.key = np.frombuffer(key, dtype=np.uint64)
        self.models = [self._new() for _ in range(n_models(n_classes))]

    @property
    def family(self) -> Family:
        return self.models[0].family

    @property
    def classes(self) -> bool:
        return FAMILIES[self.name].binary

    @property
    def n_seen_(self) -> int:
        return self.models[0].n_seen

    @property
    def n_live(self) -> int:
        """Features with a record, of the model that has most."""
        return max(len(model.table) for model in self.models)

    def _new(self) -> Wide:
        return named_model(as_family(self.name), self.settings, self.key, fixed_units=self.classes)

    def add_class(self, n_classes: int) -> None:
        """The class after `n_classes`. Its model first learns that its class is rare: rows without features, as many as
        the other faces have it learn (`estimators/multiclass.py`)."""
        if n_classes == 2:
            self.models = [self.models[0].mirrored(), self.models[0]]
        if n_classes >= 2:
            self.models.append(self._new())
            for _ in range(min(self.n_seen_, N_RECENT)):
                self.models[-1].learn_named({}, 0.0, 1.0)

    def as_file(self, labels: list[Any], notes: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
        """`streamlasso.river.WideClassifier.load`, or that of WideRegressor, reads the model in it."""
        kind = CLASSIFIER if self.classes else REGRESSOR
        settings = self.settings if self.classes else {"family": self.name, **self.settings}
        model = named_bytes(kind, settings, self.models, labels if self.classes else None)
        return checkpoint.as_file(model, kind, notes, arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The models in such a file."""
        header, arrays = unpack(data)
        settings = dict(header["settings"])
        found = cls(settings.pop("family", "binomial"), bytes(16), settings=settings)
        found.models = restore_named(found._new, header, arrays)
        found.key = found.models[0].name_key
        return found


class WideStreamModel(StreamModel):
    """Of its coefficients, the record follows the strongest.

    followed : the features that were among the strongest at some time, in the order of the columns of `Snapshot.coef`,
        with their keys
    nonzeros : those learnt since all features were looked at
    """

    estimator: WideModels
    #: Fewer than elsewhere, since each may need a look at all features.
    most_stretches = 256

    def __init__(
        self,
        encoder: Encoder,
        estimator: WideModels,
        state: dict[str, Any] | None = None,
        record: Summariser | None = None,
    ) -> None:
        super().__init__(encoder, estimator, state, record)
        self.followed: dict[str, int] = dict((state or {}).get("followed", []))
        self.nonzeros = (state or {}).get("nonzeros", 0)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "followed": list(self.followed.items()), "nonzeros": self.nonzeros}

    @property
    def family(self) -> Family:
        return self.estimator.family

    @property
    def features(self) -> list[str]:
        return list(self.followed)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _widen(self, features: list[str]) -> None:
        """There is room for all."""

    def _add_classes(self, n_classes: int) -> None:
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

    def _following(self) -> Callable[[np.ndarray], np.ndarray]:
        return lambda X: np.array([[model.eta_named(x) for model in self.estimator.models] for x in X])

    # --- what comes out -----------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
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

    def described(self) -> dict[str, Any]:
        experts = self.estimator.settings["experts"]
        return {"tuner": None, "learner": f"{experts} experts for any number of features (docs/wide.md)"}


def _strongest(coef: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The places of the features with the largest effects, in order."""
    effect = np.abs(coef * spread)
    few = np.argpartition(-effect, STRONGEST)[:STRONGEST] if len(effect) > STRONGEST else np.arange(len(effect))
    few = np.sort(few[effect[few] > 0])
    return few[np.argsort(-effect[few], kind="stable")]
