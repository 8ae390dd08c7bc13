"""Parameters of parameters: `tuner__lam`, in scikit-learn's notation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.base import BaseEstimator

from streamlasso.settings import as_family, as_penalty, as_tuner, memory_of

#: How each setting becomes the part that it stands for.
PARTS: dict[str, Callable[[Any], Any]] = {
    "family": as_family,
    "memory": memory_of,
    "penalty": as_penalty,
    "tuner": as_tuner,
}


class NestedParts(BaseEstimator):
    """An estimator whose parts are frozen: to change a parameter of a part is to exchange the part.

    A word or a number is the part that it stands for.

    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.tuners import Fixed
    >>> RAPRegressor(memory=0.99, tuner=Fixed(0.1)).set_params(tuner__lam=0.2, memory__r=0.9)
    RAPRegressor(memory=Forgetting(r=0.9), tuner=Fixed(lam=0.2))
    """

    def set_params(self, **params: Any) -> Self:
        """Change parameters, also those of parts: `set_params(memory=0.9, tuner__lam=0.2)`."""
        of_parts: dict[str, dict[str, Any]] = {}
        for name in [name for name in params if name.partition("__")[0] in PARTS and "__" in name]:
            setting, _, parameter = name.partition("__")
            of_parts.setdefault(setting, {})[parameter] = params.pop(name)
        known = self.get_params(deep=False)
        exchanged = {name: self._changed(name, {**known, **params}, of_parts[name]) for name in of_parts}
        return super().set_params(**{**params, **exchanged})

    def _changed(self, setting: str, settings: dict[str, Any], changes: dict[str, Any]) -> Any:
        """The part with other parameters."""
        wrong = f"{setting}__{next(iter(changes))}"
        if setting not in settings:
            raise ValueError(f"Invalid parameter {setting!r} for estimator {self}: {wrong} has no part to change")
        part = PARTS[setting](settings[setting])
        if part is None:
            raise ValueError(f"{wrong}: {setting}={settings[setting]!r} has no parameters; choose a {setting} first")
        return part.set_params(**changes)
