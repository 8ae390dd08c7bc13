"""Trace -> one self-contained HTML page: nothing is fetched when it is opened, and everything in it is in the trace."""

from __future__ import annotations

import base64
import io
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import scipy
import sklearn
from matplotlib.figure import Figure

from streamlasso import __version__
from streamlasso.families import Gaussian
from streamlasso.plots import plot_coefficients, plot_trace
from streamlasso.progressive import Trace

#: Lines of a table, and parts of the stream that are compared.
MOST_LINES, N_PARTS = 20, 5
LONGEST_VALUE = 200
#: So few rows with such a share of the loss are worth a sentence.
N_WORST, NOTABLE_SHARE = 5, 0.1

STYLE = """
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; border-bottom: 1px solid #ddd; padding-bottom: .2rem; }
p { margin: .4rem 0; max-width: 48rem; }
.headline { font-size: 1.15rem; }
.note { color: #555; font-size: .92rem; }
.figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.figures div { flex: 1 1 9rem; border: 1px solid #ddd; border-radius: .4rem; padding: .6rem .8rem; }
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
    trace: Trace,
    path: str | os.PathLike[str],
    title: str = "A stream, learnt as it came",
    settings: Mapping[str, Any] | None = None,
    comparisons: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write the page to `path`, whole or not at all. `comparisons` are other losses of the same rows, by name.

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
    parts = [
        f"<h1>{escape(title)}</h1>",
        _paragraph(_headline(trace), "headline"),
        _at_a_glance(trace),
        _losses(trace, comparisons or {}),
        _over_time(trace),
        _parts_of_the_stream(trace),
        _active_now(trace),
        _coefficients(trace),
        _changes(trace),
        _settings(trace, settings or {}),
        _reading(),
    ]
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
    return write_whole(path, page.encode("utf-8", "replace"))


def write_whole(path: str | os.PathLike[str], data: bytes) -> Path:
    """The file appears with all of `data` in it, or not at all."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return path


# --- sections ---------------------------------------------------------------------------------------------------------


def _headline(trace: Trace) -> str:
    against = f"{_number(trace.mean_loss)} against {_number(trace.mean_baseline)} ({trace.loss_name})"
    if not np.isfinite(trace.saved):
        verdict = (
            f"the model's mean loss was {_number(trace.mean_loss)}, the running mean's {_number(trace.mean_baseline)}"
        )
    elif abs(trace.saved) < 0.005:
        verdict = f"the model's loss was that of the running mean, {against}"
    elif trace.saved > 0:
        verdict = f"the model's loss was {_percent(trace.saved)} lower than that of the running mean, {against}"
    else:
        verdict = f"the model did not beat the running mean: its loss was {_percent(-trace.saved)} higher, {against}"
    if trace.classes is not None:
        verdict += f"; it named the right class {_percent(np.mean(trace.prediction == trace.y))} of the time"
    return f"Over {_count(len(trace), 'row')} {verdict}. {_leaders(trace)}"


def _leaders(trace: Trace) -> str:
    effect = np.abs(_effects(trace)).max(axis=0)
    n_active = int(np.sum(effect > 0))
    if not n_active:
        return f"It now uses none of the {len(effect)} features."
    names = [trace.feature_names[j] for j in np.argsort(-effect, kind="stable")[: min(3, n_active)]]
    most = "" if len(effect) == 1 else f", most of all {_listed(names)}"
    return f"It now uses {n_active} of the {_count(len(effect), 'feature')}{most}."


def _at_a_glance(trace: Trace) -> str:
    lam, lam_max = np.atleast_1d(trace.lam[-1]), np.atleast_1d(trace.lam_max[-1])
    rows = {
        "rows": f"{len(trace):,}",
        f"{trace.loss_name}, all rows": _number(trace.mean_loss),
        "loss saved against the running mean": _percent(trace.saved),
        f"of {_count(len(trace.feature_names), 'feature')} active now": str(
            int(np.sum(np.any(_effects(trace) != 0, axis=0)))
        ),
        f"lam now (lam_max {_between(lam_max)})": _between(lam),
    }
    cards = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in rows.items())
    return f'<div class="figures">{cards}</div>'


