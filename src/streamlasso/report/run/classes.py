"""Sections of a report about classes: how well each is predicted, how they are confused, what predicts them."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from streamlasso._text import count, number, percent
from streamlasso.report.page import paragraph, section, table, tinted
from streamlasso.report.summary import Summary

#: Classes that a table names, the most common ones, and features.
MOST_CLASSES, MOST_FEATURES = 12, 15


def class_sections(summary: Summary) -> str:
    """Nothing for numbers."""
    if summary.classes is None or not summary.confusion.any():
        return ""
    parts = [section("Class by class", _scores(summary)), section("Which classes are confused?", _confusion(summary))]
    if summary.model_labels and np.any(summary.last_coef):
        parts.append(section("Which features predict which class now?", _effects(summary)))
    return "\n".join(parts)


def _scores(summary: Summary) -> str:
    counts = summary.confusion
    right, actual, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.array([actual / actual.sum(), right / predicted, right / actual])
    head = ["class", "rows", "share of the rows", "predicted", "precision", "recall"]
    lines = []
    for k in np.argsort(-actual, kind="stable"):
        share, precision, recall = map(percent, shares[:, k])
        lines.append([str(summary.classes[k]), f"{actual[k]:,}", share, f"{predicted[k]:,}", precision, recall])  # type: ignore[index]
    note = (
        "Precision: of the rows predicted as the class, the share that belongs to it. Recall: of the rows of the "
        "class, the share that was predicted as it. The share of the rows is the accuracy of always predicting it."
    )
    return table(head, lines) + paragraph(note, "note")


def _confusion(summary: Summary) -> str:
    counts, labels = grouped_confusion(summary.confusion, list(summary.classes or ()))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    lines = []
    for i, label in enumerate(labels):
        cells = [tinted(f"{counts[i, j]:,}", shares[i, j], framed=i == j) for j in range(len(labels))]
        lines.append([escape(str(label)), *cells])
    note = "Rows of each actual class, by the class that was predicted: the darker, the more. Correct ones are framed."
    return table(["actual \\ predicted", *map(str, labels)], lines, escaped=True) + paragraph(note, "note")


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
    first = np.arange(MOST_CLASSES)
    joined = np.add.reduceat(np.add.reduceat(counts, first, axis=0), first, axis=1)
    return joined, [*labels[: MOST_CLASSES - 1], f"{len(labels) - MOST_CLASSES + 1} others"]


def _effects(summary: Summary) -> str:
    effects, labels = summary.effects, summary.model_labels
    common = np.argsort(-summary.confusion.sum(axis=1), kind="stable")[:MOST_CLASSES]
    shown = [int(k) for k in common if k < len(labels)]
    size = np.abs(effects).max(axis=0)
    active = [j for j in np.argsort(-size, kind="stable")[:MOST_FEATURES] if size[j] > 0]
    lines = []
    for j in active:
        cells = [tinted(number(value) if value else "", value / size.max()) for value in effects[shown, j]]
        lines.append([escape(summary.feature_names[j]), *cells])
    more = int(np.sum(size > 0)) - len(active)
    note = "Effects on the log-odds of each class: blue raises it, orange lowers it." + (
        f" {count(more, 'more feature')} with smaller effects." if more else ""
    )
    return table(["feature", *(str(labels[k]) for k in shown)], lines, escaped=True) + paragraph(note, "note")
