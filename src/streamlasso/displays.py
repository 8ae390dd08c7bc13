"""A picture of a model in scikit-learn's convention: `Display.from_estimator(model)`, then `ax_` and `figure_`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamlasso._html import largest
from streamlasso.report.colours import DARK, GREY, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["CoefficientDisplay"]


class CoefficientDisplay:
    """Bars of the largest coefficients of a sparse model, largest on top.

    Make it with `from_estimator`.

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        All coefficients.
    names : sequence of str
        The names of the features.
    title : str, default=""
        What stands above the bars.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    bars_ : BarContainer
        The bars, from the smallest to the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.displays import CoefficientDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> model = RAPRegressor().partial_fit(X, X[:, 1] - 2 * X[:, 3])
    >>> display = CoefficientDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['x1', 'x3']
    >>> display.figure_.savefig("coefficients.png")  # doctest: +SKIP
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, coef: np.ndarray, names: Sequence[str], title: str = "") -> None:
        self.coef, self.names, self.title = coef, names, title

    @classmethod
    def from_estimator(cls, model: Any, *, label: Any = None, most: int = 15, ax: Axes | None = None) -> Self:
        """Draw the coefficients of a fitted model; of a mixture, those of its selected model.

        Parameters
        ----------
        model : RAPRegressor or RAPClassifier
            Of streamlasso or of streamlasso.river, fitted.
        label : object, default=None
            The class whose model is drawn, where there are three or more.
        most : int, default=15
            How many bars there are at most.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        """
        models = model._sparse_models()
        if label not in models and (label is not None or len(models) != 1):
            raise ValueError(f"label={label!r} has no model: use one of {', '.join(map(repr, models)) or 'none yet'}")
        chosen, selected = (label, models[label]) if label in models else next(iter(models.items()))
        title = "" if chosen is None else str(chosen)
        return cls(selected.coef, model._names, title).plot(ax, most=most)

    def plot(self, ax: Axes | None = None, *, most: int = 15) -> Self:
        """Draw on `ax`, or on a new figure."""
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        shown = largest(self.coef, most)[::-1]
        values = self.coef[shown]
        colors = [DARK if value > 0 else LIGHT for value in values]
        self.bars_ = ax.barh(np.arange(len(shown)), values, color=colors, height=0.7)
        ax.set_yticks(np.arange(len(shown)), [self.names[j] for j in shown], parse_math=False)
        ax.axvline(0, color=GREY, linewidth=0.8)
        more = np.count_nonzero(self.coef) - len(shown)
        ax.set_xlabel("coefficient" + (f" ({more:,} smaller ones are not shown)" if more else ""))
        ax.set_title(self.title, parse_math=False)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self
