"""Trace or digest -> one self-contained HTML page: nothing is fetched when it is opened."""

from __future__ import annotations

import base64
import io
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from streamlasso import __version__
from streamlasso._files import write_whole
from streamlasso._text import count, listed, number, percent
from streamlasso.report.plots import as_digest, plot_coefficients, plot_trace
from streamlasso.report.summarise import N_WORST
from streamlasso.report.summary import Digest
from streamlasso.trace import Trace

#: Lines of a table, and parts of the stream that are compared.
MOST_LINES, N_PARTS = 20, 5
#: Fresh starts that are listed, the last ones.
MOST_STARTS = 8
LONGEST_VALUE = 200
#: A share of the loss in a few rows, and a share saved, that are worth a sentence.
NOTABLE_SHARE, TOO_GOOD = 0.1, 0.995

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

READING = {
    "Loss": "What a prediction costs, made before the row was learnt: the honest measure. Lower is better. The first "
    "row, which nothing could predict, is left out of every mean.",
    "Running mean": "The simplest rival: always predict the mean of the rows so far. A model that does not beat it has "
    "learnt nothing.",
    "Persistence": "The other simple rival: the next row will be like the last; for classes, how often each has "
    "followed the last one.",
    "Memory": "How many rows the model works with: the weight that its memory gives to the past. A drop means that it "
    "has let go of rows that no longer fit.",
    "Active": "A feature with a coefficient that is not 0. The others have no part in the predictions.",
    "lam": "The penalty on coefficients, which the model sets itself, row by row: larger means fewer active features. "
    "At lam_max there are none.",
    "Effect": "How far the prediction (for classes and counts: its log-odds or logarithm) moves when a feature rises "
    "by its usual standard deviation, within stretches as long as the model's memory: the coefficient times that.",
}
CITATION = (
    "R. P. Monti, C. Anagnostopoulos, G. Montana: Adaptive regularization for Lasso models in the context of "
    "non-stationary data streams."
)


def write_report(
    trace: Trace | Digest,
    path: str | os.PathLike[str],
    title: str = "A stream, learnt as it came",
    settings: Mapping[str, Any] | None = None,
    comparisons: Mapping[str, np.ndarray] | None = None,
    notes: Sequence[str] = (),
    drawing: bytes | None = None,
) -> Path:
    """Write the page to `path`, whole or not at all.

    `comparisons` are other losses of the same rows, by name; `notes` are sentences about the data;
    `drawing` is an SVG to show in place of that of `plot_trace`.

    >>> import tempfile
    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> model = RAPRegressor(memory=0.95)
    >>> trace = progressive(model, stream.X, stream.y, coef=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(trace, f"{folder}/report.html", settings=model.get_params()).name
    'report.html'
    """
    digest = as_digest(trace)
    parts = [
        f"<h1>{escape(title)}</h1>",
        _paragraph(_headline(digest), "headline"),
        _at_a_glance(digest),
        _losses(digest, comparisons or {}),
        _over_time(drawing or drawn(plot_trace(digest), "svg")),
        _parts_of_the_stream(digest),
        _active_now(digest),
        _coefficients(digest),
        _changes(digest),
        _notes(notes),
        _settings(digest, settings or {}),
        _reading(),
    ]
    return write_page(path, title, parts)


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


def write_figure(path: Path, figure: Figure) -> None:
    """As `path`.png and `path`.svg."""
    for form in ("png", "svg"):
        write_whole(path.with_name(f"{path.name}.{form}"), drawn(figure, form))


# --- sections ---------------------------------------------------------------------------------------------------------


def _headline(digest: Digest) -> str:
    against = f"{number(digest.mean_loss)} against {number(digest.mean_baseline)} ({digest.loss_name})"
    if not np.isfinite(digest.saved):
        verdict = (
            f"the model's mean loss was {number(digest.mean_loss)}, the running mean's {number(digest.mean_baseline)}"
        )
    elif abs(digest.saved) < 0.005:
        verdict = f"the model's loss was that of the running mean, {against}"
    elif digest.saved > 0:
        verdict = f"the model's loss was {percent(digest.saved)} lower than that of the running mean, {against}"
    else:
        verdict = f"the model did not beat the running mean: its loss was {percent(-digest.saved)} higher, {against}"
    if digest.classes is not None:
        verdict += f"; it named the right class {percent(digest.sums['right'])} of the time"
    return f"Over {count(digest.n_rows, 'row')} {verdict}. {_leaders(digest)}{doubt(digest)}"


