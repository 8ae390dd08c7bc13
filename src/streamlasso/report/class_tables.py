"""Sections of a report about classes: how often each is found, what it is taken for, which features speak for it."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from streamlasso._text import count, number, percent
from streamlasso.report.page import paragraph, section, table
from streamlasso.report.summary import Summary

#: Classes that a table names, the most common ones, and features.
MOST_CLASSES, MOST_FEATURES = 12, 15
#: A cell that is tinted more than this has light letters.
DEEP = 0.6


def class_scores(summary: Summary) -> list[tuple[Any, int, int, float, float]]:
    """Of each class: its name, rows, rows predicted as it, precision and recall (NaN where there is nothing to count).

    Precision is the share of the rows predicted as the class that are of it, recall the share of its rows that were
    predicted as it.
    """
    assert summary.classes is not None
    counts = summary.confusion
    right, actual, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = right / predicted, right / actual
    return [
        (label, int(actual[k]), int(predicted[k]), float(precision[k]), float(recall[k]))
        for k, label in enumerate(summary.classes[: len(counts)])
    ]


def class_sections(summary: Summary) -> str:
    """Nothing for numbers."""
    if summary.classes is None or not summary.confusion.any():
        return ""
    parts = [section("Class by class", _scores(summary)), section("What was taken for what?", _confusion(summary))]
    if summary.model_labels and np.any(summary.last_coef):
        parts.append(section("Which features speak for which class now?", _effects(summary)))
    return "\n".join(parts)


def _scores(summary: Summary) -> str:
    scores = sorted(class_scores(summary), key=lambda score: -score[1])
    n_rows = sum(actual for _, actual, *_ in scores)
    head = ["class", "rows", "share of the rows", "predicted", "precision", "recall"]
    lines = [
        [str(label), f"{actual:,}", percent(actual / n_rows), f"{predicted:,}", percent(precision), percent(recall)]
        for label, actual, predicted, precision, recall in scores
    ]
    note = (
        "Precision: of the rows predicted as the class, the share that is of it. Recall: of the rows of the class, the "
        "share that was predicted as it. The share of the rows is what always saying the class would get right."
    )
    return table(head, lines) + paragraph(note, "note")


def _confusion(summary: Summary) -> str:
    assert summary.classes is not None
    counts, labels = grouped_confusion(summary.confusion, list(summary.classes))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = ["actual \\ predicted", *map(str, labels)]
    lines = []
    for i, label in enumerate(labels):
        cells = [_cell(f"{counts[i, j]:,}", shares[i, j], framed=i == j) for j in range(len(labels))]
        lines.append([escape(str(label)), *cells])
    note = "Rows of each actual class, by the class that was predicted: the darker, the more. Correct ones are framed."
    return table(head, lines, escaped=True) + paragraph(note, "note")


def grouped_confusion(counts: np.ndarray, labels: list[Any]) -> tuple[np.ndarray, list[Any]]:
    """The most common classes, most common first; the others are joined.

    >>> import numpy as np
    >>> grouped_confusion(np.array([[1, 0], [2, 5]]), ["no", "yes"])
    (array([[5, 2],
           [0, 1]]), ['yes', 'no'])
    """
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    counts, labels = counts[np.ix_(order, order)], [labels[k] for k in order]
    if len(labels) <= MOST_CLASSES:
        return counts, labels
    first = np.append(np.arange(MOST_CLASSES - 1), MOST_CLASSES - 1)
    joined = np.add.reduceat(np.add.reduceat(counts, first, axis=0), first, axis=1)
    return joined, [*labels[: MOST_CLASSES - 1], f"{len(labels) - MOST_CLASSES + 1} others"]


def _effects(summary: Summary) -> str:
    effects, labels = summary.effects, summary.model_labels
    common = np.argsort(-summary.confusion.sum(axis=1), kind="stable")[:MOST_CLASSES]
    shown = [int(k) for k in common if k < len(labels)]
    active = np.argsort(-np.abs(effects).max(axis=0), kind="stable")[:MOST_FEATURES]
    active = active[np.abs(effects[:, active]).max(axis=0) > 0]
    largest = np.abs(effects).max()
    lines = [
        [escape(summary.feature_names[j]), *(_cell(_signed(effects[k, j]), effects[k, j] / largest) for k in shown)]
        for j in active
    ]
    more = int(np.sum(np.any(effects != 0, axis=0))) - len(active)
    note = "Effects on the log-odds of each class. Blue speaks for the class, orange against it." + (
        f" {count(more, 'more feature')} with smaller effects." if more else ""
    )
    head = ["feature", *(str(labels[k]) for k in shown)]
    return table(head, lines, escaped=True) + paragraph(note, "note")


def _signed(value: float) -> str:
    return "" if value == 0 else number(value)


def _cell(text: str, share: float, framed: bool = False) -> str:
    """A cell tinted by a share between -1 and 1."""
    tint = "var(--plus)" if share >= 0 else "var(--minus)"
    kinds = "cell" + (" deep" if share > DEEP else "") + (" framed" if framed else "")
    return f'<span class="{kinds}" style="--share:{abs(share):.2f};--tint:{tint}">{escape(text)}</span>'
