"""Figures: they draw what the table says, cover no data, and survive odd streams."""

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.report.coefficient_plot import plot_coefficients
from streamlasso.report.colours import DARK, LIGHT
from streamlasso.report.curves import DRAWN
from streamlasso.report.plots import MOST_ROWS, mark_truth, plot_summary
from streamlasso.simulate import simulate
from streamlasso.tuners import SGD, Fixed


def gaussian(n=60, p=4, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return progressive(RAPRegressor(**settings), X, X[:, 0] + rng.normal(size=n))


def classes(n_classes, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    y = np.array(list("abcdefghijkl"))[:n_classes][rng.integers(n_classes, size=n)]
    y[:n_classes] = list("abcdefghijkl")[:n_classes]
    return progressive(RAPClassifier(), X, y)


def waiting():
    return progressive(RAPRegressor(), np.random.default_rng(0).normal(size=(20, 3)), np.ones(20))


def drawn(figure):
    figure.draw_without_rendering()
    return figure


def with_coef(trace, coef):
    """The same, with these coefficients of the selected model."""
    return replace(trace, selected=replace(trace.selected, coef=coef))


def rgb(color):
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


TRACES = {
    "plain": lambda: gaussian(),
    "one row": lambda: gaussian(n=1),
    "two rows": lambda: gaussian(n=2),
    "one feature": lambda: gaussian(p=1),
    "200 features": lambda: gaussian(n=100, p=200),
    "long": lambda: gaussian(n=20_001, p=2),
    "all waiting": waiting,
    "lam 0": lambda: gaussian(tuner=Fixed(0.0)),
    "lam reaches 0": lambda: gaussian(tuner=SGD(10.0), lambda_init=0.01),
    "two classes": lambda: classes(2),
    "three classes": lambda: classes(3),
    "twelve classes": lambda: classes(12),
}


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.filterwarnings("error")
def test_four_labelled_panels_for_every_stream(name):
    trace = TRACES[name]()
    figure = drawn(trace.plot())
    penalty, loss, memory, active = figure.axes
    assert [axes.get_title(loc="left").split(",")[0].split(":")[0] for axes in figure.axes] == [
        "Penalty",
        "Loss",
        "Memory",
        "Active features",
    ]
    assert loss.get_ylabel() == trace.loss_name
    assert memory.get_ylabel() == "rows in use"
    assert active.get_xlabel() == "row"
    assert penalty.get_ylabel().startswith("lam") or name in ("one row", "all waiting")


@pytest.mark.parametrize("name", ["plain", "three classes", "200 features", "two classes"])
def test_legends_cover_no_data(name):
    figure = drawn(TRACES[name]().plot())
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is None:
            continue
        box, frame = legend.get_window_extent(), axes.get_window_extent()
        assert box.y0 >= frame.y1 - 1 or box.x0 >= frame.x1 - 1
        title = axes._left_title.get_window_extent()
        assert not box.overlaps(title)


def test_long_names_leave_room_for_titles_and_legends():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a very long name " * 5 + str(j) for j in range(3)])
    figure = drawn(progressive(RAPRegressor(), X, rng.normal(size=50)).plot())
    for axes in figure.axes:
        if axes.get_legend() is not None:
            assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())
    assert len({label.get_text() for label in figure.axes[-1].get_yticklabels()}) == 3


def test_many_rows_of_several_classes_leave_room_for_titles_and_legends():
    summary = TRACES["three classes"]().summary()
    names = [f"a rather long name {j}" for j in range(len(summary.feature_names))]
    means = {**summary.means, "persistence": summary.means["baseline"]}
    compared = replace(summary, persistence=summary.baseline, means=means, feature_names=tuple(names))
    for axes in drawn(plot_summary(replace(compared, n_rows=3_000_000))).axes:
        if axes.get_legend() is not None:
            assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())


def test_curves_are_the_columns():
    trace = gaussian()
    penalty, loss, memory, _ = trace.plot().axes
    lam, lam_max = penalty.get_lines()
    np.testing.assert_array_equal(lam.get_ydata()[1:], trace.selected.lam[1:])
    assert trace.selected.lam[0] == 0
    assert lam.get_ydata()[0] < trace.selected.lam[1:].min(), (
        "0 has no place on a log axis; it is drawn at the lower edge"
    )
    np.testing.assert_array_equal(lam_max.get_ydata()[1:], trace.selected.lam_max[1:])
    assert np.isnan(lam_max.get_ydata()[0])
    assert penalty.get_yscale() == "log"
    np.testing.assert_array_equal(memory.get_lines()[0].get_ydata(), trace.effective_size)
    baseline, model = loss.get_lines()
    for line, column in ((baseline, trace.baseline), (model, trace.loss)):
        expected = [column[max(1, t - 9) : t + 1].mean() for t in range(1, 60)]
        np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-9)
        np.testing.assert_array_equal(line.get_xdata(), trace.t[1:])


