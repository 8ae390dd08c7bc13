"""The command line: what it prints, writes and refuses."""

import contextlib
import io
import re

import numpy as np
import pyarrow.parquet as parquet
import pytest
from sklearn.metrics import f1_score

from streamlasso import RAPRegressor, __version__, progressive
from streamlasso.cli import MEMORY, SEED, WARM_UP, main
from streamlasso.simulate import simulate
from streamlasso.tuners import Fixed, LogRMS


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder, and what was printed."""
    out = tmp_path_factory.mktemp("demo") / "deep" / "folder"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        assert main(["demo", "--out", str(out)]) == 0
    return out, printed.getvalue()


def numbers(printed, row):
    """The numbers in the table's row that begins so."""
    line = next(line for line in printed.splitlines() if line.strip("│ ").startswith(row))
    return [float(number) for number in re.findall(r"\d+\.?\d*", line.split("│", 2)[2] if "lam" in row else line)]


def test_demo_writes_its_files(demo):
    out, printed = demo
    assert sorted(path.name for path in out.iterdir()) == ["figure.png", "figure.svg", "report.html", "trace.parquet"]
    assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "figure.svg").read_text().rstrip().endswith("</svg>")
    assert "".join(str(out / "report.html").split()) in "".join(printed.split())


def test_demo_table_is_the_trace(demo):
    out, _ = demo
    stream = simulate(SEED)
    trace = progressive(RAPRegressor(memory=MEMORY, tuner=LogRMS()), stream.X, stream.y, coef=True)
    table = parquet.read_table(out / "trace.parquet")
    assert table.column_names == trace.to_arrow().column_names
    for name in ("loss", "lam", "baseline", "coef[x3]"):
        np.testing.assert_array_equal(table[name].to_numpy(), trace.to_arrow()[name].to_numpy())


def test_demo_prints_the_losses(demo):
    _, printed = demo
    stream = simulate(SEED)
    trace = progressive(RAPRegressor(memory=MEMORY, tuner=LogRMS()), stream.X, stream.y)
    fixed = progressive(RAPRegressor(memory=MEMORY, tuner=Fixed(0.01)), stream.X, stream.y)
    noise = (stream.y - np.sum(stream.X * stream.beta, axis=1)) ** 2 / 2
    expected = {
        "running mean": trace.baseline,
        "fixed lam = 0.01": fixed.loss,
        "one model that tunes its lam": trace.loss,
        "the default": progressive(RAPRegressor(), stream.X, stream.y).loss,
        "noise floor": noise,
    }
    for row, loss in expected.items():
        assert numbers(printed, row)[-2:] == pytest.approx([loss[1:].mean(), loss[WARM_UP:].mean()], abs=0.006)
    best = numbers(printed, "best fixed lam")[-1]
    assert best <= min(numbers(printed, f"fixed lam = {lam}")[-1] for lam in ("0.01", "0.1", "1"))


def test_demo_prints_what_was_recovered(demo):
    _, printed = demo
    stream = simulate(SEED)
    trace = progressive(RAPRegressor(memory=MEMORY, tuner=LogRMS()), stream.X, stream.y, coef=True)
    for start in (50, 150, 250):
        rows = range(start, start + 50)
        scores = [f1_score(stream.beta[t] != 0, trace.coef[t] != 0) for t in rows]
        *_, lam, active, truly, score = numbers(printed, f"{start} to {start + 49}")
        assert lam == pytest.approx(np.median(trace.lam[start : start + 50]), abs=0.006)
        assert active == pytest.approx(np.mean([np.count_nonzero(trace.coef[t]) for t in rows]), abs=0.06)
        assert truly == (4 if start == 150 else 16)
        assert score == pytest.approx(np.mean(scores), abs=0.006)


def test_demo_shows_progress_and_writes_to_demo_by_default(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert (tmp_path / "demo" / "report.html").exists()
    assert "100%" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_line_and_status_2(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert main(["demo", "--out", str(out)]) == 2
        printed = capsys.readouterr()
        assert not printed.out
        assert printed.err.count("\n") == 1
        assert str(out) in printed.err
        assert "name another directory" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("arguments", [["nosuch"], ["demo", "--nosuch"], ["demo", "--out"]])
def test_wrong_arguments_are_one_line_and_status_2(arguments, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("streamlasso: ")
    assert "--help" in printed.err


def test_interruption_is_status_130(monkeypatch, tmp_path, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("streamlasso.cli.progressive", interrupt)
    assert main(["demo", "--out", str(tmp_path)]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize("arguments", [[], ["--help"], ["demo", "--help"]])
def test_help_has_an_example(arguments, capsys):
    assert main(arguments) == 0
    assert "streamlasso demo" in capsys.readouterr().out


# --- bench ------------------------------------------------------------------------------------------------------------


def test_bench_names_what_is_wrong(tmp_path, capsys):
    assert main(["bench", "streams", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--tasks", "elec3"]) == 2
    assert "elec3" in capsys.readouterr().err
    assert main(["bench", "streams", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--tasks", "elec2"]) == 2
    assert "--data" in capsys.readouterr().err
