"""Summary -> figure. Everything drawn is in the summary, which is as long as a picture is wide."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter

from streamlasso._text import number
from streamlasso.report.axes import TITLE, draw_range, frame, label_of, legend_above, log_scale, message, time_axis
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.report.curves import thinned, trailing_mean
from streamlasso.report.page import drawn
from streamlasso.report.run import fit_plot, model_plot
from streamlasso.report.summary import Summary

if TYPE_CHECKING:
    from streamlasso.simulate import Stream

#: A loss, or a memory, that ranges over more than this is drawn on a log scale.
WIDE = 30.0
#: Inches: the width, the space above a panel, below one with times, at the right, and of a letter of small print.
WIDTH, ABOVE, BELOW, RIGHT, LETTER = 9.0, 0.42, 0.48, 0.25, 0.06
#: Panels of classes side by side.
SIDE_BY_SIDE = 3
#: More marks of changes than this are short ones at the top: lines would hide what they mark.
MOST_LONG, SHORT = 10, 0.08
CHANGE: dict[str, Any] = {"color": LIGHT, "linewidth": 0.9}


class ShownFigure(Figure):
    """As the last line of a notebook's cell it is the picture. pyplot does not know it, and so does not show it again.

    >>> ShownFigure(figsize=(4, 3))._repr_png_()[1]
    {'width': 400, 'height': 300}
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(100 * inches) for inches in self.get_size_inches())
        return drawn(self, "png"), {"width": width, "height": height}


class Panel(NamedTuple):
    """A drawing over time. `with_times`: the times stand below it; `columns`: so many such drawings side by side."""

    name: str
    height: float
    draw: list[Callable[[Axes, Summary], None]]
    with_times: bool = False
    columns: int = 1

    @property
    def inches(self) -> float:
        return ABOVE + self.height + BELOW * self.with_times


def plot_summary(summary: Summary, figure: Figure | None = None) -> Figure:
    """Panels over time: predicted against actual, the loss with those of the baselines, the active features, the memory
    in use, and the penalty. The label of each is its name.

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> figure = plot_summary(progressive(RAPRegressor(), stream.X, stream.y, coef=True).summary())
    >>> [axes.get_label() for axes in figure.axes]
    ['fit', 'recent', 'loss', 'active', 'memory', 'penalty']
    """
    panels = _panels(summary)
    height = sum(panel.inches for panel in panels)
    if figure is None:
        figure = ShownFigure(figsize=(WIDTH, height))
    # Room for the names beside the raster.
    left = max(0.95, 0.2 + LETTER * max((len(label_of(name)) for name in summary.feature_names), default=0)) / WIDTH
    bottom = 1.0
    for panel in panels:
        bottom -= panel.inches / height
        below = BELOW * panel.with_times / height
        _draw_panel(figure, panel, summary, (left, bottom + below, panel.height / height))
    return figure


def _panels(summary: Summary) -> list[Panel]:
    columns = fit_plot.fit_columns(summary)
    fits = [partial(fit_plot.draw_fit, column=column) for column in columns]
    several = [fits[i : i + SIDE_BY_SIDE] for i in range(0, len(fits), SIDE_BY_SIDE)]
    wide = len(fits) <= 1
    panels = [
        Panel("fit", 2.0 if wide else 1.0, list(draws), draws is several[-1], 1 if wide else SIDE_BY_SIDE)
        for draws in several
    ]
    if fit_plot.shows_recent(summary) and len(summary.recent.t):
        panels.append(Panel("recent", 1.5, [partial(fit_plot.draw_recent, column=columns[0])], True))
    active = [
        Panel("active", model_plot.raster_height(summary, k), [partial(model_plot.draw_active, model=k)])
        for k in model_plot.active_models(summary)
    ]
    loss = Panel("loss", 1.6, [_draw_loss])
    if summary.only_strongest:
        return [*panels, loss, *active[:-1], active[-1]._replace(with_times=True)]
    memory, penalty = Panel("memory", 0.9, [_draw_memory]), Panel("penalty", 1.5, [_draw_penalty], True)
    return [*panels, loss, *active, memory, penalty]


