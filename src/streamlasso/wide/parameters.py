"""What both faces of the sparse engine share: settings, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamlasso import families
from streamlasso.core.sparse.model import ADMITTED_AT, EXPERTS, MOST_RECORDS
from streamlasso.families import Family
from streamlasso.settings import as_family

#: The families that the engine is made for.
FAMILIES = tuple(word for word, family in families.FAMILIES.items() if family.goes_wide and not family.binary)

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

METHOD = """A row costs time in proportion to its non-zeros, and only features that occur take memory. Experts with
    different steps, penalties and half-lives learn side by side; their predictions are combined by how well they did
    (docs/wide.md)."""


@dataclass(repr=False, eq=False, match_args=False)
class _Family:
    family: str = "gaussian"


@dataclass(repr=False, eq=False, match_args=False)
class Parameters:
    """Those of a classifier."""

    experts: int = 16
    memory: str = "full"
    max_features: int | None = None

    def __post_init__(self) -> None:
        """What else a new estimator needs, now that its parameters are set."""


@dataclass(repr=False, eq=False, match_args=False)
class FamilyParameters(Parameters, _Family):
    """Those of a regressor, whose first is the family."""


@dataclass(repr=False, eq=False, match_args=False)
class NamedParameters(Parameters):
    """Those of a classifier of rows with names."""

    keep_names: bool = False


@dataclass(repr=False, eq=False, match_args=False)
class NamedFamilyParameters(NamedParameters, _Family):
    """Those of a regressor of rows with names."""


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
    most = MOST_RECORDS if most is None else most
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 1 <= most <= MOST_RECORDS:
        raise ValueError(f"max_features={most!r} is not a number of features: use a whole number of 1 or more, or None")
    return {"experts": int(experts), "memory": memory, "most": int(most)}
