"""What a checkpoint promises is there when a run continues, or the run says what is not: rows, parts, one process."""

import subprocess
import sys
import time

import numpy as np
import pyarrow
import pytest
from pyarrow import csv

from streamlasso.cli import main
from streamlasso.run.data import RowsRead


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch):
    monkeypatch.setattr("streamlasso.run.results.drawn", lambda figure, form: b"a picture")
    monkeypatch.setattr("streamlasso.report.run.history.drawn", lambda figure, form: b"a picture")


def write_rows(path, n=300, changed=None, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2)).round(4)
    y = x[:, 0].copy()
    if changed is not None:
        x[changed, 1] += 1
    csv.write_csv(pyarrow.table({"x": x[:, 0], "z": x[:, 1], "y": y + x[:, 1] * 0.5}), path)
    return path


def arguments(data, folder, *more):
    places = ["--out", str(folder / "out"), "--checkpoint", str(folder / "ckpt")]
    return ["run", str(data), "--target", "y", *places, "--every", "50", "--tuner", "logrms", "--quiet", *more]


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [0, 1, 7, 99, 149])
def test_a_row_that_was_edited_before_the_position_is_noticed(changed, tmp_path, capsys):
    assert main(arguments(write_rows(tmp_path / "data.csv", 150), tmp_path)) == 0
    before = (tmp_path / "ckpt").read_bytes()
    assert main(arguments(write_rows(tmp_path / "data.csv", 300, changed), tmp_path)) == 2
    words = capsys.readouterr().err
    assert "another first row" in words if changed == 0 else "one of the first 150 rows is not what it was" in words
    assert (tmp_path / "ckpt").read_bytes() == before


def test_rows_that_follow_the_position_may_be_new(tmp_path):
    assert main(arguments(write_rows(tmp_path / "data.csv", 150), tmp_path)) == 0
    assert main(arguments(write_rows(tmp_path / "data.csv", 300, changed=150), tmp_path)) == 0
    assert csv.read_csv(tmp_path / "out" / "predictions.csv").num_rows == 300


def test_rows_of_a_pipe_are_compared_as_well(tmp_path):
    command = [sys.executable, "-m", "streamlasso", *arguments("-", tmp_path)]
    first = write_rows(tmp_path / "data.csv", 150).read_bytes()
    assert subprocess.run(command, input=first, check=False).returncode == 0
    again = write_rows(tmp_path / "data.csv", 300, changed=42).read_bytes()
    found = subprocess.run(command, input=again, capture_output=True, check=False)
    assert found.returncode == 2 and b"one of the first 150 rows is not what it was" in found.stderr


@pytest.mark.parametrize("seed", range(5))
def test_the_hash_does_not_depend_on_how_rows_are_cut(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 2000))
    cells = rng.choice(["", "a", "b\x1f", None, "1.5"], size=n).tolist()
    rows = pyarrow.RecordBatch.from_pydict({"a": cells, "b": rng.normal(size=n), "c": rng.random(n) < 0.5})
    whole, parts, start = RowsRead(), RowsRead(), 0
    whole.add(rows)
    while start < n:
        stop = min(start + int(rng.integers(1, 300)), n)
        parts.add(rows.slice(start, stop - start))
        start = stop
    assert whole.state() == parts.state()
    RowsRead(whole.state()).add(rows)
    changed = int(rng.integers(n))
    cells[changed] = "other"
    with pytest.raises(ValueError, match=f"one of the first {n:,} rows is not what it was"):
        RowsRead(whole.state()).add(rows.set_column(0, "a", pyarrow.array(cells)))


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["predictions.csv", ".trace.parquet.arrows", ".predictions.parquet.arrows"])
def test_a_shorter_output_is_noticed(name, tmp_path, capsys):
    predictions = ["--predictions", str(tmp_path / "out" / "predictions.parquet")] if "predictions.p" in name else []
    options = arguments(write_rows(tmp_path / "data.csv", 150), tmp_path, *predictions)
    assert main(options) == 0
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:-1])
    assert main(options) == 2
    assert f"{name} is not as the checkpoint left it" in capsys.readouterr().err


def test_a_second_process_is_refused_and_the_first_goes_on(tmp_path):
    data = write_rows(tmp_path / "data.csv", 150).read_bytes()
    command = [sys.executable, "-m", "streamlasso", *arguments("-", tmp_path)]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    first.stdin.write(data)
    first.stdin.flush()
    deadline = time.monotonic() + 60
    while not (tmp_path / "ckpt").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    second = subprocess.run(command, input=data, capture_output=True, check=False)
    assert second.returncode == 2 and b"in use by another streamlasso" in second.stderr
    first.stdin.close()
    assert first.wait(60) == 0, first.stderr.read()
    first.stderr.close()
    assert csv.read_csv(tmp_path / "out" / "predictions.csv").num_rows == 150
    assert not list(tmp_path.glob(".*.lock"))


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    left = [out / f".streamlasso-{name}-0123456789abcdef.tmp" for name in ("report.html", "model.safetensors")]
    left.append(tmp_path / ".streamlasso-ckpt-0123456789abcdef.tmp")
    others = [tmp_path / ".streamlasso-other-0123456789abcdef.tmp", out / "mine.tmp"]
    for path in (*left, *others):
        path.write_bytes(b"half")
    assert main(arguments(write_rows(tmp_path / "data.csv", 150), tmp_path)) == 0
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


def test_a_network_leaves_no_unfinished_files_of_a_killed_one(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    (tmp_path / "data.csv").write_text("a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".streamlasso-lam.png-c262dd491e1cbb43.tmp").write_bytes(b"half of a pi")
    assert main(["network", str(tmp_path / "data.csv"), "--out", str(tmp_path / "out")]) == 0
    assert not list((tmp_path / "out").glob(".*"))
