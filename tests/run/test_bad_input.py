"""Bad input: one line that says what to do, exit status 2, and nothing that looks whole."""

import errno
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import csv

from streamlasso._arguments import parse_lags
from streamlasso.cli import main
from streamlasso.run.options import FINAL, Options

COMMAND = [sys.executable, "-c", "import sys; from streamlasso.cli import main; sys.exit(main())"]


@pytest.fixture
def refused(tmp_path, capsys):
    """Run, and see that it is refused in one line, with status 2, and leaves nothing that looks whole."""

    def check(data, *more, out="out"):
        arguments = ["run", str(data), "--out", str(tmp_path / out), *more, "--quiet"]
        assert main(arguments) == 2
        printed = capsys.readouterr()
        assert not printed.out
        assert printed.err.count("\n") == 1
        assert printed.err.startswith("streamlasso: ")
        assert "Traceback" not in printed.err
        left = {path.name for path in (tmp_path / out).iterdir()} if (tmp_path / out).is_dir() else set()
        assert not left & {*FINAL, "predictions.csv", ".trace.parquet.arrows"}
        return printed.err

    return check


def test_a_missing_file(refused, tmp_path):
    assert "nosuch.csv: No such file" in refused(tmp_path / "nosuch.csv", "--target", "y")


def test_a_missing_target_suggests_the_nearest_name(refused, mixed_csv):
    assert "--target Citi is not a column: did you mean 'city'?" in refused(mixed_csv, "--target", "Citi")
    assert "the columns are when, x, z, city, y" in refused(mixed_csv, "--target", "qqqqqq")


@pytest.mark.parametrize("value", ["3.5", "word", "0"])
def test_a_constant_target(value, refused, tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i % 7},{value}\n" for i in range(300)))
    assert "the same value in all 300 rows" in refused(tmp_path / "data.csv", "--target", "y")


def test_a_target_without_values(refused, tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i % 7},\n" for i in range(300)))
    assert "has no value in the first 300 rows" in refused(tmp_path / "data.csv", "--target", "y")


def test_no_rows(refused, tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n")
    assert "has no rows" in refused(tmp_path / "data.csv", "--target", "y")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2024-01-20,1.5", "line 402: it has 2 fields, but the first line has 5"),
        ("2024-01-20,oops,1,Rome,2", "line 402: column 'x' holds 'oops', where the first rows had numbers"),
        ("some day,1,1,Rome,2", "line 402: column 'when' holds 'some day', where the first rows had dates"),
        ("2024-01-20,1,1,Rome,two", "line 402: the target 'y' is 'two', not a number"),
        ("2024-01-20,1,1,Rome,1e99", "line 402: the target 'y' is 1e\\+99"),
    ],
)
def test_a_bad_line_mid_file(line, words, refused, mixed_csv, tmp_path, monkeypatch):
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 300)
    monkeypatch.setattr("streamlasso.data.sources.lines.BLOCK_BYTES", 4096)
    lines = mixed_csv.read_text().splitlines()
    lines.insert(401, line)
    (tmp_path / "bad.csv").write_text("\n".join(lines))
    error = refused(tmp_path / "bad.csv", "--target", "y")
    assert re.search(words, error)
    assert "--on-error skip" in error
    kept = tmp_path / "out" / "predictions.csv.incomplete"
    assert 200 < len(csv.read_csv(kept)) <= 400, "what was predicted before is there, under another name"


def test_a_half_written_last_line(refused, mixed_csv, tmp_path):
    (tmp_path / "cut.csv").write_bytes(mixed_csv.read_bytes()[:-35])
    assert "line 601: it has" in refused(tmp_path / "cut.csv", "--target", "y")


def test_after_the_line_is_fixed_the_run_continues(mixed_csv, tmp_path, monkeypatch, undrawn):
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 100)
    monkeypatch.setattr("streamlasso.data.sources.lines.BLOCK_BYTES", 4096)
    lines = mixed_csv.read_text().splitlines()
    (tmp_path / "data.csv").write_text("\n".join([*lines[:451], "oops", *lines[451:]]) + "\n")
    more = ["--target", "y", "--checkpoint", str(tmp_path / "ckpt"), "--every", "100"]
    arguments = ["run", str(tmp_path / "data.csv"), "--out", str(tmp_path / "out"), "--quiet", *more]
    assert main(arguments) == 2
    assert (tmp_path / "out" / "predictions.csv.incomplete").exists()
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    assert main(arguments) == 0
    assert csv.read_csv(tmp_path / "out" / "predictions.csv")["row"].to_pylist() == list(range(600))
    assert not (tmp_path / "out" / "predictions.csv.incomplete").exists()


