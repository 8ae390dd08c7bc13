"""`streamlasso bench FILE`: a file of any kind of target is compared on; what cannot be compared is one line."""

import csv
import importlib.util
import io

import numpy as np
import pytest

from streamlasso import RAPRegressor, progressive
from streamlasso.bench.stream_file import StreamFile, read_task
from streamlasso.cli import main
from streamlasso.run.options import Options
from streamlasso.run.run import Run

N_ROWS = 120
QUICK = "running-mean,persistence,streamlasso"


def columns(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(3)
    city = rng.choice(["Rome", "Oslo"], n)
    score = 2 * x + (city == "Rome") + 0.5 * rng.normal(size=n)
    return {"x": x, "city": city, "y": score.round(3)}, rng


def write(path, table):
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def numbers(tmp_path):
    return write(tmp_path / "numbers.csv", columns()[0])


def bench(path, out, *arguments):
    return main(["bench", str(path), "--target", "y", "--out", str(out), *arguments])


def results(out):
    return list(csv.DictReader(io.StringIO((out / "leaderboard.csv").read_text())))


KINDS = {
    "gaussian": lambda y, rng: y,
    "poisson": lambda y, rng: rng.poisson(np.exp(0.4 * y)),
    "two": lambda y, rng: np.where(y > 0.5, "yes", "no"),
    "three": lambda y, rng: np.array(["low", "mid", "high"])[np.digitize(y, [-0.5, 1.5])],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_target_is_compared_on(kind, tmp_path, capsys):
    table, rng = columns()
    path = write(tmp_path / f"{kind}.csv", table | {"y": KINDS[kind](table["y"], rng)})
    assert bench(path, tmp_path / "out", "--methods", QUICK) == 0
    found = results(tmp_path / "out")
    assert all(row["status"] == "ok" and int(row["rows"]) == N_ROWS for row in found)
    assert {row["family"] for row in found} == {kind if kind in ("gaussian", "poisson") else "binomial"}
    relative = {row["method"]: float(row["relative"]) for row in found if row["setting"] == "default"}
    assert relative["running-mean"] == 1
    assert relative["streamlasso"] < 0.9
    text = (tmp_path / "out" / "summary.md").read_text()
    assert text in capsys.readouterr().out
    assert f"| streamlasso | {relative['streamlasso']:.3f} |" in text
    assert (tmp_path / "out" / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_rows_are_encoded_as_by_run(numbers, tmp_path):
    task, _ = read_task(StreamFile(str(numbers), "y"))
    run = Run(Options(str(numbers), "y", out=tmp_path / "run"))
    assert run.go()
    assert task.names == run.model.encoder.features
    trace = progressive(RAPRegressor(), task.X, task.y)
    np.testing.assert_allclose(run.model.estimator.lambda_, trace.lam[-1])
    run.abandon()


def test_the_previous_target_is_a_feature_with_lags(numbers):
    plain, _ = read_task(StreamFile(str(numbers), "y"))
    lagged, _ = read_task(StreamFile(str(numbers), "y", lags={"y": [1]}))
    assert lagged.names == [*plain.names, "y lag 1"]
    np.testing.assert_array_equal(lagged.X[:, -1], plain.y[:-1])
    np.testing.assert_array_equal(lagged.y, plain.y[1:])


def test_rows_without_a_target_are_left_out_and_late_levels_were_zero_before(tmp_path):
    table, _ = columns()
    y = table["y"].astype(str)
    y[[3, 50]] = ""
    city = np.where(np.arange(N_ROWS) < 80, "Rome", table["city"])
    task, _ = read_task(StreamFile(str(write(tmp_path / "holes.csv", table | {"city": city, "y": y})), "y"))
    assert len(task.y) == N_ROWS - 2
    assert not task.X[:78, task.names.index("city = Oslo")].any()


def test_drop_keep_and_rows_choose_what_is_read(numbers, tmp_path, capsys):
    assert bench(numbers, tmp_path / "out", "--methods", "persistence", "--drop", "city", "--rows", "100") == 0
    assert "the file has more rows: --rows N reads the first N instead of 100" in capsys.readouterr().err
    (row,) = results(tmp_path / "out")
    assert (row["rows"], row["features"], row["scored"]) == ("100", "1", "50")
    assert read_task(StreamFile(str(numbers), "y", keep=("x",)))[0].names == ["x"]


def test_more_rows_than_there_are_is_all_of_them(tmp_path, capsys):
    path = write(tmp_path / "long.csv", columns(5200)[0])
    for option, n_rows in (([], "5000"), (["--rows", "9999"], "5200")):
        out = tmp_path / n_rows
        assert bench(path, out, "--methods", "running-mean,persistence", *option) == 0
        assert {row["rows"] for row in results(out)} == {n_rows}


def test_all_peers_are_trees_too(numbers, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    missing = ("vowpalwabbit", "ondil")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find(name))
    assert bench(numbers, tmp_path / "out", "--peers", "all", "--defaults-only") == 0
    found = {row["method"]: row for row in results(tmp_path / "out")}
    assert {"boosting", "river-forest", "streamlasso"} <= set(found)
    assert all(row["status"] == "ok" for row in found.values())
    text = (tmp_path / "out" / "summary.md").read_text()
    above = {line.split(" | ")[0]: line.split(" | ")[2] for line in text.splitlines() if line.startswith("| ")}
    ratio = float(found["boosting"]["loss"]) / float(found["streamlasso"]["loss"])
    assert float(above["| boosting"].split()[0]) == pytest.approx(100 * (ratio - 1), abs=0.6)
    assert "±" in above["| boosting"]


def test_unreadable_rows_stop_it_or_are_left_out_with_a_note(tmp_path, capsys):
    table, _ = columns()
    path = write(tmp_path / "ragged.csv", table)
    path.write_text(path.read_text() + "1,Rome,2,3\n")
    assert bench(path, tmp_path / "out", "--methods", "persistence") == 2
    assert "--on-error skip" in capsys.readouterr().err
    assert bench(path, tmp_path / "out", "--methods", "persistence", "--on-error", "skip") == 0
    assert "1 unreadable row left out" in capsys.readouterr().err


def test_packages_that_are_missing_are_named_and_the_rest_runs(numbers, tmp_path, capsys, monkeypatch):
    find, missing = importlib.util.find_spec, ("river", "vowpalwabbit", "ondil", "sklearn")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find(name))
    assert bench(numbers, tmp_path / "out") == 0
    err = capsys.readouterr().err
    for method in ("river", "vowpal-wabbit", "ondil", "refit", "sklearn-sgd"):
        assert f"left out: {method} needs" in err
    assert 'pip install "streamlasso[bench]"' in err
    assert {row["method"] for row in results(tmp_path / "out")} == set(QUICK.split(","))


def test_methods_without_the_family_are_named(tmp_path, capsys):
    table, rng = columns()
    path = write(tmp_path / "counts.csv", table | {"y": KINDS["poisson"](table["y"], rng)})
    assert bench(path, tmp_path / "out", "--methods", "persistence,sklearn-sgd") == 0
    assert "Not for a poisson target: sklearn-sgd." in capsys.readouterr().out
    assert bench(path, tmp_path / "none", "--methods", "sklearn-sgd") == 2
    assert "none of them can predict a poisson target" in capsys.readouterr().err


def test_the_same_command_continues_and_another_stream_is_refused(numbers, tmp_path, capsys):
    out = tmp_path / "out"
    assert bench(numbers, out, "--methods", "persistence") == 0
    before = (out / "leaderboard.csv").read_text()
    assert bench(numbers, out, "--methods", "persistence,running-mean") == 0
    assert (out / "leaderboard.csv").read_text().startswith(before)
    assert bench(numbers, out, "--methods", "persistence", "--drop", "city") == 2
    assert "on other data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "z"], "--target z is not a column"),
        (["--target", "y", "--rows", "99"], "--rows 99 is too few"),
        (["--target", "y", "--methods", "vw"], "vw: unknown; the methods are"),
        (["--target", "y", "--jobs", "0"], "at least one process"),
        (["--target", "y", "--family", "gamma"], "gamma"),
        (["--target", "y", "--drop", "q"], "--drop q"),
        (["--target", "y", "--drop", "x,city"], "no feature is left"),
        (["--target", "same"], "there is nothing to predict"),
        ([], "target"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_leaves_nothing(arguments, words, tmp_path, capsys):
    table, _ = columns()
    path = write(tmp_path / "data.csv", table | {"same": np.full(N_ROWS, 7)})
    drop = [] if "same" in arguments else ["--drop", "same"]
    assert main(["bench", str(path), *arguments, *drop, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("n", "words"), [(0, "no rows"), (60, "60 rows with a target, which is too few")])
def test_too_few_rows_are_refused(n, words, tmp_path, capsys):
    path = write(tmp_path / "short.csv", columns(n)[0])
    assert bench(path, tmp_path / "out") == 2
    assert words in capsys.readouterr().err


def test_no_file_is_one_line(tmp_path, capsys):
    assert bench(tmp_path / "nowhere.csv", tmp_path / "out") == 2
    assert "nowhere.csv" in capsys.readouterr().err
