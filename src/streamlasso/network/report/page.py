"""The self-contained HTML page of a run, with a slider over time: nothing is fetched when it is opened."""

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

from streamlasso._text import number
from streamlasso.network.imaging.extras import import_fmri
from streamlasso.network.report.blocks import conclusion, condition_table
from streamlasso.network.report.figures import VIEW_AXES, condition_fills
from streamlasso.network.report.frames import frames
from streamlasso.network.report.group import Group
from streamlasso.network.subjects import unused_note
from streamlasso.report.page import (
    CITATION,
    as_words,
    data_url,
    drawn,
    image,
    paragraph,
    section,
    table,
    titled,
    versions,
    write_page,
)

#: Edges listed of each picture.
MAX_LISTED = 10
#: Size of the glass brains behind the network, in inches, and dots per inch.
BRAIN_SIZE, BRAIN_DPI = (10.0, 3.6), 100

MORE_STYLE = """
.explorer { display: grid; grid-template-columns: minmax(0, 1fr) 20rem; gap: 1rem; align-items: start; }
.explorer.brain { grid-template-columns: minmax(0, 1fr); }
#network { width: 100%; height: auto; max-height: 36rem; border: 1px solid var(--line); border-radius: .4rem; }
.controls { display: flex; gap: .8rem; align-items: center; flex-wrap: wrap; margin: .6rem 0; }
.controls input[type=range] { flex: 1 1 18rem; }
.controls output { min-width: 9rem; font-variant-numeric: tabular-nums; font-weight: 600; }
#chart { width: 100%; height: 7rem; border: 1px solid var(--line); cursor: pointer; display: block; }
.key { font-size: .92rem; color: var(--soft); } .key svg { vertical-align: middle; }
.key i { display: inline-block; width: 1rem; height: .8rem; margin: 0 .3rem 0 .8rem; vertical-align: middle; }
.key i { border: 1px solid var(--soft); }
figure { margin: 1.2rem 0; } figcaption { color: var(--soft); font-size: .92rem; }
td:nth-child(2), th:nth-child(2), .edges td, .edges th { text-align: left; }
.edges td, .edges th { white-space: nowrap; }
.conclusion { border-left: .25rem solid var(--plus); padding-left: .8rem; margin: .8rem 0; }
@media (prefers-color-scheme: dark) { #network image { filter: invert(1); } #chart rect { opacity: .4; } }
@media (max-width: 50rem) { .explorer { grid-template-columns: minmax(0, 1fr); } }
"""
READING = """
**Edge.** Two regions depend on each other, given all others. Blue and solid: they rise and fall together. Red and
dashed: one rises while the other falls. The strength is an estimate of the partial correlation, shrunk by the penalty.

**lam.** The penalty of each region's regression on all others. The model tunes it at every time point: a larger lam
means fewer edges. The mean over regions is shown.

**Memory.** A network is estimated from the last time points, and older ones count less. It lags behind changes by about
the length of the memory, in addition to the haemodynamic delay of some 5 seconds.

**Blocks** are shaded when they were shown. The mean over the blocks of a condition is taken {delay:g} s later.
"""
EXPLORER = """<h2>The network over time</h2>
<div class="controls"><label>Subject <select id="subject"></select></label>
<label>Edges of <b id="at-least"></b> and more <input id="least" type="range" min="0" value="0" step="1"></label>
<span class="key"><svg width="34" height="8"><line x1="0" y1="4" x2="34" y2="4" stroke="var(--plus)" stroke-width="3"/>
</svg> positive <svg width="34" height="8"><line x1="0" y1="4" x2="34" y2="4" stroke="var(--negative)" stroke-width="3"
stroke-dasharray="5 3"/></svg> negative {key}</span></div>
<div class="controls"><button id="play" type="button">Play</button>
<input id="moment" type="range" min="0" value="0" step="1" aria-label="Time"><output id="when"></output></div>
<svg id="chart" role="img" aria-label="Mean lam over time; click to select a time"></svg>
<p class="note">Mean lam over time, from 0 at the bottom to <span id="lam-top"></span> at the top; the line marks the
selected time. Click to select another. <span id="settling"></span> {thinned}</p>
<div class="explorer{kind}"><svg id="network" role="img" aria-label="The network at the selected time"></svg>
<div><p class="note" id="count"></p><div class="scroll"><table>
<thead><tr><th colspan="3">strongest edges</th></tr></thead><tbody id="strongest"></tbody></table></div></div></div>
<noscript><p>The slider needs JavaScript; the figures below do not.</p></noscript>
"""


def write_network_page(
    path: Path,
    group: Group,
    edges: pyarrow.Table,
    figures: Mapping[str, tuple[Figure, str]],
    settings: Mapping[str, Any],
) -> Path:
    """Write the page to `path`, whole or not at all."""
    title, data = "A time-varying network", frames(group)
    parts = [
        f"<h1>{title}</h1>",
        _rendered(_headline(group)),
        _conclusion(group),
        _explorer(group, len(data["moments"])),
        "<h2>Figures</h2>",
        *(_figure(figure, text) for figure, text in figures.values()),
        f'<div class="edges">{_rendered(_edges(edges))}</div>',
        _rendered(_notes(group, settings.get("failures", {}), settings.get("unused", ()))),
        _rendered("## How to read this\n" + READING.format(delay=group.design.delay)),
        _rendered(_settings(settings)),
        f'<p class="note">The method: {escape(CITATION)}</p>',
        _script(group, data),
    ]
    return write_page(path, title, parts, MORE_STYLE)


