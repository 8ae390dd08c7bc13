"""Group -> the HTML page of a run, with a slider over time."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from matplotlib.figure import Figure

from streamlasso.network.blocks import conclusion, condition_table
from streamlasso.network.estimator import sorted_edges
from streamlasso.network.group import Group, nan_mean
from streamlasso.report.network.figures import condition_colours, empty_brain, warm_up
from streamlasso.report.page import (
    bullets,
    drawn,
    glossary,
    image,
    paragraph,
    section,
    settings_table,
    table,
    write_page,
)

#: Edges listed of each picture.
MAX_LISTED = 10
#: Limits of a page: frames, edges per frame (for each region, and in all), and bytes of all edges.
MAX_FRAMES, EDGES_PER_REGION, MAX_EDGES, MAX_BYTES = 240, 4, 600, 3 << 20
BYTES_PER_EDGE = 8
#: Strengths are stored as this many parts of the largest.
LEVELS = 32767

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
td.text { white-space: nowrap; }
.conclusion { border-left: .25rem solid var(--plus); padding-left: .8rem; margin: .8rem 0; }
@media (prefers-color-scheme: dark) { #network image { filter: invert(1); } #chart rect { opacity: .4; } }
@media (max-width: 50rem) { .explorer { grid-template-columns: minmax(0, 1fr); } }
"""
READING = {
    "Edge": "Two regions depend on each other, given all others. Blue and solid: they rise and fall together. Red and "
    "dashed: one rises while the other falls. The strength is an estimate of the partial correlation, shrunk by the "
    "penalty.",
    "lam": "The penalty of each region's regression on all others. The model tunes it at every time point: a larger "
    "lam means fewer edges. The mean over regions is shown.",
    "Memory": "A network is estimated from the last time points, and older ones count less. It lags behind changes by "
    "about the length of the memory, in addition to the haemodynamic delay of some 5 seconds.",
    "Blocks": "They are shaded when they were shown. The mean over the blocks of a condition is taken after the delay.",
}
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


def write_page_of(
    path: Path, group: Group, edges: pyarrow.Table, figures: Mapping[str, Figure], settings: Mapping[str, Any]
) -> Path:
    """Write the page to `path`, whole or not at all."""
    data = frames(group)
    notes = [
        *group.notes,
        *(f"not read: {reason}" for reason in settings.get("failures", {}).values()),
    ]
    parts = [
        paragraph(_headline(group), "headline"),
        _conclusion(group),
        _explorer(group, len(data["moments"])),
        section("Figures", *_figures(group, figures)),
        _edges(edges),
        section("What was left out or changed", bullets(notes) if notes else paragraph("Nothing.")),
        settings_table(_flat(settings), "numpy"),
        glossary(READING),
        _script(group, data),
    ]
    return write_page(path, "A time-varying network", parts, MORE_STYLE)


def _headline(group: Group) -> str:
    n, p, longest = len(group.subjects), len(group.regions), group.longest
    subjects = f"{n} subjects" if n > 1 else f"One subject, {longest.subject}"
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
    words = f'<div class="conclusion">{"".join(map(paragraph, sentences))}</div>'
    lines = table(["condition", "blocks", "lam (mean)", "edges (mean)"], condition_table(group))
    return section("What differs between the blocks?", words, lines)


def _figures(group: Group, figures: Mapping[str, Figure]) -> list[str]:
    blocks = ", with the blocks of the task" if group.events else ""
    where, form = ("a circle", "svg") if group.coords is None else ("a glass brain", "png")
    # The outlines of glass brains are thousands of points: a bitmap is smaller.
    texts = {"lam": (f"Mean lam over time{blocks}", "svg"), "networks": (f"Networks on {where}", form)}
    return [image(drawn(figures[name], form), text, form, text) for name, (text, form) in texts.items()]


