"""`run`, `predict`, `inspect` and `demo` from the command line: what they print and write, and how the report looks."""

import base64
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from pyarrow import csv, parquet
from rich.console import Console

from streamlasso import RAPClassifier, RAPRegressor, __version__, progressive
from streamlasso.cli import main
from streamlasso.run.terminal import Terminal

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.fixture(scope="module")
def whole(mixed, tmp_path_factory):
    """A run with all it writes: the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("run")
    csv.write_csv(mixed(), folder / "mixed.csv")
    command = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())"]
    arguments = ["run", "mixed.csv", "--target", "y", "--lags", "y:1", "--out", "out"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=folder, check=True)
    return folder, done.stdout, done.stderr


def words(text):
    return " ".join(text.split())


def test_a_run_says_what_it_made_of_the_file(whole):
    _, _, err = whole
    assert "target y: a number, family gaussian (guessed from the first rows; --family overrides it)" in words(err)
    assert "time from when" in err


def test_a_run_prints_the_losses(whole):
    folder, out, _ = whole
    trace = parquet.read_table(folder / "out" / "trace.parquet")
    y, prediction = trace["y"].to_numpy(), trace["prediction"].to_numpy()
    errors = {
        "model": np.abs(y - prediction)[1:].mean(),
        "running mean": np.mean([abs(y[t] - y[:t].mean()) for t in range(1, len(y))]),
        "persistence": np.abs(np.diff(y)).mean(),
    }
    for row, name in (("model", "loss"), ("running mean", "baseline"), ("persistence", "persistence")):
        line = next(line for line in out.splitlines() if line.strip("│ ").startswith(row))
        mean = trace[name].to_numpy()[1:].mean()
        assert float(line.split("│")[3]) == pytest.approx(mean, rel=0.006)
        assert float(line.split("│")[2]) == pytest.approx(errors[row], rel=0.006)
    assert "Active now:" in out
    assert "entered" in out
    assert "out/report.html" in out


def test_a_run_leaves_its_files(whole):
    folder, _, _ = whole
    names = ["changes.csv", "coefficients.parquet", "figure.png", "figure.svg", "model.safetensors", "predictions.csv"]
    assert sorted(path.name for path in (folder / "out").iterdir()) == [*names, "report.html", "trace.parquet"]
    predicted = csv.read_csv(folder / "out" / "predictions.csv")
    assert predicted.column_names == ["row", "time", "y", "prediction"]
    assert len(predicted) == len(parquet.read_table(folder / "out" / "trace.parquet")) == 600
    assert (folder / "out" / "figure.png").read_bytes().startswith(b"\x89PNG")
    table = parquet.read_table(folder / "out" / "coefficients.parquet")
    last = RAPRegressor.load(folder / "out" / "model.safetensors")
    found = [table[f"coef[{name}]"][-1].as_py() for name in last.feature_names_in_]
    assert found == last.selected_.coef.tolist()


def test_predict_continues_where_the_run_ended(whole, tmp_path, capsys):
    """Rows after the last one learnt: lags and missing values go on; the same as asking the model itself."""
    folder, _, _ = whole
    new = "when,x,z,city,y\n2024-01-26 00:00:00,1.5,,Lima,3.25\n2024-01-26 01:00:00,-0.5,2.0,Atlantis,\n"
    (tmp_path / "new.csv").write_text(new)
    assert main(["predict", str(folder / "out" / "model.safetensors"), str(tmp_path / "new.csv")]) == 0
    printed = capsys.readouterr()
    rows = [line.split(",") for line in printed.out.splitlines()]
    assert rows[0] == ["row", "time", "y", "prediction"]
    assert "2 rows; mean loss" in printed.err
    assert "column 'city' holds 'Atlantis' (1 row), which the run has not seen" in printed.err
    model = RAPRegressor.load(folder / "out" / "model.safetensors")
    old = csv.read_csv(folder / "mixed.csv")
    z = next(v for v in reversed(old["z"].to_pylist()) if v is not None)
    base = dict.fromkeys(model.feature_names_in_, 0.0)
    season = 2 * np.pi * 25 / 365.25
    one = {**base, "x": 1.5, "z": z, "z missing": 1.0, "city = Lima": 1.0, "y lag 1": old["y"][-1].as_py()}
    one |= {"when: season sin": np.sin(season), "when: season cos": np.cos(season), "when: Fri": 1.0}
    one |= {"when: hour cos": 1.0, "when: hour cos 2": 1.0, "when: trend": 25 / 365.2425}
    expected = model.predict(pd.DataFrame([one]))
    assert float(rows[1][3]) == pytest.approx(expected[0], rel=1e-9)
    assert rows[2][2] == "", "no target, no loss"


def test_predict_writes_a_file_and_refuses_other_columns(whole, tmp_path, capsys):
    folder, _, _ = whole
    model = str(folder / "out" / "model.safetensors")
    assert main(["predict", model, str(folder / "mixed.csv"), "--out", str(tmp_path / "predicted.parquet")]) == 0
    assert len(parquet.read_table(tmp_path / "predicted.parquet")) == 600
    (tmp_path / "other.csv").write_text("when,x,town,y\n2024-01-01,1,2,3\n")
    assert main(["predict", model, str(tmp_path / "other.csv"), "--out", str(tmp_path / "other.jsonl")]) == 2
    assert "there is no column 'z'" in capsys.readouterr().err
    assert not (tmp_path / "other.jsonl").exists()
    assert main(["predict", str(tmp_path / "other.csv"), str(tmp_path / "other.csv")]) == 2
    assert "not a streamlasso checkpoint" in capsys.readouterr().err


def test_what_is_unusual_in_a_file_is_printed_and_predict_reads_it_the_same_way(tmp_path, capsys, undrawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(i * 7 % 11 / 4, i * 5 % 13 / 2) for i in range(120)]
    text = "".join(f"{x};{z};{1_700_000_000 + 60 * i};{x + z}\n" for i, (x, z) in enumerate(rows))
    (tmp_path / "old.csv").write_text("x;z;timestamp;y\n" + text.replace(".", ","))
    assert main(["run", "old.csv", "--target", "y", "--out", "out", "--tuner", "logrms"]) == 0
    printed = words(capsys.readouterr().err)
    assert "'1,75' is read as 1.75 (columns x, z and y)" in printed
    assert "timestamp is read as seconds since 1970" in printed
    assert "y can be computed from z and x: if they are not known before y, use --drop z,x" in printed
    assert "'1,75' is read as 1.75" in (tmp_path / "out" / "report.html").read_text().replace("&#x27;", "'")
    new = ["x;z;timestamp;y", "1.5;2;1700000000;", "1,5;2;1700000000;3,5"]
    (tmp_path / "new.csv").write_text("\n".join(new) + "\n")
    assert main(["predict", "out/model.safetensors", "new.csv"]) == 2
    assert "column 'x' holds '1.5', where the first rows had numbers like 1.234,5" in capsys.readouterr().err
    (tmp_path / "new.csv").write_text("\n".join([*new[:2], "oops", *new[2:]]) + "\n")
    assert main(["predict", "out/model.safetensors", "new.csv"]) == 2
    assert "new.csv: line 3: it has 1 field" in capsys.readouterr().err
    assert main(["predict", "out/model.safetensors", "new.csv", "--on-error", "skip"]) == 0
    row, time, y, _ = capsys.readouterr().out.splitlines()[1].split(",")
    assert (row, time, y) == ("2", "2023-11-14 22:13:20", "3.5")


def test_whole_numbers_that_may_be_classes_are_printed_with_the_option(tmp_path, capsys, undrawn):
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 7 % 3}\n" for i in range(60)))
    arguments = [
        "run",
        str(tmp_path / "data.csv"),
        "--target",
        "y",
        "--out",
        str(tmp_path / "out"),
        "--tuner",
        "logrms",
    ]
    assert main(arguments) == 0
    assert "y is 0, 1, 2: if these are classes, not amounts, use --family binomial" in words(capsys.readouterr().err)
    assert main([*arguments, "--family", "binomial"]) == 0
    printed = words(capsys.readouterr().err)
    assert "target y: 3 classes (0, 1, 2), family binomial (as given)" in printed
    assert "if these are classes" not in printed


def test_predict_does_not_score_classes_that_the_model_has_never_seen(tmp_path, capsys, undrawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(i * 7 % 11 - 5, "yes" if i * 7 % 11 > 4 else "no") for i in range(120)]
    (tmp_path / "old.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows))
    (tmp_path / "known.csv").write_text("x,y\n1,yes\n-1,no\n")
    (tmp_path / "new.csv").write_text("x,y\n1,yes\n0,maybe\n2,never\n-1,no\n")
    assert main(["run", "old.csv", "--target", "y", "--tuner", "logrms", "--quiet"]) == 0
    losses = []
    for name in ("known", "new"):
        assert main(["predict", "run/model.safetensors", f"{name}.csv", "--out", f"{name}-predicted.csv"]) == 0
        losses.append(re.search(r"mean loss (\S+) on 2 of them", capsys.readouterr().err)[1])
    assert losses[0] == losses[1]
    assert csv.read_csv("new-predicted.csv")["y"].to_pylist() == ["yes", "maybe", "never", "no"]


@pytest.mark.parametrize("read", ["new.csv", "model.csv"])
def test_predict_does_not_write_over_what_it_reads(read, tmp_path, capsys):
    RAPRegressor().partial_fit(np.eye(3), [1.0, 2, 3]).save(tmp_path / "model.csv")
    (tmp_path / "new.csv").write_text("a,b,c\n1,2,3\n")
    before = (tmp_path / read).read_bytes()
    assert (
        main(["predict", *(str(tmp_path / name) for name in ("model.csv", "new.csv")), "--out", str(tmp_path / read)])
        == 2
    )
    assert "would be overwritten" in capsys.readouterr().err
    assert (tmp_path / read).read_bytes() == before


def test_predict_takes_models_from_python(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 3)), columns=["a", "b", "c"])
    y = np.array(["no", "so-so", "yes"])[np.digitize(X["a"], [-0.5, 0.5])]
    model = RAPClassifier().fit(X, y)
    model.save(tmp_path / "model.safetensors")
    X.assign(other="text").to_csv(tmp_path / "data.csv", index=False)
    assert main(["predict", str(tmp_path / "model.safetensors"), str(tmp_path / "data.csv")]) == 0
    printed = capsys.readouterr()
    predicted = pd.read_csv(pd.io.common.StringIO(printed.out))
    assert predicted["prediction"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(predicted["probability"], model.predict_proba(X).max(axis=1))
    np.testing.assert_allclose(predicted[["P(no)", "P(so-so)", "P(yes)"]], model.predict_proba(X))


def test_inspect_shows_what_is_in_a_file(whole, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    folder, _, _ = whole
    assert main(["inspect", str(folder / "out" / "model.safetensors")]) == 0
    out = words(capsys.readouterr().out)
    for shown in (
        "RAPRegressor",
        "gaussian",
        "600",
        "city",
        "text, one feature per level",
        "running mean",
        f"streamlasso {__version__}",
    ):
        assert shown in out
    RAPRegressor().fit(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)).save(tmp_path / "plain")
    assert main(["inspect", str(tmp_path / "plain")]) == 0
    assert "rows learnt │ 30" in words(capsys.readouterr().out)
    assert main(["inspect", str(tmp_path / "nosuch")]) == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("streamlasso", "predict", "checkpoint"):
        assert word in script


def test_inspect_speaks_of_one_feature(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(60, 1))
    RAPRegressor().partial_fit(X, 3 * X[:, 0]).save(tmp_path / "one.safetensors")
    assert main(["inspect", str(tmp_path / "one.safetensors")]) == 0
    assert "1 feature, since row" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run", "predict", "inspect", "demo", "completion"])
def test_help_has_an_example(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"streamlasso {command}" in words(capsys.readouterr().out).replace("Example: streamlasso", "streamlasso")


def test_the_live_view_shows_the_numbers():
    console = Console(force_terminal=True, width=120, file=open("/dev/null", "w"), record=True)  # noqa: SIM115
    view = Terminal(console)
    view.drawn -= 10
    view.show(1000, {"loss": "0.5", "lam": "0.01"})
    view.drawn -= 10
    view.show(9000, {"loss": "0.4", "lam": "0.02"})
    shown = console.export_text()
    view.close()
    for word in ("9,000", "rows per second", "0.4", "0.02", "Ctrl-C"):
        assert word in shown


def test_quiet_says_nothing(mixed_csv, tmp_path, capfd, undrawn):
    arguments = ["run", str(mixed_csv), "--target", "y", "--out", str(tmp_path / "out"), "--tuner", "logrms", "--quiet"]
    assert main(arguments) == 0
    assert capfd.readouterr() == ("", "")


def test_predictions_on_standard_output_are_alone_there(mixed_csv, tmp_path, capfd, undrawn):
    arguments = ["run", str(mixed_csv), "--target", "city", "--out", str(tmp_path / "out"), "--predictions", "-"]
    assert main([*arguments, "--tuner", "logrms"]) == 0
    out, err = capfd.readouterr()
    predicted = pd.read_csv(pd.io.common.StringIO(out))
    shares = [f"P({city})" for city in ("Lima", "Oslo", "Pisa", "Rome")]
    assert list(predicted) == ["row", "time", "y", "prediction", "probability", *shares]
    np.testing.assert_allclose(predicted[shares].max(axis=1), predicted["probability"])
    assert predicted[shares].idxmax(axis=1).str[2:-1].tolist() == predicted["prediction"].tolist()
    assert len(predicted) == 600
    assert "classes" in err
    assert "running mean" in err


# --- the report -------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.links, self.text = [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]

    def handle_data(self, data):
        self.text.append(data)


def test_the_report_needs_no_network_and_says_what_matters(whole):
    folder, _, _ = whole
    page = Page((folder / "out" / "report.html").read_text())
    assert page.links
    assert all(link.startswith("data:image/svg+xml;base64,") for link in page.links)
    text = words(" ".join(page.text))
    for expected in (
        "mixed.csv: y",
        "Over 600 rows the typical error in y was",
        "lower than that of the running mean",
        "persistence",
        "The largest coefficients over time",
        "What entered and left?",
        "x entered",
        "2024-01-",
        "typical error",
        f"streamlasso {__version__}",
        "gaussian (guessed)",
    ):
        assert expected in text, expected
    drawing = base64.b64decode(page.links[0].split(",")[1]).decode()
    for title in ("Penalty", "Loss", "Memory", "Active features"):
        assert title in drawing or "<path" in drawing


@pytest.mark.skipif(BROWSER is None, reason="no browser: install chromium (apt-get install chromium)")
def test_the_report_in_a_real_browser(whole, tmp_path):
    """Every image is drawn, nothing is wider than the window, and no address but the file's own is asked for."""
    folder, _, _ = whole
    report = (folder / "out" / "report.html").read_text()
    probe = (
        "<script>window.onload = () => {"
        "const images = [...document.images].map(i => i.complete && i.naturalWidth > 100);"
        "const wide = document.documentElement.scrollWidth <= window.innerWidth + 1;"
        "const asked = performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length;"
        "document.title = 'seen ' + images.length + ' ' + images.every(x => x) + ' ' + wide + ' ' + asked; };</script>"
    )
    (tmp_path / "probed.html").write_text(report.replace("</body>", probe + "</body>"))
    common = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    seen = subprocess.run(
        [
            *common,
            "--window-size=1000,3000",
            "--virtual-time-budget=5000",
            "--dump-dom",
            f"file://{tmp_path / 'probed.html'}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert re.search("<title>(.*?)</title>", seen.stdout)[1] == "seen 2 true true 0"
    picture = tmp_path / "page.png"
    subprocess.run(
        [*common, "--window-size=1000,3000", f"--screenshot={picture}", f"file://{folder / 'out' / 'report.html'}"],
        capture_output=True,
        timeout=120,
        check=True,
    )
    from matplotlib.image import imread

    pixels = imread(picture)[..., :3]
    dark = np.all(np.abs(pixels - np.array([0x0B, 0x3C, 0x6F]) / 255) < 0.03, axis=2)
    assert dark.sum() > 5_000, "the raster and the curves are there, in their colour"


# --- demo -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())"]
    done = subprocess.run([*command, "demo"], capture_output=True, text=True, cwd=folder, check=True)
    return folder / "demo", done.stdout, done.stderr


def test_demo_is_a_run_on_the_simulated_stream(demo):
    from streamlasso.run.demo import SEED
    from streamlasso.simulate import simulate

    out, _, _ = demo
    stream = simulate(SEED)
    expected = progressive(RAPRegressor(), stream.X, stream.y)
    trace = parquet.read_table(out / "trace.parquet")
    np.testing.assert_array_equal(trace["prediction"].to_numpy(), expected.prediction)
    assert (out / "report.html").exists()
    assert (out / "stream.csv").exists()


@pytest.mark.parametrize("found, shown", [("/usr/bin/streamlasso", "streamlasso"), (None, ".venv/bin/streamlasso")])
def test_demo_ends_with_a_command_that_can_be_typed(found, shown, monkeypatch):
    from streamlasso.run.demo import program

    monkeypatch.setattr(shutil, "which", lambda name: found)
    monkeypatch.setattr(sys, "argv", [".venv/bin/streamlasso", "demo"])
    assert program().replace("\\", "/") == shown


def numbers(printed, row):
    line = next(line for line in printed.splitlines() if line.strip("│ ").startswith(row))
    return [float(number) for number in re.findall(r"\d+\.?\d*", line.split("│", 2)[2])]


def test_demo_prints_what_was_recovered(demo):
    from sklearn.metrics import f1_score

    from streamlasso.run.demo import SEED
    from streamlasso.simulate import simulate

    out, printed, _ = demo
    stream = simulate(SEED)
    table = parquet.read_table(out / "coefficients.parquet")
    coef = np.column_stack([table[f"coef[x{j}]"].to_numpy() for j in range(20)])
    for start in (50, 150, 250):
        rows = range(start, start + 50)
        scores = [f1_score(stream.beta[t] != 0, coef[t] != 0) for t in rows]
        *_, active, truly, score = numbers(printed, f"{start} to {start + 49}")
        assert active == pytest.approx(np.mean([np.count_nonzero(coef[t]) for t in rows]), abs=0.06)
        assert truly == (4 if start == 150 else 16)
        assert score == pytest.approx(np.mean(scores), abs=0.006)
    assert "demo/report.html" in printed
