"""Hostile files: what cannot be a number is a bad row with its place, never a silent hole; no line ends a run."""

import csv
import json
import subprocess
import sys

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from streamlasso.data.sources.base import BadRows, distinct
from streamlasso.data.sources.lines import whole_lines
from streamlasso.run.data import Data
from streamlasso.run.options import Options
from streamlasso.run.run import Run

#: Numbers that no double holds.
BEYOND = ["inf", "-inf", "Infinity", "1e400", "-1e400", "9" * 400, "1e300"]
N, BAD = 60, 40


def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    return [[f"{a:.6f}", f"{2 * a + b:.6f}"] for a, b in zip(x, rng.normal(size=N), strict=True)]


def write_csv(path, table):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["x", "y"], *table])


def write_json(path, table):
    """Numbers as they are spelt; what JSON cannot spell is text."""
    lines = []
    for x, y in table:
        cells = {name: cell if _is_json(cell) else json.dumps(cell) for name, cell in (("x", x), ("y", y))}
        lines.append("{" + ", ".join(f'"{name}": {cell}' for name, cell in cells.items()) + "}")
    path.write_text("\n".join(lines) + "\n")


def _is_json(cell):
    return cell[-1].isdigit() or cell in ("Infinity",)


def write_parquet(path, table):
    x, y = zip(*[(float(x), float(y)) for x, y in table], strict=True)
    parquet.write_table(pyarrow.table({"x": x, "y": y}), path)


WRITERS = {"data.csv": write_csv, "data.jsonl": write_json, "data.parquet": write_parquet}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("column", [0, 1], ids=["a feature", "the target"])
@pytest.mark.parametrize("cell", BEYOND, ids=lambda cell: cell[:8])
def test_a_number_beyond_all_numbers_is_a_bad_row(name, column, cell, tmp_path):
    table = rows()
    table[BAD][column] = cell
    WRITERS[name](tmp_path / name, table)
    with pytest.raises(ValueError, match=r"(line|row) 4[12]: .*'[xy]'.* beyond"):
        Run(Options(str(tmp_path / name), "y", tmp_path / "out", family="gaussian")).go()
    run = Run(Options(str(tmp_path / name), "y", tmp_path / "out", family="gaussian", on_error="skip"))
    assert run.go()
    assert run.n_rows == N - 1 and run.data.n_bad == 1
    run.abandon()


HOSTILE_LINES = {
    "5,000 digits": '{"x": ' + "7" * 5000 + ', "y": 1}',
    "400 digits": '{"x": ' + "7" * 400 + ', "y": 1}',
    "half a character": '{"x": "\\ud800", "y": 1}',
    "half a character as a key": '{"\\udfff": 1, "x": 1, "y": 1}',
    "deep": '{"x": ' + "[" * 100_000 + "]" * 100_000 + ', "y": 1}',
    "no JSON": '{"x": 1, "y": ',
    "an array": "[1, 2]",
    "Infinity": '{"x": -Infinity, "y": 1}',
    "bytes": b'{"x": "\xff\xfe", "y": 1}',
}


@pytest.mark.parametrize("line", HOSTILE_LINES)
def test_a_hostile_json_line_is_named_and_can_be_skipped(line, tmp_path):
    text, data = HOSTILE_LINES[line], tmp_path / "data.jsonl"
    lines = [json.dumps({"x": float(x), "y": float(y)}).encode() for x, y in rows()]
    lines[BAD] = text if isinstance(text, bytes) else text.encode()
    data.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(ValueError, match="line 41"):
        Run(Options(str(data), "y", tmp_path / "out")).go()
    run = Run(Options(str(data), "y", tmp_path / "out", on_error="skip"))
    assert run.go()
    assert run.n_rows == N - 1 and run.data.n_bad == 1
    run.abandon()


def test_random_bytes_are_refused_or_read_never_worse(tmp_path):
    """Any error is a ValueError, which is one line for the user."""
    rng = np.random.default_rng(0)
    alphabet = np.frombuffer(b'0123456789,;\t"\n\r .-+eE{}[]:xyinfNaN#\\\x00\xff\xc3\xa9', np.uint8)
    for _ in range(300):
        text = b"x,y\n" * int(rng.integers(2)) + rng.choice(alphabet, int(rng.integers(1, 300))).tobytes()
        (tmp_path / "data").write_bytes(text)
        try:
            data = Data(str(tmp_path / "data"), "skip")
            data.first_rows()
            for block in data.blocks():
                assert len(block.rows) == len(block.place)
        except ValueError:
            pass


# --- size -------------------------------------------------------------------------------------------------------------


def slow_and_obvious(names):
    out = []
    for i, name in enumerate(names):
        free, k = name or f"column {i + 1}", 2
        while free in out:
            free, k = f"{name}.{k}", k + 1
        out.append(free)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_distinct_names_are_what_they_were(seed):
    rng = np.random.default_rng(seed)
    names = rng.choice(["a", "b", "", "a.2", "a.3", "column 3", ".2", "a.2.2"], size=30).tolist()
    assert distinct(names) == slow_and_obvious(names)


def test_distinct_names_take_steps_in_proportion_to_their_number():
    """Counted, not timed: how often a name is compared."""

    class Counted(str):
        n = 0

        def __eq__(self, other):
            Counted.n += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    for names in ([Counted("a")] * 3000, [Counted(f"c{i}") for i in range(20_000)]):
        Counted.n = 0
        assert len(set(distinct(names))) == len(names)
        assert Counted.n <= 10 * len(names)


@pytest.mark.parametrize("seed", range(10))
def test_lines_are_the_same_however_the_bytes_come(seed):
    rng = np.random.default_rng(seed)
    text = b"".join(rng.choice(np.array([b"a", b'"', b"\n", b",", b"\r\n"], object), 400))

    class Stream:
        def __init__(self):
            self.left = text

        def read1(self, size):
            n = int(rng.integers(1, 40))
            part, self.left = self.left[:n], self.left[n:]
            return part

    pieces = [piece for _, piece in whole_lines(Stream(), BadRows(), quoted=True, live=True)]
    assert b"".join(pieces) == text
    assert all(piece.count(b'"') % 2 == 0 and piece.endswith(b"\n") for piece in pieces[:-1])


OPEN_QUOTE = """
import sys
from streamlasso.data.sources import BadRows, open_source
def peak():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
try:
    for block in open_source(sys.argv[1], BadRows()).blocks():
        pass
except ValueError as error:
    assert "a quote may have been left open" in str(error), error
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_an_open_quote_takes_little_more_memory_than_its_line(tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(b'x,y\n1,"' + b"9,8\n" * (18 << 20))
    found = subprocess.run([sys.executable, "-c", OPEN_QUOTE, data], capture_output=True, text=True, check=True)
    assert 0 < int(found.stdout) < 250
