"""Every format gives the same rows, whatever it is packed in; what cannot be read is said with its place."""

import gzip
import io
import json
import os
import sys
import threading

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, feather, ipc, parquet

from streamlasso.encoding import reading
from streamlasso.sources import Complaints, open_source
from streamlasso.sources.base import BLOCK_BYTES

N = 500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    words = np.array(["plain", "with, comma", 'with "quotes"', "two\nlines", "ä"], dtype=object)
    return pyarrow.table(
        {"x": rng.normal(size=N), "word": words[rng.integers(5, size=N)], "y": rng.integers(9, size=N).astype(float)}
    )


def as_csv(table, path):
    csv.write_csv(table, path)


def as_tsv(table, path):
    csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))


def as_json_lines(table, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def as_stream(table, path):
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)


FORMATS = {
    "data.csv": as_csv,
    "data.tsv": as_tsv,
    "data.txt": as_csv,
    "data.jsonl": as_json_lines,
    "data.parquet": parquet.write_table,
    "data.feather": feather.write_feather,
    "data.arrow": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
    "data.arrows": as_stream,
    "no-extension": as_csv,
}


def rows_of(source):
    """All rows, numbers as numbers."""
    found = [block.rows for block in source.blocks()]
    columns = {}
    for name in source.columns:
        values = [reading.numbers(batch[name]) for batch in found]
        unfit = np.concatenate([unfit for _, unfit in values])
        columns[name] = (
            np.concatenate([reading.words(batch[name]) for batch in found]).tolist()
            if unfit.any()
            else np.concatenate([numbers for numbers, _ in values]).tolist()
        )
    return columns


def packed(path):
    zipped = path.with_name(path.name + ".gz")
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    return zipped


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_rows(name, gz, table, tmp_path):
    path = tmp_path / name
    FORMATS[name](table, path)
    source = open_source(str(packed(path) if gz else path), Complaints())
    assert source.columns == ["x", "word", "y"]
    assert rows_of(source) == table.to_pydict()


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_comes_through_standard_input(name, gz, table, tmp_path, monkeypatch):
    path = tmp_path / name
    FORMATS[name](table, path)
    with open(packed(path) if gz else path, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert rows_of(open_source("-", Complaints())) == table.to_pydict()


def test_a_pipe_is_not_waited_for(monkeypatch):
    """A row that has come is handed on although the next has not."""
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(read, "rb")))
    os.write(write, b"x,y\n1,2\n")
    source = open_source("-", Complaints())
    blocks = source.blocks()
    found = []
    reader = threading.Thread(target=lambda: found.append(next(blocks).rows.to_pydict()))
    reader.start()
    reader.join(10)
    assert found == [{"x": ["1"], "y": ["2"]}]
    os.write(write, b"3,4\n5")
    assert next(blocks).rows.to_pydict() == {"x": ["3"], "y": ["4"]}
    os.write(write, b",6\n")
    os.close(write)
    assert next(blocks).rows.to_pydict() == {"x": ["5"], "y": ["6"]}
    assert next(blocks, None) is None


def test_blocks_are_bounded_and_whole_lines(tmp_path):
    """Far more text than a block, with line breaks within quotes anywhere."""
    lines = [f'{i},"{"a" * (i % 700)}\n{i}"' for i in range(9000)]
    (tmp_path / "long.csv").write_text("number,words\n" + "\n".join(lines))
    source = open_source(str(tmp_path / "long.csv"), Complaints())
    blocks = [block.rows for block in source.blocks()]
    assert len(blocks) > 2
    assert max(batch.nbytes for batch in blocks) < 2 * BLOCK_BYTES
    assert [int(number) for batch in blocks for number in batch["number"].to_pylist()] == list(range(9000))
    assert all(w.endswith(f"\n{i}") for i, w in enumerate(w for batch in blocks for w in batch["words"].to_pylist()))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_recognised(delimiter, tmp_path):
    (tmp_path / "data.csv").write_text(f"a{delimiter}b c{delimiter}d\n1{delimiter}2{delimiter}x\n")
    source = open_source(str(tmp_path / "data.csv"), Complaints())
    assert rows_of(source) == {"a": [1.0], "b c": [2.0], "d": ["x"]}


def test_odd_first_lines(tmp_path):
    (tmp_path / "data.csv").write_bytes('\ufeff"a, b",x,x,,"two\nlines"\r\n1,2,3,4,5\r\n'.encode())
    source = open_source(str(tmp_path / "data.csv"), Complaints())
    assert source.columns == ["a, b", "x", "x.2", "column 4", "two\nlines"]
    assert [value for (value,) in rows_of(source).values()] == [1, 2, 3, 4, 5]


