"""Summary -> the report of a run, one self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamlasso.report.page import bullets, drawn, glossary, paragraph, section, settings_table, write_page
from streamlasso.report.run import history, results
from streamlasso.report.run.classes import class_sections
from streamlasso.report.run.plots import plot_summary
from streamlasso.report.summary import Summary

GLOSSARY = {
    "Typical error": "The mean absolute error: how far off a prediction is on average, in units of the response. Every "
    "row is predicted before it is learnt.",
    "Loss": "What a prediction costs, as the model counts it. Lower is better. The first row, which nothing could "
    "predict, is left out of every mean.",
    "Running mean": "The simplest baseline: always predict the mean of the rows so far. A model that does not beat it "
    "has learnt nothing.",
    "Persistence": "The other baseline: the next row is like the last; for classes, how often each has followed the "
    "last one.",
    "Memory": "How many rows the model works with: the sum of the weights that past rows still have. It drops when the "
    "model forgets rows that no longer fit.",
    "Active": "A feature with a coefficient that is not 0. The others do not affect the predictions.",
    "lam": "The penalty on coefficients, which the model sets itself, row by row. A larger lam means fewer active "
    "features; at lam_max there are none.",
    "Effect": "How far the prediction (for classes and counts: its log-odds or logarithm) moves when a feature rises "
    "by one standard deviation, taken over stretches as long as the model's memory.",
}


def write_report(
    summary: Summary,
    path: str | os.PathLike[str],
    title: str = "A stream, predicted and learnt row by row",
    settings: Mapping[str, Any] | None = None,
    comparisons: Mapping[str, np.ndarray] | None = None,
    notes: Sequence[str] = (),
    drawing: bytes | None = None,
    sections: Sequence[str] = (),
) -> Path:
    """Write the page to `path`, whole or not at all.

    `comparisons` are other losses of the same rows, by name; `notes` are sentences about the data;
    `drawing` is an SVG to show in place of that of `plot_summary`; `sections` are HTML, after those on the predictions.

    >>> import tempfile
    >>> from streamlasso import RAPRegressor, progressive
    >>> from streamlasso.simulate import simulate
    >>> stream = simulate(0)
    >>> model = RAPRegressor(memory=0.95)
    >>> trace = progressive(model, stream.X, stream.y, coef=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(trace.summary(), f"{folder}/report.html", settings=model.get_params()).name
    'report.html'
    """
    parts = [
        paragraph(results.headline(summary), "headline"),
        results.at_a_glance(summary),
        history.over_time(summary, drawing or drawn(plot_summary(summary), "svg")),
        results.losses(summary, comparisons or {}),
        *sections,
        class_sections(summary),
        history.active_now(summary),
        history.coefficients(summary),
        history.detected(summary),
        history.selection_changes(summary),
        section("About the data", bullets(notes)) if notes else "",
        settings_table({"loss": summary.loss_name, **(settings or {})}, "numpy", "scipy", "scikit-learn"),
        glossary(GLOSSARY),
    ]
    return write_page(path, title, parts)
