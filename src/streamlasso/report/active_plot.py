"""Which features were active when, and with which sign; of several classes, those of the most common ones."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from streamlasso.report.axes import TITLE, Entries, draw_range, extent_of, frame, label_of, legend_above, rgb
from streamlasso.report.colours import DARK, LIGHT, LINE
from streamlasso.report.curves import DRAWN, thinned
from streamlasso.report.summary import Summary

#: Features with a line of their own in the raster, and in each of several.
MOST_ROWS, MOST_ROWS_OF_A_CLASS = 40, 12
#: Classes with a raster.
MOST_CLASSES = 3
SIGNS: Entries = [("positive", Patch(color=DARK)), ("negative", Patch(color=LIGHT))]


def active_models(summary: Summary) -> list[int]:
    """The models with a raster: the only one, or those of the most common classes, in their own order."""
    if summary.coef is None or summary.coef.ndim == 2:
        return [0]
    common = np.argsort(-summary.confusion.sum(axis=1), kind="stable")[:MOST_CLASSES]
    return sorted(int(k) for k in common if k < summary.coef.shape[1])


def most_active(summary: Summary, model: int) -> np.ndarray:
    """The features that get a line of the raster, in their own order."""
    n_features = len(summary.feature_names)
    most = MOST_ROWS_OF_A_CLASS if summary.model_labels else MOST_ROWS
    if summary.coef is None or n_features <= most:
        return np.arange(n_features)
    times_active = np.abs(_shares(summary, model)).sum(axis=0)
    return np.sort(np.argsort(-times_active, kind="stable")[:most])


def raster_height(summary: Summary, model: int) -> float:
    """In inches."""
    return 1.4 if summary.coef is None else max(0.7, 0.16 * len(most_active(summary, model)))


def draw_active(axes: Axes, summary: Summary, model: int) -> None:
    if summary.coef is None:
        _draw_n_active(axes, summary)
    else:
        _draw_raster(axes, summary, model)


def _draw_n_active(axes: Axes, summary: Summary) -> None:
    if summary.n_active.ndim == 2:
        draw_range(axes, summary.t, summary.n_active, "of one class: median, and lowest to highest")
    else:
        axes.plot(*thinned(summary.t, summary.n_active), color=DARK, linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.set_ylabel(f"of {len(summary.feature_names)} features")
    axes.set_title("Active features", **TITLE)
    frame(axes)


def _draw_raster(axes: Axes, summary: Summary, model: int) -> None:
    shown, (start, stop) = most_active(summary, model), extent_of(summary)
    extent = (start, stop, len(shown) - 0.5, -0.5)
    axes.imshow(_raster(_shares(summary, model)[:, shown]), aspect="auto", interpolation="nearest", extent=extent)
    axes.hlines(np.arange(1, len(shown)) - 0.5, start, stop, color=LINE, linewidth=0.5)
    axes.set_yticks(range(len(shown)), [label_of(summary.feature_names[j]) for j in shown], fontsize=7)
    axes.tick_params(axis="y", length=0)
    n_features = len(summary.feature_names)
    of_class = f" for {label_of(summary.model_labels[model])}" if summary.model_labels else ""
    choice = "" if len(shown) == n_features else f": {len(shown)} of {n_features}, most often active"
    what = "The strongest features" if summary.only_strongest else "Active features"
    choice = choice.replace("active", "among them") if summary.only_strongest else choice
    axes.set_title(f"{what}{of_class}{choice}", **TITLE)
    legend_above(axes, SIGNS)


def _shares(summary: Summary, model: int) -> np.ndarray:
    """(stretch, feature) the sign of its coefficient."""
    assert summary.coef is not None
    shares = np.sign(summary.coef)
    return shares if shares.ndim == 2 else shares[:, model]


def _raster(shares: np.ndarray) -> np.ndarray:
    """Colours (feature, time, rgba): as full as the share of stretches in which the feature is active."""
    edges = np.linspace(0, len(shares), min(len(shares), DRAWN) + 1).astype(int)[:-1]
    rows = np.diff(np.append(edges, len(shares)))[:, None]
    positive, negative = (np.add.reduceat(np.maximum(each, 0.0), edges) / rows for each in (shares, -shares))
    share = positive + negative
    mix = (positive / np.where(share > 0, share, 1)).T[:, :, None]
    return np.concatenate([mix * rgb(DARK) + (1 - mix) * rgb(LIGHT), share.T[:, :, None]], axis=2)
