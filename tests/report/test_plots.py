"""Figures: they draw what the table says, cover no data, and survive odd streams."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.report.colours import DARK, LIGHT
from streamlasso.report.curves import DRAWN
from streamlasso.report.run.model_plot import MOST_ROWS, plot_coefficients
from streamlasso.report.run.plots import mark_truth, plot_summary
from streamlasso.simulate import simulate
from streamlasso.tuners import SGD, Fixed, Mixture


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


def panel(figure, name):
    return next(axes for axes in figure.axes if axes.get_label() == name)


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
def test_predictions_come_first_and_the_penalty_last(name):
    trace = TRACES[name]()
    figure = drawn(trace.plot())
    names = list(dict.fromkeys(axes.get_label() for axes in figure.axes))
    assert [name for name in names if name != "recent"] == ["fit", "loss", "active", "memory", "penalty"]
    assert "redicted against actual" in figure.axes[0].get_title(loc="left") or "Share of" in figure.axes[0].get_title(
        loc="left"
    )
    assert panel(figure, "loss").get_ylabel() == trace.loss_name
    assert panel(figure, "memory").get_ylabel() == "rows in use"
    assert figure.axes[-1].get_xlabel() == "row"
    assert panel(figure, "penalty").get_ylabel().startswith("lam") or name in ("one row", "all waiting")


@pytest.mark.parametrize("name", ["plain", "three classes", "200 features", "two classes"])
def test_legends_cover_no_data(name):
    figure = drawn(TRACES[name]().plot())
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is None:
            continue
        box, frame = legend.get_window_extent(), axes.get_window_extent()
        assert box.y0 >= frame.y1 - 1 or box.x0 >= frame.x1 - 1 or box.y1 <= frame.y0
        title = axes._left_title.get_window_extent()
        assert not box.overlaps(title)


def test_long_names_leave_room_for_titles_and_legends():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a very long name " * 5 + str(j) for j in range(3)])
    figure = drawn(progressive(RAPRegressor(), X, rng.normal(size=50)).plot())
    for axes in figure.axes:
        if axes.get_legend() is not None:
            assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())
    labels = panel(figure, "active").get_yticklabels()
    assert len({label.get_text() for label in labels}) == 3
    assert min(label.get_window_extent().x0 for label in labels) >= 0, "no name is cut off"


def test_many_rows_of_several_classes_leave_room_for_titles_and_legends():
    summary = TRACES["three classes"]().summary()
    names = [f"a rather long name {j}" for j in range(len(summary.feature_names))]
    means = {**summary.means, "persistence": summary.means["baseline"]}
    compared = replace(summary, persistence=summary.baseline, means=means, feature_names=tuple(names))
    for axes in drawn(plot_summary(replace(compared, n_rows=3_000_000))).axes:
        if axes.get_legend() is not None:
            assert not axes.get_legend().get_window_extent().overlaps(axes._left_title.get_window_extent())


def test_curves_are_the_columns():
    trace = gaussian(tuner=Mixture(runs=0))
    penalty, loss, memory = (panel(trace.plot(), name) for name in ("penalty", "loss", "memory"))
    lam, lam_max = penalty.get_lines()
    np.testing.assert_array_equal(lam.get_ydata()[1:], trace.lam[1:])
    assert trace.lam[0] == 0
    assert lam.get_ydata()[0] < trace.lam[1:].min(), "0 has no place on a log axis; it is drawn at the lower edge"
    np.testing.assert_array_equal(lam_max.get_ydata()[1:], trace.lam_max[1:])
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
    image = panel(with_coef(trace, coef).plot(), "active").get_images()[0]
    pixels = np.asarray(image.get_array())
    assert pixels.shape == (4, 60, 4)
    np.testing.assert_allclose(pixels[1, 10:30], np.tile([*rgb(DARK), 1], (20, 1)))
    np.testing.assert_allclose(pixels[2, 30:], np.tile([*rgb(LIGHT), 1], (30, 1)))
    rest = np.ones((4, 60), dtype=bool)
    rest[1, 10:30], rest[2, 30:] = False, False
    np.testing.assert_allclose(pixels[rest][:, 3], 0.0, err_msg="transparent, on paper of any colour")


def test_signs_of_several_classes_are_shown_class_by_class():
    trace = classes(5, n=200)
    coef = np.zeros((200, 5, 5))
    rows = [np.sum(trace.y[1:] == label) for label in trace.classes]
    common = int(np.argmax(rows))
    coef[:, common, 2] = -1.0
    figure = with_coef(trace, coef).plot()
    rasters = [axes for axes in figure.axes if axes.get_label() == "active"]
    assert len(rasters) == 3
    raster = next(axes for axes in rasters if axes.get_title(loc="left").endswith(f"for {trace.classes[common]}"))
    pixels = np.asarray(raster.get_images()[0].get_array())
    np.testing.assert_allclose(pixels[2], np.tile([*rgb(LIGHT), 1], (200, 1)))


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
    shown = [label.get_text() for label in panel(figure, "active").get_yticklabels()]
    assert shown == [r"price \$", "two lines", "_hidden", "plain"]


def test_many_features_keep_the_most_active_and_stay_legible():
    trace = gaussian(n=100, p=200)
    coef = np.zeros((100, 200))
    often = np.random.default_rng(1).choice(200, size=50, replace=False)
    for rank, j in enumerate(often):
        coef[: 100 - rank, j] = 1.0
    figure = drawn(with_coef(trace, coef).plot())
    labels = panel(figure, "active").get_yticklabels()
    assert [label.get_text() for label in labels] == [f"x{j}" for j in sorted(often[:MOST_ROWS])]
    boxes = [label.get_window_extent() for label in labels]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    assert "40 of 200" in panel(figure, "active").get_title(loc="left")


def test_long_streams_are_thinned_but_keep_their_spikes():
    trace = gaussian(n=20_001, p=2, tuner="logrms")
    lam = trace.lam.copy()
    lam[7_777], lam[13_131] = 50.0, 1e-9
    figure = replace(trace, lam=lam).plot()
    penalty, loss, active = (panel(figure, name) for name in ("penalty", "loss", "active"))
    line = penalty.get_lines()[0]
    assert 50.0 in line.get_ydata()
    assert 1e-9 in line.get_ydata()
    for axes in (penalty, loss):
        assert all(len(line.get_xdata()) <= 2 * DRAWN + 2 for line in axes.get_lines())
    assert np.asarray(active.get_images()[0].get_array()).shape[1] == DRAWN
    assert len(trace) == 20_001


def test_a_given_figure_is_drawn_on_and_none_is_left_open():
    figure, before = Figure(), pyplot.get_fignums()
    assert gaussian().plot(figure) is figure
    gaussian().plot()
    assert pyplot.get_fignums() == before


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


def test_truth_is_marked_where_it_changes():
    stream = simulate(0, lengths=(30, 20), densities=(0.8, 0.2))
    trace = progressive(RAPRegressor(memory=0.9), stream.X, stream.y)
    figure = trace.plot()
    mark_truth(figure, stream)
    drawn(figure)
    for axes in figure.axes:
        assert any(list(line.get_xdata()) == [29.5, 29.5] for line in axes.get_lines())
    truth = panel(figure, "active").collections[1:]
    assert [sorted(int(segment[0, 1]) for segment in part.get_segments()) for part in truth] == [
        np.flatnonzero(stream.beta[0]).tolist(),
        np.flatnonzero(stream.beta[-1]).tolist(),
    ]


# --- predicted against actual -----------------------------------------------------------------------------------------


def test_of_a_short_stream_every_row_is_drawn_but_the_first():
    trace = gaussian(n=60)
    actual, predicted = panel(trace.plot(), "fit").get_lines()
    np.testing.assert_array_equal(actual.get_xdata(), trace.t[1:])
    np.testing.assert_allclose(actual.get_ydata(), trace.y[1:], rtol=1e-12)
    np.testing.assert_allclose(predicted.get_ydata(), trace.prediction[1:], rtol=1e-12)


def test_a_long_stream_is_drawn_as_means_within_a_band_and_its_last_rows_one_by_one():
    trace = gaussian(n=100_000, p=1, memory=0.99, tuner=Fixed(0.01))
    y = trace.y.copy()
    y[70_000] = 50.0
    trace = replace(trace, y=y)
    figure = trace.plot()
    fit, recent = panel(figure, "fit"), panel(figure, "recent")
    actual, predicted = fit.get_lines()
    assert 100 <= len(actual.get_xdata()) <= 300
    weights = np.diff([0, *((actual.get_xdata()[1:] + actual.get_xdata()[:-1]) / 2), 100_000])
    assert np.average(actual.get_ydata(), weights=weights) == pytest.approx(y[1:].mean(), abs=0.003)
    assert np.average(predicted.get_ydata(), weights=weights) == pytest.approx(trace.prediction[1:].mean(), abs=0.003)
    band = fit.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == 50.0, "no row is left out of the band"
    assert band.min() == y[1:].min()
    one_by_one, _ = recent.get_lines()
    np.testing.assert_array_equal(one_by_one.get_xdata(), np.arange(99_900, 100_000))
    np.testing.assert_array_equal(one_by_one.get_ydata(), y[-100:])


def test_of_two_classes_the_share_of_the_rarer_is_drawn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), np.where(rng.random(500) < 0.1, "rare", "common")
    trace = progressive(RAPClassifier(tuner=Fixed(0.01)), X, y)
    axes = panel(trace.plot(), "fit")
    assert axes.get_title(loc="left").startswith("Share of rare")
    actual = axes.get_lines()[0].get_ydata()
    assert actual.mean() == pytest.approx(np.mean(y[1:] == "rare"), abs=0.003)


def test_several_classes_have_a_panel_each_the_most_common_first():
    trace = classes(12, n=400)
    fits = [axes for axes in trace.plot().axes if axes.get_label() == "fit"]
    counts = {label: np.sum(trace.y[1:] == label) for label in trace.classes}
    shown = [axes.get_title(loc="left").removeprefix("Share of ") for axes in fits]
    assert [counts[label] for label in shown] == sorted(counts.values(), reverse=True)[:6]
