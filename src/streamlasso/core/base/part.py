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
