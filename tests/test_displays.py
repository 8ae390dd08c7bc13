"""Displays draw the numbers of the model and of the trace, and no others."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from streamlasso import RAPClassifier, RAPRegressor, river
from streamlasso.displays import CoefficientDisplay
from support.estimators import labels, rows
from support.river import dicts, taught

matplotlib.use("Agg")
NAMES = ["b", "a", "price in $", "c$"]


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def framed(n=200):
    return pd.DataFrame(rows(n), columns=NAMES)


def response(X):
    return X.to_numpy() @ [0.0, 1.0, -2.0, 0.5]


def drawn(display):
    """The bars as the picture shows them, by name."""
    display.figure_.canvas.draw()
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    return dict(zip(names, [bar.get_width() for bar in display.bars_], strict=True))


# --- coefficients -----------------------------------------------------------------------------------------------------


def test_the_bars_are_the_coefficients_of_the_selected_model_the_largest_on_top():
    X = framed()
    model = RAPRegressor().partial_fit(X, response(X))
    bars = drawn(CoefficientDisplay.from_estimator(model))
    coef = dict(zip(NAMES, model.selected_.coef, strict=True))
    assert bars == {name: value for name, value in coef.items() if value}
    assert np.all(np.diff(np.abs(list(bars.values()))) >= 0)
    assert {"price in $", "a", "c$"} <= bars.keys()


def test_colours_tell_the_signs():
    X = framed()
    display = CoefficientDisplay.from_estimator(RAPRegressor().partial_fit(X, response(X)))
    colours = {np.sign(bar.get_width()): bar.get_facecolor() for bar in display.bars_}
    assert colours[1] != colours[-1]


def test_no_more_bars_than_asked_for():
    X = framed()
    model = RAPRegressor(tuner="logrms").partial_fit(X, response(X))
    display = CoefficientDisplay.from_estimator(model, most=1)
    assert list(drawn(display)) == ["price in $"]
    assert f"{np.count_nonzero(model.coef_) - 1} smaller" in display.ax_.get_xlabel()


def test_an_axes_of_ones_own():
    from matplotlib import pyplot

    X = framed()
    figure, axes = pyplot.subplots(1, 2)
    display = CoefficientDisplay.from_estimator(RAPRegressor().partial_fit(X, response(X)), ax=axes[1])
    assert (display.ax_, display.figure_) == (axes[1], figure)
    assert not axes[0].patches
    again = display.plot()
    assert again is display
    assert display.ax_ is not axes[1]


def test_one_of_several_classes():
    X = framed()
    model = RAPClassifier().partial_fit(X, labels(X.to_numpy(), [3, 5, 7]))
    display = CoefficientDisplay.from_estimator(model, label=5)
    assert set(drawn(display).values()) == set(model.selected_[1].coef) - {0.0}
    assert display.ax_.get_title() == "5"
    with pytest.raises(ValueError, match="label=None has no model: use one of 3, 5, 7"):
        CoefficientDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="label=4 has no model: use one of 3, 5, 7"):
        CoefficientDisplay.from_estimator(model, label=4)


def test_two_classes_are_drawn_by_the_second():
    X = framed()
    model = RAPClassifier().partial_fit(X, labels(X.to_numpy(), ["no", "yes"]))
    assert CoefficientDisplay.from_estimator(model).ax_.get_title() == "yes"
    assert CoefficientDisplay.from_estimator(model, label="yes").ax_.get_title() == "yes"
    with pytest.raises(ValueError, match="label='no' has no model: use one of 'yes'"):
        CoefficientDisplay.from_estimator(model, label="no")


def test_a_model_of_river():
    X = rows(200)
    model = taught(river.RAPRegressor(), dicts(X), (X[:, 0] - X[:, 2]).tolist())
    coef = dict(zip(model.coef_, model.selected_.coef, strict=False))
    assert drawn(CoefficientDisplay.from_estimator(model)) == {name: b for name, b in coef.items() if b}


def test_before_the_first_row():
    with pytest.raises(NotFittedError):
        CoefficientDisplay.from_estimator(RAPRegressor())
    assert drawn(CoefficientDisplay.from_estimator(river.RAPRegressor())) == {}
