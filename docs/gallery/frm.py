"""A hundred financial firms: does lam move in 2008? Saves frm.csv, and draws frm.png from it.

python docs/gallery/frm.py FRM_RETURNS.csv.gz OUT
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow
from matplotlib.figure import Figure
from pyarrow import csv

from streamlasso.network import StreamingNetwork
from streamlasso.network.results import follow_sparse, mean_over_nodes

N_FIRMS, R = 100, 0.98
#: Lehman Brothers fails; the market's lowest day.
CRISIS = np.array(["2008-09-15", "2009-03-09"], dtype="datetime64[D]")
PANELS = {
    "lam": "mean lam\n(sd of returns)",
    "share": "lam / lam_max",
    "edges": "edges",
    "vix": "VIX, scaled\nto [0, 1]",
}


def table(data):
    """What happened on each day: mean lam, its share of lam_max, edges; and the VIX, which the model never sees."""
    frame = csv.read_csv(data)
    firms = frame.column_names[1 : N_FIRMS + 1]
    returns = np.column_stack([frame[name].to_numpy() for name in firms])
    trace, edges = follow_sparse(StreamingNetwork(memory=R), returns / returns.std(axis=0))
    lam = mean_over_nodes(trace.lam, trace.lam_max)
    return pyarrow.table(
        {
            "date": frame["Date"].to_numpy().astype("datetime64[D]"),
            "lam": lam,
            "share": lam / trace.lam_max.mean(axis=1),
            "edges": edges.counts(),
            "vix": frame["^VIX"],
        }
    )


def draw(days, warm_up=100):
    figure = Figure(figsize=(8, 6.4), layout="constrained")
    panels = figure.subplots(len(PANELS), 1, sharex=True)
    date = days["date"].to_numpy()
    for axes, (name, label) in zip(panels, PANELS.items(), strict=True):
        axes.axvspan(*CRISIS, color="#f2d7a6", linewidth=0, label="Lehman's failure to the market's lowest day")
        axes.plot(date[warm_up:], days[name].to_numpy()[warm_up:], color="#1b1b1b", linewidth=1)
        axes.set_ylabel(label)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("day")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", frameon=False)
    return figure


def by_quarter(days):
    """The means of some quarters, for the page."""
    date = days["date"].to_numpy()
    quarter = date.astype("datetime64[M]").astype(int) // 3
    for q in np.unique(quarter):
        rows = quarter == q
        means = [days[name].to_numpy()[rows].mean() for name in PANELS]
        yield f"{1970 + q // 4} Q{q % 4 + 1}", means


if __name__ == "__main__":
    data, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    days = table(data)
    csv.write_csv(days, out / "frm.csv")
    draw(days).savefig(out / "frm.png", dpi=130)
    for quarter, means in by_quarter(days):
        if quarter[:4] in ("2007", "2008", "2009", "2010", "2017"):
            print(quarter, *(f"{mean:.3g}" for mean in means))
    after = slice(100, None)
    vix = days["vix"].to_numpy()[after]
    for name in ("lam", "share", "edges"):
        print(f"correlation of {name} with the VIX: {np.corrcoef(days[name].to_numpy()[after], vix)[0, 1]:+.2f}")