def test_more_features_than_the_default_holds(tmp_path, go):
    """One model learns them, with a note, and it learns: the response is one of the features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1200)).round(3)
    rows = [",".join(map(str, [*row, 3 * row[7] + 1])) for row in X.tolist()]
    (tmp_path / "wide.csv").write_text("\n".join([",".join([*(f"x{j}" for j in range(1200)), "y"]), *rows]) + "\n")
    run, _, _ = go(tmp_path / "wide.csv")
    assert any("1,200 features are more than a mixture" in note for note in run.model.encoder.notes)
    summary = run.summary()
    assert summary.mean_loss < 0.7 * summary.mean_baseline
    assert np.argmax(np.abs(summary.last_coef)) == 7


def test_an_unknown_format(refused, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"PK\x05\x06" + bytes(100))
    assert "its format is unknown" in refused(tmp_path / "data.bin", "--target", "y")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full to stand for a full disk")
def test_a_full_disk(mixed_csv, tmp_path, capsys):
    os.symlink("/dev/full", tmp_path / "full.csv")
    more = ["--target", "y", "--out", str(tmp_path / "out"), "--predictions", str(tmp_path / "full.csv")]
    assert main(["run", str(mixed_csv), *more, "--quiet"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.posix
def test_a_disk_that_fills_up_leaves_the_last_checkpoint(mixed_csv, tmp_path):
    """A limit on the size of files stands for a disk without room."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
        "from streamlasso.cli import main; sys.exit(main())"
    )
    more = ["--target", "y", "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "ckpt"), "--every", "50"]
    command = [sys.executable, "-c", code, "run", str(mixed_csv), "--tuner", "logrms", "--memory", "0.9", "--quiet"]
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert not (tmp_path / "out" / "report.html").exists()
    assert not (tmp_path / "out" / "predictions.csv").exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--target", "y", "--memory", "1.5"], "--memory 1.5 is not a forgetting factor: use a number in (0, 1]"),
        (["--target", "y", "--memory", "soon"], "--memory soon"),
        (["--target", "y", "--lags", "y"], "say y:1,24"),
        (["--target", "y", "--lags", "y:0"], "say y:1,24"),
        (["--target", "y", "--lags", "q:1"], "--lags q is not a column"),
        (["--target", "y", "--lags", "when:1"], "numbers or text"),
        (["--target", "y", "--every", "0"], "--every 0"),
        (["--target", "y", "--time", "wen"], "did you mean 'when'"),
        (["--target", "y", "--keep", "xx"], "--keep xx"),
        (["--target", "city", "--family", "gaussian"], "--family gaussian needs numbers"),
        (["--target", "y", "--family", "poisson"], "poisson"),
        (["--target", "y", "--predictions", "predictions.doc"], "an unknown format"),
        (["--target", "y", "--predictions", "-", "--checkpoint", "c"], "--checkpoint needs --predictions in a file"),
        (["--family", "normal", "--target", "y"], "normal"),
        ([], "--target"),
    ],
)
def test_options_that_cannot_be(more, words, refused, mixed_csv):
    assert words in refused(mixed_csv, *more)


def test_lags_are_read():
    assert parse_lags(["y:24,1", "a:b:3", "y:2"]) == {"y": [1, 2, 24], "a:b": [3]}


def test_the_defaults_are_those_of_the_command_line():
    assert Options("data.csv", "y").predictions_path.as_posix() == "run/predictions.csv"


