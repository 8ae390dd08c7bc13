"""From what a user wrote to what the engine takes: every setting is checked here, once, for both faces."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from streamlasso.core.engine import Engine
from streamlasso.core.learner import Learner
from streamlasso.core.mixture import MixtureLearner
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.penalties import L1, ElasticNet, Ridge
from streamlasso.tuners import Mixture, Tuner

FAMILIES = {"gaussian": Gaussian, "binomial": Binomial, "poisson": Poisson, "gamma": Gamma}
Memory = Forgetting | Window | AdaptiveForgetting
MEMORIES = (Forgetting, Window, AdaptiveForgetting)
PENALTIES = (L1, ElasticNet, Ridge)
#: More rows than any machine keeps whole.
MOST_ROWS = 10**9


def build_learner(n_features: int, settings: dict[str, Any]) -> Engine:
    """A fresh engine for `n_features` columns, or an error that says which setting is wrong and what it may be."""
    parts = checked(n_features, settings)
    return (MixtureLearner if has_mixture(parts) else Learner)(n_features, **parts)


def has_mixture(parts: dict[str, Any]) -> bool:
    """Do several models compete?"""
    return isinstance(parts["tuner"], Mixture) or isinstance(parts["memory"], AdaptiveForgetting)


def checked(n_features: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as an engine takes them: defaults filled in, names become parts."""
    tuner = as_tuner(settings["tuner"])
    if settings["lambda_init"] is not None and (tuner.lambda_init is not None or isinstance(tuner, Mixture)):
        raise ValueError(f"lambda_init={settings['lambda_init']!r}: {tuner!r} brings its own; leave it at None")
    return dict(
        family=as_family(settings["family"]),
        memory=as_memory(settings["memory"], tuner),
        penalty=as_penalty(settings["penalty"]),
        tuner=tuner,
        gradient=one_of("gradient", settings["gradient"], ("exact", "diagonal")),
        curvature=one_of("curvature", settings["curvature"], ("updated", "previous")),
        lambda_init=_lambda_init(settings["lambda_init"]),
        penalty_factor=_penalty_factor(settings["penalty_factor"], n_features),
        fit_intercept=_flag("fit_intercept", settings["fit_intercept"]),
        standardize=_flag("standardize", settings["standardize"]),
        history=_whole("history", settings["history"]),
        batch_size=_whole("batch_size", settings["batch_size"]),
    )


def as_family(family: str | Family) -> Family:
    """The family itself, by name or as it is."""
    if isinstance(family, Family):
        return family
    if isinstance(family, str) and family in FAMILIES:
        return FAMILIES[family]()
    raise ValueError(f"family={family!r}: one of {', '.join(map(repr, FAMILIES))}, or a Family object")


def as_memory(memory: Any, tuner: Tuner) -> Memory | None:
    """The memory itself; a number is a forgetting factor. None leaves it to `Mixture`, and is .99 for other tuners."""
    if memory is None:
        return None if isinstance(tuner, Mixture) else Forgetting(0.99)
    if isinstance(memory, MEMORIES):
        return memory
    if isinstance(memory, Real) and not isinstance(memory, bool):
        return Forgetting(float(memory))
    raise ValueError(
        f"memory={memory!r}: a forgetting factor in (0, 1], Forgetting(r), Window(n), AdaptiveForgetting() or None"
    )


def as_penalty(penalty: Any) -> L1 | ElasticNet | Ridge:
    """The penalty itself; None is L1()."""
    if penalty is None:
        return L1()
    if isinstance(penalty, PENALTIES):
        return penalty
    raise ValueError(f"penalty={penalty!r}: L1(), ElasticNet(l1_ratio) or Ridge() of streamlasso.penalties")


def as_tuner(tuner: Any) -> Tuner:
    """The tuner itself; None is Mixture()."""
    if tuner is None:
        return Mixture()
    if isinstance(tuner, Tuner):
        return tuner
    raise ValueError(f"tuner={tuner!r}: a tuner of streamlasso.tuners, such as Mixture(), LogRMS() or Fixed(lam)")


def one_of(name: str, value: Any, accepted: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in accepted:
        raise ValueError(f"{name}={value!r}: one of {', '.join(map(repr, accepted))}")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r}: True or False")
    return bool(value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= MOST_ROWS:
        raise ValueError(f"{name}={value!r}: a whole number of rows, from 1 to {MOST_ROWS}")
    return int(value)


def _lambda_init(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(
            f"lambda_init={value!r}: a number, 0 or larger, or None for a tenth of lam_max at the tenth row"
        )
    return float(value)


def _penalty_factor(value: Any, n_features: int) -> np.ndarray:
    if value is None:
        return np.ones(n_features)
    try:
        factor = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"penalty_factor={value!r}: numbers are needed, one a feature") from error
    if factor.shape != (n_features,):
        raise ValueError(
            f"penalty_factor={value!r}: one number a feature is needed, {n_features} here, not {factor.size}"
        )
    if not np.all(np.isfinite(factor) & (factor >= 0)) or not np.any(factor > 0):
        raise ValueError(f"penalty_factor={value!r}: numbers, 0 (never penalised) or larger, not all 0")
    return factor
