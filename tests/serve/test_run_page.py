"""`streamlasso run --live`: the same page for a file or a pipe; the run itself is as without it, to the bit."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from pyarrow import parquet

from streamlasso.cli import main
from streamlasso.run.options import Options
from streamlasso.run.run import Run
from support.browser import CHROMIUM, Browser

N = 700
COMMAND = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def lines():
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, N))
    y = 2 * x + rng.normal(size=N)
    return [f"{a:.5f},{b:.5f},{c:.5f}\n" for a, b, c in zip(x, z, y, strict=True)]


class Live:
    """The command in a process of its own; `get` asks its page."""

    def __init__(self, *arguments, own=("--target", "y", "--lags", "none"), **more):
        command = [*COMMAND, "run", *arguments, *own, "--live", "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, **more)
        self.printed = ""
        self.port = int(self.wait_for(r"live at http://127\.0\.0\.1:(\d+)/")[1])

    def wait_for(self, words):
        while (found := re.search(words, self.printed)) is None:
            line = self.process.stderr.readline().decode()
            assert line, self.printed
            self.printed += line
        return found

    def get(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, json.loads(body) if "json" in answer.headers["Content-Type"] else body

    def until(self, n_rows, name):
        deadline = time.monotonic() + 60
        while (now := self.get(f"/models/{name}")[1])["n_rows"] < n_rows:
            assert time.monotonic() < deadline, now
            time.sleep(0.05)
        return now

    def end(self):
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, self.printed + err.decode()


@pytest.mark.posix
@pytest.mark.skipif(CHROMIUM is None, reason="no browser: install chromium (apt-get install chromium)")
def test_a_file_is_shown_to_its_last_row_and_learnt_as_without_a_page(lines, tmp_path):
    (tmp_path / "rows.csv").write_text("x,z,y\n" + "".join(lines))
    plain = Run(Options(str(tmp_path / "rows.csv"), "y", tmp_path / "plain", lags={}))
    assert plain.go()
    plain.trace.write_parquet()
    live = Live(str(tmp_path / "rows.csv"), "--out", str(tmp_path / "live"))
    facts = live.until(N, "rows.csv")
    with Browser() as browser:
        browser.open(f"http://127.0.0.1:{live.port}/")
        deadline = time.monotonic() + 60
        while browser.run("document.getElementById('model').dataset.drawn") != str(N - 1):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert browser.run("document.getElementById('name').innerText") == "rows.csv"
        assert browser.errors == []
    for method, path in [("POST", "/models/rows.csv/learn"), ("PUT", "/models/new"), ("GET", "/metrics")]:
        assert live.get(path, method)[0] in (404, 405)
    assert live.get("/models/rows.csv")[1]["n_rows"] == N
    live.wait_for("The page stays at")
    status, printed = live.end()
    assert status == 0, printed
    for name in ("predictions.csv", "trace.parquet"):
        assert (tmp_path / "live" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    losses = parquet.read_table(tmp_path / "plain" / "trace.parquet")["loss"].to_numpy()[1:]
    assert facts["loss"]["model"] == pytest.approx(losses.mean(), rel=1e-9)


@pytest.mark.posix
def test_a_pipe_is_shown_as_its_rows_come(lines, tmp_path):
    come, go = os.pipe()
    os.write(go, ("x,z,y\n" + "".join(lines[:200])).encode())
    live = Live("-", "--out", str(tmp_path / "out"), "--on-error", "skip", stdin=come)
    os.close(come)
    assert live.until(200, "standard-input")["n_rows"] == 200
    os.write(go, ("oops,1,2\n" + "".join(lines[200:260])).encode())
    facts = live.until(260, "standard-input")
    assert "oops" in facts["errors"][0]["detail"]
    columns = live.get("/models/standard-input/history?points=5000")[1]["columns"]
    assert columns["row"] == list(range(260))
    shown = [float(line.split(",")[2]) for line in lines[:260]]
    assert columns["y"] == pytest.approx(shown)
    status, printed = live.end()
    assert status == 130, printed
    os.close(go)
    assert (tmp_path / "out" / "report.html").exists()


def wide_files(folder):
    """The same rows, of which feature 1 alone matters, in three forms; with the arguments of `run`, and its name."""
    rng = np.random.default_rng(4)
    good = (rng.random(N) < 0.5).tolist()
    others = rng.integers(2, 300, size=(N, 3))
    words = [f"{'good' if g else 'bad'} {' '.join(f'w{j}' for j in row)}" for g, row in zip(good, others, strict=True)]
    (folder / "mails.csv").write_text("t,y\n" + "".join(f"{t},{'yn'[g]}\n" for t, g in zip(words, good, strict=True)))
    x, y = rng.normal(size=N).round(3), rng.normal(size=N)
    cells = [f"1:{a} {' '.join(f'{j}:1' for j in sorted(set(row)))}" for a, row in zip(x, others.tolist(), strict=True)]
    target = [f"{2 * a + b / 3:.4f}" for a, b in zip(x, y, strict=True)]
    (folder / "rows.svm").write_text("".join(f"{b} {row}\n" for b, row in zip(target, cells, strict=True)))
    (folder / "rows.vw").write_text("".join(f"{b} | {row}\n" for b, row in zip(target, cells, strict=True)))
    return {"mails.csv": (["--target", "y", "--text", "t"], "good"), "rows.svm": ([], "1"), "rows.vw": ([], "1")}


@pytest.mark.posix
@pytest.mark.parametrize("name", ["mails.csv", "rows.svm", "rows.vw"])
def test_any_number_of_features_is_shown_and_learnt_as_without_a_page(name, tmp_path):
    arguments, strongest = wide_files(tmp_path)[name]
    path = str(tmp_path / name)
    assert main(["run", path, *arguments, "--out", str(tmp_path / "plain"), "--quiet"]) == 0
    live = Live(path, "--out", str(tmp_path / "live"), own=arguments)
    facts = live.until(N, name)
    live.wait_for("The page stays at")
    columns = live.get(f"/models/{name}/history?points=5000")[1]["columns"]
    if name == "mails.csv" and CHROMIUM is not None:
        with Browser() as browser:
            browser.open(f"http://127.0.0.1:{live.port}/")
            deadline = time.monotonic() + 60
            while browser.run("document.querySelectorAll('#features td:first-child').length") == 0:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            shown = "[...document.querySelectorAll('#features td:first-child')].map((cell) => cell.innerText)"
            assert {"good", "bad"} <= set(browser.run(shown)[:4])
            assert browser.run("document.getElementById('tuning').hidden")
            assert "inclusion" not in browser.run("document.getElementById('features').innerText")
            assert browser.errors == []
    status, printed = live.end()
    assert status == 0, printed
    for file in ("predictions.csv", "trace.parquet", "coefficients.parquet"):
        assert (tmp_path / "live" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes(), file
    losses = parquet.read_table(tmp_path / "plain" / "trace.parquet")["loss"].to_numpy()[1:]
    assert facts["loss"]["model"] == pytest.approx(losses.mean(), rel=1e-9)
    assert facts["recent"]["model"] < facts["recent"]["baseline"]
    assert strongest in [found["feature"] for found in facts["models"][0]["coefficients"][:2]]
    assert columns["row"] == list(range(N)) and set(columns["lam"]) == {None}
    if name != "mails.csv":
        names = {cell.partition(":")[0] for cell in (tmp_path / "rows.svm").read_text().split() if ":" in cell}
        # The run may have looked some rows ago.
        assert len(names) - 10 <= facts["n_features"] <= len(names)
        y = [float(line.split()[0]) for line in (tmp_path / name).read_text().splitlines()]
        assert columns["y"] == pytest.approx(y)


def test_a_port_that_is_taken_and_an_extra_that_is_missing(lines, tmp_path, capsys, monkeypatch):
    (tmp_path / "rows.csv").write_text("x,z,y\n" + "".join(lines))
    command = ["run", str(tmp_path / "rows.csv"), "--target", "y", "--out", str(tmp_path / "out"), "--live", "--port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main([*command, port]) == 2
    assert f"--port {port} cannot be used" in capsys.readouterr().err
    monkeypatch.setattr("streamlasso.serve.cli.find_spec", lambda name: None)
    assert main([*command, "0"]) == 2
    assert 'pip install "streamlasso[serve]"' in " ".join(capsys.readouterr().err.split())
