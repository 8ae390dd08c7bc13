"""The report is one whole page that fetches nothing, escapes everything, and says what the trace says."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from streamlasso import RAPClassifier, RAPRegressor, __version__, progressive
from streamlasso.families import Family
from streamlasso.report.run_report import write_report
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
        if self.open and self.open[-1] in ("td", "th"):
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
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=names or ["a", "b", "c"])
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
    assert f"Over 300 rows the model's loss was {100 * saved:.0f} % lower than that of the running mean" in page.text
    assert f"It now uses {np.count_nonzero(trace.last_coef)} of the 20 features" in page.text
    for name, loss in (("model", trace.loss), ("running mean", trace.baseline), ("another", other)):
        mean = loss[1:].mean()
        assert page.row(name) == [name, f"{mean:.3g}", f"{loss[-60:].mean():.3g}", f"{np.sqrt(2 * mean):.3g}"]


def test_a_model_that_lost_is_reported_as_such(tmp_path):
    trace = regression()
    page = page_of(replace(trace, loss=trace.baseline * 1.25), tmp_path)
    assert "did not beat the running mean: its loss was 25 % higher" in page.text


def test_the_share_of_correct_classes_is_stated(tmp_path):
    trace = classes(3)
    right = np.mean((trace.prediction == trace.y)[1:])
    assert f"predicted the right class {100 * right:.0f} % of the time" in page_of(trace, tmp_path).text


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


def test_parts_of_the_stream_are_its_fifths(trace, tmp_path):
    page = page_of(trace, tmp_path)
    row = page.row("60 to 119")
    rows = slice(60, 120)
    expected = [trace.loss[rows].mean(), trace.baseline[rows].mean(), np.median(trace.lam[rows])]
    assert row[1:4] == [f"{value:.3g}" for value in expected]
    assert page.row("0 to 59")[1] == f"{trace.loss[1:60].mean():.3g}"


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
