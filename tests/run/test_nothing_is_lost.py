"""Killed at any moment and started again, a run ends as if it had never been interrupted: to the bit, no row twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv, parquet

from streamlasso import RAPRegressor
from streamlasso.cli import main
from streamlasso.run.options import Options
from streamlasso.run.run import Run

KILLER = Path(__file__).with_name("killer.py")
COMMAND = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())"]


def same_run(one, other, predictions="predictions.csv"):
    for name in ("trace.parquet", "coefficients.parquet", "report.html", "figure.png", "model.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    if predictions.endswith(".parquet"):
        assert parquet.read_table(one / predictions).equals(parquet.read_table(other / predictions))
    else:
        assert (one / predictions).read_bytes() == (other / predictions).read_bytes()
    assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in other.iterdir())


def arguments(data, out, *more):
    return ["run", str(data), "--target", "y", "--out", str(out), "--checkpoint", f"{out}.ckpt", "--quiet", *more]


CASES = {
    "csv": ["--every", "40", "--lags", "y:1,7", "--coverage", "0.9"],
    "parquet": ["--every", "25", "--predictions", "predictions.parquet", "--tuner", "logrms"],
}


@pytest.mark.posix
@pytest.mark.parametrize("form", CASES)
def test_killed_many_times_it_ends_the_same(form, mixed_csv, tmp_path):
    more = [str(tmp_path / "OUT" / word) if word.startswith("predictions.") else word for word in CASES[form]]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(arguments(mixed_csv, whole, *(word.replace("OUT", "whole") for word in more))) == 0
    command = arguments(mixed_csv, killed, *(word.replace("OUT", "killed") for word in more))
    done = subprocess.run(
        [sys.executable, str(KILLER), "1", "12", "0.5", *command], capture_output=True, text=True, check=True
    )
    kills, status = map(int, done.stdout.split())
    assert status == 0, done.stderr
    assert kills >= 8
    same_run(whole, killed, f"predictions.{form}")


def test_rows_and_decimal_commas_are_as_before_after_an_interruption(tmp_path, undrawn, monkeypatch):
    """Bad lines and cells on both sides of it; the file is so short at first that no comma has been seen in `n`."""
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 50)
    rng = np.random.default_rng(0)
    rows = [
        f"{a:.3f};{int(9 * b) if i < 100 else 9 * b:.4g};{a + b:.3f}" for i, (a, b) in enumerate(rng.random((300, 2)))
    ]
    rows = [row.replace(".", ",") for row in rows]
    for i in (20, 130, 131, 250):
        rows[i] = "ragged"
    for i in (60, 132, 251):
        rows[i] = "0,5;oops;1,5"
    whole, part = tmp_path / "whole", tmp_path / "part"
    more = ["--every", "40", "--on-error", "skip", "--tuner", "logrms"]
    for n in (140, 300):
        (tmp_path / "data.csv").write_text("\n".join(["x;n;y", *rows[:n]]) + "\n")
        assert main(arguments(tmp_path / "data.csv", part, *more)) == 0
    assert main(arguments(tmp_path / "data.csv", whole, *more)) == 0
    same_run(whole, part)
    predicted = csv.read_csv(part / "predictions.csv").to_pydict()
    assert predicted["row"] == [i for i in range(300) if i not in (20, 130, 131, 250, 60, 132, 251)]
    assert predicted["y"] == [float(rows[i].split(";")[2].replace(",", ".")) for i in predicted["row"]]


def test_a_row_is_there_once_after_a_kill_in_the_worst_place(mixed_csv, tmp_path, monkeypatch):
    """Between the outputs and the checkpoint, and after the checkpoint; each time the process is gone at once."""
    options = Options(str(mixed_csv), "y", tmp_path / "out", checkpoint=tmp_path / "ckpt", every=50)

    class Killed(BaseException):
        pass

    from streamlasso import checkpoint as module

    for stage in ("before", "after"):
        calls = []

        def save(*arguments, stage=stage, calls=calls, save=module.save):
            calls.append(1)
            if len(calls) == 3 and stage == "before":
                raise Killed
            save(*arguments)
            if len(calls) == 3:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(module, "save", save)
            with pytest.raises(Killed):
                Run(options).go()
    last = Run(options)
    assert last.resumed
    assert last.position == 250
    assert last.go()
    last.predictions.sync()
    rows = csv.read_csv(tmp_path / "out" / "predictions.csv")["row"].to_pylist()
    assert rows == list(range(600))


def test_ctrl_c_ends_with_a_report_and_the_same_command_continues(mixed, tmp_path, capsys, monkeypatch):
    table = mixed(2000)
    csv.write_csv(table, tmp_path / "data.csv")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main(arguments(tmp_path / "data.csv", whole)) == 0

    def interrupt(watcher, run, rows, outcomes):
        if run.n_rows > 500:
            signal.raise_signal(signal.SIGINT)

    predicted = broken / "predictions.csv"
    with monkeypatch.context() as patch:
        patch.setattr("streamlasso.run.run.Watcher.learnt", interrupt)
        assert main(arguments(tmp_path / "data.csv", broken)[:-1]) == 130
    out, err = capsys.readouterr()
    assert "Interrupted after" in out
    assert "the same command continues" in " ".join(out.split())
    assert "Traceback" not in err
    for name in ("report.html", "trace.parquet", "figure.png", "model.safetensors"):
        assert (broken / name).exists()
    n = len(csv.read_csv(predicted))
    assert 500 < n < 2000
    assert (
        len(parquet.read_table(broken / "trace.parquet"))
        == n
        == RAPRegressor.load(broken / "model.safetensors").n_seen_
    )
    assert main(arguments(tmp_path / "data.csv", broken)) == 0
    same_run(whole, broken)


@pytest.mark.posix
def test_ctrl_c_while_a_pipe_is_waited_for(mixed_csv, tmp_path):
    command = [*COMMAND, "run", "-", "--target", "y", "--out", str(tmp_path / "out"), "--quiet", "--predictions", "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(mixed_csv.read_bytes())
    process.stdin.flush()
    assert len([process.stdout.readline() for _ in range(601)]) == 601
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert process.returncode == 130
    assert len(parquet.read_table(tmp_path / "out" / "trace.parquet")) == 600
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_a_file_that_has_grown_is_learnt_from_where_the_last_run_ended(mixed_csv, tmp_path, undrawn):
    lines = mixed_csv.read_text().splitlines(keepends=True)
    growing = tmp_path / "growing.csv"
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    growing.write_text("".join(lines[:351]))
    assert main(arguments(growing, grown)) == 0
    growing.write_text("".join(lines))
    assert main(arguments(growing, grown)) == 0
    assert main(arguments(growing, whole)) == 0
    a, b = (csv.read_csv(out / "predictions.csv")["prediction"].to_numpy() for out in (whole, grown))
    np.testing.assert_allclose(a, b, atol=1e-8)
    assert len(parquet.read_table(grown / "trace.parquet")) == 600
    before = (grown / "predictions.csv").read_bytes()
    assert main(arguments(growing, grown)) == 0, "with nothing new there is nothing to do"
    assert (grown / "predictions.csv").read_bytes() == before


def test_standard_input_that_is_replayed_continues(mixed_csv, tmp_path):
    text = mixed_csv.read_bytes()
    lines = text.splitlines(keepends=True)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for out, data in ((whole, text), (cut, b"".join(lines[:301])), (cut, text)):
        command = [*COMMAND, *arguments("-", out)]
        assert subprocess.run(command, input=data, check=False).returncode == 0
    same_run(whole, cut)


# --- checkpoints that do not belong -----------------------------------------------------------------------------------


@pytest.fixture
def begun(mixed_csv, tmp_path):
    """A checkpoint after 200 rows, and the options that made it."""
    options = dict(target="y", out=tmp_path / "out", checkpoint=tmp_path / "ckpt", every=200, lags={"y": [1]})
    run = Run(Options(str(mixed_csv), **options))
    run.interruption.signal = signal.SIGINT
    while run.position < 200:
        run.go()
    run.save(tmp_path / "ckpt")
    return options


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lags": {"y": [2]}}, "had --lags"),
        ({"target": "x", "lags": {}}, "had --target y, not x"),
        ({"memory": "0.9"}, "had --memory None, not 0.9"),
        ({"drop": ("z",)}, "had --drop"),
    ],
)
def test_other_options_are_refused(change, words, begun, mixed_csv):
    with pytest.raises(ValueError, match=words) as caught:
        Run(Options(str(mixed_csv), **{**begun, **change}))
    assert "another --checkpoint" in str(caught.value)


def test_other_data_are_refused(begun, mixed_csv, tmp_path):
    lines = mixed_csv.read_text().splitlines(keepends=True)
    other = tmp_path / "other.csv"
    other.write_text(lines[0].replace("city", "town") + "".join(lines[1:]))
    with pytest.raises(ValueError, match=r"had other columns .*city.*town"):
        Run(Options(str(other), **begun))
    other.write_text("".join([lines[0], *lines[2:]]))
    with pytest.raises(ValueError, match="another first row"):
        Run(Options(str(other), **begun))
    other.write_text("".join(lines[:101]))
    with pytest.raises(ValueError, match=r"other\.csv has 100 rows, fewer than the"):
        Run(Options(str(other), **begun)).go()


def test_outputs_that_are_gone_are_missed(begun, mixed_csv, tmp_path):
    (tmp_path / "out" / "predictions.csv").write_text("row\n")
    with pytest.raises(ValueError, match="not as the checkpoint left it"):
        Run(Options(str(mixed_csv), **begun))


def test_a_model_is_no_run(mixed_csv, tmp_path):
    RAPRegressor().fit(np.eye(3), np.arange(3.0)).save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="holds a model, but no run"):
        Run(Options(str(mixed_csv), "y", tmp_path / "out", checkpoint=tmp_path / "model.safetensors"))


def test_a_spoilt_checkpoint_is_refused_and_stays(begun, mixed_csv, tmp_path, capsys):
    data = (tmp_path / "ckpt").read_bytes()
    (tmp_path / "ckpt").write_bytes(data[: len(data) // 2])
    command = [
        "run",
        str(mixed_csv),
        "--target",
        "y",
        "--out",
        str(tmp_path / "out"),
        "--checkpoint",
        str(tmp_path / "ckpt"),
    ]
    assert main(command) == 2
    assert "cut short" in capsys.readouterr().err
    assert (tmp_path / "ckpt").stat().st_size == len(data) // 2


def test_a_checkpoint_of_a_later_version_is_refused(begun, mixed_csv, tmp_path, monkeypatch):
    monkeypatch.setattr("streamlasso.run.saved.VERSION", 99)
    with pytest.raises(ValueError, match="another version of streamlasso"):
        Run(Options(str(mixed_csv), **begun))


def test_the_checkpoint_is_a_model_for_python(begun, tmp_path):
    model = RAPRegressor.load(tmp_path / "ckpt")
    assert "x" in model.feature_names_in_
    assert model.n_seen_ >= 199
    assert os.path.getsize(tmp_path / "ckpt") > 1000


def test_the_checkpoint_may_be_the_model_by_another_name(mixed_csv, tmp_path, undrawn, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = mixed_csv.read_text().splitlines(keepends=True)
    for n in (401, 601):
        mixed_csv.write_text("".join(lines[:n]))
        checkpoint = str(tmp_path / "out" / "model.safetensors")
        assert main(["run", "mixed.csv", "--target", "y", "--out", "out", "--quiet", "--checkpoint", checkpoint]) == 0
    assert csv.read_csv("out/predictions.csv")["row"].to_pylist() == list(range(600))


def test_killed_after_the_file_has_grown(mixed_csv, tmp_path, undrawn):
    """A run that had come to its end goes on with new rows, and is killed before its first checkpoint since."""
    lines = mixed_csv.read_text().splitlines(keepends=True)
    growing = tmp_path / "growing.csv"
    growing.write_text("".join(lines[:351]))
    assert main(arguments(growing, tmp_path / "out")) == 0
    growing.write_text("".join(lines))
    killed = Run(Options(str(growing), "y", tmp_path / "out", checkpoint=tmp_path / "out.ckpt"))
    assert killed.resumed
    assert killed.go()
    assert main(arguments(growing, tmp_path / "out")) == 0
    assert csv.read_csv(tmp_path / "out" / "predictions.csv")["row"].to_pylist() == list(range(600))
    assert parquet.read_table(tmp_path / "out" / "trace.parquet")["t"].to_pylist() == list(range(600))
