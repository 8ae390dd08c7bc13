"""From what a user wrote to what the engine takes: every setting is checked here, once, for all faces.

Strings and numbers are shorthand for parts, in Python as on the command line: `tuner="logrms"`, `memory=500`.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from streamlasso.core.lasso.learner import Learner
from streamlasso.core.mixture.mixture import MixtureLearner
from streamlasso.core.model import Engine
from streamlasso.families import FAMILIES, Family
from streamlasso.memories import Forgetting, Memory, Window
from streamlasso.penalties import L1, PENALTIES, Penalty
from streamlasso.tuners import TUNERS, Mixture, Tuner

#: More rows than any machine keeps whole.
MOST_ROWS = 10**9
#: Of changes that are none, per 10,000 rows: beyond this alarms are no longer rare.
MOST_FALSE_ALARMS = 100.0
#: A fixed table: nothing is forgotten, and the last residuals say nothing about the next row, whichever that is.
ALL = "all"
#: Memories by the word that stands for them; "auto" leaves it to the tuner.
MEMORIES: dict[str, Memory | None] = {ALL: Forgetting(1.0), "auto": None}


def build_learner(n_features: int, settings: dict[str, Any]) -> Engine:
    """A fresh engine for `n_features` columns, or an error that says which setting is wrong and what it may be."""
    parts = checked(n_features, settings)
    return (MixtureLearner if has_mixture(parts) else Learner)(n_features, **parts)


def has_mixture(parts: dict[str, Any]) -> bool:
    """Do several models compete?"""
    return parts["tuner"].competes or parts["memory"].competes


def checked(n_features: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as an engine takes them: defaults filled in, words become parts."""
    tuner = as_tuner(settings["tuner"])
    if tuner.carry and is_all(settings["memory"]):
        tuner = tuner.set_params(carry=False)
    if settings["lambda_init"] is not None and (tuner.lambda_init is not None or tuner.competes):
        raise ValueError(f"lambda_init={settings['lambda_init']!r}: {tuner!r} brings its own, so leave it at None")
    parts: dict[str, Any] = dict(
        family=as_family(settings["family"]),
        memory=as_memory(settings["memory"], tuner),
        penalty=as_penalty(settings["penalty"]),
        tuner=tuner,
    )
    if parts["penalty"].l1_ratio is None and (has_mixture(parts) or settings["gradient"] != "exact"):
        raise ValueError(
            f"penalty={parts['penalty']!r} has no l1_ratio: use it with one lam, such as tuner='logrms', one memory, "
            "and gradient='exact'"
        )
    return dict(
        **parts,
        gradient=one_of("gradient", settings["gradient"], ("exact", "diagonal")),
        curvature=one_of("curvature", settings["curvature"], ("updated", "previous")),
        lambda_init=_lambda_init(settings["lambda_init"]),
        penalty_factor=_penalty_factor(settings["penalty_factor"], n_features),
        fit_intercept=_flag("fit_intercept", settings["fit_intercept"]),
        standardize=_flag("standardize", settings["standardize"]),
        history=_whole("history", settings["history"]),
        batch_size=_whole("batch_size", settings["batch_size"]),
        false_alarms=_false_alarms(settings.get("false_alarms", 0.0), tuner),
    )


def as_family(family: str | Family) -> Family:
    """The family itself, by name or as it is."""
    return _part("family", family, Family, FAMILIES)


def as_penalty(penalty: Any) -> Penalty:
    """The penalty itself, by name or as it is; None is L1()."""
    penalty = L1() if penalty is None else _part("penalty", penalty, Penalty, PENALTIES)
    penalty.check()
    return penalty


def as_tuner(tuner: Any) -> Tuner:
    """The tuner itself, by name or as it is; None is Mixture()."""
    return Mixture() if tuner is None else _part("tuner", tuner, Tuner, TUNERS)


def _part(setting: str, value: Any, base: type, words: dict[str, Any]) -> Any:
    if isinstance(value, base):
        return value
    if not isinstance(value, str) or value not in words:
        known = ", ".join(map(repr, words))
        raise ValueError(f"{setting}={value!r} is unknown: use one of {known}, or a {base.__name__} object")
    try:
        return words[value]()
    except TypeError:
        name = words[value].__name__
        raise ValueError(f"{setting}={value!r} has a number to choose: use {name}(...) of {setting}s") from None