def doubt(digest: Digest) -> str:
    """What to look at where the result is too good, or worse than it need be."""
    if digest.mean_persistence is not None and digest.mean_loss > digest.mean_persistence:
        return (
            f" But to say that each row is like the last would have cost less, {number(digest.mean_persistence)}: give "
            "the last value as a feature (--lags)."
        )
    if not digest.saved > TOO_GOOD:
        return ""
    return (
        " The predictions are nearly perfect: see that no feature holds the target itself, or what is known only later."
    )


def _leaders(digest: Digest) -> str:
    effect = np.abs(digest.effects).max(axis=0)
    n_active = int(np.sum(effect > 0))
    if not n_active:
        return f"It now uses none of the {len(effect)} features."
    names = [digest.feature_names[j] for j in np.argsort(-effect, kind="stable")[: min(3, n_active)]]
    most = "" if len(effect) == 1 else f", {'most of all ' if n_active > 1 else ''}{listed(names)}"
    return f"It now uses {n_active} of the {count(len(effect), 'feature')}{most}."


def _at_a_glance(digest: Digest) -> str:
    lam, lam_max = np.atleast_1d(digest.lam[-1]), np.atleast_1d(digest.lam_max[-1])
    rows = {
        "rows": f"{digest.n_rows:,}",
        f"{digest.loss_name}, all rows": number(digest.mean_loss),
        "loss saved against the running mean": percent(digest.saved),
        **_in_plain_terms(digest),
        f"of {count(len(digest.feature_names), 'feature')} active now": str(
            int(np.sum(np.any(digest.effects != 0, axis=0)))
        ),
        f"lam now (lam_max {_between(lam_max)})": _between(lam),
    }
    cards = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in rows.items())
    return f'<div class="figures">{cards}</div>'


def _in_plain_terms(digest: Digest) -> dict[str, str]:
    """How good it was, in units that need no explanation."""
    if digest.classes is not None:
        return {"of the classes named right": percent(digest.sums["right"])}
    return {"typical error, in units of the response": number(digest.typical_error)}


