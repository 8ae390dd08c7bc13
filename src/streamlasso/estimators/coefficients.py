"""Selected models as users see them: their coefficients know their features, and a notebook shows them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Self

import numpy as np

from streamlasso._html import largest, selected_html
from streamlasso._text import count, number
from streamlasso.core.base.selected import Selected

#: Coefficients that are printed.
MOST_PRINTED = 12


class Coefficients(np.ndarray):
    """An array whose entries also go by the names of the features; what is made of it is a plain array.

    >>> import numpy as np
    >>> coef = Coefficients(np.array([0.0, -2.0, 0.5]), ["sun", "wind", "rain"])
    >>> coef
    Coefficients(wind: -2, rain: 0.5; 1 other is 0)
    >>> float(coef["wind"]), coef.names, coef[1:] * 2
    (-2.0, ('sun', 'wind', 'rain'), array([-4.,  1.]))
    """

    names: tuple[Hashable, ...] = ()

    def __new__(cls, values: np.ndarray, names: Iterable[Hashable]) -> Self:
        coef = np.array(values).view(cls)
        coef.names = tuple(names)
        return coef

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"{key!r} is not a feature: use one of {', '.join(map(str, self.names))}")
            key = self.names.index(key)
        return np.asarray(self)[key]

    def __array_wrap__(self, values: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return values[()] if return_scalar else np.asarray(values)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Coefficients, (np.asarray(self), self.names)

    def __repr__(self) -> str:
        if len(self.names) != self.size:
            return repr(np.asarray(self))
        values = np.asarray(self)
        shown = largest(values, MOST_PRINTED)
        zeros = int(np.sum(values == 0))
        more = self.size - zeros - len(shown)
        if zeros == self.size:
            return f"Coefficients(all {zeros:,} are 0)"
        words = [", ".join(f"{self.names[j]}: {number(values[j])}" for j in shown)]
        words += [f"{more:,} smaller"] if more else []
        words += [f"{count(zeros, 'other')} {'is' if zeros == 1 else 'are'} 0"] if zeros else []
        return f"Coefficients({'; '.join(words)})"

    __str__ = __repr__


def with_names(model: Selected, names: Iterable[Hashable]) -> Selected:
    """The model with coefficients that have names; there may be fewer features than coefficients."""
    names = list(names)
    return model._replace(coef=Coefficients(model.coef[: len(names)], names))


class SelectedOfClasses(list[Selected]):
    """Selected models, one per class; in a notebook, one card each."""

    def __init__(self, models: Iterable[Selected], labels: Iterable[Any]) -> None:
        super().__init__(models)
        self.labels = list(labels)

    def _repr_html_(self) -> str:
        return selected_html(*self, labels=self.labels)


class SelectedByClass(dict[Hashable, Selected]):
    """The same by the names of the classes."""

    def _repr_html_(self) -> str:
        return selected_html(*self.values(), labels=list(self)) if self else ""
