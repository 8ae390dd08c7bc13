"""The report in a real browser: at the width of a phone no word is broken, and on a dark screen it is dark."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.report.run.report import write_report
from streamlasso.simulate import simulate
from support.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium (apt-get install chromium)")
BROKEN = """(() => {
  const broken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = new Range();
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (const word of node.textContent.matchAll(/[^\\s-]+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set(Array.from(range.getClientRects(), (box) => Math.round(box.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  return broken;
})()"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    stream = simulate(0)
    write_report(progressive(RAPRegressor(), stream.X, stream.y, coef=True).summary(), folder / "numbers.html")
    labels = np.array(["versicolor", "setosa", "virginica"])[np.argmax(stream.X[:, :3], axis=1)]
    write_report(progressive(RAPClassifier(), stream.X[:, :4], labels, coef=True).summary(), folder / "classes.html")
    return folder


@pytest.mark.parametrize("name", ["numbers.html", "classes.html"])
def test_on_a_phone_no_word_is_broken_and_only_tables_and_pictures_scroll(reports, name):
    with Browser() as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
        browser.open(reports / name)
        assert browser.run("document.documentElement.scrollWidth") <= 360
        assert browser.run(BROKEN) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_and_its_drawings_follow_the_screen(reports, scheme):
    with Browser() as browser:
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(reports / "numbers.html")
        browser.run("document.querySelector('img').scrollIntoView()")
        pixels = imread(io.BytesIO(browser.picture()))[..., :3]
    grey = pixels.mean(axis=2)
    paper, ink = (grey > 0.95, grey < 0.15) if scheme == "light" else (grey < 0.15, grey > 0.5)
    assert paper.mean() > 0.5
    assert ink.sum() > 1000, "text and curves can be told from the paper"
