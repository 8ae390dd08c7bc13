"""Summary -> figure. Everything drawn is in the summary, which is as long as a picture is wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter

from streamlasso._text import number
from streamlasso.report.axes import (
    Entries,
    extent_of,
    frame,
    label_of,
    legend,
    legend_above,
    log_scale,
    message,
    rgb,
    time_axis,
    tint,
)
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.report.curves import DRAWN, thinned, trailing_mean
from streamlasso.report.shown_figure import ShownFigure
from streamlasso.report.summary import Summary

if TYPE_CHECKING:
    from streamlasso.simulate import Stream

#: Features with a line of their own in the raster.
MOST_ROWS = 40
#: A loss, or a memory, that ranges over more than this is drawn on a log scale.
WIDE = 30.0
_SIGNS: Entries = [("positive", Patch(color=DARK)), ("negative", Patch(color=LIGHT))]


def plot_summary(summary: Summary, figure: Figure | None = None) -> Figure:
    """Four panels over time: lam with lam_max, the loss with those of the baselines, the memory in use, and the active
    features.

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> figure = plot_summary(progressive(RAPRegressor(), stream.X, stream.y, coef=True).summary())
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Penalty', 'Loss, mean of the last 15 rows', 'Memory', 'Active features']
    """
    shown = _most_active(summary)
    last = 2.0 if summary.coef is None else max(2.0, 0.16 * len(shown) + 0.4)
    if figure is None:
        figure = ShownFigure(figsize=(9, 6.0 + last))
    figure.set_layout_engine("constrained", h_pad=0.08)
    penalty, loss, memory, active = figure.subplots(4, 1, sharex=True, height_ratios=[2, 2, 1.2, last])
    _draw_penalty(penalty, summary)
    _draw_loss(loss, summary)
    _draw_memory(memory, summary)
    if summary.coef is None:
        _draw_n_active(active, summary)
    else:
        _draw_raster(active, summary, shown)
    time_axis(active, summary)
    return figure


def mark_truth(figure: Figure, stream: Stream) -> None:
    """On the figure of a simulated stream: where the truth changes, and which coefficients are not 0 in it."""
    raster = figure.axes[-1]
    for axes in figure.axes:
        for change in stream.changes:
            axes.axvline(change - 0.5, color="black", linewidth=0.9, linestyle=":")
    for start, stop in zip([0, *stream.changes], [*stream.changes, len(stream.y)], strict=True):
        raster.hlines(
            np.flatnonzero(stream.beta[start]),
            start - 0.5,
            stop - 0.5,
            color="black",
            linewidth=1.0,
            path_effects=[withStroke(linewidth=2.4, foreground="white")],
        )
    legend_above(raster, [*_SIGNS, ("truth: not 0", Line2D([], [], color="black", linewidth=1.0))])


# --- panels -----------------------------------------------------------------------------------------------------------


def _draw_penalty(axes: Axes, summary: Summary) -> None:
    axes.set_title("Penalty", loc="left")
    positive = np.concatenate([values[values > 0] for values in (summary.lam, summary.lam_max)])
    if not len(positive):
        message(axes, "waiting: the rows so far give nothing to fit")
        return
    floor = positive.min() / 2
    for k, (name, color) in enumerate(_models(summary)):
        lam_max = _column(summary.lam_max, k)
        axes.plot(*_lowest_and_highest_lam(summary, k, floor), color=color, linewidth=1.4, label=f"lam{name}")
        axes.plot(
            *thinned(summary.t, np.where(lam_max > 0, lam_max, np.nan)),
            color=color if name else GREY,
            linewidth=1.1,
            linestyle="--",
            label=None if name else "lam_max (beyond it the model is empty)",
        )
    log_scale(axes, positive.max() / positive.min())
    axes.set_ylabel("lam (at the lower edge: 0)" if np.any(summary.lam == 0) else "lam")
    frame(axes)
    if summary.model_labels:
        axes.plot([], [], color=GREY, linestyle="--", label="lam_max")
    legend(axes, summary)


def _draw_loss(axes: Axes, summary: Summary) -> None:
    window = max(10, summary.n_rows // 20)
    scored = summary.scored > 0
    curves: list[tuple[str, Any, float | None, dict[str, Any]]] = [
        ("running mean", summary.baseline, summary.mean_baseline, dict(color=LIGHT, linewidth=1.6, linestyle="--")),
        ("persistence", summary.persistence, summary.mean_persistence, dict(color=GREY, linewidth=1.1, linestyle="-.")),
        ("model", summary.loss, summary.mean_loss, dict(color=DARK, linewidth=1.4)),
    ]
    drawn = []
    for name, losses, mean, style in curves:
        if losses is not None and mean is not None:
            smooth = trailing_mean(losses[scored], max(window // summary.size, 1))
            axes.plot(*thinned(summary.t[scored], smooth), label=_mean_label(name, mean), **style)
            drawn.append(smooth)
    every = np.concatenate(drawn)
    if len(every) and every.min() > 0 and every.max() > WIDE * every.min():
        log_scale(axes, every.max() / every.min())
    axes.set_title(f"Loss, mean of the last {window:,} rows", loc="left")
    axes.set_ylabel(summary.loss_name)
    frame(axes)
    legend(axes, summary)


def _draw_memory(axes: Axes, summary: Summary) -> None:
    size = summary.effective_size
    axes.plot(*thinned(summary.t, size), color=DARK, linewidth=1.2)
    axes.set_title("Memory", loc="left")
    axes.set_ylabel("rows in use")
    if size.max() > WIDE * np.median(size):
        axes.set_yscale("log")
        axes.set_ylim(bottom=1)
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    frame(axes)


def _draw_n_active(axes: Axes, summary: Summary) -> None:
    for k, (name, color) in enumerate(_models(summary)):
        n_active = _column(summary.n_active, k)
        axes.plot(*thinned(summary.t, n_active), color=color, linewidth=1.2, label=name.strip(" []"))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"of {len(summary.feature_names)} features")
    axes.set_title("Active features", loc="left")
    frame(axes)


def _draw_raster(axes: Axes, summary: Summary, shown: np.ndarray) -> None:
    start, stop = extent_of(summary)
    extent = (start, stop, len(shown) - 0.5, -0.5)
    axes.imshow(_raster(summary, shown), aspect="auto", interpolation="nearest", extent=extent)
    axes.hlines(np.arange(1, len(shown)) - 0.5, start, stop, color="#dddddd", linewidth=0.5)
    axes.set_yticks(range(len(shown)), [label_of(summary.feature_names[j]) for j in shown], fontsize=7)
    axes.tick_params(axis="y", length=0)
    n_features = len(summary.feature_names)
    choice = "" if len(shown) == n_features else f": the {len(shown)} of {n_features} most often active"
    axes.set_title("Active features" + choice, loc="left")
    one = Patch(color=tint(DARK, 1 / max(len(summary.model_labels), 1)))
    of_classes: Entries = [("for all classes", Patch(color=DARK)), ("for one", one)]
    legend(axes, summary, of_classes if summary.model_labels else _SIGNS)


# --- parts of panels --------------------------------------------------------------------------------------------------


def _raster(summary: Summary, shown: np.ndarray) -> np.ndarray:
    """Colours (feature, time, rgb): as full as the share of rows (and classes) in which the feature is active."""
    assert summary.coef is not None
    sign = np.sign(summary.coef[..., shown])
    edges = np.linspace(0, len(sign), min(len(sign), DRAWN) + 1).astype(int)[:-1]
    rows = np.diff(np.append(edges, len(sign)))[:, None]
    shares = [(DARK, (sign != 0).mean(axis=1))] if summary.model_labels else [(DARK, sign > 0), (LIGHT, sign < 0)]
    image = np.ones((len(shown), len(edges), 3))
    for color, active in shares:
        share = np.add.reduceat(active.astype(float), edges, axis=0) / rows
        image -= share.T[:, :, None] * (1 - rgb(color))
    return np.clip(image, 0, 1)


def _most_active(summary: Summary) -> np.ndarray:
    """The features that get a line of the raster, in their own order."""
    n_features = len(summary.feature_names)
    if summary.coef is None or n_features <= MOST_ROWS:
        return np.arange(n_features)
    times_active = (summary.coef != 0).reshape(len(summary.t), -1, n_features).sum(axis=(0, 1))
    return np.sort(np.argsort(-times_active, kind="stable")[:MOST_ROWS])


def _lowest_and_highest_lam(summary: Summary, k: int, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Both of each stretch, so that no spike is lost; `floor` stands for 0 on a log scale."""
    ends = summary.lam_range[:, :1, k] if summary.size == 1 else summary.lam_range[:, :, k]
    return thinned(np.repeat(summary.t, ends.shape[1]), np.where(ends == 0, floor, ends).ravel())


def _models(summary: Summary) -> list[tuple[str, Any]]:
    """What to add to a name, and the colour, for each model."""
    if not summary.model_labels:
        return [("", DARK)]
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(summary.model_labels)))
    return [(f" [{label_of(label)}]", shade) for label, shade in zip(summary.model_labels, shades, strict=True)]


def _column(values: np.ndarray, k: int) -> np.ndarray:
    return values if values.ndim == 1 else values[:, k]


def _mean_label(name: str, mean: float) -> str:
    return f"{name} {number(mean)}" + (" on all rows" if name == "model" else "")
