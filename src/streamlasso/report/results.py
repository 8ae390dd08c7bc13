"""Sections of a report: how good the predictions were."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from streamlasso._text import count, listed, number, number_range, percent
from streamlasso.report.page import paragraph, section, table
from streamlasso.report.summarise import N_WORST
from streamlasso.report.summary import Summary

#: The last rows that have a mean of their own: one of so many parts of the stream.
N_PARTS = 5
#: The model is as good as the running mean if it saves less than this share of its loss; as persistence, if it adds
#: less.
AS_GOOD, NEARLY = 0.005, 0.02
#: A share of the loss in a few rows, and a share saved, that are worth a sentence.
NOTABLE_SHARE, TOO_GOOD = 0.1, 0.995


def headline(summary: Summary) -> str:
    result = _result(summary)
    if summary.classes is not None:
        result += f"; it predicted the right class {percent(summary.accuracy)} of the time"
    return " ".join([f"Over {count(summary.n_rows, 'row')} {result}.", _leaders(summary), *caveats(summary)])


def _result(summary: Summary) -> str:
    loss, baseline, saved = number(summary.mean_loss), number(summary.mean_baseline), summary.saved
    if not np.isfinite(saved):
        return f"the model's mean loss was {loss}, the running mean's {baseline}"
    against = f"{loss} against {baseline} ({summary.loss_name})"
    if abs(saved) < AS_GOOD:
        return f"the model's loss was that of the running mean, {against}"
    if saved > 0:
        return f"the model's loss was {percent(saved)} lower than that of the running mean, {against}"
    return f"the model did not beat the running mean: its loss was {percent(-saved)} higher, {against}"


def caveats(summary: Summary) -> list[str]:
    """What to check where the result is too good, or worse than it need be."""
    if summary.mean_persistence is not None and summary.saved_against(summary.mean_persistence) < -NEARLY:
        return [
            "But persistence, which predicts that each row is like the last, had a lower loss, "
            f"{number(summary.mean_persistence)}: earlier values as features may help (--lags)."
        ]
    if summary.saved > TOO_GOOD:
        return [
            "The predictions are nearly perfect: check that no feature holds the target itself, or something that is "
            "only known later."
        ]
    return []


def _leaders(summary: Summary) -> str:
    effect = np.abs(summary.effects).max(axis=0)
    n_active = int(np.sum(effect > 0))
    if not n_active:
        return f"It now uses none of the {len(effect)} features."
    names = [summary.feature_names[j] for j in np.argsort(-effect, kind="stable")[: min(3, n_active)]]
    most = "" if len(effect) == 1 else f", {'most of all ' if n_active > 1 else ''}{listed(names)}"
    return f"It now uses {n_active} of the {count(len(effect), 'feature')}{most}."


def at_a_glance(summary: Summary) -> str:
    n_active = int(np.sum(np.any(summary.effects != 0, axis=0)))
    lam, lam_max = (number_range(np.atleast_1d(values[-1])) for values in (summary.lam, summary.lam_max))
    facts = {
        "rows": f"{summary.n_rows:,}",
        f"{summary.loss_name}, all rows": number(summary.mean_loss),
        "loss saved against the running mean": percent(summary.saved),
        **_in_plain_terms(summary),
        f"of {count(len(summary.feature_names), 'feature')} active now": str(n_active),
        f"lam now (lam_max {lam_max})": lam,
    }
    cards = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in facts.items())
    return f'<div class="figures">{cards}</div>'


def _in_plain_terms(summary: Summary) -> dict[str, str]:
    """How good it was, in units that need no explanation."""
    if summary.classes is not None:
        return {"of the classes predicted correctly": percent(summary.accuracy)}
    return {"typical error, in units of the response": number(summary.typical_error)}


def losses(summary: Summary, comparisons: Mapping[str, np.ndarray]) -> str:
    recent = summary.t - summary.t[-1] > -max(summary.n_rows // N_PARTS, 1)
    n_recent = int(summary.rows[recent].sum())
    columns = {"model": summary.loss, "running mean": summary.baseline, "persistence": summary.persistence}
    means = {
        name: (summary.mean_over(loss), summary.mean_over(loss, recent))
        for name, loss in columns.items()
        if loss is not None
    }
    skip = 1 if summary.n_rows > 1 else 0
    means |= {name: (np.mean(loss[skip:]), np.mean(loss[-n_recent:])) for name, loss in comparisons.items()}
    head = ["", f"{summary.loss_name}, all rows", f"last {count(n_recent, 'row')}"]
    lines = [[name, *map(number, both)] for name, both in means.items()]
    note = ""
    if summary.family.quadratic:
        head.append("typical error, all rows")
        lines = [[*line, number(np.sqrt(2 * mean))] for line, (mean, _) in zip(lines, means.values(), strict=True)]
        note = "Typical error: the root of the mean squared error, in units of the response."
    notes = paragraph(_worst_rows(summary), "note") + paragraph(note, "note")
    return section("How good were the predictions?", table(head, lines, strong=0), notes)


def _worst_rows(summary: Summary) -> str:
    """Only where a few rows cost as much as many, which a mean hides."""
    n_scored = summary.scored.sum()
    has_constant = summary.family.deviance_name is not None or np.isnan(summary.means["least_loss"])
    if n_scored < 20 * N_WORST or has_constant:
        return ""
    share = sum(loss for _, loss in summary.worst) / max(summary.mean_loss * n_scored, np.finfo(float).tiny)
    if share < NOTABLE_SHARE:
        return ""
    rows = listed([f"{t:,}" for t in sorted(t for t, _ in summary.worst)])
    return f"{percent(share)} of the model's loss comes from {N_WORST} rows: {rows}. Look at them."
