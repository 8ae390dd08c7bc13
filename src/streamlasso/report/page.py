"""The one page template and its parts: text, tables, figures. A page is one file and fetches nothing when opened."""

from __future__ import annotations

import base64
import io
import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlasso import __version__
from streamlasso._files import write_whole
from streamlasso.report.colours import DARK, LIGHT, RED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = (
    f"""
:root {{ color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --soft: #555555; --line: #dddddd; --faint: #f3f3f3;
  --plus: {DARK}; --minus: {LIGHT}; --negative: {RED}; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e8e8e8; --paper: #16181b; --soft: #b0b0b0; --line: #3c4045;
  --faint: #24272b; --plus: #7db4ec; --minus: #f0b23c; --negative: #ff8a75; }}
  img {{ filter: invert(.93) hue-rotate(180deg) brightness(1.25); }} }}
"""
    + """
body { background: var(--paper); color: var(--ink); overflow-wrap: break-word; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
p { margin: .4rem 0; max-width: 48rem; }
.headline { font-size: 1.15rem; }
.note, figcaption { color: var(--soft); font-size: .92rem; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.figures div { flex: 1 1 7.5rem; border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; }
.figures b { display: block; font-size: 1.4rem; line-height: 1.3; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .22rem .9rem .22rem 0; text-align: right; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid var(--soft); }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
tr.strong td { font-weight: 600; }
tr + tr td { border-top: 1px solid var(--line); }
.scroll { overflow-x: auto; }
.bar { display: inline-block; width: min(12rem, 26vw); height: .8rem; position: relative; background: var(--faint); }
.bar i { position: absolute; top: 0; bottom: 0; }
.plus { background: var(--plus); } .minus { background: var(--minus); }
figure { margin: 1.2rem 0; }
img { width: 100%; min-width: 40rem; height: auto; }
.cell { display: block; min-width: 2.2rem; padding: .1rem .4rem; margin-right: -.7rem; border-radius: .2rem;
  background: color-mix(in srgb, var(--tint) calc(var(--share) * 100%), transparent); }
.cell.deep { color: var(--paper); } .cell.framed { outline: 1.5px solid var(--soft); }
nav a { margin-right: 1.2rem; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; max-width: 48rem; }
@media print { body { margin: 0; } h2 { break-after: avoid; } img, table { break-inside: avoid; } }
"""
)

CITATION = (
    "R. P. Monti, C. Anagnostopoulos, G. Montana: Adaptive regularization for Lasso models in the context of "
    "non-stationary data streams."
)
#: A cell that is tinted more than this has light letters.
DEEP = 0.6
LONGEST_VALUE = 200


def write_page(path: str | os.PathLike[str], title: str, parts: Iterable[str], more_style: str = "") -> Path:
    """An HTML page of these parts under its title, whole or not at all."""
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{more_style}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(filter(None, parts))
        + "\n</body>\n</html>\n"
    )
    return write_whole(path, page.encode("utf-8", "replace"))


# --- text and tables --------------------------------------------------------------------------------------------------


def section(heading: str, *parts: str) -> str:
    return f"<h2>{escape(heading)}</h2>\n" + "\n".join(parts)


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def bullets(texts: Iterable[str]) -> str:
    """A list, each text on one line and not too long."""
    return f"<ul>{''.join(f'<li>{escape(_one_line(text))}</li>' for text in texts)}</ul>"


def glossary(terms: dict[str, str]) -> str:
    """How to read the page, and the citation of the method."""
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in terms.items())
    return section("How to read this", f"<dl>{items}</dl>", paragraph(f"The method: {CITATION}", "note"))


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, strong: int = -1, text: int = 0, escaped: bool = False
) -> str:
    """Columns 0 to `text` are aligned as text; row `strong` is bold. `escaped`: the cells are HTML already."""
    names = "".join(f"<th{_kind(i, text)}>{escape(cell)}</th>" for i, cell in enumerate(head))
    body = ""
    for i, row in enumerate(rows):
        cells = (cell if escaped else escape(cell) for cell in row)
        line = "".join(f"<td{_kind(j, text)}>{cell}</td>" for j, cell in enumerate(cells))
        kind = ' class="strong"' if i == strong else ""
        body += f"<tr{kind}>{line}</tr>\n"
    return f'<div class="scroll"><table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def _kind(column: int, last_text: int) -> str:
    return ' class="text"' if column <= last_text else ""


def settings_table(settings: dict[str, Any], *packages: str) -> str:
    """The settings, and the versions of the packages."""
    lines = [[name, _one_line(value)] for name, value in settings.items()]
    used = paragraph(named_versions(versions(*packages)), "note")
    return section("Settings and versions", table(["setting", "value"], lines, text=1), used)


def _one_line(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def rendered(markdown: str) -> str:
    """Our own Markdown as HTML; wide tables scroll."""
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def bar(share: float) -> str:
    """A bar from the middle: to the right for a positive share of the largest, to the left for a negative one."""
    width = 50 * min(abs(share), 1)
    start = 50 if share > 0 else 50 - width
    kind = "plus" if share > 0 else "minus"
    return f'<span class="bar"><i class="{kind}" style="left:{start:.1f}%;width:{width:.1f}%"></i></span>'


def tinted(text: str, share: float, framed: bool = False) -> str:
    """A cell tinted by a share between -1 and 1."""
    tint = "var(--plus)" if share >= 0 else "var(--minus)"
    kinds = "cell" + (" deep" if share > DEEP else "") + (" framed" if framed else "")
    return f'<span class="{kinds}" style="--share:{abs(share):.2f};--tint:{tint}">{escape(text)}</span>'


# --- figures ----------------------------------------------------------------------------------------------------------


def drawn(figure: Figure, form: str) -> bytes:
    """The figure as a file of this format, "png" or "svg"; the same figure gives the same bytes."""
    import matplotlib

    drawing = io.BytesIO()
    # Text stays text: it is smaller, faster to write, and can be searched and read aloud.
    with matplotlib.rc_context({"svg.hashsalt": "streamlasso", "svg.fonttype": "none"}):
        if form == "png":
            figure.savefig(drawing, format=form, dpi=110, pil_kwargs={"compress_level": 2})
        else:
            figure.savefig(drawing, format=form, facecolor="none", metadata={"Date": None})
    return drawing.getvalue()


def write_figure(path: Path, figure: Figure) -> None:
    """As `path`.png and `path`.svg."""
    for form in ("png", "svg"):
        write_whole(path.with_name(f"{path.name}.{form}"), drawn(figure, form))


def image(drawing: bytes, alt: str, form: str = "svg", caption: str = "") -> str:
    """A drawing within the page, text for those who cannot see it, and a caption if there is one."""
    picture = f'<div class="scroll"><img alt="{escape(alt)}" src="{data_url(drawing, form)}"></div>'
    return f"<figure>{picture}<figcaption>{escape(caption)}.</figcaption></figure>" if caption else picture


def data_url(drawing: bytes, form: str) -> str:
    kind = {"svg": "svg+xml", "png": "png"}[form]
    return f"data:image/{kind};base64,{base64.b64encode(drawing).decode()}"


# --- versions ---------------------------------------------------------------------------------------------------------


def versions(*packages: str) -> dict[str, str]:
    """The versions of streamlasso, Python, and those of the packages that are installed."""
    found = {"streamlasso": __version__, "Python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def named_versions(found: dict[str, str]) -> str:
    """Names and versions, in a line."""
    return ", ".join(f"{name} {number}" for name, number in found.items())
