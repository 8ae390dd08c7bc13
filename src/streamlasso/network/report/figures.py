"""Tables -> figures: lam over time with the blocks of the task, and networks on a glass brain or on a circle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

from streamlasso._text import number
from streamlasso.network.estimator import sorted_edges
from streamlasso.network.imaging.events import Event
from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.report.group import Group
from streamlasso.network.report.settling import first_shown, warm_up
from streamlasso.network.report.tables import matrix_of
from streamlasso.report.colours import BLOCKS, INK, NOTE_INK
from streamlasso.report.page import write_figure

#: Blue is positive, red negative; they also differ in lightness, and in solid and dashed lines, for grey print.
POSITIVE, NEGATIVE = "#0b3c6f", "#e0503c"
LINE, BAND = INK, "#9a9a9a"
#: Fills of the conditions, in order of appearance: color and hatch.
FILLS = tuple(zip(BLOCKS, ("", "///", "...", "\\\\\\", "xx", ""), strict=True))
#: Edges drawn, the strongest: as many as regions, within these limits. More cannot be told apart.
FEWEST_EDGES, MAX_EDGES = 10, 40
#: Names that fit around a circle.
MAX_CIRCLE_NAMES = 60
DASHES = (0, (3.2, 1.6))
#: Line width of the strongest edge.
MAX_WIDTH = 3.0
#: The coordinates across and up in a view along each axis.
VIEW_AXES = {"x": [1, 2], "y": [0, 2], "z": [0, 1]}


def write_figures(out: Path, lam: pyarrow.Table, edges: pyarrow.Table, group: Group) -> dict[str, tuple[Figure, str]]:
    """lam and networks as PNG and SVG; the figures by name, with their text alternatives."""
    coords = group.coords
    matrices = {title: matrix_of(edges, title, group.regions) for title in group.pictures()}
    where = "a circle" if coords is None else "a glass brain"
    blocks = ", with the blocks of the task" if group.events else ""
    figures = {
        "lam": (draw_lam(lam, group.events, len(group.subjects)), f"Mean lam over time{blocks}"),
        "networks": (draw_networks(matrices, group.regions, coords), f"Networks on {where}"),
    }
    for name, (figure, _) in figures.items():
        write_figure(out / name, figure)
    return figures


# --- lam --------------------------------------------------------------------------------------------------------------


def draw_lam(lam: pyarrow.Table, events: Sequence[Event], n_subjects: int) -> Figure:
    """The mean lam with its band over the blocks of the task, as in the paper's figure."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    draw_lam_on(axes, lam, events, n_subjects)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=5, frameon=False, fontsize="small")
    return figure


def draw_lam_on(axes: Axes, lam: pyarrow.Table, events: Sequence[Event], n_subjects: int) -> None:
    """`draw_lam` on given axes."""
    timed = lam["seconds"].null_count == 0
    x = (lam["seconds"] if timed else lam["t"]).to_numpy()
    mean, low, high = (lam[name].to_numpy() for name in ("mean", "low", "high"))
    if timed:
        shade(axes, events)
    band = "± 1 standard error" if n_subjects > 1 else "quartiles of the regions"
    limits = _lam_limits(low, high)
    first = first_shown(np.fmin(low, mean), np.fmax(high, mean), limits)
    shown = slice(first, None)
    axes.fill_between(x[shown], low[shown], high[shown], color=BAND, alpha=0.55, linewidth=0, label=band, zorder=2)
    label = f"mean lam of {n_subjects} subjects" if n_subjects > 1 else "mean lam of all regions"
    axes.plot(x[shown], mean[shown], color=LINE, linewidth=1.5, label=label, zorder=3)
    if first:
        highest = number(float(np.nanmax(mean[:first])))
        axes.text(
            x[first], limits[1], f" before: settling, up to {highest}", fontsize=7, va="top", color=NOTE_INK, zorder=4
        )
    axes.set(xlabel="time (s)" if timed else "time point", ylabel="lam")
    axes.set(xlim=(x[0], max(x[-1], x[0] + 1)), ylim=limits)
    axes.spines[["top", "right"]].set_visible(False)


