"""The command line: what it prints, writes and refuses."""

import gzip
import os
import subprocess
import sys

import pyarrow
import pytest
from pyarrow import parquet

from streamlasso import __version__
from streamlasso.cli import main


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

    monkeypatch.setattr("streamlasso.run.demo.simulate", interrupt)
    assert main(["demo", "--out", str(tmp_path)]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_the_package_runs_as_the_command():
    """`python -m streamlasso` where the script is not on the path."""
    command = [sys.executable, "-m", "streamlasso"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__
    refused = subprocess.run([*command, "run", "no such file", "--target", "y"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.startswith("streamlasso: no such file")


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == __version__


@pytest.mark.parametrize("arguments", [[], ["--help"], ["demo", "--help"]])
def test_help_has_an_example(arguments, capsys):
    assert main(arguments) == 0
    assert "streamlasso demo" in capsys.readouterr().out


def test_help_needs_no_heavy_module():
    heavy = "{'numpy', 'scipy', 'sklearn', 'matplotlib', 'pyarrow', 'pandas'}"
    code = (
        f"import sys; from streamlasso.cli import main; main(['--help']); print('loaded', {heavy} & {{*sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded set()"


@pytest.mark.parametrize("command", ["run", "predict", "inspect", "demo", "network", "replay", "bench", "reproduce"])
def test_no_option_is_there_only_because_a_library_adds_it(command, capsys):
    assert main([command, "--help"]) == 0
    assert "--empty-" not in capsys.readouterr().out


def rows(folder, name="y"):
    path = folder / "data.csv"
    path.write_text("".join(f"{x},{y}\n" for x, y in [("x", name), *((i % 7, i % 3 + i % 7 / 2) for i in range(40))]))
    return path


def run_in(environment, *arguments, **how):
    command = [sys.executable, "-m", "streamlasso", *map(str, arguments)]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False, **how
    )


def test_a_terminal_without_columns_ends(tmp_path):
    """COLUMNS=0 made tables that never ended."""
    done = run_in({"COLUMNS": "0"}, "run", rows(tmp_path), "--target", "y", "--out", tmp_path / "out")
    assert done.returncode == 0 and "report.html" in done.stdout
    assert run_in({"COLUMNS": "0"}, "run", "--help").returncode == 0


def test_names_that_the_terminal_cannot_show_are_escaped(tmp_path):
    """They ended in a traceback, after all files were written."""
    data = rows(tmp_path, "größe")
    encoding = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run_in(encoding, "run", data, "--target", "größe", "--out", tmp_path / "out")
    assert done.returncode == 0 and "gr\\xf6" in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_a_closed_input_or_output_is_one_line(tmp_path):
    shell = f"{sys.executable} -m streamlasso run - --target y --out {tmp_path / 'out'}"
    for closed in (f"{shell} <&-", f"{shell} --predictions - < {rows(tmp_path)} >&-"):
        done = subprocess.run(closed, shell=True, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith("streamlasso: ")
        assert "closed" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("damage", ["cut", "changed", "checksum"])
def test_a_damaged_gzip_file_is_one_line(kind, damage, tmp_path, capsys):
    if kind == "csv":
        whole = "".join(f"{i},{i * 7919 % 10007}\n" for i in range(60_000)).encode()
        whole = b"x,y\n" + whole
    else:
        table = pyarrow.table({"x": range(60_000), "y": [i * 7919 % 10007 for i in range(60_000)]})
        parquet.write_table(table, tmp_path / "data.parquet", compression="none", use_dictionary=False)
        whole = (tmp_path / "data.parquet").read_bytes()
    packed = bytearray(gzip.compress(whole))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    elif damage == "changed":
        packed[len(packed) // 2 : len(packed) // 2 + 50] = bytes(50)
    else:
        packed[-8:] = bytes(8)
    (tmp_path / f"data.{kind}.gz").write_bytes(packed)
    assert main(["run", str(tmp_path / f"data.{kind}.gz"), "--target", "y", "--out", str(tmp_path / "out")]) == 2
    assert "Traceback" not in capsys.readouterr().err
