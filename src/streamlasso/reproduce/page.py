"""A study's figures as files, and one self-contained HTML page of all studies in a directory, made from their files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from streamlasso._files import write_whole
from streamlasso.report.page import (
    CITATION,
    image,
    named_versions,
    paragraph,
    rendered,
    section,
    table,
    versions,
    write_figure,
    write_page,
)

#: File name -> figure and caption.
Figures = dict[str, tuple[Figure, str]]
#: Family -> its name in titles.
REGRESSIONS = {"gaussian": "linear", "binomial": "logistic"}
#: The studies in the order of the page.
ORDER = ("stationary", "nonstationary", "theory", "fmri")
#: Packages that the numbers depend on.
PACKAGES = ("numpy", "scipy", "scikit-learn", "bayesian-optimization", "pyarrow", "matplotlib")
TITLE = "The paper, reproduced"
INTRODUCTION = (
    "The studies of its empirical section, reproduced. The folders beside this page hold the tables and the figures "
    "drawn from them. What holds, what does not, and why: docs/paper.md of streamlasso."
)
#: The tables are wide, and their second columns hold words.
MORE_STYLE = "body { max-width: 76rem; } td:nth-child(2), th:nth-child(2) { text-align: left; }"


def write_study(folder: Path, figures: Figures, settings: dict[str, Any]) -> None:
    """The figures, then run.json, which the page reads: a study that has it is complete."""
    for name, (figure, _) in figures.items():
        write_figure(folder / name, figure)
    captions = {name: caption for name, (_, caption) in figures.items()}
    run = dict(**settings, figures=captions, versions=versions(*PACKAGES))
    write_whole(folder / "run.json", (json.dumps(run, indent=1) + "\n").encode())


def write_index(out: Path) -> Path:
    """`out`/index.html, of the studies that are complete."""
    complete = [name for name in ORDER if (out / name / "run.json").exists()]
    runs = {name: json.loads((out / name / "run.json").read_text(encoding="utf-8")) for name in complete}
    links = "".join(f'<a href="#{name}">{escape(name)}</a>' for name in runs)
    settings = {
        name: ", ".join(f"{key} = {value}" for key, value in run.items() if key not in ("figures", "versions"))
        for name, run in runs.items()
    }
    lines = [[name, settings[name], named_versions(run["versions"])] for name, run in runs.items()]
    parts = [
        paragraph(CITATION, "note"),
        paragraph(INTRODUCTION),
        f"<nav>{links}</nav>",
        *(_study(out / name, run) for name, run in runs.items()),
        section("Settings and versions", table(["study", "settings", "versions"], lines, text=2)),
    ]
    return write_page(out / "index.html", TITLE, parts, MORE_STYLE)


def _study(folder: Path, run: Mapping[str, Any]) -> str:
    """Heading and introduction, figures, then tables."""
    text = re.sub("^#", "##", (folder / "summary.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    first, separator, rest = text.partition("\n### ")
    drawings = {caption: (folder / f"{name}.svg").read_bytes() for name, caption in run["figures"].items()}
    figures = [image(drawing, caption, caption=caption) for caption, drawing in drawings.items()]
    heading = rendered(first).replace("<h2>", f'<h2 id="{folder.name}">', 1)
    return "\n".join([heading, *figures, rendered("### " + rest) if separator else ""])
