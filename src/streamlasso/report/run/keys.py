"""The section of a report on the keys: which gain most from a model of their own, and whose loss has risen."""

from __future__ import annotations

import numpy as np

from streamlasso._text import count, number, percent
from streamlasso.report.key_sums import DECAY, KeyLosses
from streamlasso.report.page import paragraph, section, table

#: Keys in a table, and letters of a key.
MOST_KEYS, LONGEST_KEY = 20, 60
HEAD = ("key", "rows", "mean loss", "pooled model", "running mean", "recent loss", "own model")


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
    """The two rankings; `name` is the column of the keys."""
    about = (
        f"Each value of {name} has a model of its own, which competes with the pooled model: that of all rows, and the "
        'same shifted to the level of the key. "own model" is its weight in the next prediction. '
        "Features and coefficients on this page are those of the pooled model. All keys are in keys.csv."
    )
    gain = "Loss of the pooled model less that of the key's own, summed over the rows of the key."
    change = f"The recent loss, where a row counts {DECAY:g} of the next one of its key, against that of all its rows."
    parts = [paragraph(key_sentence(losses) + "."), paragraph(about, "note")]
    parts += ["<h3>Largest gain over the pooled model</h3>", paragraph(gain, "note")]
    parts.append(_ranking(losses, "gain", "loss saved", [number(float(value)) for value in losses.gain]))
    parts += ["<h3>Loss has risen most</h3>", paragraph(change, "note")]
    shares = [f"{value:+.0%}".replace("%", " %") for value in losses.change]
    parts.append(_ranking(losses, "change", "change", shares))
    return section("Keys", *parts)


def _ranking(losses: KeyLosses, column: str, heading: str, shown: list[str]) -> str:
    lines = [[*_line(losses, i), shown[i]] for i in losses.most(column, MOST_KEYS)]
    return table([*HEAD, heading], lines)


def _line(losses: KeyLosses, i: int) -> list[str]:
    key = losses.keys[i]
    key = key if len(key) <= LONGEST_KEY else key[:LONGEST_KEY] + "…"
    values = (losses.loss, losses.pooled, losses.baseline, losses.late)
    return [key, f"{losses.rows[i]:,}", *(number(float(each[i])) for each in values), percent(float(losses.weight[i]))]
