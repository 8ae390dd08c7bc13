"""The command line: what it prints, writes and refuses."""

import subprocess
import sys

import pytest

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