def test_raster_shows_signs():
    trace = gaussian()
    coef = np.zeros((60, 4))
    coef[10:30, 1], coef[30:, 2] = 2.0, -0.1
    image = with_coef(trace, coef).plot().axes[-1].get_images()[0]
    pixels = np.asarray(image.get_array())
    assert pixels.shape == (4, 60, 3)
    np.testing.assert_allclose(pixels[1, 10:30], np.tile(rgb(DARK), (20, 1)))
    np.testing.assert_allclose(pixels[2, 30:], np.tile(rgb(LIGHT), (30, 1)))
    rest = np.ones((4, 60), dtype=bool)
    rest[1, 10:30], rest[2, 30:] = False, False
    np.testing.assert_allclose(pixels[rest], 1.0)


def test_two_signs_differ_in_grey():
    weights = np.array([0.299, 0.587, 0.114])
    dark, light = weights @ rgb(DARK), weights @ rgb(LIGHT)
    assert light - dark > 0.3
    assert 1 - light > 0.2


def test_raster_names_the_features_in_order():
    rng = np.random.default_rng(0)
    names = ["price $", "two\nlines", "_hidden", "plain"]
    X = pd.DataFrame(rng.normal(size=(30, 4)), columns=names)
    figure = drawn(progressive(RAPRegressor(), X, rng.normal(size=30)).plot())
    shown = [label.get_text() for label in figure.axes[-1].get_yticklabels()]
    assert shown == [r"price \$", "two lines", "_hidden", "plain"]


def test_many_features_keep_the_most_active_and_stay_legible():
    trace = gaussian(n=100, p=200)
    coef = np.zeros((100, 200))
    often = np.random.default_rng(1).choice(200, size=50, replace=False)
    for rank, j in enumerate(often):
        coef[: 100 - rank, j] = 1.0
    figure = drawn(with_coef(trace, coef).plot())
    labels = figure.axes[-1].get_yticklabels()
    assert [label.get_text() for label in labels] == [f"x{j}" for j in sorted(often[:MOST_ROWS])]
    boxes = [label.get_window_extent() for label in labels]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert "40 of 200" in figure.axes[-1].get_title(loc="left")


def test_long_streams_are_thinned_but_keep_their_spikes():
    trace = gaussian(n=20_001, p=2, tuner="logrms")
    lam = trace.lam.copy()
    lam[7_777], lam[13_131] = 50.0, 1e-9
    penalty, loss, _, active = replace(trace, lam=lam).plot().axes
    line = penalty.get_lines()[0]
    assert 50.0 in line.get_ydata()
    assert 1e-9 in line.get_ydata()
    for axes in (penalty, loss):
        assert all(len(line.get_xdata()) <= 2 * DRAWN + 2 for line in axes.get_lines())
    assert np.asarray(active.get_images()[0].get_array()).shape[1] == DRAWN
    assert len(trace) == 20_001


def test_a_given_figure_is_drawn_on_and_none_is_left_open():
    figure = Figure()
    assert gaussian().plot(figure) is figure
    gaussian().plot()
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()


def test_coefficients_are_the_largest_on_average_times_their_spread():
    trace = gaussian()
    coef = np.zeros((60, 4))
    coef[:, 0], coef[:5, 1], coef[:, 3] = 1.0, -3.0, 0.5
    trace = replace(with_coef(trace, coef), spread=np.array([1.0, 1.0, 1.0, 10.0]))
    axes = drawn(plot_coefficients(trace.summary())).axes[0]
    curves = [line.get_ydata() for line in axes.get_lines() if len(line.get_xdata()) == 60]
    assert [curve[0] for curve in curves] == [5.0, 1.0, -3.0]
    assert [text.get_text() for text in axes.texts] == ["x1", "x0", "x3"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["plain", "one row", "one feature", "200 features", "all waiting"])
def test_coefficients_of_every_stream(name):
    texts = drawn(plot_coefficients(TRACES[name]().summary())).axes[0].texts
    boxes = sorted((Text.get_window_extent(text) for text in texts), key=lambda box: box.y0)
    assert not any(below.overlaps(above) for below, above in pairwise(boxes))


def test_coefficients_are_needed():
    with pytest.raises(ValueError, match="coef=True"):
        plot_coefficients(replace(gaussian().summary(), coef=None))
    with pytest.raises(ValueError, match="one model"):
        plot_coefficients(classes(3).summary())


def test_truth_is_marked_where_it_changes():
    stream = simulate(0, lengths=(30, 20), densities=(0.8, 0.2))
    trace = progressive(RAPRegressor(memory=0.9), stream.X, stream.y)
    figure = trace.plot()
    mark_truth(figure, stream)
    drawn(figure)
    for axes in figure.axes:
        assert any(list(line.get_xdata()) == [29.5, 29.5] for line in axes.get_lines())
    truth = figure.axes[-1].collections[1:]
    assert [sorted(int(segment[0, 1]) for segment in part.get_segments()) for part in truth] == [
        np.flatnonzero(stream.beta[0]).tolist(),
        np.flatnonzero(stream.beta[-1]).tolist(),
    ]
