"""The report is one whole page that fetches nothing, escapes everything, and says what the trace says."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from streamlasso import RAPClassifier, RAPRegressor, __version__, progressive
from streamlasso.families import Family
from streamlasso.report.run.classes import grouped_confusion
from streamlasso.report.run.report import write_report
from streamlasso.simulate import simulate
from streamlasso.tuners import LogRMS

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Checks that tags are balanced; collects text, attributes and table cells."""

    def __init__(self, source):
        super().__init__()
        self.open, self.attributes, self.words, self.rows = [], [], [], []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def row(self, first):
        return next(row for row in self.rows if row and row[0] == first)


def page_of(trace, folder, **arguments):
    return Page(write_report(trace.summary(), folder / "report.html", **arguments).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def trace():
    stream = simulate(0)
    return progressive(RAPRegressor(memory=0.95, tuner=LogRMS()), stream.X, stream.y, coef=True)


def classes(n_classes, names=None):
    rng = np.random.default_rng(0)
    # Every class has a feature that speaks for it, so all are shown.
    own = 2.0 * (np.arange(60)[:, None] % n_classes == np.arange(3))
    X = pd.DataFrame(own + rng.normal(size=(60, 3)), columns=names or ["a", "b", "c"])
    labels = np.array(["<b>bold</b>", "a & b", "plain", "d"])[:n_classes]
    return progressive(RAPClassifier(), X, labels[np.arange(60) % n_classes], coef=True)


class Own(Family):
    def loss(self, y, eta):
        return (y - eta) ** 2

    def slope(self, y, eta):
        return -2 * (y - eta)

    def curvature(self, y, eta):
        return 2.0

    def mean(self, eta):
        return eta


def regression(n=40, p=2, y=None, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = X[:, 0] + rng.normal(size=n) if y is None else y
    return progressive(RAPRegressor(**settings), X, y, coef=True)


TRACES = {
    "plain": regression,
    "one row": lambda: regression(n=1),
    "one feature": lambda: regression(p=1),
    "waiting": lambda: regression(y=np.ones(40)),
    "200 features": lambda: regression(n=80, p=200),
    "counts": lambda: regression(y=np.random.default_rng(0).poisson(2.0, size=40).astype(float), family="poisson"),
    "own family": lambda: regression(family=Own()),
    "two classes": lambda: classes(2),
    "four classes": lambda: classes(4),
}


@pytest.mark.parametrize("coef", [True, False])
@pytest.mark.parametrize("name", TRACES)
@pytest.mark.filterwarnings("error")
def test_every_stream_gives_a_whole_page_that_fetches_nothing(name, coef, tmp_path):
    trace = TRACES[name]()
    page = page_of(trace if coef else replace(trace, coef=None, intercept=None), tmp_path)
    fetched = [value for _, attribute, value in page.attributes if attribute in ("src", "href", "srcset", "data")]
    assert fetched
    assert all(value.startswith("data:image/svg+xml;base64,") for value in fetched)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _, _ in page.attributes}
    assert "url(" not in (tmp_path / "report.html").read_text()
    assert "nan" not in page.text.lower().split()
    for drawing in fetched:
        svg = base64.b64decode(drawing.split(",")[1]).decode()
        assert svg.rstrip().endswith("</svg>")
        assert not re.search(r"(?:xlink:href|href|src)=\"(?!#|data:)", svg)


def test_names_titles_and_settings_are_escaped(tmp_path):
    names = ["<script>alert(1)</script>", "a & b", "\"quoted'"]
    page = page_of(
        classes(3, names), tmp_path, title="<i>title</i>", settings={"<u>key</u>": "<img src=http://example.com/x.png>"}
    )
    source = (tmp_path / "report.html").read_text()
    for raw in ("<script", "<i>title", "<u>key", "<img src=http", "<b>bold"):
        assert raw not in source
    for shown in (*names, "<i>title</i>", "<u>key</u>", "<img src=http://example.com/x.png>", "<b>bold</b>"):
        assert shown in page.text


def test_headline_and_table_say_what_the_trace_says(trace, tmp_path):
    other = trace.loss + 1.0
    page = page_of(trace, tmp_path, comparisons={"another": other})
    saved = 1 - trace.loss[1:].mean() / trace.baseline[1:].mean()
    error = np.abs(trace.y - trace.prediction)[1:].mean()
    mean_error = np.mean([abs(trace.y[t] - trace.y[:t].mean()) for t in range(1, 300)])
    expected = f"the typical error was {error:.3g} (mean absolute error), against {mean_error:.3g} for the mean"
    assert f"Over 300 rows {expected}" in page.text
    assert f"The model's loss was {100 * saved:.0f} % lower than that of the running mean" in page.text
    assert page.text.index("half squared error") > page.text.index("How good were the predictions?")
    assert f"It now uses {np.count_nonzero(trace.last_coef)} of the 20 features" in page.text
    for name, loss in (("model", trace.loss), ("running mean", trace.baseline), ("another", other)):
        errors = {"model": f"{error:.3g}", "running mean": f"{mean_error:.3g}"}
        assert page.row(name) == [name, errors.get(name, ""), f"{loss[1:].mean():.3g}", f"{loss[-60:].mean():.3g}"]


def test_a_model_that_lost_is_reported_as_such(tmp_path):
    trace = regression()
    page = page_of(replace(trace, loss=trace.baseline * 1.25), tmp_path)
    assert "did not beat the running mean: its loss was 25 % higher" in page.text


def test_lam_is_not_among_the_first_numbers(trace, tmp_path):
    text = page_of(trace, tmp_path).text
    assert "lam" not in text[: text.index("How good were the predictions?")].split()


def test_the_headline_names_the_response(trace, tmp_path):
    summary = replace(trace.summary(), target="load [MW]")
    page = Page(write_report(summary, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert re.search(r"the typical error in load \[MW\] was \S+ \(mean absolute error\)", page.text)


def test_accuracy_stands_beside_that_of_always_saying_the_most_common_class(tmp_path):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.06, "yes", "no")
    trace = progressive(RAPClassifier(), rng.normal(size=(400, 2)), y)
    right, base = (trace.prediction == y)[1:].mean(), (y == "no")[1:].mean()
    assert right <= base
    expected = f"{100 * right:.0f} % of the classes were predicted correctly, no more than by always predicting no"
    assert f"{expected} ({100 * base:.0f} %)" in page_of(trace, tmp_path).text
    signal = rng.normal(size=(400, 1))
    trace = progressive(RAPClassifier(), signal, np.where(signal[:, 0] > 0.3, "yes", "no"))
    base = (signal[1:, 0] <= 0.3).mean()
    expected = f"predicted correctly; always predicting no is right {100 * base:.0f} % of the time"
    assert expected in page_of(trace, tmp_path).text


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_are_scored_as_scikit_learn_scores_them(n_classes, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.array(list("abcd"))[np.argmax(X[:, :1] * np.arange(n_classes) + rng.normal(size=(300, n_classes)), axis=1)]
    trace = progressive(RAPClassifier(), X, y)
    page = page_of(trace, tmp_path)
    labels = sorted(set(y), key=lambda label: -np.sum(y[1:] == label))
    actual, predicted = y[1:], trace.prediction[1:]
    start = page.rows.index(["actual \\ predicted", *labels]) + 1
    expected = confusion_matrix(actual, predicted, labels=labels)
    assert [row[1:] for row in page.rows[start : start + n_classes]] == expected.astype(str).tolist()
    precision, recall, _, rows = precision_recall_fscore_support(actual, predicted, labels=labels, zero_division=np.nan)
    for k, label in enumerate(labels):
        shares = (rows[k] / 299, precision[k], recall[k])
        share, *scores = ("n/a" if np.isnan(value) else f"{100 * value:.0f} %" for value in shares)
        assert page.row(label) == [label, str(rows[k]), share, str(np.sum(predicted == label)), *scores]


def test_of_many_classes_the_most_common_are_named_and_no_row_is_lost():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, size=(30, 30))
    joined, labels = grouped_confusion(counts, list(range(30)))
    assert joined.shape == (12, 12)
    assert joined.sum() == counts.sum()
    assert labels[-1] == "19 others"
    assert joined[0, 0] == counts[labels[0], labels[0]]
    assert joined[:, :-1].sum() == counts[:, labels[:-1]].sum()


def test_no_word_may_be_broken(trace, tmp_path):
    page_of(trace, tmp_path)
    source = (tmp_path / "report.html").read_text()
    assert "anywhere" not in source
    assert "break-all" not in source


def test_active_features_come_with_coefficient_and_effect_largest_first(trace, tmp_path):
    page = page_of(trace, tmp_path)
    start = page.rows.index(["feature", "coefficient", "effect", ""]) + 1
    effect = trace.last_coef * trace.spread
    order = [j for j in np.argsort(-np.abs(effect)) if effect[j] != 0]
    expected = [[f"x{j}", f"{trace.last_coef[j]:.3g}", f"{effect[j]:.3g}", ""] for j in order]
    assert page.rows[start : start + len(order)] == expected


def test_changes_are_those_with_the_largest_effects_in_the_order_of_time(trace, tmp_path):
    page = page_of(trace, tmp_path)
    start = page.rows.index(["row", "what", "how long", "effect"]) + 1
    shown = page.rows[start : start + 20]
    assert [int(row[0]) for row in shown] == sorted(int(row[0]) for row in shown)
    least = min(abs(float(row[3])) for row in shown)
    changes = trace.changes()
    assert len(changes) > 20
    assert sum(abs(change.effect) > least * 1.01 for change in changes) <= 20


def test_a_few_rows_that_cost_much_are_named(trace, tmp_path):
    loss = np.ones(300)
    loss[[0, 9, 40, 77, 150, 299]] = 1e9, 20.0, 20.0, 20.0, 20.0, 20.0
    share = 100.0 / (294 + 100)
    text = page_of(replace(trace, loss=loss), tmp_path).text
    assert f"{100 * share:.0f} % of the model's loss comes from 5 rows: 9, 40, 77, 150 and 299" in text
    assert "Look at them" not in page_of(replace(trace, loss=np.ones(300)), tmp_path).text


def test_settings_and_versions_are_there(trace, tmp_path):
    settings = RAPRegressor(memory=0.95).get_params()
    page = page_of(trace, tmp_path, settings=settings)
    assert page.row("memory") == ["memory", "0.95"]
    assert f"streamlasso {__version__}" in page.text
    assert f"numpy {np.__version__}" in page.text


def test_inexact_steps_are_reported(tmp_path):
    trace = regression()
    status = trace.status.copy()
    status[5:8] = "singular"
    assert "singular (3)" in page_of(replace(trace, status=status), tmp_path).text
    assert "not exact" not in page_of(trace, tmp_path).text
