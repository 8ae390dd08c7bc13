"""The section of a report on the keys: which gain most from a model of their own, lose most, and have changed."""

from __future__ import annotations

import numpy as np

from streamlasso._text import count, number, percent
from streamlasso.report.key_sums import DECAY, LEAST_ROWS, KeyLosses
from streamlasso.report.page import paragraph, section, table

#: Keys in a table, and letters of a key.
MOST_KEYS, LONGEST_KEY = 20, 60
HEAD = ("key", "rows", "mean loss", "pooled model", "running mean", "of late", "own model")


def key_sentence(losses: KeyLosses) -> str:
    """The keys in a sentence."""
    n = max(int(losses.scored.sum()), 1)
    own, pooled = (float(np.nansum(values * losses.scored)) / n for values in (losses.loss, losses.pooled))
    better, worse = int(np.sum(losses.gain > 0)), int(np.sum(losses.gain < 0))
    return (
        f"{count(len(losses.keys), 'key')}: their mean loss is {number(own)}, that of the pooled model "
        f"{number(pooled)}; {better:,} predict better with a model of their own, {worse:,} worse"
    )


def key_section(losses: KeyLosses, name: str) -> str:
    """The three rankings; `name` is the column of the keys."""
    rankings = (
        (
            "Largest gain over the pooled model",
            "gain",
            "loss saved",
            "Loss of the pooled model less the own, summed over the rows of a key.",
        ),
        ("Largest loss", "loss", "", f"Of keys with {LEAST_ROWS} predictions or more."),
        (
            "Loss has risen most",
            "change",
            "change",
            f"Loss of late, where a row counts {DECAY:g} of the next one of its key, against that of all its rows.",
        ),
    )
    parts = [paragraph(key_sentence(losses) + "."), paragraph(_words(name), "note")]
    for heading, column, extra, note in rankings:
        chosen = losses.most(column, MOST_KEYS)
        parts += [f"<h3>{heading}</h3>", paragraph(note, "note"), _ranking(losses, chosen, column, extra)]
    return section("Keys", *parts)


def _words(name: str) -> str:
    return (
        f"Each value of {name} has a model of its own, which competes with the pooled model: that of all rows, and the "
        'same shifted to the level of the key. "own model" is its weight in the next prediction. '
        "Features and coefficients on this page are those of the pooled model. All keys are in keys.csv."
    )


def _ranking(losses: KeyLosses, chosen: np.ndarray, column: str, extra: str) -> str:
    lines = [[*_line(losses, i), *([_shown(column, getattr(losses, column)[i])] if extra else [])] for i in chosen]
    return table([*HEAD, *([extra] if extra else [])], lines)


def _line(losses: KeyLosses, i: int) -> list[str]:
    key = losses.keys[i]
    key = key if len(key) <= LONGEST_KEY else key[:LONGEST_KEY] + "…"
    values = (losses.loss, losses.pooled, losses.baseline, losses.late)
    return [key, f"{losses.rows[i]:,}", *(number(float(each[i])) for each in values), percent(float(losses.weight[i]))]


def _shown(column: str, value: float) -> str:
    return f"{value:+.0%}".replace("%", " %") if column == "change" else number(float(value))
