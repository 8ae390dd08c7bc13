"""The figures of the fMRI study, drawn from its tables alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from matplotlib.figure import Figure
from pyarrow import parquet

from streamlasso.network.imaging.events import Event
from streamlasso.network.report.figures import BAND, LINE, draw_lam_on
from streamlasso.reproduce.axes import Figures


def figures(folder: Path, events: list[Event], n_subjects: int, delay: float) -> Figures:
    """From lam.parquet and delays.parquet."""
    lams = "Mean lam of all subjects over time, on the blocks as they were shown"
    delays = "The difference between blocks, by the assumed delay; grey: 90 % of all shifts of the design"
    return {
        "fmri-lam": (draw_lams(folder, events, n_subjects), lams),
        "fmri-delays": (draw_delays(folder, delay), delays),
    }


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


def draw_delays(folder: Path, delay: float) -> Figure:
    """One panel per setting: the contrast by the assumed delay, against the shifts of the design."""
    rows = parquet.read_table(folder / "delays.parquet").to_pylist()
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    figure = Figure(figsize=(8, 1.55 * len(settings) + 0.8), layout="constrained")
    panels = figure.subplots(len(settings), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, settings, strict=True):
        mine = [row for row in rows if row["setting"] == name]
        x = np.array([row["delay"] for row in mine])
        contrast, low, high = (100 * np.array([row[key] for row in mine]) for key in ("contrast", "low", "high"))
        axes.fill_between(x, low, high, color=BAND, alpha=0.5, linewidth=0, label="90 % of all shifts of the design")
        axes.plot(x, contrast, color=LINE, linewidth=1.5, label="the design as it was")
        axes.axhline(0, color=LINE, linewidth=0.6)
        axes.axvline(delay, color="#e69f00", linewidth=1.2, linestyle="--", label=f"the delay tested, {delay:g} s")
        axes.set_title(name, loc="left", fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("delay from a block to lam (s)")
    figure.supylabel("emotion less neutral (% of mean lam)", fontsize="small")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False, fontsize="small"
    )
    return figure
