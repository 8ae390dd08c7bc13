"""lam over time with the blocks of a task, and networks on a glass brain or on a circle."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve

from streamlasso._text import number
from streamlasso.report.axes import label_of
from streamlasso.report.colours import BLOCKS, DARK, GREY, NOTE_INK, RED
from streamlasso.report.page import data_url

#: Edges drawn, the strongest: as many as regions, within these limits. More cannot be told apart.
FEWEST_EDGES, MAX_EDGES = 10, 40
#: Names that fit around a circle.
MAX_CIRCLE_NAMES = 60
#: Negative edges are dashed too, for grey print.
DASHES = (0, (3.2, 1.6))
#: Line width of the strongest edge.
MAX_WIDTH = 3.0
#: The coordinates across and up in a view along each axis.
VIEW_AXES = {"x": [1, 2], "y": [0, 2], "z": [0, 1]}
#: Size of the glass brains behind the network of a page, in inches, and dots per inch.
BRAIN_SIZE, BRAIN_DPI = (10.0, 3.6), 100
SMALL: dict[str, Any] = dict(fontsize="small", frameon=False)


class Block(Protocol):
    """When a condition was shown."""

    @property
    def onset(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def condition(self) -> str: ...


def warm_up(n: int) -> int:
    """How many of the first of n time points may still depend on the initial lam, at most."""
    return min(max(15, n // 20), n // 2)


# --- lam --------------------------------------------------------------------------------------------------------------


def draw_lam(lam: pyarrow.Table, events: Sequence[Block], n_subjects: int) -> Figure:
    """The mean lam with its band over the blocks of the task, as in the paper's figure."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    draw_lam_on(axes, lam, events, n_subjects)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=5, **SMALL)
    return figure


def draw_lam_on(axes: Axes, lam: pyarrow.Table, events: Sequence[Block], n_subjects: int) -> None:
    """`draw_lam` on given axes. lam can be many times larger while it settles; such time points are not drawn."""
    timed = lam["seconds"].null_count == 0
    x = (lam["seconds"] if timed else lam["t"]).to_numpy()
    mean, low, high = (lam[name].to_numpy() for name in ("mean", "low", "high"))
    if timed:
        _shade(axes, events)
    settled = warm_up(len(x))
    known = np.concatenate([low[settled:], high[settled:]])
    known = known[np.isfinite(known)] if np.isfinite(known).any() else np.array([0.0, 1.0])
    margin = 0.12 * np.ptp(known) or 0.1 * known.max() or 1.0
    bottom, top = max(0.0, known.min() - margin), known.max() + margin
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero((np.fmin(low, mean)[:settled] < bottom) | (np.fmax(high, mean)[:settled] > top))
    first = int(outside[-1]) + 1 if len(outside) else 0
    band = "± 1 standard error" if n_subjects > 1 else "quartiles of the regions"
    label = f"mean lam of {n_subjects} subjects" if n_subjects > 1 else "mean lam of all regions"
    axes.fill_between(x[first:], low[first:], high[first:], color=GREY, alpha=0.5, linewidth=0, label=band, zorder=2)
    axes.plot(x[first:], mean[first:], color="black", linewidth=1.5, label=label, zorder=3)
    if first:
        note = f" before: settling, up to {number(float(np.nanmax(mean[:first])))}"
        axes.text(x[first], top, note, fontsize=7, va="top", color=NOTE_INK, zorder=4)
    axes.set(xlabel="time (s)" if timed else "time point", ylabel="lam")
    axes.set(xlim=(x[0], max(x[-1], x[0] + 1)), ylim=(bottom, top))
    axes.spines[["top", "right"]].set_visible(False)


def _shade(axes: Axes, events: Sequence[Block]) -> None:
    """The blocks of each condition, and one entry each for the legend."""
    colours, labelled = condition_colours(dict.fromkeys(event.condition for event in events)), set()
    for event in events:
        label, colour = colours[event.condition]
        entry = None if label in labelled else f"{label_of(label)} shown"
        axes.axvspan(event.onset, event.end, color=colour, linewidth=0, label=entry, zorder=0)
        labelled.add(label)


