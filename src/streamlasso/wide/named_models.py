"""Models of features with names, as bytes; no river needed. One model, or one per class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamlasso.core.sparse.model import Wide
from streamlasso.families import Family
from streamlasso.wide.packed import pack, restored, states_of
from streamlasso.wide.parameters import engine_settings


def named_model(family: Family, settings: Mapping[str, Any], name_key: np.ndarray, *, fixed_units: bool) -> Wide:
    """A new model. `settings` are those of an estimator with names; `name_key` is what names are hashed with."""
    model = Wide(family, fixed_units=fixed_units, **engine_settings(settings))
    model.names = {} if settings["keep_names"] else None
    model.name_key = name_key
    return model


def named_parts(
    settings: Mapping[str, Any], models: Sequence[Wide], labels: list[Any] | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of an estimator."""
    names = [None if model.names is None else list(model.names.values()) for model in models]
    keys = {f"keys {i}": np.array([*(model.names or {})], dtype=np.uint64) for i, model in enumerate(models)}
    return {"settings": dict(settings), "classes": labels, "names": names}, {**states_of(models), **keys}


def named_bytes(kind: str, settings: Mapping[str, Any], models: Sequence[Wide], labels: list[Any] | None) -> bytes:
    """The models as the bytes of an estimator of this class."""
    header, arrays = named_parts(settings, models, labels)
    return pack({"class": kind, **header}, arrays)


def restore_named(make: Callable[[], Wide], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list[Wide]:
    """New models take what `named_parts` gave."""
    models = restored(make, len(header["names"]), arrays)
    for i, (each, names) in enumerate(zip(models, header["names"], strict=True)):
        if (names is None) != (each.names is None):
            raise ValueError("names do not fit the settings")
        if names is not None:
            each.names = dict(zip(arrays[f"keys {i}"].tolist(), map(str, names), strict=True))
            if not each.names.keys() >= set(each.table.keys().tolist()):
                raise ValueError("a feature has no name")
    return models


def named_coef(model: Wide) -> dict[str, float]:
    """The coefficients that are not 0, by name."""
    if model.names is None:
        raise AttributeError("coef_ needs the names of features: use keep_names=True")
    keys, values = model.coef()
    return {model.names[key]: value for key, value in zip(keys.tolist(), values.tolist(), strict=True) if value}
