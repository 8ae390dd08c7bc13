"""Parts of any HTML page: sections, tables, pictures; a page is one file, and nothing is fetched when it is opened."""

from __future__ import annotations

import base64
import io
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from streamlasso import __version__
from streamlasso._files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
p { margin: .4rem 0; max-width: 48rem; }
.headline { font-size: 1.15rem; }
.note { color: #555; font-size: .92rem; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.figures div { flex: 1 1 7rem; border: 1px solid #ddd; border-radius: .4rem; padding: .6rem .8rem; }
.figures b { display: block; font-size: 1.4rem; line-height: 1.3; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; font-size: .95rem; }
th, td { padding: .22rem .9rem .22rem 0; text-align: right; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid #999; }
th:first-child, td:first-child, td.text, th.text { text-align: left; overflow-wrap: anywhere; }
tr.strong td { font-weight: 600; }
tr + tr td { border-top: 1px solid #eee; }
.scroll { overflow-x: auto; }
.bar { display: inline-block; width: 12rem; height: .8rem; position: relative; background: #f3f3f3; }
.bar i { position: absolute; top: 0; bottom: 0; }
.plus { background: #0b3c6f; } .minus { background: #e69f00; }
img { width: 100%; height: auto; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; max-width: 48rem; }
@media print { body { margin: 0; } h2 { break-after: avoid; } img, table { break-inside: avoid; } }
"""

CITATION = (
    "R. P. Monti, C. Anagnostopoulos, G. Montana: Adaptive regularization for Lasso models in the context of "
    "non-stationary data streams."
)


def write_page(path: str | os.PathLike[str], title: str, parts: Iterable[str], more_style: str = "") -> Path:
    """An HTML page of these parts, whole or not at all."""
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{more_style}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
    return write_whole(path, page.encode("utf-8", "replace"))


# --- text -------------------------------------------------------------------------------------------------------------


def section(heading: str, *parts: str) -> str:
    return f"<h2>{escape(heading)}</h2>\n" + "\n".join(parts)


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


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


def bar(share: float) -> str:
    """A bar from the middle: to the right for a positive share of the largest, to the left for a negative one."""
    width = 50 * min(abs(share), 1)
    start = 50 if share > 0 else 50 - width
    kind = "plus" if share > 0 else "minus"
    return f'<span class="bar"><i class="{kind}" style="left:{start:.1f}%;width:{width:.1f}%"></i></span>'


# --- figures ----------------------------------------------------------------------------------------------------------


def drawn(figure: Figure, form: str) -> bytes:
    """The figure as a file of this format, "png" or "svg"; the same figure gives the same bytes."""
    import matplotlib

    drawing = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "streamlasso"}):
        figure.savefig(drawing, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    return drawing.getvalue()


def write_figure(path: Path, figure: Figure) -> None:
    """As `path`.png and `path`.svg."""
    for form in ("png", "svg"):
        write_whole(path.with_name(f"{path.name}.{form}"), drawn(figure, form))


def image(drawing: bytes, alt: str, form: str = "svg") -> str:
    """A drawing within the page, and text for those who cannot see it."""
    return f'<img alt="{escape(alt)}" src="{data_url(drawing, form)}">'


def data_url(drawing: bytes, form: str) -> str:
    kind = {"svg": "svg+xml", "png": "png"}[form]
    return f"data:image/{kind};base64,{base64.b64encode(drawing).decode()}"


def titled(picture: str, caption: str) -> str:
    """An image with its caption below it."""
    return f"<figure>{picture}<figcaption>{escape(caption)}.</figcaption></figure>"


# --- versions ---------------------------------------------------------------------------------------------------------


def versions(*packages: str) -> dict[str, str]:
    """Of streamlasso, Python, and those of the packages that are installed."""
    found = {"streamlasso": __version__, "Python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def as_words(numbers: Mapping[str, str]) -> str:
    """Names and versions, in a line."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items())
