"""Votes in the Senate, 1989 to 2006: a network of binary nodes. Saves senate.csv, and draws two figures.

python docs/gallery/senate.py SENATE_FOLDER OUT
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow
from matplotlib.figure import Figure
from pyarrow import csv

from streamlasso.network import StreamingNetwork
from streamlasso.network.results import follow_sparse
from streamlasso.report.network.figures import draw_networks

R, PRESENT = 0.99, 0.9
DEMOCRAT = 100
SHOWN = (102, 108)
LINES = {
    "within": ("within a party", "#1b1b1b", "-"),
    "across": ("across parties, positive", "#0b3c6f", "-"),
    "against": ("across parties, negative", "#e0503c", "--"),
}


def read(folder):
    """Votes as 1 (yea), 0 (nay), 0.5 (absent) of those who voted on nine of ten; names; who is a Democrat; Congress."""
    votes, members = (csv.read_csv(Path(folder) / f"{name}.csv.gz") for name in ("votes", "members"))
    who = {row["col"]: row for row in members.to_pylist()}
    columns = [name for name in votes.column_names if name in who]
    cast = np.column_stack([np.nan_to_num(votes[name].to_numpy()) for name in columns])
    kept = np.flatnonzero((cast != 0).mean(axis=0) > PRESENT)
    democrat = np.array([who[columns[k]]["party_code"] == DEMOCRAT for k in kept])
    order = np.argsort(~democrat, kind="stable")
    kept, democrat = kept[order], democrat[order]
    names = [
        f"{last_name(who[columns[k]]['name'])} ({'D' if left else 'R'})" for k, left in zip(kept, democrat, strict=True)
    ]
    return (cast[:, kept] + 1) / 2, names, democrat, votes["congress"].to_numpy()


def last_name(name):
    last = name.split(",")[0].title()
    return f"Mc{last[2:].title()}" if last.startswith("Mc") else last


def table(edges, loss, democrat, congress):
    """By Congress: edges at a time of each kind, and the loss of one look ahead."""
    same = democrat[edges.i] == democrat[edges.j]
    kinds = {"within": same, "across": ~same & (edges.strength > 0), "against": ~same & (edges.strength < 0)}
    rows = []
    for c in np.unique(congress):
        during = np.flatnonzero(congress == c)
        inside = (edges.t >= during[0]) & (edges.t <= during[-1])
        counts = {name: float((inside & kind).sum() / len(during)) for name, kind in kinds.items()}
        rows.append(dict(congress=int(c), votes=len(during), **counts, loss=float(loss[during].mean())))
    return pyarrow.Table.from_pylist(rows)


def draw(rows):
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    counts, loss = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    x = rows["congress"].to_numpy()
    for name, (label, color, style) in LINES.items():
        counts.plot(x, rows[name].to_numpy(), color=color, linestyle=style, marker="o", label=label)
    counts.set(ylabel="edges at a time", ylim=(0, None))
    loss.plot(x, rows["loss"].to_numpy(), color="#1b1b1b", marker="o")
    loss.set(ylabel="log loss of a vote,\nfrom all others", xlabel="Congress (101: 1989-90; 109: 2005-06)")
    for axes in (counts, loss):
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*counts.get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    folder, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    votes, names, democrat, congress = read(folder)
    trace, edges = follow_sparse(StreamingNetwork(family="binomial", memory=R), votes)
    rows = table(edges, trace.loss, democrat, congress)
    csv.write_csv(rows, out / "senate.csv")
    draw(rows).savefig(out / "senate.png", dpi=130)
    means = {f"{c}th Congress".replace("102th", "102nd"): edges.mean(np.flatnonzero(congress == c)) for c in SHOWN}
    draw_networks(means, names).savefig(out / "senate-circle.png", dpi=130)
    print(f"{len(names)} senators, {len(votes):,} votes, {np.mean(votes == 0.5):.1%} absences")
    for row in rows.to_pylist():
        print(*(f"{value:.3g}" for value in row.values()))
