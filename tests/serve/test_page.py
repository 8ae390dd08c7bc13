"""The page in a real browser: it draws, it updates, it recovers when the service restarts."""

import io
import json
import time

import numpy as np
import pytest
from matplotlib.image import imread

from support.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium (apt-get install chromium)")
HOSTILE = "<img src=x onerror=alert(1)>"
#: What the policy has forbidden; nothing, or the page has a mistake.
WATCH = "window.forbidden = []; addEventListener('securitypolicyviolation', (e) => forbidden.push(e.violatedDirective))"


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        found.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        yield found


@pytest.fixture(scope="module")
def taught(shared):
    teach(shared, "price", 0, 400)
    return shared


def rows_of(start, stop):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(stop, 3))
    y = 3 * X[:, 0] - 2 * X[:, 1] + rng.normal(size=stop)
    rows = [{"demand": a, "wind": b, HOSTILE: c} for a, b, c in X[start:].tolist()]
    return rows, y[start:].tolist()


def teach(service, name, start, stop):
    if start == 0:
        assert service.request("PUT", f"/models/{name}", {"lags": {}})[0] == 201
    rows, y = rows_of(start, stop)
    status, answer = service.request("POST", f"/models/{name}/learn", {"rows": rows, "y": y})
    assert status == 200, answer


def open_page(browser, service, name="", width=1100, scheme="light"):
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=1600, deviceScaleFactor=1, mobile=width < 500
    )
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.errors = []
    browser.open("about:blank")
    browser.open(f"http://127.0.0.1:{service.port}/#{name}")