def _draw_panel(figure: Figure, panel: Panel, summary: Summary, place: tuple[float, float, float]) -> None:
    left, bottom, height = place
    gap = 0.07
    width = (1 - left - RIGHT / WIDTH - gap * (panel.columns - 1)) / panel.columns
    for k, draw in enumerate(panel.draw):
        axes = figure.add_axes((left + k * (width + gap), bottom, width, height), label=panel.name)
        draw(axes, summary)
        if panel.name not in ("recent", "active"):
            _mark_changes(axes, summary)
        if panel.name != "recent":
            time_axis(axes, summary, n_ticks=8 // panel.columns, labelled=panel.with_times)
        if panel.columns > 1:
            axes.set_xlabel("")
    if panel.columns > 1 and panel.with_times:
        legend_above(axes, fit_plot.KEY, below=0.25)


def _mark_changes(axes: Axes, summary: Summary) -> None:
    """Where each detected change most likely began."""
    bottom = 0.0 if len(summary.detected) <= MOST_LONG else 1.0 - SHORT
    for change in summary.detected:
        axes.axvline(change.row - 0.5, ymin=bottom, **CHANGE)


def mark_truth(figure: Figure, stream: Stream) -> None:
    """On the figure of a simulated stream: where the truth changes, and which coefficients are not 0 in it."""
    for axes in figure.axes:
        if axes.get_label() != "recent":
            for change in stream.changes:
                axes.axvline(change - 0.5, color="black", linewidth=0.9, linestyle=":")
    raster = next(axes for axes in figure.axes if axes.get_label() == "active")
    for start, stop in zip([0, *stream.changes], [*stream.changes, len(stream.y)], strict=True):
        raster.hlines(
            np.flatnonzero(stream.beta[start]),
            start - 0.5,
            stop - 0.5,
            color="black",
            linewidth=1.0,
            path_effects=[withStroke(linewidth=2.4, foreground="white")],
        )
    legend_above(raster, [*model_plot.SIGNS, ("truth: not 0", Line2D([], [], color="black", linewidth=1.0))])


# --- panels -----------------------------------------------------------------------------------------------------------


def _draw_loss(axes: Axes, summary: Summary) -> None:
    window = max(10, summary.n_rows // 20)
    scored = summary.scored > 0
    curves: list[tuple[str, Any, float | None, dict[str, Any]]] = [
        ("running mean", summary.baseline, summary.mean_baseline, dict(color=LIGHT, linewidth=1.6, linestyle="--")),
        ("persistence", summary.persistence, summary.mean_persistence, dict(color=GREY, linewidth=1.1, linestyle="-.")),
        ("model", summary.loss, summary.mean_loss, dict(color=DARK, linewidth=1.4)),
    ]
    drawn_losses = []
    for name, losses, mean, style in curves:
        if losses is not None and mean is not None:
            smooth = trailing_mean(losses[scored], max(window // summary.size, 1))
            axes.plot(*thinned(summary.t[scored], smooth), label=f"{name} {number(mean)}", **style)
            drawn_losses.append(smooth)
    every = np.concatenate(drawn_losses)
    if len(every) and every.min() > 0 and every.max() > WIDE * every.min():
        log_scale(axes, every.max() / every.min())
    axes.set_title(f"Loss, mean of the last {window:,} rows", **TITLE)
    axes.set_ylabel(summary.loss_name)
    frame(axes)
    legend_above(axes)


def _draw_memory(axes: Axes, summary: Summary) -> None:
    size = summary.effective_size
    axes.plot(*thinned(summary.t, size), color=DARK, linewidth=1.2)
    axes.set_title("Memory", **TITLE)
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
    if summary.detected:
        # Here, since above the losses there is no room left.
        what = f"the last {len(summary.detected)} changes found" if summary.changes_are_cut else "change found"
        legend_above(axes, [(what, Line2D([], [], **CHANGE))])


def _draw_penalty(axes: Axes, summary: Summary) -> None:
    of_classes = bool(summary.model_labels)
    at_zero = not of_classes and np.any(summary.lam == 0)
    axes.set_title("Penalty; 0 is at the lower edge" if at_zero else "Penalty", **TITLE)
    positive = np.concatenate([values[values > 0] for values in (summary.lam, summary.lam_max)])
    if not len(positive):
        message(axes, "waiting: the rows so far give nothing to fit")
        return
    if of_classes:
        lam = np.where(summary.lam > 0, summary.lam, np.nan)
        draw_range(axes, summary.t, lam, "lam: median and range of the classes")
    else:
        # The lowest and the highest of each stretch, so that no spike is lost.
        ends = summary.lam_range[:, : 1 if summary.size == 1 else 2, 0]
        t, lam = np.repeat(summary.t, ends.shape[1]), np.where(ends == 0, positive.min() / 2, ends).ravel()
        axes.plot(*thinned(t, lam), color=DARK, linewidth=1.4, label="lam")
    lam_max = np.where(summary.lam_max > 0, summary.lam_max, np.nan).reshape(len(summary.t), -1)
    median = [np.median(row[~np.isnan(row)]) if np.any(~np.isnan(row)) else np.nan for row in lam_max]
    label = "lam_max, median" if of_classes else "lam_max (beyond it the model is empty)"
    axes.plot(*thinned(summary.t, np.array(median)), color=GREY, linewidth=1.1, linestyle="--", label=label)
    log_scale(axes, positive.max() / positive.min())
    axes.set_ylabel("lam")
    frame(axes)
    legend_above(axes)
