"""What both faces of the sparse engine share: settings, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamlasso.core.sparse.model import ADMITTED_AT, EXPERTS
from streamlasso.families import Family
from streamlasso.settings import as_family, as_tuner
from streamlasso.tuners import TUNERS, Tuner

#: The families that the engine is made for.
FAMILIES = ("gaussian", "poisson")

PARAMETERS = """experts : {8, 16}, default=16
        How many experts compete. Eight take half of the memory and two thirds of the time, and predict a little worse
        (docs/wide.md).
    memory : {"full", "second_sight", "sparse"}, default="full"
        When a feature gets a record of its own: when it is first seen, when it is seen again, or when its evidence is
        1.5 standard errors. Until then it takes 12 bytes instead of about 155.
    max_features : int, default=None
        Features that are kept, at most. The least recently useful one makes room for a new one. None: as many as
        there are."""

ATTRIBUTES = """n_seen_ : int
        Rows learnt.
    n_live_ : int
        Features with a record; for several classes, of all models together.
    nbytes_ : int
        Memory of these, in bytes.
    n_features_in_, feature_names_in_
        As in scikit-learn."""

#: For faces that have it.
TUNER = """tuner : Tuner or str, default=None
        One model whose lam this tuner moves, in place of the experts; `experts` is then not used, and `memory` is
        "full". None, the default, predicts better (docs/wide.md)."""
TUNED = """lambda_, coef_slope_ : float, sparse array
        With a tuner: its lam, and the derivative of `coef_` with respect to it."""

METHOD = """A row costs time in proportion to its non-zeros, and only features that occur take memory. Experts with
    different steps, penalties and half-lives learn side by side; their predictions are combined by how well they did
    (docs/wide.md)."""


def family_of(word: Any) -> Family:
    """The family of a regressor."""
    if not isinstance(word, str) or word not in FAMILIES:
        raise ValueError(f"family={word!r} is unknown here: use one of {', '.join(map(repr, FAMILIES))}")
    return as_family(word)


def engine_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `Wide` takes, or an error that says what would do."""
    experts, memory, most = settings["experts"], settings["memory"], settings["max_features"]
    if isinstance(experts, bool) or experts not in EXPERTS:
        raise ValueError(
            f"experts={experts!r} is not a number of experts: use {' or '.join(map(str, sorted(EXPERTS)))}"
        )
    if not isinstance(memory, str) or memory not in ADMITTED_AT:
        raise ValueError(f"memory={memory!r} is unknown: use one of {', '.join(map(repr, ADMITTED_AT))}")
    chosen = {"experts": int(experts), "memory": memory}
    if settings.get("tuner") is not None:
        tuner = as_tuner(settings["tuner"])
        if tuner.competes or memory != "full":
            raise ValueError(
                f"tuner={tuner!r} with memory={memory!r}: use memory='full' and a tuner of one lam, or None"
            )
        chosen = {"tuner": tuner}
    if most is None:
        return chosen
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 1 <= most < 2**31 - 1:
        raise ValueError(f"max_features={most!r} is not a number of features: use a whole number of 1 or more, or None")
    return {**chosen, "most": int(most)}


# --- as JSON ----------------------------------------------------------------------------------------------------------


def settings_as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an estimator; a tuner by its word and its own settings."""
    return {name: _as_json(value) for name, value in settings.items()}


def _as_json(value: Any) -> Any:
    if not isinstance(value, Tuner):
        return value.item() if isinstance(value, np.generic) else value
    if TUNERS.get(str(value.name)) is not type(value):
        raise ValueError(f"tuner={value!r} is not built in: keep such a model with pickle")
    return {"tuner": value.name, "settings": value.settings()}


def settings_of_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings again."""
    return {name: _of_json(value) for name, value in settings.items()}


def _of_json(value: Any) -> Any:
    return TUNERS[value["tuner"]](**value["settings"]) if isinstance(value, dict) else value
