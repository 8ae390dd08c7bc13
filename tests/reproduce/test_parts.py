"""Studies in parts: what is saved is kept, what is missing is run, whatever the number of processes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pyarrow
import pytest

from streamlasso.cli import main
from streamlasso.reproduce import parts
from streamlasso.reproduce.parts import blocks, claim, gathered, run_jobs


@dataclass(frozen=True)
class Squares:
    """A job that is interrupted at draw `bad`."""

    start: int
    stop: int
    ran: list
    bad: int = -1

    kinds = ("squares", "cubes")

    @property
    def stem(self):
        return f"{self.start:02d}"

    def run(self):
        if self.start <= self.bad < self.stop:
            raise KeyboardInterrupt
        self.ran.append(self.start)
        draws = range(self.start, self.stop)
        return {
            "squares": pyarrow.table({"x": [i**2 for i in draws]}),
            "cubes": pyarrow.table({"x": [i**3 for i in draws]}),
        }


def squares(n, ran, bad=-1):
    return [Squares(start, stop, ran, bad) for start, stop in blocks(n)]


def test_blocks_are_all_draws_once():
    assert [i for start, stop in blocks(37) for i in range(start, stop)] == list(range(37))


def test_what_an_interrupted_run_has_saved_is_not_run_again(tmp_path):
    claim(tmp_path, seed=0)
    ran = []
    with pytest.raises(KeyboardInterrupt):
        run_jobs([(tmp_path, job) for job in squares(40, ran, bad=25)], jobs=1, progress=False)
    assert ran == [0, 10]
    run_jobs([(tmp_path, job) for job in squares(40, ran)], jobs=1, progress=False)
    assert ran == [0, 10, 20, 30]
    assert gathered(tmp_path, squares(40, ran), "squares")["x"].to_pylist() == [i**2 for i in range(40)]
    assert gathered(tmp_path, squares(40, ran), "cubes")["x"].to_pylist() == [i**3 for i in range(40)]


def test_a_part_with_a_table_missing_is_run_again(tmp_path):
    claim(tmp_path, seed=0)
    ran = []
    planned = [(tmp_path, job) for job in squares(20, ran)]
    run_jobs(planned, jobs=1, progress=False)
    (tmp_path / "parts" / "10.cubes.parquet").unlink()
    run_jobs(planned, jobs=1, progress=False)
    assert ran == [0, 10, 10]


def test_a_damaged_part_is_named(tmp_path):
    claim(tmp_path, seed=0)
    jobs = squares(10, [])
    run_jobs([(tmp_path, job) for job in jobs], jobs=1, progress=False)
    (tmp_path / "parts" / "00.squares.parquet").write_bytes(b"PAR1 but cut short")
    with pytest.raises(ValueError, match=r"00\.squares\.parquet is damaged: remove it"):
        gathered(tmp_path, jobs, "squares")


def test_a_directory_holds_one_study_of_one_version(tmp_path, monkeypatch):
    claim(tmp_path, seed=1, lengths="fixed")
    claim(tmp_path, seed=1, lengths="fixed")
    with pytest.raises(ValueError, match="holds a study with seed=1, not 2: name another directory"):
        claim(tmp_path, seed=2, lengths="fixed")
    monkeypatch.setattr(parts, "__version__", "99")
    with pytest.raises(ValueError, match="streamlasso="):
        claim(tmp_path, seed=1, lengths="fixed")


@pytest.mark.parametrize("text", ["", "[1]", "not json"])
def test_a_directory_with_something_else_in_it_is_refused(tmp_path, text):
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(ValueError, match="not a study of streamlasso"):
        claim(tmp_path, seed=1)
    assert (tmp_path / "study.json").read_text() == text


def bits(folder):
    """Every file of a study that its numbers are in."""
    names = ["ends.parquet", "pieces.parquet", "summary.csv", "summary.md"]
    return {name: (folder / "theory" / name).read_bytes() for name in names}


@pytest.mark.posix
def test_interrupted_from_the_keyboard_and_continued_is_the_same_to_the_bit(tmp_path):
    arguments = ["reproduce", "theory", "--n", "12", "--seed", "3", "--out"]
    program = "import sys; from streamlasso.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *arguments, str(tmp_path / "two"), "--jobs", "2"]
    folder = tmp_path / "two" / "theory" / "parts"
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        while process.poll() is None and not (folder.is_dir() and any(folder.iterdir())):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert not printed
    assert "continues from there" in errors
    assert "Traceback" not in errors
    assert main([*arguments, str(tmp_path / "two"), "--jobs", "1"]) == 0
    assert main([*arguments, str(tmp_path / "one"), "--jobs", "1"]) == 0
    assert bits(tmp_path / "two") == bits(tmp_path / "one")
