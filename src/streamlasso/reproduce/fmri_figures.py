"""The figures of the fMRI study, drawn from its tables alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyarrow import parquet

from streamlasso.network.imaging.events import Event
from streamlasso.report.colours import GREY as BAND
from streamlasso.report.network.figures import draw_lam_on
from streamlasso.reproduce.page import Figures


def figures(folder: Path, events: list[Event], n_subjects: int) -> Figures:
    """From blocks.csv and lam.parquet."""
    lams = "Mean lam of all subjects over time, on the blocks as they were shown"
    contrasts = (
        "Emotion less neutral blocks, with 90 % intervals by shifts of the design; grey: subjects. The shaded side is "
        "the paper's claim"
    )
    return {
        "fmri-contrasts": (draw_contrasts(folder), contrasts),
        "fmri-lam": (draw_lams(folder, events, n_subjects), lams),
    }


def draw_contrasts(folder: Path) -> Figure:
    """One panel per measure, one line per setting: the contrast of all subjects with its intervals."""
    with (folder / "blocks.csv").open() as file:
        rows = list(csv.DictReader(file))
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    figure = Figure(figsize=(9, 0.55 * len(settings) + 1.4), layout="constrained")
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for axes, measure in zip(panels, measures, strict=True):
        _draw_measure(axes, [row for row in rows if row["measure"] == measure], settings)
        axes.set_title(measure, fontsize="small")
    panels[0].set_yticks(range(len(settings)), settings, fontsize="small")
    panels[0].set_ylim(len(settings) - 0.5, -0.5)
    figure.supxlabel("emotion less neutral blocks (% of the mean)", fontsize="small")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=5, frameon=False, fontsize="small")
    return figure


def _draw_measure(axes: Axes, rows: list[dict[str, str]], settings: list[str]) -> None:
    singles = [row for row in rows if row["subject"] != "all"]
    means = [row for row in rows if row["subject"] == "all"]
    y = np.array([settings.index(row["setting"]) for row in means])
    values = {name: 100 * np.array([float(row[name]) for row in means]) for name in _ENDS}
    finite = np.abs([*values.values()])
    widest = 1.2 * max(finite[np.isfinite(finite)].max(), 1.0)
    axes.plot(
        [100 * float(row["detrended"]) for row in singles],
        [settings.index(row["setting"]) + 0.22 for row in singles],
        "o", color=BAND, markersize=4, label="subjects",
    )  # fmt: skip
    low, high = (np.clip(values[end], -widest, widest) for end in ("low", "high"))
    axes.hlines(y, low, high, color="black", linewidth=2.5, label="90 %")
    axes.plot(values["detrended"], y, "o", color="white", markeredgecolor="black", markersize=6, label="all subjects")
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_xlim(-widest, widest)
    claimed = (-widest, 0.0) if rows[0]["measure"] == "lam" else (0.0, widest)
    axes.axvspan(*claimed, color="#e69f00", alpha=0.12, linewidth=0, label="the paper's claim")
    axes.spines[["top", "right"]].set_visible(False)


_ENDS = ("detrended", "low", "high")


def draw_lams(folder: Path, events: list[Event], n_subjects: int) -> Figure:
    """One panel per setting: mean lam with its standard error, on the blocks of the task."""
    table = parquet.read_table(folder / "lam.parquet")
    settings = list(dict.fromkeys(table["setting"].to_pylist()))
    figure = Figure(figsize=(8, 1.75 * len(settings) + 0.8), layout="constrained")
    panels = figure.subplots(len(settings), 1, sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, settings, strict=True):
        draw_lam_on(axes, table.filter(pc.equal(table["setting"], name)), events, n_subjects)
        axes.set_title(name, loc="left", fontsize="small")
        if axes is not panels[-1]:
            axes.set_xlabel("")
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=5, frameon=False, fontsize="small")
    return figure
