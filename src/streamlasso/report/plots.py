"""Trace or digest -> figure. Everything drawn is in the digest, which is as long as a picture is wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from streamlasso.report.summarise import digest_of
from streamlasso.report.summary import Digest
from streamlasso.trace import Trace

if TYPE_CHECKING:
    from streamlasso.simulate import Stream

#: Points along the time axis that are drawn at most: finer than a screen shows.
DRAWN = 1000
#: Coefficients of so many stretches or more are drawn as medians of a few, so that jumps to and fro do not hide them.
MANY = 400
#: Features with a line of their own in the raster, and with a curve of their own.
MOST_ROWS, MOST_CURVES = 40, 8
#: A loss that ranges over more than this is drawn on a log scale.
WIDE = 30.0
#: The share of coefficients, at either end, that need not be within the picture.
SPIKES = 0.005
#: One dark and one light, so that they also differ in grey.
DARK, LIGHT, GREY = "#0b3c6f", "#e69f00", "#8a8a8a"
LABEL_LENGTH = 24
_SIGNS: list[tuple[str, Artist]] = [("positive", Patch(color=DARK)), ("negative", Patch(color=LIGHT))]


def plot_trace(trace: Trace | Digest, figure: Figure | None = None) -> Figure:
    """Four panels over time: lam with lam_max; the loss against its rivals'; the memory in use; who was active when.

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> figure = plot_trace(progressive(RAPRegressor(), stream.X, stream.y, coef=True))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Penalty', 'Loss, mean of the last 15 rows', 'Memory', 'Active features']
    """
    digest = as_digest(trace)
    shown = _most_active(digest)
    last = 2.0 if digest.coef is None else max(2.0, 0.16 * len(shown) + 0.4)
    if figure is None:
        figure = Figure(figsize=(9, 6.0 + last))
    figure.set_layout_engine("constrained", h_pad=0.08)
    penalty, loss, memory, active = figure.subplots(4, 1, sharex=True, height_ratios=[2, 2, 1.2, last])
    _draw_penalty(penalty, digest)
    _draw_loss(loss, digest)
    _draw_memory(memory, digest)
    if digest.coef is None:
        _draw_n_active(active, digest)
    else:
        _draw_raster(active, digest, shown)
    _time_axis(active, digest)
    return figure


def as_digest(trace: Trace | Digest) -> Digest:
    """Both kinds of record, as the one that is drawn."""
    return digest_of(trace) if isinstance(trace, Trace) else trace


def plot_coefficients(trace: Trace | Digest, figure: Figure | None = None) -> Figure:
    """The coefficients that are largest on average, over time, each times its feature's spread; of one model.

    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> figure = plot_coefficients(progressive(RAPRegressor(), stream.X, stream.y, coef=True))
    >>> len(figure.axes[0].texts)
    8
    """
    digest = as_digest(trace)
    if digest.coef is None or digest.coef.ndim != 2:
        raise ValueError("the coefficients of one model after each row are needed: progressive(..., coef=True)")
    if figure is None:
        figure = Figure(figsize=(9, 3.4))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    size = np.abs(digest.coef).mean(axis=0) * digest.spread
    chosen = [j for j in np.argsort(-size, kind="stable")[:MOST_CURVES] if size[j] > 0]
    window = len(digest.t) // 50 if len(digest.t) >= MANY else 1
    effects = _trailing_median(digest.coef[:, chosen] * digest.spread[chosen], window)
    axes.axhline(0, color=GREY, linewidth=0.8)
    ends = []
    for k, (j, effect) in enumerate(zip(chosen, effects.T, strict=True)):
        color, style = (DARK, LIGHT, "black", GREY)[k % 4], ("-", "--")[k // 4 % 2]
        axes.plot(*_thinned(digest.t, effect), linewidth=1.4, color=color, linestyle=style)
        ends.append((effect[-1], _label(digest.feature_names[j]), color))
    _leave_out_spikes(axes, effects)
    _label_ends(axes, digest.t[-1], ends)
    axes.set_ylabel("effect of one standard deviation")
    if window > 1:
        axes.set_title(f"median of the last {window * digest.size:,} rows", loc="right", fontsize=9, color="#555555")
    _frame(axes)
    _time_axis(axes, digest)
    return figure


def mark_truth(figure: Figure, stream: Stream) -> None:
    """On a plotted trace of a simulated stream: where the truth changes, and which coefficients are not 0 in it."""
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
    _legend_above(raster, [*_SIGNS, ("truth: not 0", Line2D([], [], color="black", linewidth=1.0))])


# --- panels -----------------------------------------------------------------------------------------------------------


def _draw_penalty(axes: Axes, digest: Digest) -> None:
    axes.set_title("Penalty", loc="left")
    positive = np.concatenate([values[values > 0] for values in (digest.lam, digest.lam_max)])
    if not len(positive):
        _say(axes, "waiting: the rows so far give nothing to fit")
        return
    floor = positive.min() / 2
    for k, (name, color) in enumerate(_models(digest)):
        lam_max = _column(digest.lam_max, k)
        axes.plot(*_both_ends(digest, k, floor), color=color, linewidth=1.4, label=f"lam{name}")
        axes.plot(
            *_thinned(digest.t, np.where(lam_max > 0, lam_max, np.nan)),
            color=color if name else GREY,
            linewidth=1.1,
            linestyle="--",
            label=None if name else "lam_max (beyond it the model is empty)",
        )
    axes.set_yscale("log")
    _plain_log_ticks(axes, positive.max() / positive.min())
    axes.set_ylabel("lam (at the lower edge: 0)" if np.any(digest.lam == 0) else "lam")
    _frame(axes)
    if digest.outputs:
        axes.plot([], [], color=GREY, linestyle="--", label="lam_max")
    _legend(axes, digest)


def _draw_loss(axes: Axes, digest: Digest) -> None:
    window = max(10, digest.n_rows // 20)
    there = digest.judged > 0
    rivals: list[tuple[str, Any, float | None, dict[str, Any]]] = [
        ("running mean", digest.baseline, digest.mean_baseline, dict(color=LIGHT, linewidth=1.6, linestyle="--")),
        ("persistence", digest.persistence, digest.mean_persistence, dict(color=GREY, linewidth=1.1, linestyle="-.")),
        ("model", digest.loss, digest.mean_loss, dict(color=DARK, linewidth=1.4)),
    ]
    drawn = []
    for name, losses, mean, style in rivals:
        if losses is not None and mean is not None:
            smooth = _trailing_mean(losses[there], max(window // digest.size, 1))
            axes.plot(*_thinned(digest.t[there], smooth), label=_mean_label(name, mean), **style)
            drawn.append(smooth)
    every = np.concatenate(drawn)
    if len(every) and every.min() > 0 and every.max() > WIDE * every.min():
        axes.set_yscale("log")
        _plain_log_ticks(axes, every.max() / every.min())
    axes.set_title(f"Loss, mean of the last {window:,} rows", loc="left")
    axes.set_ylabel(digest.loss_name)
    _frame(axes)
    _legend(axes, digest)


def _draw_memory(axes: Axes, digest: Digest) -> None:
    size = digest.effective_size
    axes.plot(*_thinned(digest.t, size), color=DARK, linewidth=1.2)
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
    _frame(axes)


def _draw_n_active(axes: Axes, digest: Digest) -> None:
    for k, (name, color) in enumerate(_models(digest)):
        axes.plot(*_thinned(digest.t, _column(digest.n_active, k)), color=color, linewidth=1.2, label=name.strip(" []"))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"of {len(digest.feature_names)} features")
    axes.set_title("Active features", loc="left")
    _frame(axes)


def _draw_raster(axes: Axes, digest: Digest, shown: np.ndarray) -> None:
    names = [_label(digest.feature_names[j]) for j in shown]
    axes.imshow(
        _raster(digest, shown),
        aspect="auto",
        interpolation="nearest",
        extent=(_first_row(digest) - 0.5, digest.t[-1] + 0.5, len(shown) - 0.5, -0.5),
    )
    axes.hlines(
        np.arange(1, len(shown)) - 0.5, _first_row(digest) - 0.5, digest.t[-1] + 0.5, color="#dddddd", linewidth=0.5
    )
    axes.set_yticks(range(len(shown)), names, fontsize=7)
    axes.tick_params(axis="y", length=0)
    n_features = len(digest.feature_names)
    choice = "" if len(shown) == n_features else f": the {len(shown)} of {n_features} most often active"
    axes.set_title("Active features" + choice, loc="left")
    one = Patch(color=_tint(DARK, 1 / max(len(digest.outputs), 1)))
    _legend(axes, digest, [("for all classes", Patch(color=DARK)), ("for one", one)] if digest.outputs else _SIGNS)


# --- parts of panels --------------------------------------------------------------------------------------------------


def _raster(digest: Digest, shown: np.ndarray) -> np.ndarray:
    """Colours (feature, time, rgb): as full as the share of rows (and classes) in which the feature is active."""
    assert digest.coef is not None
    sign = np.sign(digest.coef[..., shown])
    edges = np.linspace(0, len(sign), min(len(sign), DRAWN) + 1).astype(int)[:-1]
    rows = np.diff(np.append(edges, len(sign)))[:, None]
    shares = [(DARK, (sign != 0).mean(axis=1))] if digest.outputs else [(DARK, sign > 0), (LIGHT, sign < 0)]
    image = np.ones((len(shown), len(edges), 3))
    for color, active in shares:
        share = np.add.reduceat(active.astype(float), edges, axis=0) / rows
        image -= share.T[:, :, None] * (1 - _rgb(color))
    return np.clip(image, 0, 1)


def _most_active(digest: Digest) -> np.ndarray:
    """The features that get a line of the raster, in their own order."""
    if digest.coef is None or len(digest.feature_names) <= MOST_ROWS:
        return np.arange(len(digest.feature_names))
    often = (digest.coef != 0).reshape(len(digest.t), -1, len(digest.feature_names)).sum(axis=(0, 1))
    return np.sort(np.argsort(-often, kind="stable")[:MOST_ROWS])


def _both_ends(digest: Digest, k: int, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest lam of each stretch, so that no spike is lost; once where they are the same."""
    ends = digest.lam_range[:, :1, k] if digest.size == 1 else digest.lam_range[:, :, k]
    return _thinned(np.repeat(digest.t, ends.shape[1]), np.where(ends == 0, floor, ends).ravel())