def test_old_results_do_not_outlive_a_new_run_that_fails(mixed_csv, tmp_path, undrawn):
    out = tmp_path / "out"
    assert main(["run", str(mixed_csv), "--target", "y", "--out", str(out), "--tuner", "logrms", "--quiet"]) == 0
    assert (out / "report.html").exists()
    (tmp_path / "bad.csv").write_text("x,y\n" + "".join(f"{i},5\n" for i in range(50)))
    assert main(["run", str(tmp_path / "bad.csv"), "--target", "y", "--out", str(out), "--quiet"]) == 2
    assert not {path.name for path in out.iterdir()} & {*FINAL, "predictions.csv"}


def test_a_command_that_cannot_start_leaves_old_results_alone(mixed_csv, tmp_path, undrawn):
    out = tmp_path / "out"
    assert main(["run", str(mixed_csv), "--target", "y", "--out", str(out), "--tuner", "logrms", "--quiet"]) == 0
    before = (out / "report.html").read_bytes()
    assert main(["run", str(mixed_csv), "--target", "why", "--out", str(out), "--quiet"]) == 2
    assert (out / "report.html").read_bytes() == before


def test_wild_numbers_do_not_break_a_run(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * 10.0 ** rng.integers(-30, 30, size=(300, 1))
    rows = [f"{a!r},{b!r},{'inf' if i % 50 == 49 else repr(a)}" for i, (a, b) in enumerate(X.tolist())]
    (tmp_path / "wild.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    assert (
        main(
            [
                "run",
                str(tmp_path / "wild.csv"),
                "--target",
                "y",
                "--out",
                str(tmp_path / "out"),
                "--quiet",
                "--on-error",
                "skip",
            ]
        )
        == 0
    )


@pytest.mark.parametrize(
    ("data", "more"),
    [
        ("mixed.csv", ["--predictions", "mixed.csv"]),
        ("mixed.csv", ["--predictions", "linked.csv"]),
        ("mixed.csv", ["--checkpoint", "mixed.csv"]),
        ("out/predictions.csv", []),
        ("out/report.html", []),
    ],
)
def test_the_data_are_never_written_over(data, more, mixed_csv, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "linked.csv").hardlink_to(mixed_csv)
    content = mixed_csv.read_bytes()
    if data != mixed_csv.name:
        (tmp_path / data).write_bytes(content)
    assert main(["run", data, "--target", "y", "--out", "out", "--quiet", *more]) == 2
    assert "is the data, and would be overwritten" in capsys.readouterr().err
    assert (tmp_path / data).read_bytes() == content


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--predictions", "ckpt.csv", "--checkpoint", "ckpt.csv"], "ckpt.csv would be written twice by the run"),
        (["--checkpoint", "out/report.html"], "report.html would be written twice by the run"),
        (["--checkpoint", "nosuch/ckpt"], "nosuch/ckpt is in a directory that does not exist"),
    ],
)
def test_outputs_that_would_be_lost_are_refused_before_a_row_is_learnt(more, words, refused, mixed_csv, monkeypatch):
    monkeypatch.chdir(mixed_csv.parent)
    assert words in refused(mixed_csv, "--target", "y", *more)


@pytest.mark.parametrize("column", ["x", "y"])
def test_a_stray_word_among_the_first_rows_does_not_make_numbers_text(column, refused, tmp_path):
    rows = [[f"{i * 0.37 % 5:.2f}", f"{i * 0.61 % 3:.2f}"] for i in range(300)]
    rows[200]["xy".index(column)] = "oops"
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(",".join(row) + "\n" for row in rows))
    error = refused(tmp_path / "data.csv", "--target", "y")
    assert "line 202" in error
    assert "'oops'" in error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x:y\n1:2\n", "the only column is 'x:y'; columns are separated by a comma"),
        ("1.5,2\n2.5,3\n", "the columns are 1.5, 2; the first line must hold their names"),
        ("x,y\n1,2\n", "has one row, which nothing could predict"),
    ],
)
def test_files_that_lack_something_say_what(text, words, refused, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    assert words in refused(tmp_path / "data.csv", "--target", "y")


def test_a_disk_that_is_full_is_named(mixed_csv, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("streamlasso.run.outputs.files.TextFile.write", full)
    assert main(["run", str(mixed_csv), "--target", "y", "--out", str(tmp_path / "out"), "--quiet"]) == 2
    assert f"{tmp_path / 'out'}: No space left on device" in capsys.readouterr().err