def condition_colours(conditions: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Label in the legend and colour of each condition; if there are too many, the last ones share a colour.

    >>> [label for label, _ in condition_colours("abcdefg").values()]
    ['a', 'b', 'c', 'd', 'e', '2 others', '2 others']
    """
    names = list(conditions)
    own = len(names) if len(names) <= len(BLOCKS) else len(BLOCKS) - 1
    others = f"{len(names) - own} others"
    return {name: (name, BLOCKS[k]) if k < own else (others, BLOCKS[-1]) for k, name in enumerate(names)}


# --- networks ---------------------------------------------------------------------------------------------------------


def draw_networks(matrices: dict[str, np.ndarray], regions: Sequence[str], coords: np.ndarray | None = None) -> Figure:
    """One panel per network, on one scale: on a glass brain if coordinates (mm) are given, else on a circle.

    >>> import numpy as np
    >>> figure = draw_networks({"now": np.array([[0, 0.4], [0.4, 0]])}, ["left", "right"])
    >>> figure.axes[0].get_title()
    'now'
    """
    largest = max((float(np.abs(matrix).max()) for matrix in matrices.values()), default=0.0) or 1.0
    if coords is not None:
        return _on_brains(matrices, coords, largest)
    columns = {1: 1, 2: 2, 4: 2}.get(len(matrices), 3)
    rows = -(-len(matrices) // columns)
    figure = Figure(figsize=(4.1 * columns, 4.2 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
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
        Line2D([], [], color=DARK, linewidth=2, label="positive"),
        Line2D([], [], color=RED, linewidth=2, linestyle=DASHES, label="negative"),
    ]
    title, drawn = "width: strength of the dependence, given all others", list(map(drawn_edges, matrices.values()))
    if any(len(edges) < np.count_nonzero(np.triu(m, 1)) for edges, m in zip(drawn, matrices.values(), strict=True)):
        weakest = min(abs(edges[0][2]) for edges in drawn if edges)
        title += f"; the {max(map(len, drawn))} strongest edges of each are drawn, of {weakest:.2f} and more"
    figure.legend(handles=handles, loc=loc, ncols=2, title=title, title_fontsize="small", **SMALL)


def drawn_edges(matrix: np.ndarray) -> list[tuple[int, int, float]]:
    """The edges that are drawn, the strongest last so that it is on top."""
    i, j = np.nonzero(np.triu(matrix, 1))
    order = np.argsort(-np.abs(matrix[i, j]), kind="stable")[: min(max(len(matrix), FEWEST_EDGES), MAX_EDGES)]
    return [(int(i[k]), int(j[k]), float(matrix[i[k], j[k]])) for k in order[::-1]]


def _style(strength: float, largest: float) -> dict[str, Any]:
    share = abs(strength) / largest
    colour, line = (DARK, "-") if strength > 0 else (RED, DASHES)
    width = 0.7 + (MAX_WIDTH - 0.7) * share
    return dict(color=colour, linestyle=line, linewidth=width, alpha=0.4 + 0.6 * share)


def _draw_circle(axes: Axes, matrix: np.ndarray, regions: Sequence[str], largest: float) -> None:
    """Regions clockwise from the top."""
    angles = np.pi / 2 - 2 * np.pi * (np.arange(len(regions)) + 0.5) / len(regions)
    places = np.column_stack([np.cos(angles), np.sin(angles)])
    for i, j, strength in drawn_edges(matrix):
        a, b = places[i], places[j]
        # Bent towards the centre, so that edges between neighbours can be told apart.
        curve = Curve([a, 0.25 * (a + b), b], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
        axes.add_patch(PathPatch(curve, fill=False, capstyle="butt", **_style(strength, largest)))
    axes.scatter(places[:, 0], places[:, 1], s=max(6, 300 / len(regions)), color="black", zorder=3)
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


# --- glass brains, by nilearn -----------------------------------------------------------------------------------------


def _on_brains(matrices: dict[str, np.ndarray], coords: np.ndarray, largest: float) -> Figure:
    """Three views per network, one row each."""
    from matplotlib import pyplot

    inches, foot = 2.9, 0.7
    total = inches * len(matrices) + foot
    figure = pyplot.figure(figsize=(9, total))
    for row, (title, matrix) in enumerate(matrices.items()):
        bottom = 1 - (row + 1) * inches / total
        for direction, axes in _glass_brain(figure, (0.0, bottom, 1.0, 0.92 * inches / total), coords).items():
            flat = coords[:, VIEW_AXES[direction]]
            for i, j, strength in drawn_edges(matrix):
                axes.plot(*flat[[i, j]].T, zorder=5, **_style(strength, largest))
        figure.text(0.01, bottom + 0.97 * inches / total, title, fontsize="medium", va="top", parse_math=False)
    _draw_legend(figure, matrices, "lower center")
    pyplot.close(figure)
    return figure


def _glass_brain(figure: Figure, where: tuple[float, ...], coords: np.ndarray | None = None) -> dict[str, Axes]:
    """Outlines from the side, from behind and from above, and the regions on them; the axes of each view."""
    try:
        from nilearn import plotting
    except ImportError as error:
        raise ImportError('glass brains need nilearn: pip install "streamlasso[fmri]"') from error
    display = plotting.plot_glass_brain(None, display_mode="ortho", figure=figure, axes=where)
    if coords is not None:
        display.add_markers(coords, marker_color=["black"] * len(coords), marker_size=6)
    return {direction: view.ax for direction, view in display.axes.items()}


def empty_brain(coords: np.ndarray) -> dict[str, Any]:
    """Empty glass brains as an image, and the position of each region on it in each view."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=BRAIN_SIZE, dpi=BRAIN_DPI)
    views = _glass_brain(figure, (0, 0, 1, 1))
    figure.canvas.draw()
    width, height = (int(side * BRAIN_DPI) for side in BRAIN_SIZE)
    places = []
    for direction, axes in views.items():
        on_screen = axes.transData.transform(coords[:, VIEW_AXES[direction]])
        places.append(np.column_stack([on_screen[:, 0], height - on_screen[:, 1]]).round(1).tolist())
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=BRAIN_DPI)
    pyplot.close(figure)
    return {"image": data_url(drawing.getvalue(), "png"), "width": width, "height": height, "places": places}
