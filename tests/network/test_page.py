"""The page: its frames are the networks, nothing is fetched, and in a browser the slider moves."""

import base64
import json
import re

import numpy as np
import pytest

from streamlasso.network import StreamingNetwork
from streamlasso.network.files import write_run
from streamlasso.network.group import Group
from streamlasso.network.imaging.events import Event
from streamlasso.network.options import Design, Model
from streamlasso.network.page import MAX_FRAMES, frames
from streamlasso.network.results import SubjectResult, follow_sparse
from support.browser import CHROMIUM, Browser

EVENTS = (Event(5.0, 6.0, "fear"), Event(15.0, 6.0, "neutral"))
NASTY = "</script><b>|*_`"


def made_group(n=60, p=5, subjects=2, coords=False, seed=0):
    rng = np.random.default_rng(seed)
    regions = (NASTY, *(f"region {k}" for k in range(1, p)))
    found = []
    for k in range(subjects):
        X = rng.normal(size=(n, p))
        X[:, 1] += X[:, 0]
        X[n // 2 :, 3] -= X[n // 2 :, 2]
        trace, edges = follow_sparse(StreamingNetwork(memory=0.9), X)
        places = rng.uniform(-40, 40, size=(p, 3)) if coords else None
        found.append(
            SubjectResult(
                f"sub-{k}", regions, np.arange(n), 0.5 * np.arange(n), trace.lam, trace.lam_max, trace.loss,
                trace.n_active, edges, places, EVENTS,
            )
        )  # fmt: skip
    return Group(tuple(found), Design(tr=0.5))


def decoded(part, scale):
    """The frames of one subject as lists of (source, target, strength), from the documented layout alone."""
    counts, source, target, strength = (
        np.frombuffer(base64.b64decode(part[name]), "<i2") for name in ("counts", "source", "target", "strength")
    )
    stops = np.cumsum(counts)
    return [
        [(int(source[k]), int(target[k]), strength[k] / 32767 * scale) for k in range(stop - n, stop)]
        for n, stop in zip(counts, stops, strict=True)
    ]


def test_frames_are_the_networks():
    group = made_group()
    data = frames(group)
    assert [part["name"] for part in data["subjects"]] == ["mean of all subjects", "sub-0", "sub-1"]
    for k, part in enumerate(data["subjects"][1:]):
        for t, edges in enumerate(decoded(part, data["scale"])):
            network = group.subjects[k].edges.at(t)
            assert len(edges) == part["total"][t] == np.count_nonzero(network) // 2
            for i, j, strength in edges:
                assert strength == pytest.approx(network[i, j], abs=data["scale"] / 32767)
    mean = decoded(data["subjects"][0], data["scale"])[40]
    both = (group.subjects[0].edges.at(40) + group.subjects[1].edges.at(40)) / 2
    assert {(i, j) for i, j, _ in mean} == set(zip(*np.nonzero(np.triu(both)), strict=True))


def test_long_runs_have_few_frames_with_the_strongest_edges():
    rng = np.random.default_rng(1)
    trace, edges = follow_sparse(StreamingNetwork(), rng.normal(size=(700, 30)))
    subject = SubjectResult(
        "one",
        tuple(map(str, range(30))),
        np.arange(700),
        None,
        trace.lam,
        trace.lam_max,
        trace.loss,
        trace.n_active,
        edges,
    )
    data = frames(Group((subject,), Design()))
    part = data["subjects"][0]
    assert len(data["moments"]) == len(part["total"]) <= MAX_FRAMES
    assert data["moments"][-1] == "time point 699"
    last = decoded(part, data["scale"])[-1]
    network = np.abs(np.triu(edges.at(699)))
    kept = [abs(strength) for *_, strength in last]
    assert kept == sorted(kept, reverse=True)
    np.testing.assert_allclose(kept, np.sort(network[network > 0])[::-1][: len(kept)], atol=1e-4)


@pytest.fixture(scope="module", params=[False, True], ids=["circle", "brain"])
def page(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("page")
    group = made_group(coords=request.param)
    write_run(out, group, Model(), {})
    return out / "report.html", group


def test_the_page_fetches_nothing(page):
    text = page[0].read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "http" not in re.sub(r"http://www.w3.org\S*|https://\S*creativecommons\S*|data:[^\"]*", "", text)
    assert len(text) < 3e6


def test_unset_options_are_not_listed(page):
    text = page[0].read_text()
    assert "design tr" in text
    assert "None" not in text


def test_names_are_escaped(page):
    text = page[0].read_text()
    assert "<b>|" not in text
    data = json.loads(re.search(r'id="network-data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["regions"][0] == NASTY


@pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium (apt-get install chromium)")
def test_in_a_browser_the_slider_moves_the_network(page):
    path, group = page
    views = 3 if group.coords is not None else 1
    edges = "document.querySelectorAll('#network > g > path').length"
    with Browser() as browser:
        browser.open(path)
        first = browser.run("document.querySelectorAll('#network > g > path').length")
        assert 0 < first <= views * 10, "weak edges are hidden at first"
        for subject, whose in enumerate(group.subjects, 1):
            browser.run(
                f"s = document.getElementById('subject'); s.value = {subject}; s.dispatchEvent(new Event('change'));"
                "document.getElementById('least').value = 0"
            )
            for t in (2, 25, 59):
                browser.run(
                    f"m = document.getElementById('moment'); m.value = {t}; m.dispatchEvent(new Event('input'))"
                )
                network = np.triu(whose.edges.at(t))
                assert browser.run(edges) == views * np.count_nonzero(network)
                dashed = browser.run("document.querySelectorAll('#network path[stroke-dasharray]').length")
                assert dashed == views * np.sum(network < 0)
                assert browser.run("document.getElementById('when').textContent").startswith(f"{0.5 * t:.1f} s")
            browser.run("l = document.getElementById('least'); l.value = 100; l.dispatchEvent(new Event('input'))")
            least = float(browser.run("document.getElementById('at-least').textContent"))
            assert least > 0.05
            kept = np.sum(np.abs(network) >= least - 0.005), np.sum(np.abs(network) >= least + 0.005)
            assert views * kept[1] <= browser.run(edges) <= views * kept[0]
        before = browser.picture()
        browser.run("m.value = 5; m.dispatchEvent(new Event('input'))")
        assert browser.picture() != before
        browser.run("document.getElementById('play').click()")
        assert browser.run("document.getElementById('play').textContent") == "Stop"
        browser.run(
            "c = document.getElementById('chart'); b = c.getBoundingClientRect();"
            "c.dispatchEvent(new MouseEvent('click', {clientX: b.left + b.width / 2}))"
        )
        assert 25 <= int(browser.run("m.value")) <= 40
        assert browser.errors == []
        assert all(url.startswith(("file:", "data:")) for url in browser.requests)