# --- the slider -------------------------------------------------------------------------------------------------------


def _explorer(group: Group, n_frames: int) -> str:
    n = len(group.longest.t)
    thinned = f"{n_frames} of {n:,} time points are here; networks.parquet has all." if n_frames < n else ""
    colors = {label: color for label, color, _ in condition_fills(group.condition_names).values()}
    key = "".join(f'<i style="background:{color}"></i>{escape(label)}' for label, color in colors.items())
    kind = " brain" if group.coords is not None else ""
    return EXPLORER.format(key=key, kind=kind, thinned=thinned)


def _script(group: Group, data: dict[str, Any]) -> str:
    if group.coords is not None:
        data["brain"] = _brain(group.coords)
    # "</script>" within the data would end the script.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    code = (files("streamlasso.network.report") / "page.js").read_text(encoding="utf-8")
    return f'<script type="application/json" id="network-data">{text}</script>\n<script>\n{code}</script>'


def _brain(coords: np.ndarray) -> dict[str, Any]:
    """Empty glass brains as an image, and the position of each region on it in each view."""
    from matplotlib import pyplot

    plotting = import_fmri("nilearn.plotting")
    figure = pyplot.figure(figsize=BRAIN_SIZE, dpi=BRAIN_DPI)
    display = plotting.plot_glass_brain(None, display_mode="ortho", figure=figure, axes=(0, 0, 1, 1))
    figure.canvas.draw()
    width, height = (int(side * BRAIN_DPI) for side in BRAIN_SIZE)
    places = []
    for direction, axes in display.axes.items():
        on_screen = axes.ax.transData.transform(coords[:, VIEW_AXES[direction]])
        places.append(np.column_stack([on_screen[:, 0], height - on_screen[:, 1]]).round(1).tolist())
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=BRAIN_DPI)
    pyplot.close(figure)
    return {"image": data_url(drawing.getvalue(), "png"), "width": width, "height": height, "places": places}


# --- text -------------------------------------------------------------------------------------------------------------


def _headline(group: Group) -> str:
    n, p, longest = len(group.subjects), len(group.regions), group.longest
    subjects = f"{n} subjects" if n > 1 else f"One subject, {_escaped(longest.subject)}"
    length = f"{len(longest.t):,} time points"
    if longest.seconds is not None and len(longest.t) > 1:
        length += f" ({longest.seconds[-1] - longest.seconds[0] + longest.seconds[1] - longest.seconds[0]:.0f} s)"
    edges = np.concatenate([subject.edges.counts() for subject in group.subjects]).mean()
    pairs = p * (p - 1) // 2
    return f"{subjects}, {p} regions, {length}. On average {edges:.0f} of {pairs:,} pairs of regions have an edge."


def _conclusion(group: Group) -> str:
    sentences = conclusion(group)
    if not sentences:
        return ""
    head = ["condition", "blocks", "lam (mean)", "edges (mean)"]
    lines = [[name, f"{n:,}", number(lam), number(edges)] for name, n, lam, edges in condition_table(group)]
    words = f'<div class="conclusion">{"".join(map(paragraph, sentences))}</div>'
    return section("What differs between the blocks?", words, table(head, lines))


def _edges(edges: pyarrow.Table) -> str:
    """One column per picture, the strongest edge first."""
    columns: dict[str, list[str]] = {}
    for row in edges.to_pylist():
        cell = f"{row['source']} – {row['target']}: {row['sign']}{row['strength']:.2f}"
        columns.setdefault(row["picture"], []).append(cell)
    if not columns:
        return "## Strongest edges\n\nNo picture has an edge."
    lines = list(zip_longest(*(column[:MAX_LISTED] for column in columns.values()), fillvalue=""))
    caption = "Mean strength over subjects, and over the time points of each picture."
    return "\n".join(["## Strongest edges", "", caption, "", *_table(list(columns), lines)])


def _notes(group: Group, failures: Mapping[str, str], unused: Sequence[str]) -> str:
    notes = [f"- {_escaped(note)}" for note in group.notes]
    notes += [f"- not read: {_escaped(reason)}" for reason in failures.values()]
    if unused:
        notes.append(f"- {_escaped(unused_note(unused))}")
    return "\n".join(["## What was left out or changed", "", *(notes or ["Nothing."])])


def _settings(settings: Mapping[str, Any]) -> str:
    lines = []
    for name, value in settings.items():
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            if name not in ("failures", "data", "unused") and inner not in (None, "", ()):
                lines.append([f"{name} {key}".strip(), str(inner)])
    table = _table(["setting", "value"], lines)
    return "\n".join(["## Settings and versions", "", *table, "", as_words(versions("numpy"))])


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table of plain text."""
    rows = [[_escaped(cell) for cell in line] for line in (head, *lines)]
    rows.insert(1, ["---"] * len(head))
    return ["| " + " | ".join(row) + " |" for row in rows]


def _escaped(text: str) -> str:
    """Text without a meaning in Markdown."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()<>#+!|~&" else letter for letter in " ".join(text.split()))


def _rendered(markdown: str) -> str:
    page = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return page.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def _figure(figure: Figure, text: str) -> str:
    # The outlines of glass brains are thousands of points: a bitmap is smaller.
    form = "png" if "brain" in text else "svg"
    return titled(image(drawn(figure, form), text, form), text)