def _losses(digest: Digest, comparisons: Mapping[str, np.ndarray]) -> str:
    recent = digest.t - digest.t[-1] > -max(digest.n_rows // N_PARTS, 1)
    judged = {
        "model": _two_means(digest, digest.loss, recent),
        "running mean": _two_means(digest, digest.baseline, recent),
    }
    if digest.persistence is not None:
        judged["persistence"] = _two_means(digest, digest.persistence, recent)
    n_recent = int(digest.rows[recent].sum())
    skip = 1 if digest.n_rows > 1 else 0
    judged |= {name: (np.mean(loss[skip:]), np.mean(loss[-n_recent:])) for name, loss in comparisons.items()}
    squared = digest.family.quadratic
    head = ["", f"{digest.loss_name}, all rows", f"last {count(n_recent, 'row')}"]
    head += ["typical error, all rows"] if squared else []
    lines = []
    for name, (mean, mean_of_recent) in judged.items():
        line = [name, number(mean), number(mean_of_recent)]
        lines.append([*line, number(np.sqrt(2 * mean))] if squared else line)
    note = "Typical error: the root of the mean squared error, in units of the response." if squared else ""
    notes = _paragraph(_worst_rows(digest), "note") + _paragraph(note, "note")
    return _section("How good were the predictions?", _table(head, lines, strong=0), notes)


def _two_means(digest: Digest, losses: np.ndarray, recent: np.ndarray) -> tuple[float, float]:
    """Of all rows, and of the last ones."""
    return _mean(losses, digest.judged), _mean(losses[recent], digest.judged[recent])


def _worst_rows(digest: Digest) -> str:
    """Said only where a few rows cost as much as many: a mean hides them."""
    n_judged = digest.judged.sum()
    has_constant = digest.family.deviance_name is not None or np.isnan(digest.sums["least"])
    if n_judged < 20 * N_WORST or has_constant:
        return ""
    share = sum(loss for _, loss in digest.worst) / max(digest.mean_loss * n_judged, np.finfo(float).tiny)
    if share < NOTABLE_SHARE:
        return ""
    rows = listed([f"{t:,}" for t in sorted(t for t, _ in digest.worst)])
    return f"{percent(share)} of the model's loss comes from {N_WORST} rows: {rows}. Look at them."


def _over_time(drawing: bytes) -> str:
    said = (
        "Over the rows: the penalty lam and the value lam_max that would empty the model; the loss of the model and "
        "of its rivals; how many rows the memory holds; which features were active"
    )
    return _section("What happened when?", image(drawing, said))


def _parts_of_the_stream(digest: Digest) -> str:
    head = ["rows", "loss", "running mean", "lam (median)", "active (mean)", "memory (mean, rows)"]
    lines = []
    edges = np.linspace(0, len(digest.t), min(N_PARTS, len(digest.t)) + 1).astype(int)
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        lines.append(
            [
                f"{digest.t[start] - digest.rows[start] + 1:,} to {digest.t[stop - 1]:,}",
                number(_mean(digest.loss[part], digest.judged[part])),
                number(_mean(digest.baseline[part], digest.judged[part])),
                _between(_median(digest.lam[part])),
                _between(_mean_active(digest.n_active[part])),
                number(float(np.mean(digest.effective_size[part]))),
            ]
        )
    return _paragraph("The same in numbers, by parts of the stream:", "note") + _table(head, lines) + _trouble(digest)


def _trouble(digest: Digest) -> str:
    """Steps that did not go as they should; waiting for something to fit is no trouble."""
    found = [f"{word} ({count:,})" for word, count in sorted(digest.status.items()) if word not in ("ok", "waiting")]
    note = f"Steps that were not exact, and went on with the documented fallback: {listed(found)}." if found else ""
    return _paragraph(note, "note")


def _active_now(digest: Digest) -> str:
    effects, coefs = digest.effects, np.atleast_2d(digest.last_coef)
    order = [np.unravel_index(at, effects.shape) for at in np.argsort(-np.abs(effects), axis=None, kind="stable")]
    order = [at for at in order if coefs[at] != 0]
    if not order:
        return _section("Which features matter now?", _paragraph("None: the model predicts the same for every row."))
    largest = max(abs(effects[order[0]]), np.finfo(float).tiny)
    head = [*(["class"] if digest.outputs else []), "feature", "coefficient", "effect", ""]
    lines = []
    for at in order[:MOST_LINES]:
        label = [escape(str(digest.outputs[at[0]]))] if digest.outputs else []
        cells = [escape(digest.feature_names[at[1]]), number(float(coefs[at])), number(float(effects[at]))]
        lines.append([*label, *cells, _bar(effects[at] / largest)])
    more = len(order) - len(lines)
    note = f"And {more:,} smaller ones." if more else ""
    table = _table(head, lines, escaped=True, text=1 if digest.outputs else 0)
    return _section("Which features matter now?", table, _paragraph(note, "note"))


def _coefficients(digest: Digest) -> str:
    if digest.coef is None or digest.coef.ndim != 2 or not np.any(digest.coef):
        return ""
    said = "The effects of the largest coefficients over the rows"
    return _section("The largest coefficients over time", image(drawn(plot_coefficients(digest), "svg"), said))


def _changes(digest: Digest) -> str:
    if digest.coef is None:
        return ""
    changes = digest.changes()
    largest = sorted(changes, key=lambda change: -abs(change.effect))[:MOST_LINES]
    lines = []
    for change in largest:
        whose = f" (class {change.label})" if digest.outputs else ""
        what = f"{change.feature} {'entered' if change.entered else 'left'}{whose}"
        stay = f"stayed {count(change.rows, 'row')}" if change.entered else f"after {count(change.rows, 'row')}"
        lines.append((change.t, [what, stay, number(change.effect)]))
    for t, since in digest.fresh_starts()[-MOST_STARTS:]:
        lines.append((t, [f"the model started afresh: all it uses came after row {since:,}", "", ""]))
    if not lines:
        return _section("What changed?", _paragraph("No feature entered or left for long."))
    kept = f"the {len(largest)} with the largest effects of {len(changes):,}" if len(largest) < len(changes) else "all"
    note = f"Lasting changes only, {kept}; the effect is the mean over the stay."
    when = "row" if digest.times is None else "when"
    written = [[_when(digest, t), *line] for t, line in sorted(lines, key=lambda line: line[0])]
    table = _table([when, "what", "how long", "effect"], written, text=2)
    return _section("What changed?", table, _paragraph(note, "note"))


def _when(digest: Digest, t: int) -> str:
    return f"{t:,}" if digest.times is None else digest.at(t)


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{escape(_short(note))}</li>" for note in notes)
    return _section("About the data", f"<ul>{items}</ul>")


def _settings(digest: Digest, settings: Mapping[str, Any]) -> str:
    lines = [[name, _short(value)] for name, value in {"loss": digest.loss_name, **settings}.items()]
    used = as_words(versions("numpy", "scipy", "scikit-learn"))
    return _section("Settings and versions", _table(["setting", "value"], lines, text=1), _paragraph(used, "note"))


def _reading() -> str:
    terms = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in READING.items())
    return _section("How to read this", f"<dl>{terms}</dl>", _paragraph(f"The method: {CITATION}", "note"))


