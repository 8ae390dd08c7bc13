"""The weights that the default gave to its memories and penalties, row by row, on real streams.

`weights_table` makes the table of a task, `draw` a figure from the table, `summary` a few numbers from tables:

    python benchmarks/anatomy.py --data ../shared/data --out anatomy
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter
from PIL import Image
from pyarrow import parquet
from rich.console import Console
from rich.progress import track

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso._files import write_whole
from streamlasso._text import markdown_table
from streamlasso.bench.entries import DEFAULT, entries_by_name
from streamlasso.bench.losses import BURN_IN, clipped, half_deviance
from streamlasso.bench.task import Task
from streamlasso.memories import Forgetting
from streamlasso.report.colours import DARK, GREY, LIGHT
from streamlasso.tuners import Mixture
from streams import ROWS, TASKS, load_task

STREAMS = ("usenet1", "elec2", "bike_sharing", "exchange_rate")
#: The changes that were designed into a stream.
CHANGES = {"usenet1": (300, 600, 900, 1200)}
#: Rows that are drawn where the whole stream would be too dense.
STRETCHES = {"bike_sharing": (2000, 3000)}
#: Column of the table -> method and setting on the leaderboard.
LEARNERS = {
    "loss": ("streamlasso", DEFAULT),
    "loss of LogRMS": ("streamlasso", "LogRMS() memory=1"),
    "loss of persistence": ("persistence", DEFAULT),
    "loss of the running mean": ("running-mean", DEFAULT),
}
OURS, LOGRMS, PERSISTENCE, MEAN = LEARNERS
NEVER = "never forgets"
#: Ridge regressions that began fewer than so many rows ago.
AGES = {"began < 50 rows ago": 50, "began 50-199 rows ago": 200, "began 200+ rows ago": sys.maxsize}
#: The column of all models without a penalty grid: these ridges, and models of the exact likelihood.
NO_POWER = "no power"
#: From the longest memory to the shortest, light to dark; those that began and those that fade differ in hue.
SHADES = ("#efefef", "#f7dca3", "#eeb13c", "#b97900", "#a9c8e4", "#4c8cc4", "#0b3c6f")
#: Points along the time axis that are drawn, and the share of the stream that a drawn loss is averaged over.
DRAWN, SMOOTHED = 250, 0.04
#: What ranges over more than this is drawn on a log scale.
WIDE = 6.0
DRAWN_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    PERSISTENCE: ("persistence", dict(color=GREY, linewidth=1.1, linestyle=(0, (1, 1)))),
    LOGRMS: ("LogRMS,\nnever forgets", dict(color=LIGHT, linewidth=1.5)),
    OURS: ("default", dict(color=DARK, linewidth=1.6)),
}
BESIDE: dict[str, Any] = dict(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)


# --- the table --------------------------------------------------------------------------------------------------------


def weights_table(task: Task) -> pyarrow.Table:
    """What the default did on a task, one line per row.

    t : the row, from 0
    loss, loss of ... : half deviance of the prediction made before the row, clipped as on the leaderboard; of the
        default, of LogRMS that never forgets, of persistence and of the running mean
    relative : the default's loss so far, divided by that of the running mean, from the 50th row on; NaN before
    lam, lam_max, effective_size : after the row, averaged over the experts by their weights
    never forgets, r=..., began ... : the weight of the memories, which sum to one
    power ..., no power : the weight of the penalties lam_max / n^power and of models without them, which sum to one

    >>> import numpy as np
    >>> from anatomy import weights_table
    >>> from streamlasso.bench.task import Task
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.concatenate([X[:100, 0], -X[100:, 0]])
    >>> table = weights_table(Task("flip", "gaussian", X, y, ["a", "b", "c"]))
    >>> after = table.slice(130).to_pydict()
    >>> min(young + old for young, old in zip(after["began < 50 rows ago"], after["began 50-199 rows ago"])) > 0.9
    True
    """
    losses = {name: _losses(task, *who) for name, who in LEARNERS.items()}
    relative = {"relative": _so_far(losses[OURS]) / _so_far(losses[MEAN])}
    return pyarrow.table({"t": np.arange(len(task.y))} | losses | relative | _states(task))


def _losses(task: Task, method: str, setting: str) -> np.ndarray:
    means, _ = entries_by_name(task.family)[method, setting].run(task, float("inf"))
    return half_deviance(task.family, task.y, clipped(task.family, task.y, means))


def _so_far(loss: np.ndarray) -> np.ndarray:
    """The sum over the rows after the first ones, NaN there."""
    return np.concatenate([np.full(min(BURN_IN, len(loss)), np.nan), np.cumsum(loss[BURN_IN:])])


def _states(task: Task) -> dict[str, np.ndarray]:
    """The state of the model after each row."""
    binomial = task.family == "binomial"
    model = RAPClassifier() if binomial else RAPRegressor(family=task.family)
    classes = {"classes": [0.0, 1.0]} if binomial else {}
    lines = []
    for i in range(len(task.y)):
        model.partial_fit(task.X[i : i + 1], task.y[i : i + 1], **classes)
        lines.append(_state(model))
    return {name: np.array([line[name] for line in lines]) for name in lines[0]}


def _state(model: RAPRegressor | RAPClassifier) -> dict[str, float]:
    learner = model.learners_[0]
    weights = learner.weights
    state = {
        "lam": float(np.squeeze(model.lambda_)),
        "lam_max": float(np.squeeze(model.lambda_max_)),
        "effective_size": model.effective_size_,
    }
    state |= dict.fromkeys(memory_columns(), 0.0)
    state |= dict.fromkeys(power_columns(), 0.0)
    for m, found in enumerate(learner.memories):
        if found is None:
            continue
        memory, began = found
        kind = learner.experts[m]
        state[_column_of(kind.kind, memory, model.n_seen_ - began)] += float(weights[m].sum())
        # A classifier has the first few powers only.
        names = [NO_POWER] if kind.exact or kind.kind == "ridge" else power_columns()
        for name, weight in zip(names, weights[m].tolist(), strict=False):
            state[name] += weight
    return state


def memory_columns() -> list[str]:
    """The columns with the weights of the memories, from the longest memory to the shortest.

    >>> memory_columns()[:3]
    ['never forgets', 'r=0.998', 'r=0.99']
    """
    return [NEVER, *(f"r={r:g}" for r in sorted(Mixture().factors, reverse=True)), *reversed(AGES)]


def power_columns() -> list[str]:
    """The columns with the weights of the penalties.

    >>> power_columns()[:2]
    ['power 0', 'power 0.3']
    """
    return [*(f"power {power:g}" for power in Mixture().powers), NO_POWER]


def _column_of(kind: str, memory: Forgetting, age: int) -> str:
    """Ridges forget nothing but when they begin."""
    if kind == "ridge":
        return next(name for name, most in AGES.items() if age < most)
    return NEVER if memory.r == 1 else f"r={memory.r:g}"


# --- a few numbers ----------------------------------------------------------------------------------------------------


def summary(tables: dict[str, pyarrow.Table]) -> str:
    """One line per task, as Markdown: losses relative to the running mean, and the mean weights.

    >>> import numpy as np
    >>> from anatomy import weights_table, summary
    >>> from streamlasso.bench.task import Task
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> task = Task("line", "gaussian", X, 5 * X[:, 0] + X[::-1, 0], ["x"])
    >>> print(summary({"line": weights_table(task)}).splitlines()[0])
    | stream | default | LogRMS, r=1 | persistence | effective size | lam/lam_max | never | fades | ridges |
    """
    head = ["stream", "default", "LogRMS, r=1", "persistence"]
    head += ["effective size", "lam/lam_max", "never", "fades", "ridges"]
    return markdown_table(head, ([name, *_numbers(table)] for name, table in tables.items()))


def _numbers(table: pyarrow.Table) -> Iterator[str]:
    """Losses and weights are means, effective size and lam/lam_max medians, all over the rows after the 50th."""
    after = {name: table[name].to_numpy()[BURN_IN:] for name in table.column_names}
    for name in (OURS, LOGRMS, PERSISTENCE):
        yield f"{after[name].mean() / after[MEAN].mean():.3f}"
    yield f"{np.median(after['effective_size']):.0f}"
    yield f"{np.median(after['lam'] / after['lam_max']):.3f}"
    fades = [name for name in memory_columns() if name.startswith("r=")]
    for names in ([NEVER], fades, AGES):
        yield f"{sum(after[name].mean() for name in names):.2f}"


# --- the figure -------------------------------------------------------------------------------------------------------


def draw(table: pyarrow.Table, changes: Sequence[int] = (), stretch: tuple[int, int] | None = None) -> Figure:
    """Over the rows: the weights of the memories, lam as a share of lam_max, and the losses.

    changes : rows to mark
    stretch : the first row to draw and the one after the last; None, or beyond the table, is all

    >>> import numpy as np
    >>> from anatomy import weights_table, draw
    >>> from streamlasso.bench.task import Task
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> figure = draw(weights_table(Task("line", "gaussian", X, X[:, 0], ["x"])))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['weight of memories', 'lam / lam_max', 'loss, relative']
    """
    if len(table) <= BURN_IN:
        raise ValueError(f"{len(table)} rows are too few for a figure: the first {BURN_IN} are not scored")
    start, stop = (0, len(table)) if stretch is None or stretch[1] > len(table) else stretch
    figure = Figure(figsize=(7.4, 6.4))
    figure.set_layout_engine("constrained", h_pad=0.06)
    memories, penalty, loss = figure.subplots(3, 1, sharex=True, height_ratios=[2.4, 1.2, 2])
    _draw_memories(memories, table.slice(start, stop - start))
    _draw_penalty(penalty, table.slice(start, stop - start))
    _draw_loss(loss, table)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        for change in changes:
            axes.axvline(change, color="black", linewidth=0.9, linestyle=":")
    _time_axis(loss, start, stop)
    figure.align_ylabels()
    return figure


def _draw_memories(axes: Axes, table: pyarrow.Table) -> None:
    names = memory_columns()
    t, weights = _thinned(table, names)
    axes.stackplot(t, weights, colors=SHADES, labels=names)
    axes.set_ylim(0, 1)
    axes.set_ylabel("weight of memories")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], **BESIDE)


def _draw_penalty(axes: Axes, table: pyarrow.Table) -> None:
    t, (lam, lam_max) = _thinned(table, ["lam", "lam_max"])
    share = np.divide(lam, lam_max, out=np.full(len(t), np.nan), where=lam_max > 0)
    axes.plot(t, share, color=DARK, linewidth=1.1)
    _scale(axes, np.nanmin(share), np.nanmax(share))
    axes.set_ylabel("lam / lam_max")


def _draw_loss(axes: Axes, table: pyarrow.Table) -> None:
    """Each over a stretch of rows, relative to the running mean on the same rows."""
    window = min(max(round(SMOOTHED * len(table)), BURN_IN), (len(table) - BURN_IN + 1) // 2)
    ratio = {name: _smoothed(table, name, window) / _smoothed(table, MEAN, window) for name in DRAWN_LOSSES}
    models = np.concatenate([ratio[OURS], ratio[LOGRMS], [1.0]])
    axes.axhline(1, color="black", linewidth=0.9, linestyle="--", label="running mean")
    for name, (label, style) in DRAWN_LOSSES.items():
        if np.median(ratio[name]) > models.max():
            axes.plot([], label=f"{label}\n(beyond the top)", **style)
        else:
            axes.plot(table["t"].to_numpy()[-len(ratio[name]) :], ratio[name], label=label, **style)
    _scale(axes, models.min(), models.max())
    axes.set_ylabel("loss, relative")
    axes.legend(title=f"last {window} rows", title_fontsize=8, alignment="left", **BESIDE)


def _smoothed(table: pyarrow.Table, name: str, window: int) -> np.ndarray:
    """The sums over `window` rows in a row, without those that are not scored."""
    total = np.cumsum(np.concatenate([[0.0], table[name].to_numpy()[BURN_IN:]]))
    return total[window:] - total[:-window]


def _scale(axes: Axes, low: float, high: float) -> None:
    """From low to high with a margin; logarithmic, with plain numbers, if that is far."""
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    if high <= WIDE * low:
        margin = 0.06 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        return
    axes.set_yscale("log")
    axes.set_ylim(0.93 * low, 1.08 * high)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _time_axis(axes: Axes, start: int, stop: int) -> None:
    axes.set_xlabel("row")
    axes.set_xlim(start, stop)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _thinned(table: pyarrow.Table, names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """The means over short stretches of rows, and the middle of each."""
    edges = np.unique(np.linspace(0, len(table), min(len(table), DRAWN) + 1).astype(int))
    columns = [table["t"], *(table[name] for name in names)]
    t, *means = (np.add.reduceat(column.to_numpy(), edges[:-1]) / np.diff(edges) for column in columns)
    return t, np.array(means)


# --- the study --------------------------------------------------------------------------------------------------------


def run_anatomy(data: Path, out: Path, streams: Sequence[str] = STREAMS, rows: int = ROWS) -> str:
    """`out`/<stream>.parquet and .png for each stream, the former also with the previous response as a feature.

    The summary of all tables is written to `out`/summary.md, and returned.
    """
    out.mkdir(parents=True, exist_ok=True)
    planned = [(name, lagged) for name in streams for lagged in (False, True)]
    for name, lagged in track(planned, "anatomy", console=Console(stderr=True), disable=not sys.stderr.isatty()):
        task = load_task(name, data, rows, lagged=lagged)
        parquet.write_table(weights_table(task), out / f"{task.name.replace(' ', '_')}.parquet")
    for name in streams:
        write_figure(out, name)
    return write_summary(out, streams)


def write_figure(out: Path, name: str) -> None:
    """<stream>.png from <stream>.parquet."""
    figure = draw(parquet.read_table(out / f"{name}.parquet"), CHANGES.get(name, ()), STRETCHES.get(name))
    write_whole(out / f"{name}.png", _few_colours(figure))


def _few_colours(figure: Figure) -> bytes:
    """A png of less than half the size that looks the same."""
    drawing, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawing, format="png", dpi=110)
    Image.open(drawing).convert("RGB").quantize(128).save(small, format="png", optimize=True)
    return small.getvalue()


def write_summary(out: Path, streams: Sequence[str]) -> str:
    """summary.md from the tables; a stream that holds the previous response anyway has one only."""
    paths = [out / f"{name}{lagged}.parquet" for name in streams for lagged in ("", "_lagged")]
    text = summary({path.stem.replace("_", " "): parquet.read_table(path) for path in paths if path.exists()})
    write_whole(out / "summary.md", text.encode())
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the directory with the streams' folders")
    parser.add_argument("--out", type=Path, required=True, help="the directory for tables and figures")
    parser.add_argument("--streams", nargs="+", choices=TASKS, default=STREAMS)
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args(arguments)
    print(run_anatomy(asked.data, asked.out, asked.streams, asked.rows), end="")


if __name__ == "__main__":
    main()
