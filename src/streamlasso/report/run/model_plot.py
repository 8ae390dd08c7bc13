"""The model over time: which features were active, with which sign, and the largest coefficients."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from streamlasso.report.axes import NOTE, TITLE, Entries, extent_of, frame, label_of, legend_above, time_axis
from streamlasso.report.colours import DARK, GREY, LIGHT, LINE
from streamlasso.report.curves import DRAWN, thinned, trailing_median
from streamlasso.report.summary import Summary

#: Features with a line of their own in the raster, and in each of several.
MOST_ROWS, MOST_ROWS_OF_A_CLASS = 40, 12
#: Classes with a raster.
MOST_CLASSES = 3
#: Features with a curve.
MOST_CURVES = 8
#: With so many stretches or more, medians of a few are drawn, so that jumps to and fro do not hide the curves.
MANY = 400
#: The share of coefficients, at either end, that may lie outside the picture.
SPIKES = 0.005
SIGNS: Entries = [("positive", Patch(color=DARK)), ("negative", Patch(color=LIGHT))]


# --- active features --------------------------------------------------------------------------------------------------


def active_models(summary: Summary) -> list[int]:
    """The models with a raster: the only one, or those of the most common classes, in their own order."""
    if summary.coef.ndim == 2:
        return [0]
    common = np.argsort(-summary.confusion.sum(axis=1), kind="stable")[:MOST_CLASSES]
    return sorted(int(k) for k in common if k < summary.coef.shape[1])


def most_active(summary: Summary, model: int) -> np.ndarray:
    """The features that get a line of the raster, in their own order."""
    most = MOST_ROWS_OF_A_CLASS if summary.model_labels else MOST_ROWS
    times_active = np.abs(_signs(summary, model)).sum(axis=0)
    return np.sort(np.argsort(-times_active, kind="stable")[:most])


def raster_height(summary: Summary, model: int) -> float:
    """In inches."""
    return max(0.7, 0.16 * len(most_active(summary, model)))


def draw_active(axes: Axes, summary: Summary, model: int) -> None:
    shown, (start, stop) = most_active(summary, model), extent_of(summary)
    extent = (start, stop, len(shown) - 0.5, -0.5)
    axes.imshow(_raster(_signs(summary, model)[:, shown]), aspect="auto", interpolation="nearest", extent=extent)
    axes.hlines(np.arange(1, len(shown)) - 0.5, start, stop, color=LINE, linewidth=0.5)
    axes.set_yticks(range(len(shown)), [label_of(summary.feature_names[j]) for j in shown], fontsize=7)
    axes.tick_params(axis="y", length=0)
    n_features = len(summary.feature_names)
    of_class = f" for {label_of(summary.model_labels[model])}" if summary.model_labels else ""
    what, often = ("Active features", "active")
    if summary.only_strongest:
        what, often = ("The strongest features", "among them")
    choice = "" if len(shown) == n_features else f": {len(shown)} of {n_features}, most often {often}"
    axes.set_title(f"{what}{of_class}{choice}", **TITLE)
    legend_above(axes, SIGNS)


def _signs(summary: Summary, model: int) -> np.ndarray:
    """(stretch, feature) the sign of its coefficient."""
    signs = np.sign(summary.coef)
    return signs if signs.ndim == 2 else signs[:, model]


def _raster(signs: np.ndarray) -> np.ndarray:
    """Colours (feature, time, rgba): as full as the share of stretches in which the feature is active."""
    edges = np.linspace(0, len(signs), min(len(signs), DRAWN) + 1).astype(int)[:-1]
    rows = np.diff(np.append(edges, len(signs)))[:, None]
    positive, negative = (np.add.reduceat(np.maximum(each, 0.0), edges) / rows for each in (signs, -signs))
    share = positive + negative
    mix = (positive / np.where(share > 0, share, 1)).T[:, :, None]
    dark, light = np.array(to_rgb(DARK)), np.array(to_rgb(LIGHT))
    return np.concatenate([mix * dark + (1 - mix) * light, share.T[:, :, None]], axis=2)


# --- coefficients -----------------------------------------------------------------------------------------------------


def plot_coefficients(summary: Summary) -> Figure:
    """The coefficients of one model that are largest on average, over time, each times its feature's spread.

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> trace = progressive(RAPRegressor(), stream.X, stream.y, coef=True)
    >>> figure = plot_coefficients(trace.summary())
    >>> len(figure.axes[0].texts)
    8
    """
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
        axes.set_title(f"outside the picture in {n_outside:,} of {len(values):,} rows", loc="left", **NOTE)


def _label_ends(axes: Axes, t: float, ends: list[tuple[float, str, str]]) -> None:
    """A name at the end of each curve, moved up, then down, as far as lines of text need."""
    ends, (low, high) = sorted(ends), axes.get_ylim()
    step = (high - low) / 14
    places: list[float] = []
    for value, _, _ in ends:
        places.append(max(value, places[-1] + step if places else low))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], high if i == len(places) - 1 else places[i + 1] - step)
    for (value, name, color), place in zip(ends, places, strict=True):
        axes.annotate(
            name,
            (t, value),
            xytext=(1.03, place),
            textcoords=("axes fraction", "data"),
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops=dict(arrowstyle="-", linewidth=0.8, relpos=(0, 0.5), shrinkA=1, shrinkB=0, color=color),
        )
