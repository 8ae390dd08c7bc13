"""A run that finds a change: what is printed, started and written, once per change, also after a kill."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import csv

from streamlasso import RAPRegressor
from streamlasso.cli import main
from streamlasso.run.options import Options
from streamlasso.run.run import Run

KILLER = Path(__file__).with_name("killer.py")
N, CHANGES = 1200, (500, 900)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The effect of `b` changes its sign twice."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N))
    sign = np.where((np.arange(N) >= CHANGES[0]) & (np.arange(N) < CHANGES[1]), -1.0, 1.0)
    path = tmp_path_factory.mktemp("alarm") / "data.csv"
    csv.write_csv(pyarrow.table({"a": a, "b": b, "y": a + 2.0 * sign * b + rng.normal(size=N)}), path)
    return path


@pytest.fixture(scope="module")
def expected(data):
    """What a model finds in these rows."""
    table = csv.read_csv(data)
    model = RAPRegressor().fit(np.column_stack([table["a"], table["b"]]), table["y"].to_numpy())
    assert [abs(change.row - at) <= 3 for change, at in zip(model.changes_, CHANGES, strict=True)] == [True, True]
    return model.changes_


def run(data, out, *more):
    return main(["run", str(data), "--target", "y", "--out", str(out), *more])


def heard(path):
    """What a command has written, one line of JSON for each time that it was started."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_print_says_each_change_once_and_the_run_ends_well(data, expected, tmp_path, undrawn, capsys):
    assert run(data, tmp_path / "out", "--alarm", "print") == 0
    printed = capsys.readouterr()
    lines = [line for line in (printed.out + printed.err).splitlines() if line.startswith("change: ")]
    assert [line.split(", found at row ")[1].split(":")[0] for line in lines] == [str(c.detected) for c in expected]
    assert all("b from " in line for line in lines)


def test_exit_ends_the_run_with_status_3_and_its_report(data, expected, tmp_path, undrawn):
    assert run(data, tmp_path / "out", "--alarm", "exit", "--quiet") == 3
    assert (tmp_path / "out" / "report.html").exists()
    predicted = csv.read_csv(tmp_path / "out" / "predictions.csv")["row"].to_pylist()
    assert predicted == list(range(len(predicted))) and expected[0].detected < len(predicted)


def test_a_run_that_an_alarm_ended_goes_on_from_its_checkpoint(data, expected, tmp_path, undrawn):
    more = ["--quiet", "--checkpoint", str(tmp_path / "ckpt"), "--every", "100", "--alarm", "exit"]
    statuses = [run(data, tmp_path / "out", *more) for _ in range(3)]
    assert statuses == [3, 3, 0]
    rows = csv.read_csv(tmp_path / "out" / "predictions.csv")["row"].to_pylist()
    assert rows == list(range(N))


@pytest.mark.posix
def test_a_command_reads_each_change_as_json(data, expected, tmp_path, undrawn):
    log = tmp_path / "log"
    assert run(data, tmp_path / "out", "--quiet", "--alarm", f"cat >> {log}") == 0
    told = heard(log)
    assert [each["detected"] for each in told] == [change.detected for change in expected]
    for each, at in zip(told, CHANGES, strict=True):
        assert abs(each["row"] - at) <= 3 and sum(each["probability"].values()) == pytest.approx(1.0)
        before, after = each["features"]["b"]
        assert before * after < 0 and each["label"] is None


@pytest.mark.posix
def test_a_command_knows_the_row_and_may_fail(data, expected, tmp_path, undrawn, capsys):
    log = tmp_path / "log"
    assert run(data, tmp_path / "out", "--alarm", f'echo "$STREAMLASSO_ROW" >> {log}; exit 7') == 0
    assert [abs(int(row) - at) <= 3 for row, at in zip(log.read_text().split(), CHANGES, strict=True)] == [True, True]
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("ended with 7; the run goes on") == 2


def test_an_empty_alarm_is_refused(data, tmp_path, capsys):
    assert run(data, tmp_path / "out", "--alarm", " ") == 2
    assert "--alarm is empty: use print, exit, or a command" in capsys.readouterr().err


def test_changes_csv_has_a_line_for_each_move(data, expected, tmp_path, undrawn):
    assert run(data, tmp_path / "out", "--quiet") == 0
    lines = csv.read_csv(tmp_path / "out" / "changes.csv").to_pylist()
    moves = [(change, name, sizes) for change in expected for name, sizes in change.features.items()]
    assert [(line["row"], line["found"]) for line in lines] == [(change.row, change.detected) for change, _, _ in moves]
    names = {"x0": "a", "x1": "b"}
    for line, (change, name, (before, after)) in zip(lines, moves, strict=True):
        assert line["feature"] == names.get(name, name) and line["class"] is None
        numbers = [line[key] for key in ("before", "after", "cost", "probability")]
        assert numbers == pytest.approx([before, after, change.loss, change.probability[change.row]])


def test_noise_that_grew_is_a_line_without_a_feature(tmp_path, undrawn):
    rng = np.random.default_rng(5)
    x = rng.normal(size=900)
    y = x + np.where(np.arange(900) < 600, 1.0, 10.0) * rng.normal(size=900)
    csv.write_csv(pyarrow.table({"x": x, "y": y}), tmp_path / "data.csv")
    assert run(tmp_path / "data.csv", tmp_path / "out", "--quiet") == 0
    (line,) = csv.read_csv(tmp_path / "out" / "changes.csv").to_pylist()
    assert 600 <= line["found"] < 620 and line["row"] <= line["found"]
    assert not line["feature"] and line["before"] is None and line["after"] is None and line["cost"] > 0


@pytest.mark.posix
def test_killed_many_times_no_change_is_lost(data, expected, tmp_path):
    """What a killed run had told since its last checkpoint is told again; the outputs are as without kills."""
    log, whole, killed = tmp_path / "log", tmp_path / "whole", tmp_path / "killed"
    assert run(data, whole, "--quiet") == 0
    command = ["run", str(data), "--target", "y", "--out", str(killed), "--quiet", "--checkpoint", f"{killed}.ckpt"]
    command += ["--every", "50", "--alarm", f"cat >> {log}"]
    done = subprocess.run(
        [sys.executable, str(KILLER), "2", "8", "0.4", *command], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1] == "0", done.stderr
    assert {each["detected"] for each in heard(log)} == {change.detected for change in expected}
    assert (whole / "changes.csv").read_bytes() == (killed / "changes.csv").read_bytes()


def test_a_resumed_run_tells_only_of_what_is_new(data, expected, tmp_path):
    """The first change is in the checkpoint, and was told before it."""
    options = Options(str(data), "y", tmp_path / "out", checkpoint=tmp_path / "ckpt", every=50, alarm="print")

    class Killed(BaseException):
        pass

    first, told = Run(options), []
    first.alarm.news.whom = told.append

    def show():
        if first.position >= 700:
            raise Killed

    first._show = show
    with pytest.raises(Killed):
        first.go()
    again = Run(options)
    again.alarm.news.whom = told.append
    assert again.go()
    assert [change.detected for change in told] == [change.detected for change in expected]
