"""Detected changes in figures and in the report: marks that hide nothing, and a word if earlier ones were dropped."""

from dataclasses import replace

import numpy as np
import pytest

from streamlasso import RAPRegressor, progressive
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.report.run.history import detected
from streamlasso.report.run.plots import plot_summary
from streamlasso.report.summary import KEPT


@pytest.fixture(scope="module")
def summary():
    rng = np.random.default_rng(0)
    return progressive(RAPRegressor(tuner="logrms"), rng.normal(size=(50, 2)), rng.normal(size=50)).summary()


def with_changes(summary, n):
    return replace(summary, detected=tuple(DetectedChange(i, i + 9, {i: 1.0}, {}, 1.0) for i in range(n)))


def test_a_model_keeps_as_many_as_the_report_says():
    rng = np.random.default_rng(0)
    model = RAPRegressor().partial_fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    assert model.learners_[0].changes.most_kept == KEPT


@pytest.mark.parametrize(("n", "height"), [(3, 1.0), (33, 0.08)])
def test_many_marks_are_short(summary, n, height):
    memory = next(axes for axes in plot_summary(with_changes(summary, n)).axes if axes.get_label() == "memory")
    low, high = np.array([line.get_ydata() for line in memory.lines if len(line.get_xdata()) == 2]).T
    assert len(low) == n
    np.testing.assert_allclose(high - low, height)


@pytest.mark.parametrize(("n", "name"), [(3, "change found"), (33, "the last 33 changes found")])
def test_that_earlier_changes_were_not_kept_is_printed(summary, n, name):
    changed = with_changes(summary, n)
    legends = [axes.get_legend() for axes in plot_summary(changed).axes]
    assert name in {text.get_text() for legend in legends if legend for text in legend.get_texts()}
    assert ("not among them" in detected(changed)) == (n == 33)