def until(browser, script, wanted=True):
    """Wait until a script gives a value."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = browser.run(script)
        if found == wanted:
            return
        time.sleep(0.05)
    raise AssertionError(f"{script} is {found!r}, not {wanted!r}")


def drawn_to(browser, row):
    until(browser, "document.getElementById('model').dataset.drawn", str(row))


def text(browser, id):
    return browser.run(f"document.getElementById('{id}').innerText")


def clean(browser, service):
    assert browser.errors == []
    assert browser.run("forbidden") == []
    assert all(url.startswith((f"http://127.0.0.1:{service.port}/", "about:")) for url in browser.requests)
    # A service waits for those who listen when it stops.
    browser.open("about:blank")


def has_colour(browser, colour):
    pixels = imread(io.BytesIO(browser.picture()))[..., :3]
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.all(np.abs(pixels - wanted) < 0.03, axis=2).sum()


@pytest.mark.parametrize(("scheme", "line", "paper"), [("light", "#5b9fe3", "#ffffff"), ("dark", "#3d82c9", "#14171b")])
def test_it_draws(scheme, line, paper, browser, taught):
    open_page(browser, taught, "price", scheme=scheme)
    drawn_to(browser, 399)
    assert has_colour(browser, line) > 300, "the predictions"
    assert has_colour(browser, paper) > 500_000
    assert "400" in text(browser, "numbers")
    assert text(browser, "state") == "live"
    until(browser, "document.querySelector('#features tbody td').innerText", "demand")
    assert HOSTILE in text(browser, "features"), "text, and nothing but text"
    assert browser.run("document.querySelectorAll('main img').length") == 0
    clean(browser, taught)


def test_what_it_says_is_what_the_service_says(browser, taught):
    open_page(browser, taught, "price")
    drawn_to(browser, 399)
    _, model = taught.request("GET", "/models/price")
    shown = text(browser, "numbers")
    assert f"{model['recent']['model']:.3g}" in shown
    assert f"{model['recent']['baseline']:.3g}" in shown
    first = model["models"][0]["coefficients"][0]
    until(browser, "document.querySelectorAll('#features tbody tr').length", len(model["models"][0]["coefficients"]))
    cells = browser.run("[...document.querySelectorAll('#features tbody tr')[0].cells].map((cell) => cell.innerText)")
    assert cells[0] == first["feature"]
    assert float(cells[2]) == pytest.approx(first["coef"], rel=0.01)
    assert cells[4].strip() == f"{100 * first['inclusion']:.0f} %"


def test_it_updates_with_alarms_and_errors(browser, shared):
    teach(shared, "moving", 0, 200)
    open_page(browser, shared, "moving")
    drawn_to(browser, 199)
    teach(shared, "moving", 200, 320)
    drawn_to(browser, 319)
    assert text(browser, "alarms") == text(browser, "errors") == "None."
    assert shared.learn("moving", {"demand": 1e6, "wind": 0.0, HOSTILE: 0.0}, 1.0)[0] == 200
    drawn_to(browser, 320)
    until(browser, "document.querySelectorAll('#alarms li.firing').length", 1)
    assert "row 320, range: 'demand' is" in text(browser, "alarms")
    assert has_colour(browser, "#b3261e") > 50, "the mark in the charts"
    assert shared.learn("moving", {"demand": "oops"}, 1.0)[0] == 422
    until(browser, "document.getElementById('errors').innerText.includes('422')")
    until(browser, "document.querySelector('#models [aria-current]').innerText.includes('alarm: range')")
    clean(browser, shared)


def test_it_recovers_when_the_service_restarts(browser, started):
    service = started()
    teach(service, "lasting", 0, 150)
    open_page(browser, service, "lasting")
    drawn_to(browser, 149)
    service.kill()
    until(browser, "document.getElementById('state').className", "off")
    assert "trying again" in text(browser, "state")
    service.start()
    until(browser, "document.getElementById('state').className", "on")
    teach(service, "lasting", 150, 260)
    drawn_to(browser, 259)
    until(browser, "document.querySelector('#numbers dd').innerText.startsWith('260')")
    clean(browser, service)


def test_models_come_and_go(browser, started):
    service = started()
    open_page(browser, service)
    until(browser, "document.getElementById('empty').innerText.includes('No models yet')")
    teach(service, "only", 0, 120)
    drawn_to(browser, 119)
    assert service.request("DELETE", "/models/only")[0] == 204
    until(browser, "document.getElementById('model').hidden")
    clean(browser, service)


def test_on_a_phone_nothing_scrolls_sideways(browser, taught):
    open_page(browser, taught, "price", width=360)
    drawn_to(browser, 399)
    assert browser.run("document.documentElement.scrollWidth") <= 360
    assert browser.run("[...document.querySelectorAll('canvas')].every((c) => c.getBoundingClientRect().right <= 361)")


def press(browser, key):
    codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37}
    text = {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        more = text if kind == "keyDown" else {}
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], code=key, **more)


def test_keys_are_enough(browser, taught):
    if taught.request("GET", "/models/second")[0] == 404:
        teach(taught, "second", 0, 110)
    open_page(browser, taught, "price")
    drawn_to(browser, 399)
    until(browser, "document.querySelectorAll('#models a').length >= 2")
    for _ in range(40):
        press(browser, "Tab")
        if browser.run("document.activeElement.getAttribute('href')") == "#second":
            break
    press(browser, "Enter")
    drawn_to(browser, 109)
    assert browser.run("document.querySelector('#models [aria-current]').getAttribute('href')") == "#second"
    for _ in range(40):
        press(browser, "Tab")
        if browser.run("document.activeElement.id") == "fit":
            break
    press(browser, "ArrowLeft")
    press(browser, "ArrowLeft")
    assert "108" in browser.run("document.querySelector('#fit .u-legend').innerText")
    until(browser, "(document.activeElement.getAttribute('aria-label') || '').includes('up to row 109')")


def test_a_token_is_asked_for_and_not_kept(browser, tmp_path, started):
    secret = "a-token-that-may-read"
    tokens = tmp_path / "tokens.txt"
    tokens.write_text(f"admin a-token-that-may-do-all\nread {secret}\n")
    tokens.chmod(0o600)
    service = started("--tokens", str(tokens), token="a-token-that-may-do-all")
    teach(service, "hidden", 0, 120)
    open_page(browser, service, "hidden")
    until(browser, "document.getElementById('ask').hidden", False)
    assert browser.run("document.getElementById('room').hidden")

    def enter(word):
        browser.run(f"document.getElementById('token').value = {json.dumps(word)}")
        browser.run("document.querySelector('#ask button').click()")

    enter("not-the-token-of-anyone")
    until(browser, "document.getElementById('wrong').innerText", "The service does not know this token.")
    enter(secret)
    drawn_to(browser, 119)
    assert browser.run("document.getElementById('token').value + document.cookie + localStorage.length") == "0"
    clean(browser, service)


def test_merged_points_are_those_of_the_rows(browser, taught):
    """As many points as ever come: means, extremes and last values are those that numpy finds in the rows."""
    open_page(browser, taught, "price")
    rng = np.random.default_rng(0)
    y = rng.normal(size=5000).round(6)
    browser.run(f"window.y = {json.dumps(y.tolist())}")
    browser.run("""(async () => {
      const { Points } = await import("/points.js");
      const points = new Points(100);
      for (let i = 0; i < y.length; i += 50) {
        const row = Array.from({ length: 50 }, (_, k) => i + k), part = y.slice(i, i + 50);
        points.append({ row, y: part, y_low: part, y_high: part, loss: part.map(Math.abs), lam: part });
      }
      window.merged = { row: points.row, y: points.y, low: points.y_low, high: points.y_high, lam: points.lam,
        span: points.span, rolling: points.rolling("loss", 1000) };
    })()""")
    until(browser, "window.merged !== undefined")
    found = browser.run("merged")
    stops = np.array(found["row"]) + 1
    starts = np.append(0, stops[:-1])
    assert stops[-1] == 5000 and len(stops) <= 200
    assert found["span"] == (stops - starts).tolist()
    parts = [y[start:stop] for start, stop in zip(starts, stops, strict=True)]
    np.testing.assert_allclose(found["y"], [part.mean() for part in parts], atol=1e-12)
    assert found["low"] == [part.min() for part in parts]
    assert found["high"] == [part.max() for part in parts]
    assert found["lam"] == [part[-1] for part in parts]
    first = max(start for start in starts if 5000 - start >= 1000)
    assert found["rolling"][-1] == pytest.approx(np.abs(y[first:]).mean(), rel=1e-9), "the fewest points of 1,000 rows"
