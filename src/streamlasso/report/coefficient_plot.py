"""The largest coefficients of one model over time, each with its name at the end of its curve."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from streamlasso.report.axes import NOTE, frame, label_of, time_axis
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.report.curves import thinned, trailing_median
from streamlasso.report.summary import Summary

#: Features with a curve.
MOST_CURVES = 8
#: Of so many stretches or more, medians of a few are drawn, so that jumps to and fro do not hide the curves.
MANY = 400
#: The share of coefficients, at either end, that need not be within the picture.
SPIKES = 0.005


def plot_coefficients(summary: Summary, figure: Figure | None = None) -> Figure:
    """The coefficients that are largest on average, over time, each times its feature's spread; of one model.

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> trace = progressive(RAPRegressor(), stream.X, stream.y, coef=True)
    >>> figure = plot_coefficients(trace.summary())
    >>> len(figure.axes[0].texts)
    8
    """
    if summary.coef is None or summary.coef.ndim != 2:
        raise ValueError("plot_coefficients needs the coefficients of one model: use progressive(..., coef=True)")
    if figure is None:
        figure = Figure(figsize=(9, 3.4))
    axes = figure.add_axes((0.1, 0.15, 0.69, 0.76))
    size = np.abs(summary.coef).mean(axis=0) * summary.spread
    chosen = [j for j in np.argsort(-size, kind="stable")[:MOST_CURVES] if size[j] > 0]
    window = len(summary.t) // 50 if len(summary.t) >= MANY else 1
    effects = trailing_median(summary.coef[:, chosen] * summary.spread[chosen], window)
    axes.axhline(0, color=GREY, linewidth=0.8)
    ends = []
    for k, (j, effect) in enumerate(zip(chosen, effects.T, strict=True)):
        color, style = (DARK, LIGHT, "black", GREY)[k % 4], ("-", "--")[k // 4 % 2]
        axes.plot(*thinned(summary.t, effect), linewidth=1.4, color=color, linestyle=style)
        ends.append((effect[-1], label_of(summary.feature_names[j]), color))
    _leave_out_spikes(axes, effects)
    _label_ends(axes, summary.t[-1], ends)
    axes.set_ylabel("effect of one standard deviation")
    if window > 1:
        axes.set_title(f"median of the last {window * summary.size:,} rows", loc="right", **NOTE)
    frame(axes)
    time_axis(axes, summary)
    return figure


def _leave_out_spikes(axes: Axes, values: np.ndarray) -> None:
    """The range of nearly all values and of the last ones: after two or three rows a coefficient may be anything."""
    if not values.size:
        return
    kept = np.concatenate([np.quantile(values, [SPIKES, 1 - SPIKES]), values[-1], [0.0]])
    margin = 0.08 * np.ptp(kept) or 1.0
    low, high = kept.min() - margin, kept.max() + margin
    axes.set_ylim(low, high)
    n_outside = np.sum(np.any((values < low) | (values > high), axis=1))
    if n_outside:
        axes.set_title(f"beyond the edge in {n_outside:,} of {len(values):,} rows", loc="left", **NOTE)


def _label_ends(axes: Axes, t: float, ends: list[tuple[float, str, str]]) -> None:
    """A name at the end of each curve."""
    ends = sorted(ends)
    line = {"arrowstyle": "-", "linewidth": 0.8, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 0}
    for (value, name, color), at in zip(ends, _apart([value for value, _, _ in ends], *axes.get_ylim()), strict=True):
        axes.annotate(
            name,
            (t, value),
            xytext=(1.03, at),
            textcoords=("axes fraction", "data"),
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={**line, "color": color},
        )


def _apart(values: list[float], low: float, high: float) -> list[float]:
    """Sorted values, moved as far up, then down, as lines of text need."""
    step = (high - low) / 14
    places: list[float] = []
    for value in values:
        places.append(max(value, places[-1] + step if places else low))
    limit = high
    for i in reversed(range(len(places))):
        places[i] = min(places[i], limit)
        limit = places[i] - step
    return places
