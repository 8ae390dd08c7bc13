"""Models as HTML, for notebooks: what they have learnt, as small tables with bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from streamlasso._text import count, number

#: Coefficients that are shown of a model, and models of an estimator.
MOST_COEFFICIENTS, MOST_MODELS = 8, 6

STYLE = """<style>
.streamlasso { font-family: system-ui, sans-serif; font-size: 13px; line-height: 1.4; margin: .3em 0 .6em;
  --plus: #0b3c6f; --minus: #e69f00; --line: rgba(128, 128, 128, .35); }
@media (prefers-color-scheme: dark) { .streamlasso { --plus: #7db4ec; --minus: #e69f00; } }
.streamlasso p { margin: 0 0 .5em; }
.streamlasso .models { display: flex; flex-wrap: wrap; gap: .8em; align-items: flex-start; }
.streamlasso .model { border: 1px solid var(--line); border-radius: 6px; padding: .5em .8em; }
.streamlasso h4 { margin: 0 0 .3em; font-size: 1em; font-weight: 600; }
.streamlasso table { border-collapse: collapse; border: none; margin: 0; font-size: 1em; background: none; }
.streamlasso table + table { margin-top: .4em; border-top: 1px solid var(--line); }
.streamlasso tr, .streamlasso td { border: none; background: none; }
.streamlasso td { padding: .1em .8em .1em 0; text-align: left; vertical-align: middle; }
.streamlasso td.name { max-width: 16em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.streamlasso td.value { text-align: right; padding-right: 0; font-variant-numeric: tabular-nums; }
.streamlasso .bar { display: block; position: relative; width: 9em; height: .8em; }
.streamlasso .bar::before { content: ""; position: absolute; left: 50%; top: -.2em; bottom: -.2em; width: 1px;
  background: var(--line); }
.streamlasso .bar i { position: absolute; top: 0; bottom: 0; }
.streamlasso .plus { left: 50%; background: var(--plus); }
.streamlasso .minus { right: 50%; background: var(--minus); }
.streamlasso img { display: block; width: 100%; max-width: 56em; margin-top: .6em; }
</style>"""


def learnt_html(name: str, learners: Sequence[Any], models: Mapping[Any, Any], features: Sequence[str]) -> str:
    """What an estimator has learnt; its models go by their class, or by None."""
    facts = {
        "rows learnt": f"{learners[0].n_seen:,}",
        "rows in memory": number(learners[0].effective_size),
        "status": ", ".join(sorted({learner.status for learner in learners})),
    }
    line = " · ".join(f"{fact} <b>{value}</b>" for fact, value in facts.items())
    return _page(f"<p><b>{escape(name)}</b> · {line}</p>{_cards(models, features)}")


def selected_html(*models: Any, labels: Sequence[Any] = (None,)) -> str:
    """A `Selected` by itself, or one per class; features without names go by their numbers."""
    names = getattr(models[0].coef, "names", None) or [f"x{j}" for j in range(len(models[0].coef))]
    return _page(_cards(dict(zip(labels, models, strict=True)), names))


def _cards(models: Mapping[Any, Any], features: Sequence[str]) -> str:
    cards = "".join(model_card(model, features, label) for label, model in [*models.items()][:MOST_MODELS])
    more = len(models) - MOST_MODELS
    rest = f"<p>and {more} more classes</p>" if more > 0 else ""
    return f'<div class="models">{cards}</div>{rest}'


def facts_html(title: str, facts: Mapping[str, str], picture: str = "") -> str:
    """A table of facts, and below it a picture, which is HTML already.

    >>> "<b>" in facts_html("Trace", {"class": "<b>"})
    False
    """
    lines = "".join(_line(escape(name), escape(value)) for name, value in facts.items())
    card = f'<div class="model"><h4>{escape(title)}</h4><table>{lines}</table></div>'
    return _page(f'<div class="models">{card}</div>{picture}')


def model_card(model: Any, names: Sequence[str], label: Any = None) -> str:
    """One sparse model: its features, and its largest coefficients."""
    facts = {
        "features": f"{len(model.support)} of {len(names)}",
        "selected": f"since row {model.since:,}" if model.since else "",
        "intercept": number(model.intercept),
    }
    lines = "".join(_line(name, escape(value)) for name, value in facts.items() if value)
    heading = "" if label is None else f"<h4>{escape(str(label))}</h4>"
    return f'<div class="model">{heading}<table>{lines}</table>{_coefficients(model.coef, names)}</div>'


def _coefficients(coef: np.ndarray, names: Sequence[str]) -> str:
    shown = largest(coef, MOST_COEFFICIENTS)
    if not len(shown):
        return ""
    scale = np.abs(coef[shown[0]])
    rows = "".join(_bar(str(names[j]), float(coef[j]), float(abs(coef[j]) / scale)) for j in shown)
    more = int(np.count_nonzero(coef)) - len(shown)
    rest = f"<tr><td>and {count(more, 'feature')} more</td></tr>" if more else ""
    return f"<table>{rows}{rest}</table>"


def largest(coef: np.ndarray, most: int) -> np.ndarray:
    """The places of the largest coefficients, largest first; none that is 0.

    >>> import numpy as np
    >>> largest(np.array([0.1, 0.0, -2.0, 1.0]), 2)
    array([2, 3])
    """
    order = np.argsort(-np.abs(coef), kind="stable")[:most]
    return order[coef[order] != 0]


def _bar(name: str, value: float, share: float) -> str:
    side = "plus" if value > 0 else "minus"
    bar = f'<span class="bar"><i class="{side}" style="width: {50 * share:.1f}%"></i></span>'
    return (
        f'<tr><td class="name" title="{escape(name)}">{escape(name)}</td><td>{bar}</td>'
        f'<td class="value">{number(value)}</td></tr>'
    )


def _line(name: str, value: str) -> str:
    return f"<tr><td>{name}</td><td>{value}</td></tr>"


def _page(body: str) -> str:
    return f'{STYLE}<div class="streamlasso">{body}</div>'
