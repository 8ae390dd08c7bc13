# cython: language_level=3
"""What families and tuners share: settings that can be read, compared, copied and written down, and never change."""

from math import isfinite
from numbers import Real

import cython


def is_number(value):
    """A finite number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _rebuild(cls, settings):
    return cls(**settings)


@cython.cclass
class Part:
    """A frozen setting. Two parts are equal if they are of one class and have equal settings."""

    def settings(self):
        """The constructor's arguments, by name."""
        return dict(getattr(self, "__dict__", {}))

    def __repr__(self):
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({arguments})"

    def __eq__(self, other):
        return type(self) is type(other) and self.settings() == other.settings()

    def __hash__(self):
        return hash((type(self), tuple(sorted(self.settings().items()))))

    def __reduce__(self):
        return _rebuild, (type(self), self.settings())

    # --- scikit-learn's way to read and change parameters ---------------------------------------------------------

    def get_params(self, deep=True):
        """The arguments of the constructor, by name."""
        return self.settings()

    def set_params(self, **changes):
        """A part with these arguments changed; this one stays as it is.

        >>> from streamlasso.memories import Forgetting
        >>> Forgetting(0.99).set_params(r=0.9)
        Forgetting(r=0.9)
        """
        settings = self.settings()
        for name in changes:
            if name not in settings:
                known = f"use {', '.join(settings)}" if settings else "it has none"
                raise ValueError(f"{name}={changes[name]!r} is no parameter of {type(self).__name__}: {known}")
        return type(self)(**{**settings, **changes}) if changes else self

    def __sklearn_clone__(self):
        """What is frozen need not be copied."""
        return self
