"""One self-contained HTML page of a run, with a slider over the network: nothing is fetched when it is opened."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from streamlasso.network.imaging.extras import needs_fmri
from streamlasso.network.report.figures import SEEN_FROM, fills_of
from streamlasso.network.report.frames import frames
from streamlasso.network.report.group import Group
from streamlasso.report.page import CITATION, as_words, data_url, drawn, image, titled, versions, write_page

#: Edges of each picture that are listed.
LISTED = 10
#: Size of the glass brains behind the slider's network, in inches, and dots an inch.
BRAIN_SIZE, BRAIN_DPI = (10.0, 3.6), 100

MORE_STYLE = """
.explorer { display: grid; grid-template-columns: minmax(0, 1fr) 17rem; gap: 1rem; align-items: start; }
.explorer.brain { grid-template-columns: minmax(0, 1fr); }
#network { width: 100%; height: auto; max-height: 36rem; border: 1px solid #ddd; border-radius: .4rem; }
.controls { display: flex; gap: .8rem; align-items: center; flex-wrap: wrap; margin: .6rem 0; }
.controls input[type=range] { flex: 1 1 18rem; }
.controls output { min-width: 9rem; font-variant-numeric: tabular-nums; font-weight: 600; }
#chart { width: 100%; height: 7rem; border: 1px solid #ddd; cursor: pointer; display: block; }
.key { font-size: .92rem; color: #555; } .key svg { vertical-align: middle; }
.key i { display: inline-block; width: 1rem; height: .8rem; margin: 0 .3rem 0 .8rem; vertical-align: middle; }
.key i { border: 1px solid #bbb; }
figure { margin: 1.2rem 0; } figcaption { color: #555; font-size: .92rem; }
td:nth-child(2), th:nth-child(2), .edges td, .edges th { text-align: left; }
.edges td, .edges th { white-space: nowrap; }
@media (max-width: 50rem) { .explorer { grid-template-columns: minmax(0, 1fr); } }
"""
READING = """
**Edge.** Two regions depend on one another, given all others. Blue, drawn whole: they move together. Red, dashed: they
move against one another. Its strength is an estimate of the partial correlation, shrunk by the penalty.

**lam.** The penalty of each region's regression on all others. The model sets it itself, time point by time point:
larger means fewer edges. The mean over regions is drawn.

**Memory.** A network is an estimate from the last time points, of which older ones count less. It trails behind what
happens, by about the length of its memory, and the blood's answer trails by some 5 seconds before that.

**Blocks** are shaded as they were shown. Means over a condition's blocks are taken {delay:g} s later.
"""
EXPLORER = """<h2>The network over time</h2>
<div class="controls"><label>Subject <select id="subject"></select></label>
<label>Edges drawn <select id="most"><option>20</option><option selected>50</option><option>100</option>
<option value="100000">all</option></select></label>
<span class="key"><svg width="34" height="8"><line x1="0" y1="4" x2="34" y2="4" stroke="#0b3c6f" stroke-width="3"/>
</svg> positive <svg width="34" height="8"><line x1="0" y1="4" x2="34" y2="4" stroke="#e0503c" stroke-width="3"
stroke-dasharray="5 3"/></svg> negative {key}</span></div>
<div class="controls"><button id="play" type="button">Play</button>
<input id="moment" type="range" min="0" value="0" step="1" aria-label="Moment"><output id="when"></output></div>
<svg id="chart" role="img" aria-label="Mean lam over time; click to go there"></svg>
<p class="note">Mean lam over time, from 0 at the lower edge to <span id="lam-top"></span> at the upper; the line is at
the moment shown. Click to go to a moment. {thinned}</p>
<div class="explorer{kind}"><svg id="network" role="img" aria-label="The network at the chosen moment"></svg>
<div><p class="note" id="count"></p><div class="scroll"><table>
<thead><tr><th colspan="3">the strongest</th></tr></thead><tbody id="strongest"></tbody></table></div></div></div>
<noscript><p>The slider needs JavaScript; the figures below do without.</p></noscript>
"""


def write_network_page(
    path: Path,
    group: Group,
    edges: pyarrow.Table,
    figures: Mapping[str, tuple[Figure, str]],
    settings: Mapping[str, Any],
) -> Path:
    """The page of a run, whole or not at all."""
    title, told = "A network that changes, followed as it came", frames(group)
    parts = [
        f"<h1>{title}</h1>",
        _rendered(_headline(group)),
        _explorer(group, len(told["moments"])),
        "<h2>Pictures</h2>",
        *(_figure(figure, said) for figure, said in figures.values()),
        f'<div class="edges">{_rendered(_edges(edges))}</div>',
        _rendered(_notes(group, settings.get("failures", {}))),
        _rendered("## How to read this\n" + READING.format(delay=group.design.delay)),
        _rendered(_settings(settings)),
        f'<p class="note">The method: {escape(CITATION)}</p>',
        _script(group, told),
    ]
    return write_page(path, title, parts, MORE_STYLE)


# --- the slider -------------------------------------------------------------------------------------------------------


def _explorer(group: Group, shown: int) -> str:
    n = len(group.longest.t)
    thinned = f"Of {n:,} time points {shown} can be chosen here; networks.parquet has all." if shown < n else ""
    colors = {label: color for label, color, _ in fills_of(group.shown).values()}
    key = "".join(f'<i style="background:{color}"></i>{escape(label)}' for label, color in colors.items())
    kind = " brain" if group.coords is not None else ""
    return EXPLORER.format(key=key, kind=kind, thinned=thinned)


def _script(group: Group, told: dict[str, Any]) -> str:
    if group.coords is not None:
        told["brain"] = _brain(group.coords)
    # "</script>" within the data would end the script.
    data = json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")
    code = (files("streamlasso.network.report") / "page.js").read_text()
    return f'<script type="application/json" id="network-data">{data}</script>\n<script>\n{code}</script>'


def _brain(coords: np.ndarray) -> dict[str, Any]:
    """Empty glass brains as an image, and where each region is on it, in each view."""
    from matplotlib import pyplot

    plotting = needs_fmri("nilearn.plotting")
    figure = pyplot.figure(figsize=BRAIN_SIZE, dpi=BRAIN_DPI)
    display = plotting.plot_glass_brain(None, display_mode="ortho", figure=figure, axes=(0, 0, 1, 1))
    figure.canvas.draw()
    width, height = (int(side * BRAIN_DPI) for side in BRAIN_SIZE)
    places = []
    for direction, axes in display.axes.items():
        on_screen = axes.ax.transData.transform(coords[:, SEEN_FROM[direction]])
        places.append(np.column_stack([on_screen[:, 0], height - on_screen[:, 1]]).round(1).tolist())
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=BRAIN_DPI)
    pyplot.close(figure)
    return {"image": data_url(drawing.getvalue(), "png"), "width": width, "height": height, "places": places}


# --- words ------------------------------------------------------------------------------------------------------------


def _headline(group: Group) -> str:
    longest = group.longest
    people = f"{len(group.subjects)} subjects" if len(group.subjects) > 1 else f"one subject, {_plain(longest.subject)}"
    length = f"{len(longest.t):,} time points"
    if longest.seconds is not None and len(longest.t) > 1:
        length += f" ({longest.seconds[-1] - longest.seconds[0] + longest.seconds[1] - longest.seconds[0]:.0f} s)"
    counts = np.concatenate([subject.edges.counts() for subject in group.subjects])
    return (
        f"{people.capitalize() if len(group.subjects) > 1 else people[0].upper() + people[1:]}, "
        f"{len(group.regions)} regions, {length}. On average {counts.mean():.0f} pairs of regions of "
        f"{len(group.regions) * (len(group.regions) - 1) // 2:,} were connected at a time."
    )


def _edges(edges: pyarrow.Table) -> str:
    """A column a picture, the strongest edge on top."""
    columns: dict[str, list[str]] = {}
    for row in edges.to_pylist():
        words = f"{row['source']} – {row['target']}: {row['sign']}{row['strength']:.2f}"
        columns.setdefault(row["picture"], []).append(words)
    if not columns:
        return "## The strongest edges\n\nThere is no edge in any of the pictures."
    lines = list(zip_longest(*(column[:LISTED] for column in columns.values()), fillvalue=""))
    said = "Mean strength over subjects, and over the time points of each picture."
    return "\n".join(["## The strongest edges", "", said, "", *_table(list(columns), lines)])


def _notes(group: Group, failures: Mapping[str, str]) -> str:
    notes = [f"- {_plain(note)}" for note in group.notes]
    notes += [f"- not read: {_plain(words)}" for words in failures.values()]
    return "\n".join(["## What was left out or mended", "", *(notes or ["Nothing."])])


def _settings(settings: Mapping[str, Any]) -> str:
    lines = []
    for name, value in settings.items():
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            if name not in ("failures", "data") and inner not in (None, "", ()):
                lines.append([f"{name} {key}".strip(), str(inner)])
    table = _table(["setting", "value"], lines)
    return "\n".join(["## Settings and versions", "", *table, "", as_words(versions("numpy"))])


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rows = [[_plain(cell) for cell in head], ["---"] * len(head), *([_plain(cell) for cell in line] for line in lines)]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _plain(words: str) -> str:
    """Words that Markdown leaves alone."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()<>#+!|~&" else letter for letter in " ".join(words.split()))


def _rendered(markdown: str) -> str:
    page = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return page.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def _figure(figure: Figure, said: str) -> str:
    # Outlines of glass brains are thousands of points: as pixels they are smaller.
    kind = "png" if "brain" in said else "svg"
    return titled(image(drawn(figure, kind), said, kind), said)