def _thinned(t: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest point of each stretch of time, so that no spike is lost."""
    if len(t) <= 2 * DRAWN:
        return t, values
    size = -(-len(t) // DRAWN)
    stretches = range(0, len(t), size)
    low = [start + int(np.argmin(_or(np.inf, values[start : start + size]))) for start in stretches]
    high = [start + int(np.argmax(_or(-np.inf, values[start : start + size]))) for start in stretches]
    kept = np.unique([0, *low, *high, len(t) - 1])
    return t[kept], values[kept]


def _or(instead: float, values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), instead, values)


def _trailing_mean(values: np.ndarray, window: int) -> np.ndarray:
    """The mean of the last `window` values, of fewer where there are not so many yet."""
    total = np.cumsum(np.concatenate([[0.0], values]))
    stop = np.arange(1, len(total))
    start = np.maximum(stop - window, 0)
    return (total[stop] - total[start]) / (stop - start)


def _trailing_median(values: np.ndarray, window: int) -> np.ndarray:
    """The median of the last `window` rows of (time, curve), of fewer where there are not so many yet."""
    if window == 1:
        return values
    padded = np.vstack([np.full((window - 1, values.shape[1]), np.nan), values])
    return np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, window, axis=0), axis=-1)


def _models(digest: Digest) -> list[tuple[str, Any]]:
    """What to add to a name, and the colour, for each model."""
    if not digest.outputs:
        return [("", DARK)]
    from matplotlib import colormaps

    shades = colormaps["viridis"](np.linspace(0, 0.85, len(digest.outputs)))
    return [(f" [{_label(label)}]", shade) for label, shade in zip(digest.outputs, shades, strict=True)]


def _column(values: np.ndarray, k: int) -> np.ndarray:
    return values if values.ndim == 1 else values[:, k]


def _mean_label(name: str, mean: float) -> str:
    return f"{name} {mean:.3g}" + (" on all rows" if name == "model" else "")


def _label(name: Any) -> str:
    """A name as matplotlib shows it: no mathematics, no line breaks, not too long."""
    short = " ".join(str(name).split())
    if len(short) > LABEL_LENGTH:
        short = short[: LABEL_LENGTH // 2] + "…" + short[-(LABEL_LENGTH // 2 - 1) :]
    return short.replace("$", r"\$")


def _label_ends(axes: Axes, t: float, ends: list[tuple[float, str, str]]) -> None:
    """A name at the end of each curve."""
    ends = sorted(ends)
    for (value, name, color), at in zip(ends, _apart([value for value, _, _ in ends], *axes.get_ylim()), strict=True):
        axes.annotate(
            name,
            (t, value),
            xytext=(1.03, at),
            textcoords=("axes fraction", "data"),
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 0.8,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def _leave_out_spikes(axes: Axes, values: np.ndarray) -> None:
    """The range of nearly all values and of the last ones: after two or three rows a coefficient may be anything."""
    if not values.size:
        return
    kept = np.concatenate([np.quantile(values, [SPIKES, 1 - SPIKES]), values[-1], [0.0]])
    margin = 0.08 * np.ptp(kept) or 1.0
    axes.set_ylim(kept.min() - margin, kept.max() + margin)
    n_outside = np.sum(np.any((values < kept.min() - margin) | (values > kept.max() + margin), axis=1))
    if n_outside:
        axes.set_title(
            f"beyond the edge in {n_outside:,} of {len(values):,} rows", loc="left", fontsize=9, color="#555555"
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


def _rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _tint(color: str, share: float) -> str:
    return "#" + "".join(f"{round(255 * level):02x}" for level in 1 - share * (1 - _rgb(color)))


# --- axes -------------------------------------------------------------------------------------------------------------


def _frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


def _first_row(digest: Digest) -> int:
    return int(digest.t[0] - digest.rows[0] + 1)


def _time_axis(axes: Axes, digest: Digest) -> None:
    axes.set_xlim(_first_row(digest) - 0.5, digest.t[-1] + 0.5)
    if digest.times is None:
        axes.set_xlabel("row")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        return
    axes.set_xlabel("time; rows are evenly spaced")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    # The day, or the whole time where all rows are of a few days.
    length = 10 if len({time[:10] for time in digest.times}) > 2 else None
    axes.xaxis.set_major_formatter(FuncFormatter(lambda row, _: _time_at(digest, row)[:length]))


def _time_at(digest: Digest, row: float) -> str:
    assert digest.times is not None
    if not _first_row(digest) <= row <= digest.t[-1]:
        return ""
    return _label(digest.times[min(int(np.searchsorted(digest.t, row)), len(digest.times) - 1)])


def _plain_log_ticks(axes: Axes, ratio: float) -> None:
    """0.1, 1, 10 in digits, with 2 and 5 between where there is room."""
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if ratio > 300 else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes, digest: Digest, entries: list[tuple[str, Artist]] | None = None) -> None:
    """Outside the axes, so that it covers no data; of several classes beside them, since the first panel needs that."""
    if digest.outputs:
        axes.legend(*_entries(axes, entries), loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=8)
    else:
        _legend_above(axes, entries)


def _entries(axes: Axes, entries: list[tuple[str, Artist]] | None) -> tuple[list[Artist], list[str]]:
    if entries is None:
        return axes.get_legend_handles_labels()
    return [handle for _, handle in entries], [label for label, _ in entries]


def _legend_above(axes: Axes, entries: list[tuple[str, Artist]] | None = None) -> None:
    handles, labels = _entries(axes, entries)
    axes.legend(
        handles,
        labels,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(labels),
        frameon=False,
        fontsize=8,
        borderaxespad=0.1,
    )


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=GREY)
    axes.set_yticks([])