def _lam_limits(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """Axis limits for lam after the warm-up: its first values can be many times larger, and are left out."""
    settled = slice(warm_up(len(low)), None)
    values = np.concatenate([low[settled], high[settled]])
    values = values[np.isfinite(values)]
    bottom, top = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    margin = 0.12 * (top - bottom) or 0.1 * top or 1.0
    return max(0.0, bottom - margin), top + margin


def shade(axes: Axes, events: Sequence[Event]) -> None:
    """Shade the blocks of each condition."""
    fills = condition_fills(dict.fromkeys(event.condition for event in events))
    labelled: set[str] = set()
    for event in events:
        label, color, hatch = fills[event.condition]
        axes.axvspan(
            event.onset,
            event.end,
            facecolor=color,
            edgecolor="#9d96cf" if hatch else "none",
            hatch=hatch,
            linewidth=0,
            label=None if label in labelled else f"{_literal(label)} shown",
            zorder=0,
        )
        labelled.add(label)


def condition_fills(conditions: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Label in the legend, color and hatch of each condition; if there are too many, the last ones share a fill.

    >>> [label for label, *_ in condition_fills("abcdefg").values()]
    ['a', 'b', 'c', 'd', 'e', '2 others', '2 others']
    """
    names = list(conditions)
    own = len(names) if len(names) <= len(FILLS) else len(FILLS) - 1
    others = f"{len(names) - own} others"
    return {name: (name, *FILLS[k]) if k < own else (others, *FILLS[-1]) for k, name in enumerate(names)}


def _literal(name: str) -> str:
    """For a legend, where text between dollar signs would be a formula."""
    return name.replace("$", r"\$")


# --- networks ---------------------------------------------------------------------------------------------------------


def draw_networks(matrices: dict[str, np.ndarray], regions: Sequence[str], coords: np.ndarray | None = None) -> Figure:
    """One panel per network, on one scale: on a glass brain if coordinates (mm) are given, else on a circle.

    >>> import numpy as np
    >>> figure = draw_networks({"now": np.array([[0, 0.4], [0.4, 0]])}, ["left", "right"])
    >>> figure.axes[0].get_title()
    'now'
    """
    if coords is not None:
        return _on_brains(matrices, coords)
    columns = {1: 1, 2: 2, 4: 2}.get(len(matrices), 3)
    rows = -(-len(matrices) // columns)
    figure = Figure(figsize=(4.1 * columns, 4.2 * rows + 0.5), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    largest = _largest(matrices)
    for axes, (title, matrix) in zip(panels, matrices.items(), strict=False):
        _draw_circle(axes, matrix, regions, largest)
        # Inside the axes: the labels reach so far up that a title above them would be cut off.
        axes.set_title(title, fontsize="medium", y=0.95, parse_math=False)
    for axes in panels[len(matrices) :]:
        axes.set_axis_off()
    _draw_legend(figure, matrices, "outside lower center")
    return figure


def _draw_legend(figure: Figure, matrices: dict[str, np.ndarray], loc: Any) -> None:
    handles = [
        Line2D([], [], color=POSITIVE, linewidth=2, label="positive"),
        Line2D([], [], color=NEGATIVE, linewidth=2, linestyle=DASHES, label="negative"),
    ]
    small: dict[str, Any] = dict(fontsize="small", title_fontsize="small", frameon=False)
    figure.legend(handles=handles, loc=loc, ncols=2, title=_legend_title(matrices), **small)


def _legend_title(matrices: dict[str, np.ndarray]) -> str:
    width = "width: strength of the dependence, given all others"
    limit = max_drawn(len(next(iter(matrices.values()))))
    if all(np.count_nonzero(np.triu(matrix, 1)) <= limit for matrix in matrices.values()):
        return width
    weakest = min(abs(drawn_edges(matrix)[0][2]) for matrix in matrices.values() if np.any(matrix))
    return f"{width}; the {limit} strongest edges of each are drawn, of {weakest:.2f} and more"


def _largest(matrices: dict[str, np.ndarray]) -> float:
    return max((float(np.abs(matrix).max()) for matrix in matrices.values()), default=0.0) or 1.0


def drawn_edges(matrix: np.ndarray) -> list[tuple[int, int, float]]:
    """The edges that are drawn, the strongest last so that it is on top."""
    edges = zip(*(part[: max_drawn(len(matrix))] for part in sorted_edges(matrix)), strict=True)
    return [(int(i), int(j), float(strength)) for i, j, strength in edges][::-1]


def max_drawn(p: int) -> int:
    """The largest number of edges drawn of a network of p regions."""
    return min(max(p, FEWEST_EDGES), MAX_EDGES)


def _style(strength: float, largest: float) -> dict[str, Any]:
    share = abs(strength) / largest
    positive = strength > 0
    return dict(
        color=POSITIVE if positive else NEGATIVE,
        linestyle="-" if positive else DASHES,
        linewidth=0.7 + (MAX_WIDTH - 0.7) * share,
        alpha=0.4 + 0.6 * share,
    )


def circle(p: int) -> np.ndarray:
    """(p, 2): positions around a circle, clockwise from the top."""
    angle = np.pi / 2 - 2 * np.pi * (np.arange(p) + 0.5) / p
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _draw_circle(axes: Axes, matrix: np.ndarray, regions: Sequence[str], largest: float) -> None:
    places = circle(len(regions))
    for i, j, strength in drawn_edges(matrix):
        a, b = places[i], places[j]
        # Bent towards the centre, so that edges between neighbours can be told apart.
        curve = Curve([a, 0.25 * (a + b), b], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
        axes.add_patch(PathPatch(curve, fill=False, capstyle="butt", **_style(strength, largest)))
    axes.scatter(places[:, 0], places[:, 1], s=max(6, 300 / len(regions)), color=LINE, zorder=3)
    if len(regions) <= MAX_CIRCLE_NAMES:
        for name, (x, y) in zip(regions, places, strict=True):
            _name_beside(axes, name, x, y, "x-small" if len(regions) <= 30 else "xx-small")
    axes.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.95), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _name_beside(axes: Axes, name: str, x: float, y: float, size: str) -> None:
    angle = np.degrees(np.arctan2(y, x))
    left = abs(angle) > 90
    axes.text(
        1.06 * x,
        1.06 * y,
        name if len(name) <= 18 else name[:17] + "…",
        rotation=angle + 180 if left else angle,
        rotation_mode="anchor",
        horizontalalignment="right" if left else "left",
        verticalalignment="center",
        fontsize=size,
        parse_math=False,
    )


# --- glass brains -----------------------------------------------------------------------------------------------------


def _on_brains(matrices: dict[str, np.ndarray], coords: np.ndarray) -> Figure:
    """Three views per network, one row each, by nilearn."""
    from matplotlib import pyplot

    inches, foot = 2.9, 0.7
    total = inches * len(matrices) + foot
    figure = pyplot.figure(figsize=(9, total))
    for row, (title, matrix) in enumerate(matrices.items()):
        bottom = 1 - (row + 1) * inches / total
        _draw_brain(figure, (0.0, bottom, 1.0, 0.92 * inches / total), coords, matrix, _largest(matrices))
        figure.text(0.01, bottom + 0.97 * inches / total, title, fontsize="medium", va="top", parse_math=False)
    _draw_legend(figure, matrices, "lower center")
    pyplot.close(figure)
    return figure


def _draw_brain(
    figure: Figure, where: tuple[float, float, float, float], coords: np.ndarray, matrix: np.ndarray, largest: float
) -> None:
    """Nodes and edges on outlines from the side, from behind and from above."""
    display = import_fmri("nilearn.plotting").plot_glass_brain(None, display_mode="ortho", figure=figure, axes=where)
    display.add_markers(coords, marker_color=[LINE] * len(coords), marker_size=6)
    for direction, view in display.axes.items():
        flat = coords[:, VIEW_AXES[direction]]
        for i, j, strength in drawn_edges(matrix):
            view.ax.plot(*flat[[i, j]].T, zorder=5, **_style(strength, largest))