def _losses(trace: Trace, comparisons: Mapping[str, np.ndarray]) -> str:
    judged = {"model": trace.loss, "running mean": trace.baseline, **comparisons}
    recent = slice(len(trace) - max(len(trace) // N_PARTS, 1), None)
    squared = isinstance(trace.family, Gaussian)
    head = ["", f"{trace.loss_name}, all rows", f"last {_count(len(trace.t[recent]), 'row')}"]
    head += ["typical error, all rows"] if squared else []
    lines = []
    for name, loss in judged.items():
        mean = np.mean(loss[trace.judged])
        line = [name, _number(mean), _number(np.mean(loss[recent]))]
        lines.append([*line, _number(np.sqrt(2 * mean))] if squared else line)
    note = "Typical error: the root of the mean squared error, in units of the response." if squared else ""
    notes = _paragraph(_worst_rows(trace), "note") + _paragraph(note, "note")
    return _section("How good were the predictions?", _table(head, lines, strong=0), notes)


def _worst_rows(trace: Trace) -> str:
    """Said only where a few rows cost as much as many: a mean hides them."""
    loss = trace.loss[trace.judged]
    if len(loss) < 20 * N_WORST or loss.min() < 0:
        return ""
    worst = np.argsort(-loss, kind="stable")[:N_WORST]
    share = loss[worst].sum() / max(loss.sum(), np.finfo(float).tiny)
    if share < NOTABLE_SHARE:
        return ""
    rows = _listed([f"{t:,}" for t in np.sort(trace.t[trace.judged][worst])])
    return f"{_percent(share)} of the model's loss comes from {N_WORST} rows: {rows}. Look at them."


def _over_time(trace: Trace) -> str:
    said = (
        "Over the rows: the penalty lam and the value lam_max that would empty the model; the loss of the model and "
        "of the running mean; which features were active"
    )
    return _section("What happened when?", _image(plot_trace(trace), said))


def _parts_of_the_stream(trace: Trace) -> str:
    head = ["rows", "loss", "running mean", "lam (median)", "active (mean)"]
    lines = []
    edges = np.linspace(0, len(trace), min(N_PARTS, len(trace)) + 1).astype(int)
    for start, stop in pairwise(edges):
        judged = slice(max(start, trace.judged.start), stop)
        lines.append(
            [
                f"{trace.t[start]:,} to {trace.t[stop - 1]:,}",
                _number(_mean(trace.loss[judged])),
                _number(_mean(trace.baseline[judged])),
                _between(_median(trace.lam[start:stop])),
                _between(np.mean(trace.n_active[start:stop], axis=0)),
            ]
        )
    return _paragraph("The same in numbers, by parts of the stream:", "note") + _table(head, lines) + _trouble(trace)


def _trouble(trace: Trace) -> str:
    """Steps that did not go as they should; waiting for something to fit is no trouble."""
    words, counts = np.unique(trace.status, return_counts=True)
    found = [f"{word} ({count:,})" for word, count in zip(words, counts, strict=True) if word not in ("ok", "waiting")]
    note = f"Steps that were not exact, and went on with the documented fallback: {_listed(found)}." if found else ""
    return _paragraph(note, "note")


def _active_now(trace: Trace) -> str:
    effects, coefs = _effects(trace), np.atleast_2d(trace.last_coef)
    order = [np.unravel_index(at, effects.shape) for at in np.argsort(-np.abs(effects), axis=None, kind="stable")]
    order = [at for at in order if coefs[at] != 0]
    if not order:
        return _section("Which features matter now?", _paragraph("None: the model predicts the same for every row."))
    largest = max(abs(effects[order[0]]), np.finfo(float).tiny)
    head = [*(["class"] if trace.outputs else []), "feature", "coefficient", "effect", ""]
    lines = []
    for at in order[:MOST_LINES]:
        label = [escape(str(trace.outputs[at[0]]))] if trace.outputs else []
        cells = [escape(trace.feature_names[at[1]]), _number(float(coefs[at])), _number(float(effects[at]))]
        lines.append([*label, *cells, _bar(effects[at] / largest)])
    more = len(order) - len(lines)
    note = f"And {more:,} smaller ones." if more else ""
    table = _table(head, lines, escaped=True, text=1 if trace.outputs else 0)
    return _section("Which features matter now?", table, _paragraph(note, "note"))


def _coefficients(trace: Trace) -> str:
    if trace.coef is None or trace.coef.ndim != 2 or not np.any(trace.coef):
        return ""
    said = "The effects of the largest coefficients over the rows"
    return _section("The largest coefficients over time", _image(plot_coefficients(trace), said))


def _changes(trace: Trace) -> str:
    if trace.coef is None:
        return ""
    changes = trace.changes()
    if not changes:
        return _section("What changed?", _paragraph("No feature entered or left for long."))
    largest = sorted(changes, key=lambda change: -abs(change.effect))[:MOST_LINES]
    lines = []
    for change in sorted(largest, key=lambda change: change.t):
        whose = f" (class {change.label})" if trace.outputs else ""
        what = f"{change.feature} {'entered' if change.entered else 'left'}{whose}"
        stay = f"stayed {_count(change.rows, 'row')}" if change.entered else f"after {_count(change.rows, 'row')}"
        lines.append([f"{change.t:,}", what, stay, _number(change.effect)])
    kept = f"the {len(lines)} with the largest effects of {len(changes):,}" if len(lines) < len(changes) else "all"
    note = f"Lasting changes only, {kept}; the effect is the mean over the stay."
    table = _table(["row", "what", "how long", "effect"], lines, text=2)
    return _section("What changed?", table, _paragraph(note, "note"))


def _settings(trace: Trace, settings: Mapping[str, Any]) -> str:
    versions = {
        "streamlasso": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    lines = [[name, _short(value)] for name, value in {"loss": trace.loss_name, **settings}.items()]
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    return _section("Settings and versions", _table(["setting", "value"], lines, text=1), _paragraph(used, "note"))


def _reading() -> str:
    terms = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in READING.items())
    return _section("How to read this", f"<dl>{terms}</dl>", _paragraph(f"The method: {CITATION}", "note"))


# --- parts of sections ------------------------------------------------------------------------------------------------


def _effects(trace: Trace) -> np.ndarray:
    """(model, feature): coefficients now, times the spread of the feature."""
    return np.atleast_2d(trace.last_coef) * trace.spread


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
    for number, line in enumerate(lines):
        cells = (cell if escaped else escape(cell) for cell in line)
        row = "".join(f"<td{_text(i, text)}>{cell}</td>" for i, cell in enumerate(cells))
        kind = ' class="strong"' if number == strong else ""
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


def _image(figure: Figure, said: str) -> str:
    """The figure as an image within the page, with words for who cannot see it."""
    drawing = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "streamlasso"}):
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    data = base64.b64encode(drawing.getvalue()).decode()
    return f'<img alt="{escape(said)}" src="data:image/svg+xml;base64,{data}">'


def _number(value: float) -> str:
    if np.isnan(value):
        return "n/a"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def _between(values: Any) -> str:
    """One number, or the lowest and the highest of one a class."""
    values = np.atleast_1d(values)
    if len(values) == 1 or values.min() == values.max():
        return _number(values[0])
    return f"{_number(values.min())} to {_number(values.max())}"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %") if np.isfinite(share) else "n/a"


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _median(lam: np.ndarray) -> np.ndarray:
    """Over the rows, of the numbers among them: lam is nan until there is something to fit."""
    columns = np.atleast_2d(lam.T)
    found = [column[~np.isnan(column)] for column in columns]
    return np.array([np.median(column) if len(column) else np.nan for column in found])


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _short(value: Any) -> str:
    words = " ".join(str(value).split())
    return words if len(words) <= LONGEST_VALUE else words[:LONGEST_VALUE] + "…"