def as_memory(memory: Any, tuner: Tuner) -> Memory | None:
    """The memory itself, as `memory_of` reads it; no memory is left to a tuner that chooses it, or is .99."""
    found = memory_of(memory)
    return Forgetting(0.99) if found is None and not tuner.competes else found


def _checked_memory(memory: Memory) -> Memory:
    for member in memory.members():
        if not 0 < member.decay <= 1 or not 0 <= member.length <= MOST_ROWS:
            raise ValueError(
                f"memory={memory!r} has decay {member.decay} and length {member.length}: decay must lie in (0, 1], "
                f"length between 0 (no limit) and {MOST_ROWS}"
            )
    return memory


def is_all(memory: Any) -> bool:
    """Are the rows a fixed table, without an order?"""
    return isinstance(memory, str) and memory == ALL


def memory_of(written: Any, given: str = "") -> Memory | None:
    """The memory that a person wrote, in Python or on the command line; None, or "auto", leaves it to the tuner.

    A number, or text that is one, is a forgetting factor up to 1 and a number of rows above 1. "all" never forgets.
    `given` is how an error names it.

    >>> from streamlasso.settings import memory_of
    >>> memory_of(0.99), memory_of(500), memory_of("500"), memory_of("all"), memory_of("auto")
    (Forgetting(r=0.99), Window(n=500), Window(n=500), Forgetting(r=1.0), None)
    """
    if isinstance(written, Memory):
        return _checked_memory(written)
    if written is None or (isinstance(written, str) and written in MEMORIES):
        return MEMORIES[written or "auto"]
    number = _number(written)
    given = given or (f"memory={written!r}" if number is None else f"memory={number:g}")
    if number is None:
        words = " or ".join(map(repr, MEMORIES))
        raise ValueError(
            f"{given} is unknown: use a forgetting factor in (0, 1], a number of rows above 1, {words}, a Memory "
            "object or None"
        )
    if 0 < number <= 1:
        return Forgetting(number)
    if 1 < number <= MOST_ROWS and number == int(number):
        return Window(int(number))
    raise ValueError(
        f"{given} is not a forgetting factor: use a number in (0, 1] (1 never forgets), or a whole number of rows "
        "above 1"
    )


def _number(written: Any) -> float | None:
    """A number, or text that is one; None for anything else."""
    if isinstance(written, bool) or not isinstance(written, Real | str):
        return None
    try:
        return float(written)
    except ValueError:
        return None


def one_of(name: str, value: Any, accepted: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name}={value!r} is unknown: use one of {', '.join(map(repr, accepted))}")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r}: use True or False")
    return bool(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= MOST_ROWS:
        raise ValueError(f"{name}={value!r}: use a whole number of rows from 1 to {MOST_ROWS}")
    return int(value)


def _false_alarms(value: Any, tuner: Tuner) -> float:
    """None is 1 where models compete. One model is there for speed, and looking costs as much as learning."""
    return float(tuner.competes) if value is None else refuse_false_alarms("false_alarms =", value)


def refuse_false_alarms(given: str, value: Any) -> float:
    """`given` is how an error names it."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= MOST_FALSE_ALARMS:
        raise ValueError(
            f"{given} {value!r}: use a number per 10,000 rows, from 0 (no changes are looked for) to "
            f"{MOST_FALSE_ALARMS:g}"
        )
    return float(value)


def positive_false_alarms(value: Any) -> float:
    """For what has nothing else to do."""
    if not refuse_false_alarms("false_alarms =", value) > 0:
        raise ValueError(f"false_alarms={value!r}: use a number above 0, per 10,000 rows")
    return float(value)


def _lambda_init(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(
            f"lambda_init={value!r}: use a number, 0 or larger, or None for a tenth of lam_max at the tenth row"
        )
    return float(value)


def _penalty_factor(value: Any, n_features: int) -> np.ndarray:
    if value is None:
        return np.ones(n_features)
    try:
        factor = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"penalty_factor={value!r}: use numbers, one per feature") from error
    if factor.shape != (n_features,):
        raise ValueError(f"penalty_factor={value!r}: use one number per feature, {n_features} here, not {factor.size}")
    if not np.all(np.isfinite(factor) & (factor >= 0)) or not np.any(factor > 0):
        raise ValueError(f"penalty_factor={value!r}: use numbers, 0 (never penalised) or larger, not all 0")
    return factor