def _edges(edges: pyarrow.Table) -> str:
    """One column per picture, the strongest edge first."""
    columns: dict[str, list[str]] = {}
    for row in edges.to_pylist():
        cell = f"{row['source']} – {row['target']}: {row['sign']}{row['strength']:.2f}"
        columns.setdefault(row["picture"], []).append(cell)
    if not columns:
        return section("Strongest edges", paragraph("No picture has an edge."))
    lines = zip_longest(*(column[:MAX_LISTED] for column in columns.values()), fillvalue="")
    note = paragraph("Mean strength over subjects, and over the time points of each picture.", "note")
    return section("Strongest edges", note, table(list(columns), lines, text=len(columns)))


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were given, one line each."""
    lines = {}
    for name, value in settings.items():
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            if name not in ("failures", "data") and inner not in (None, "", ()):
                lines[f"{name} {key}".strip()] = inner
    return lines


# --- the slider -------------------------------------------------------------------------------------------------------


def _explorer(group: Group, n_frames: int) -> str:
    n = len(group.longest.t)
    thinned = f"{n_frames} of {n:,} time points are here; networks.parquet has all." if n_frames < n else ""
    labels = dict(condition_colours(group.condition_names).values())
    key = "".join(f'<i style="background:{color}"></i>{escape(label)}' for label, color in labels.items())
    return EXPLORER.format(key=key, kind=" brain" if group.coords is not None else "", thinned=thinned)


def _script(group: Group, data: dict[str, Any]) -> str:
    if group.coords is not None:
        data["brain"] = empty_brain(group.coords)
    # "</script>" within the data would end the script.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    code = (files("streamlasso.report.network") / "page.js").read_text(encoding="utf-8")
    return f'<script type="application/json" id="network-data">{text}</script>\n<script>\n{code}</script>'


def frames(group: Group) -> dict[str, Any]:
    """The data of the slider, for JSON: a few hundred times, and the strongest edges of each subject and their mean."""
    several = len(group.subjects) > 1
    limit = min(MAX_EDGES, EDGES_PER_REGION * len(group.regions))
    n = len(group.longest.t)
    room = MAX_BYTES // (limit * BYTES_PER_EDGE * (len(group.subjects) + several))
    times = np.unique(np.linspace(0, n - 1, min(n, MAX_FRAMES, max(20, room))).round().astype(int))
    clock = group.clock(group.longest).astype(float)[times]
    views = [_view("mean of all subjects", group, times, limit, None)] if several else []
    views += [_view(subject.subject, group, times, limit, k) for k, subject in enumerate(group.subjects)]
    strengths = np.abs(np.concatenate([view["strengths"] for view in views]))
    scale = float(strengths.max(initial=0.0)) or 1.0
    for view in views:
        view["strength"] = _base64(np.round(view.pop("strengths") / scale * LEVELS))
    return {
        "regions": group.regions,
        "moments": [f"{when:.1f} s" if group.timed else f"time point {when:.0f}" for when in clock],
        "clock": clock.round(4).tolist(),
        "span": [float(clock[0]), float(max(clock[-1], clock[0] + 1e-9))],
        "scale": scale,
        "settled": int(np.searchsorted(times, warm_up(n))),
        "subjects": views,
    }


def _view(name: str, group: Group, times: np.ndarray, limit: int, subject: int | None) -> dict[str, Any]:
    """The frames of one subject, or of the mean of all; `strengths` is encoded later, on a scale for all views."""
    edges = [sorted_edges(group.mean_network(_at(group, int(t), subject))) for t in times]
    source, target, strengths = (np.concatenate([frame[k][:limit] for frame in edges]) for k in range(3))
    shown = group.longest if subject is None else group.subjects[subject]
    events = group.events if subject is None else shown.events
    conditions = group.conditions(shown).tolist() if subject is not None or events else []
    lam = nan_mean(group.mean_lam(group.subjects if subject is None else [shown]))[times]
    colours = condition_colours(group.condition_names)
    return {
        "name": name,
        "counts": _base64(np.array([min(len(frame[0]), limit) for frame in edges])),
        "source": _base64(source),
        "target": _base64(target),
        "strengths": strengths,
        # A few early edges can be many times stronger than all others; they are drawn no wider than this.
        "largest": float(np.quantile(np.abs(strengths), 0.99)) if len(strengths) else 1.0,
        "total": [len(frame[0]) for frame in edges],
        "conditions": [conditions[t] if t < len(conditions) else "" for t in times],
        "blocks": [[event.onset, event.end, colours[event.condition][1], event.condition] for event in events],
        "lam": [float(f"{value:.4g}") if np.isfinite(value) else None for value in lam],
    }


def _at(group: Group, t: int, subject: int | None) -> list[np.ndarray]:
    """Time point t of the subject, or of all subjects (None) that have it."""
    here, nothing = np.array([t]), np.array([], dtype=int)
    return [here if subject in (None, k) and t < len(one.t) else nothing for k, one in enumerate(group.subjects)]


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values).astype("<i2").tobytes()).decode()
