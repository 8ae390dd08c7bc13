"""The models of a run with any number of features: one, or one per class; as a file that Python can load too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from streamlasso import checkpoint
from streamlasso._files import write_whole
from streamlasso.core.sparse.model import Wide
from streamlasso.estimators.multiclass import N_RECENT, n_models
from streamlasso.families import FAMILIES, Family
from streamlasso.settings import as_family
from streamlasso.wide.named_models import named_bytes, named_model, restore_named
from streamlasso.wide.packed import unpack

#: The classes of `streamlasso.river` that load such a file, for classes and for numbers.
CLASSIFIER, REGRESSOR = "river.WideClassifier", "river.WideRegressor"
SETTINGS = {"experts": 16, "memory": "full", "max_features": None, "keep_names": True}


class WideModels:
    """Models of features by name.

    family : of the response
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

    @property
    def nbytes(self) -> int:
        return sum(model.nbytes for model in self.models)

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

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: Any, labels: list[Any], notes: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """`streamlasso.river.WideClassifier.load`, or that of WideRegressor, reads the model in it."""
        kind = CLASSIFIER if self.classes else REGRESSOR
        settings = self.settings if self.classes else {"family": self.name, **self.settings}
        model = named_bytes(kind, settings, self.models, labels if self.classes else None)
        write_whole(path, checkpoint.as_file(model, kind, notes, arrays))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The models in such a file."""
        header, arrays = unpack(data)
        settings = dict(header["settings"])
        found = cls(settings.pop("family", "binomial"), bytes(16), settings=settings)
        found.models = restore_named(found._new, header, arrays)
        found.key = found.models[0].name_key
        return found
