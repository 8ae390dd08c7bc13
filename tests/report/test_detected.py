"""Changes in figures and in the report: marks that hide nothing, and a word where earlier ones were not kept."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from streamlasso import RAPRegressor
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.report.detected import KEPT, change_key, detected_section, mark_changes


class Found:
    """A summary of which nothing else is asked."""

    times = None

    def __init__(self, n):
        self.detected = tuple(DetectedChange(100 * i, 100 * i + 9, {100 * i: 1.0}, {}, 1.0) for i in range(n))


def test_a_model_keeps_as_many_as_the_report_says():
    rng = np.random.default_rng(0)
    model = RAPRegressor().partial_fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    assert model.learners_[0].changes.most_kept == KEPT


@pytest.mark.parametrize(("n", "height"), [(3, 1.0), (33, 0.08)])
def test_many_marks_are_short(n, height):
    axes = Figure().add_subplot()
    mark_changes(axes, Found(n))
    low, high = np.array([line.get_ydata() for line in axes.lines]).T
    assert len(axes.lines) == n
    np.testing.assert_allclose(high - low, height)


def test_that_earlier_changes_were_not_kept_is_printed():
    assert change_key(Found(3))[0][0] == "change found"
    assert "not among them" not in detected_section(Found(3))
    assert change_key(Found(33))[0][0] == "the last 33 changes found"
    assert "not among them" in detected_section(Found(33))
