"""Pictures of a model in scikit-learn's convention: `Display.from_estimator(model)`, then `ax_` and `figure_`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone

from streamlasso._html import largest
from streamlasso._progressive import progressive
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["CoefficientDisplay", "LambdaPathDisplay"]


class _Display:
    """A picture on one pair of axes."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _draw_on(self, ax: Axes | None) -> Axes:
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class CoefficientDisplay(_Display):
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
        ax = self._draw_on(ax)
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


class LambdaPathDisplay(_Display):
    """The penalty lam after each row, and lam_max, at which all coefficients are 0.

    Make it with `from_trace` or `from_estimator`.

    Parameters
    ----------
    t : ndarray of shape (n_rows,)
        The numbers of the rows.
    lam, lam_max : ndarray of shape (n_rows,) or (n_rows, n_classes)
        After each row.
    labels : sequence, default=()
        The classes, where there are three or more.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    lines_ : list of Line2D
        lam and lam_max, for each class in turn.

    Examples
    --------
    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.displays import LambdaPathDisplay
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> trace = progressive(RAPRegressor(tuner="logrms"), stream.X, stream.y)
    >>> display = LambdaPathDisplay.from_trace(trace)
    >>> len(display.lines_), bool((display.lines_[0].get_ydata()[10:] == trace.lam[10:]).all())
    (2, True)
    """

    def __init__(self, t: np.ndarray, lam: np.ndarray, lam_max: np.ndarray, labels: Sequence[Any] = ()) -> None:
        self.t, self.lam, self.lam_max, self.labels = t, lam, lam_max, labels

    @classmethod
    def from_trace(cls, trace: Trace, *, ax: Axes | None = None) -> Self:
        """Draw what `progressive` returned; of a mixture, the average lam."""
        return cls(trace.t, trace.lam, trace.lam_max, trace.model_labels).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, sample_weight: Any = None, *, ax: Axes | None = None) -> Self:
        """Learn the rows with a copy of the model that has its parameters and nothing else, and draw.

        Parameters
        ----------
        model : RAPRegressor or RAPClassifier
            Fitted or not; it is left alone.
        X, y, sample_weight
            As for `partial_fit`.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        """
        return cls.from_trace(progressive(clone(model), X, y, sample_weight), ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        ax = self._draw_on(ax)
        lams, most = (_positive(values).reshape(len(self.t), -1) for values in (self.lam, self.lam_max))
        self.lines_ = []
        for k in range(lams.shape[1]):
            color = DARK if not self.labels else f"C{k}"
            suffix = f" [{self.labels[k]}]" if self.labels else ""
            self.lines_ += ax.plot(self.t, lams[:, k], color=color, label=f"lam{suffix}")
            self.lines_ += ax.plot(self.t, most[:, k], color=color if suffix else GREY, linestyle="--", linewidth=1)
        ax.plot([], [], color=GREY, linestyle="--", linewidth=1, label="lam_max")
        ax.set(xlabel="row", ylabel="lam", yscale="log")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
        return self


def _positive(values: np.ndarray) -> np.ndarray:
    """What a logarithmic axis can show."""
    return np.where(values > 0, values, np.nan)