# --- parts of sections ------------------------------------------------------------------------------------------------


def _section(heading: str, *parts: str) -> str:
    return f"<h2>{escape(heading)}</h2>\n" + "\n".join(parts)


def _paragraph(words: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(words)}</p>' if words else ""


def _table(
    head: Sequence[str], lines: Iterable[Sequence[str]], *, strong: int = -1, text: int = 0, escaped: bool = False
) -> str:
    """Columns 0 to `text` hold words. `escaped`: the cells are HTML already."""
    whole = "".join(f"<th{_text(i, text)}>{escape(cell)}</th>" for i, cell in enumerate(head))
    body = ""
    for i, line in enumerate(lines):
        cells = (cell if escaped else escape(cell) for cell in line)
        row = "".join(f"<td{_text(j, text)}>{cell}</td>" for j, cell in enumerate(cells))
        kind = ' class="strong"' if i == strong else ""
        body += f"<tr{kind}>{row}</tr>\n"
    return f'<div class="scroll"><table>\n<thead><tr>{whole}</tr></thead>\n<tbody>\n{body}</tbody></table></div>'


def _text(column: int, last: int) -> str:
    return ' class="text"' if column <= last else ""


def _bar(share: float) -> str:
    """A bar from the middle: to the right for a positive share of the largest, to the left for a negative one."""
    width = 50 * min(abs(share), 1)
    start = 50 if share > 0 else 50 - width
    kind = "plus" if share > 0 else "minus"
    return f'<span class="bar"><i class="{kind}" style="left:{start:.1f}%;width:{width:.1f}%"></i></span>'


def drawn(figure: Figure, form: str) -> bytes:
    """The figure as a file of this format, "png" or "svg"; the same figure gives the same bytes."""
    drawing = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "streamlasso"}):
        figure.savefig(drawing, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    return drawing.getvalue()


def image(drawing: bytes, said: str, form: str = "svg") -> str:
    """A drawing within the page, with words for who cannot see it."""
    return f'<img alt="{escape(said)}" src="{data_url(drawing, form)}">'


def data_url(drawing: bytes, form: str) -> str:
    kind = {"svg": "svg+xml", "png": "png"}[form]
    return f"data:image/{kind};base64,{base64.b64encode(drawing).decode()}"


def titled(picture: str, said: str) -> str:
    """An image with its words below it."""
    return f"<figure>{picture}<figcaption>{escape(said)}.</figcaption></figure>"


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


def _between(values: Any) -> str:
    """One number, or the lowest and the highest of one a class."""
    values = np.atleast_1d(values)
    if len(values) == 1 or values.min() == values.max():
        return number(values[0])
    return f"{number(values.min())} to {number(values.max())}"


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Over what has weight."""
    there = weights > 0
    return float(np.sum(values[there] * weights[there]) / weights[there].sum()) if there.any() else float("nan")


def _mean_active(n_active: np.ndarray) -> np.ndarray:
    """Over the stretches; a class that was not there yet counts from where it was."""
    columns = np.atleast_2d(n_active.T)
    return np.array([np.mean(column[~np.isnan(column)]) if np.any(~np.isnan(column)) else 0.0 for column in columns])


def _median(lam: np.ndarray) -> np.ndarray:
    """Over the rows, of the numbers among them: lam is nan until there is something to fit."""
    columns = np.atleast_2d(lam.T)
    found = [column[~np.isnan(column)] for column in columns]
    return np.array([np.median(column) if len(column) else np.nan for column in found])


def _short(value: Any) -> str:
    words = " ".join(str(value).split())
    return words if len(words) <= LONGEST_VALUE else words[:LONGEST_VALUE] + "…"