def test_missing_cells_are_missing(tmp_path):
    (tmp_path / "data.csv").write_text('a,b\n1,NA\n?,x\n,""\nnan,NULL\n')
    (batch,) = [block.rows for block in open_source(str(tmp_path / "data.csv"), Complaints()).blocks()]
    assert batch.to_pydict() == {"a": ["1", None, None, None], "b": [None, "x", None, None]}


# --- rows that cannot be read -----------------------------------------------------------------------------------------

RAGGED = 'a,b\n1,2\n"two\nlines",4\n5\n\n6,7\n8,9,10\n11,12\n13'


def test_carriage_returns_alone_end_no_line(tmp_path):
    (tmp_path / "old.csv").write_bytes(b"x,y\r1,2\r3,4\r")
    with pytest.raises(ValueError, match="carriage return only; convert it"):
        open_source(str(tmp_path / "old.csv"), Complaints())


def test_ragged_lines_stop_with_their_number(tmp_path):
    (tmp_path / "data.csv").write_text(RAGGED)
    with pytest.raises(ValueError, match=r"line 5: it has 1 fields, where the first line has 2.*--on-error skip"):
        list(open_source(str(tmp_path / "data.csv"), Complaints()).blocks())


def test_ragged_lines_are_skipped_and_counted(tmp_path):
    (tmp_path / "data.csv").write_text(RAGGED)
    complaints = Complaints("skip")
    (block,) = open_source(str(tmp_path / "data.csv"), complaints).blocks()
    assert block.rows["a"].to_pylist() == ["1", "two\nlines", "6", "11"]
    assert complaints.n == 3
    assert [words.split(":")[0] for words in complaints.kept] == ["line 5", "line 8", "line 10"]
    assert [block.where(i) for i in range(4)] == ["line 2", "line 3", "line 7", "line 9"]


def test_lines_are_counted_over_blocks(tmp_path):
    good = "1,2\n" * (BLOCK_BYTES // 2)
    (tmp_path / "data.csv").write_text("a,b\n" + good + "oops\n")
    with pytest.raises(ValueError, match=f"line {BLOCK_BYTES // 2 + 2:,}: it has 1 fields"):
        list(open_source(str(tmp_path / "data.csv"), Complaints()).blocks())


@pytest.mark.parametrize("line", ['{"a": 1', "[1, 2]", "17", '{"a": NaN'])
def test_bad_json_lines(line, tmp_path):
    (tmp_path / "data.jsonl").write_text('{"a": 1}\n\n' + line + '\n{"a": 2}\n')
    with pytest.raises(ValueError, match="line 3: it is no JSON"):
        list(open_source(str(tmp_path / "data.jsonl"), Complaints()).blocks())
    complaints = Complaints("skip")
    (block,) = open_source(str(tmp_path / "data.jsonl"), complaints).blocks()
    assert block.rows["a"].to_pylist() == [1, 2]
    assert block.where(1) == "line 4"
    assert complaints.n == 1


def test_json_values_of_all_kinds(tmp_path):
    lines = ['{"a": 1, "b": "x", "c": true}', '{"b": 2.5, "a": null}', '{"a": "NA", "d": 9}', ""]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    (block,) = open_source(str(tmp_path / "data.jsonl"), Complaints()).blocks()
    assert block.rows.to_pydict() == {
        "a": [1, None, None],
        "b": ["x", "2.5", None],
        "c": [True, None, None],
        "d": [None, None, 9],
    }


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_packed_file_that_is_cut_short(on_error, tmp_path):
    data = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(50_000)))
    (tmp_path / "data.csv.gz").write_bytes(data[: len(data) // 2])
    complaints = Complaints(on_error)
    source = open_source(str(tmp_path / "data.csv.gz"), complaints)
    if on_error == "stop":
        with pytest.raises(ValueError, match="cut short"):
            list(source.blocks())
        return
    rows = [int(number) for block in source.blocks() for number in block.rows["a"].to_pylist()]
    assert 10_000 < len(rows) < 40_000
    assert rows == list(range(len(rows)))
    assert any("cut short" in words for words in complaints.kept)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.xlsx", b"PK\x03\x04 and so on", "an unknown format; CSV, TSV"),
        ("data.bin", bytes(range(256)), "an unknown format"),
        ("data.parquet", b"a,b\n1,2\n", "does not begin like one"),
        ("data.parquet", b"PAR1 cut short", "damaged or cut short"),
        ("data.feather", b"ARROW1 cut short", "damaged or cut short"),
        ("data.json", b'[{"a": 1}]', "jq -c"),
        ("data.csv", b"", "there is nothing in it"),
        ("data.csv", b"a,b\n1,\xff\xfe\n", "line 2: the text is not UTF-8"),
    ],
)
def test_files_that_cannot_be_read_say_so_in_a_line(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        list(open_source(str(path), Complaints()).blocks())
    assert str(path) in str(caught.value) or "line" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="a directory"):
        open_source(str(tmp_path), Complaints())
