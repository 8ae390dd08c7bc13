"""Sections of a report: how good the predictions were."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from streamlasso._text import count, listed, number, percent, share_of
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
    """How far off the predictions were, in the response's own units, and which features are used."""
    how_good = _right(summary) if summary.classes is not None else _typical_error(summary)
    return " ".join([f"Over {count(summary.n_rows, 'row')} {how_good}.", _leaders(summary), *caveats(summary)])


def _typical_error(summary: Summary) -> str:
    named = "" if summary.target is None else f" in {summary.target}"
    others = [f"{number(mean)} for {name}" for name, mean in _baseline_errors(summary)]
    error = f"{number(summary.typical_error)} (mean absolute error)"
    return f"the typical error{named} was {error}, against {listed(others)}"


def _right(summary: Summary) -> str:
    label, share = summary.base_rate
    right = f"{percent(summary.accuracy)} of the classes were predicted correctly"
    if summary.accuracy > share + AS_GOOD:
        return f"{right}; always predicting {label} is right {percent(share)} of the time"
    return f"{right}, no more than by always predicting {label} ({percent(share)})"


def _baseline_errors(summary: Summary) -> list[tuple[str, float]]:
    errors = [("the mean of the rows so far", summary.means["baseline_error"])]
    if summary.persistence is not None:
        errors.append(("the last value", summary.means["persistence_error"]))
    return errors


def _in_terms_of_loss(summary: Summary) -> str:
    """The same in terms of the loss that the model was fitted with."""
    loss, baseline, saved = number(summary.mean_loss), number(summary.mean_baseline), summary.saved
    if not np.isfinite(saved):
        return f"The model's mean loss was {loss}, the running mean's {baseline}."
    against = f"{loss} against {baseline} ({summary.loss_name})"
    if abs(saved) < AS_GOOD:
        return f"The model's loss was that of the running mean, {against}."
    if saved > 0:
        return f"The model's loss was {percent(saved)} lower than that of the running mean, {against}."
    return f"The model did not beat the running mean: its loss was {percent(-saved)} higher, {against}."


def inside_intervals(summary: Summary) -> str:
    """How many responses the intervals held; nothing without intervals."""
    if summary.coverage is None:
        return ""
    what, held = "intervals" if summary.classes is None else "sets", f"{100 * summary.means['covered']:.1f} %"
    of = "responses" if summary.classes is None else "classes"
    return f"The {share_of(summary.coverage)} {what} held {held} of the {of}, each given before its row."


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
    n_shown, n_features = int(np.sum(effect > 0)), summary.n_features or len(effect)
    if not n_shown:
        return f"It now uses none of the {n_features:,} features."
    n_active = summary.n_active_now if summary.only_strongest else n_shown
    names = [summary.feature_names[j] for j in np.argsort(-effect, kind="stable")[: min(3, n_shown)]]
    most = "" if len(effect) == 1 else f", {'most of all ' if n_shown > 1 else ''}{listed(names)}"
    return f"It now uses {n_active:,} of the {count(n_features, 'feature')}{most}."


def at_a_glance(summary: Summary) -> str:
    """The numbers of the headline, large, beside what is easily reached."""
    if summary.classes is None:
        facts = {"typical error (mean absolute error)": number(summary.typical_error)}
        facts |= {f"typical error of {name}": number(error) for name, error in _baseline_errors(summary)}
    else:
        label, share = summary.base_rate
        facts = {"of the classes predicted correctly": percent(summary.accuracy)}
        facts |= {f"by always predicting {label}": percent(share)}
    if summary.coverage is not None:
        what = "responses inside {} intervals" if summary.classes is None else "classes inside {} sets"
        facts[f"of the {what.format(share_of(summary.coverage))}"] = f"{100 * summary.means['covered']:.1f} %"
    n_active = summary.n_active_now if summary.only_strongest else int(np.sum(np.any(summary.effects != 0, axis=0)))
    facts["loss saved against the running mean"] = percent(summary.saved)
    n_features = summary.n_features or len(summary.feature_names)
    facts[f"of {count(n_features, 'feature')} active now"] = f"{n_active:,}"
    cards = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in facts.items())
    return f'<div class="figures">{cards}</div>'


def losses(summary: Summary, comparisons: Mapping[str, np.ndarray]) -> str:
    """The model's loss beside that of the baselines and other comparisons, over all rows and the last part."""
    recent = summary.t - summary.t[-1] > -max(summary.n_rows // N_PARTS, 1)
    n_recent = int(summary.rows[recent].sum())
    columns = {
        "model": (summary.loss, summary.means["error"]),
        "running mean": (summary.baseline, summary.means["baseline_error"]),
        "persistence": (summary.persistence, summary.means["persistence_error"]),
    }
    lines = [
        [name, _error(summary, error), number(summary.mean_over(loss)), number(summary.mean_over(loss, recent))]
        for name, (loss, error) in columns.items()
        if loss is not None
    ]
    skip = 1 if summary.n_rows > 1 else 0
    for name, loss in comparisons.items():
        lines.append([name, "", number(np.mean(loss[skip:])), number(np.mean(loss[-n_recent:]))])
    easy = "typical error" if summary.classes is None else "correct"
    head = ["", easy, f"{summary.loss_name}, all rows", f"last {count(n_recent, 'row')}"]
    result = paragraph(" ".join(filter(None, [_in_terms_of_loss(summary), inside_intervals(summary)])))
    notes = paragraph(_worst_rows(summary), "note")
    return section("How good were the predictions?", result, table(head, lines, strong=0), notes)


def _error(summary: Summary, error: float) -> str:
    return percent(1 - error) if summary.classes is not None else number(error)


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
