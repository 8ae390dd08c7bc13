"""In a notebook: the HTML of a model says what it has learnt, and user text stays text."""

import pickle
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn

from streamlasso import RAPClassifier, RAPRegressor, river
from streamlasso._html import MOST_COEFFICIENTS, MOST_MODELS
from streamlasso.tuners import Fixed
from support.estimators import labels, rows
from support.river import dicts, taught

HOSTILE = "<script>alert('1')</script> & \"co\""


class Page(HTMLParser):
    """The cells of all tables, the bars, and the words of the page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.table, self.bars, self.words = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        if tag == "tr":
            self.table.append([])
        if tag == "td":
            self.table[-1].append("")
        if tag == "i":
            self.bars.append((attributes["class"], float(attributes["style"].strip("width: %"))))

    def handle_data(self, data):
        self.words.append(data)
        if self.table and self.table[-1]:
            self.table[-1][-1] += data

    @property
    def text(self):
        return "".join(self.words)


def framed(n=200, names=("b", HOSTILE, "c", "d")):
    return pd.DataFrame(rows(n), columns=list(names))


def regressor(**settings):
    X = framed()
    return RAPRegressor(**settings).partial_fit(X, X.to_numpy() @ [0.5, 1.0, -2.0, 0.0])


def test_the_selected_model_is_shown():
    model = regressor()
    page, best = Page(model._learnt_html()), model.selected_
    facts = {row[0]: row[1] for row in page.table if len(row) == 2}
    assert "RAPRegressor · rows learnt 200" in page.text
    assert "status ok" in page.text
    assert facts["selected"] == f"since row {best.since}"
    assert facts["features"] == f"{len(best.support)} of 4"
    coefficients = {row[0]: row[2] for row in page.table if len(row) == 3}
    named = dict(zip(model.feature_names_in_, best.coef, strict=True))
    assert coefficients == {name: f"{b:.3g}" for name, b in named.items() if b}


def test_bars_are_as_long_as_their_coefficients():
    page = Page(regressor(tuner="logrms")._learnt_html())
    values = [float(row[2]) for row in page.table if len(row) == 3]
    assert [side for side, _ in page.bars] == ["plus" if value > 0 else "minus" for value in values]
    assert [width for _, width in page.bars] == pytest.approx(50 * np.abs(values) / np.abs(values[0]), abs=0.3)


def test_one_model_is_not_called_selected():
    assert "selected" not in Page(regressor(tuner="logrms", memory=0.9)._learnt_html()).text


def test_user_text_stays_text():
    X = framed()
    y = np.where(X["c"] > 0.5, HOSTILE, np.where(X["c"] < -0.5, "low", "<b>"))
    for html in (
        regressor()._learnt_html(),
        RAPClassifier().partial_fit(X, y)._learnt_html(),
        taught(river.RAPClassifier(), X.to_dict("records"), y.tolist())._repr_html_(),
    ):
        page = Page(html)
        assert not {"script", "img"} & set(page.tags)
        assert HOSTILE in page.text


def test_scikit_learns_diagram_stands_below():
    model = regressor()
    html = model._repr_html_()
    assert html.startswith(model._learnt_html())
    assert "sk-top-container" in html
    assert model._repr_mimebundle_()["text/html"].startswith(model._learnt_html())
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_before_the_first_row_there_are_only_parameters():
    for model in (RAPRegressor(), RAPClassifier()):
        assert model._learnt_html() == ""
        assert "sk-top-container" in model._repr_html_()
    assert river.RAPRegressor(memory=0.9)._repr_html_().startswith("<pre>RAPRegressor (")


def test_several_classes_have_a_card_each_up_to_a_limit():
    X = rows(300, 9)
    few = Page(RAPClassifier().partial_fit(X, labels(X, list("abc")))._learnt_html())
    assert few.tags.count("h4") == 3
    many = Page(RAPClassifier(tuner="logrms").partial_fit(X, labels(X, list("abcdefghi")))._learnt_html())
    assert many.tags.count("h4") == MOST_MODELS
    assert "and 3 more classes" in many.text


def test_only_the_largest_coefficients_are_shown():
    X = rows(300, 12)
    model = RAPRegressor(tuner="logrms").partial_fit(X, X @ np.arange(1.0, 13.0))
    page = Page(model._learnt_html())
    shown = [row[0] for row in page.table if len(row) == 3]
    assert shown == [f"x{j}" for j in np.argsort(-np.abs(model.coef_))[:MOST_COEFFICIENTS]]
    assert f"and {12 - MOST_COEFFICIENTS} features more" in page.text


def test_selected_by_itself():
    model = regressor()
    page = Page(model.selected_._repr_html_())
    shown = {row[0]: row[2] for row in page.table if len(row) == 3}
    assert next(iter(shown)) == "c"
    assert shown == {name: f"{model.selected_.coef[name]:.3g}" for name in shown}
    unnamed = RAPRegressor().partial_fit(rows(200), rows(200) @ [0.5, 1.0, -2.0, 0.0])
    assert next(row[0] for row in Page(unnamed.selected_._repr_html_()).table if len(row) == 3) == "x2"


def test_coefficients_of_the_selected_model_have_names():
    X = framed()
    y = np.where(X["c"] > 0.5, "a", np.where(X["c"] < -0.5, "b", "c"))
    of_classes = RAPClassifier().partial_fit(X, y).selected_
    of_river = taught(river.RAPRegressor(), X.to_dict("records"), (X["c"] - X["b"]).tolist()).selected_
    for best in (regressor().selected_, *of_classes, of_river):
        assert set(best.coef.names) == set(X.columns)
        for j, name in enumerate(best.coef.names):
            assert best.coef[name] == np.asarray(best.coef)[j] == best.coef[j]
        again = pickle.loads(pickle.dumps(best))
        assert (again.coef.names, again.coef.tolist()) == (best.coef.names, best.coef.tolist())
        words = [f"{name}: {best.coef[name]:.3g}" for name in best.coef.names if best.coef[name]]
        assert all(word in str(best.coef) for word in words or ["all 4 are 0"])
    with pytest.raises(KeyError, match="is not a feature: use one of b, "):
        regressor().selected_.coef["z"]


def test_the_selected_models_of_several_classes_are_shown_by_class():
    X = framed()
    y = np.where(X["c"] > 0.5, "high", np.where(X["c"] < -0.5, "low", "<b>"))
    of_classes = RAPClassifier().partial_fit(X, y).selected_
    of_river = taught(river.RAPClassifier(), X.to_dict("records"), y.tolist()).selected_
    for best, shown in ((of_classes, ["<b>", "high", "low"]), (of_river, list(of_river))):
        page = Page(best._repr_html_())
        assert page.tags.count("h4") == 3
        assert all(label in page.text for label in shown)
        again = pickle.loads(pickle.dumps(best))
        assert again._repr_html_() == best._repr_html_()
    assert river.RAPClassifier().selected_._repr_html_() == ""


def test_what_is_made_of_named_coefficients_is_a_plain_array():
    coef = regressor().selected_.coef
    for made in (coef * 2, coef[:2], np.abs(coef), -coef, coef @ np.eye(4), coef[coef != 0]):
        assert type(made) is np.ndarray
    assert float(coef.sum()) == pytest.approx(np.asarray(coef).sum())
    assert repr(coef.round(1)) == repr(np.asarray(coef).round(1))


def test_an_empty_model():
    X = rows(50)
    page = Page(RAPRegressor(tuner=Fixed(100.0)).partial_fit(X, X[:, 0])._learnt_html())
    assert ["features", "0 of 4"] in page.table
    assert page.bars == []


def test_a_model_of_river():
    X = rows(100)
    model = taught(river.RAPRegressor(), dicts(X), X[:, 1].tolist())
    page = Page(model._repr_html_())
    assert "rows learnt 100" in page.text
    assert next(row[0] for row in page.table if len(row) == 3) == "b"
    assert repr(model) in page.text
