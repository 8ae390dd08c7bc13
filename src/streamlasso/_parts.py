"""scikit-learn's way to read and change parameters, for parts, which are frozen: a change gives a new part."""

from __future__ import annotations

from typing import Any, TypeVar

P = TypeVar("P")


def get_params(self: Any, deep: bool = True) -> dict[str, Any]:
    """The arguments of the constructor, by name."""
    return self.settings()


def set_params(self: P, **changes: Any) -> P:
    """A part with these arguments changed; this one stays as it is.

    >>> from streamlasso.memories import Forgetting
    >>> Forgetting(0.99).set_params(r=0.9)
    Forgetting(r=0.9)
    """
    settings = self.settings()  # type: ignore[attr-defined]
    for name in changes:
        if name not in settings:
            known = f"use {', '.join(settings)}" if settings else "it has none"
            raise ValueError(f"{name}={changes[name]!r} is no parameter of {type(self).__name__}: {known}")
    return type(self)(**{**settings, **changes}) if changes else self


def clone(self: P) -> P:
    """For scikit-learn's `clone`: what is frozen need not be copied."""
    return self
