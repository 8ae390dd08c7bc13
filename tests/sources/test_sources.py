"""Every format gives the same rows, whatever it is packed in; what cannot be read is reported with its place."""

import datetime
import gzip
import io
import json
import os
import sys
import threading

import numpy as np
import openpyxl
import pyarrow
import pytest
from pyarrow import csv, feather, ipc, parquet

from streamlasso.data.encoding import reading
from streamlasso.data.sources import BadRows, open_source
from streamlasso.data.sources.base import BLOCK_BYTES, Block, row_places
from streamlasso.data.sources.opening import SOURCES
from streamlasso.run.options import Options
from streamlasso.run.run import Run

N = 500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    words = np.array(["plain", "with, comma", 'with "quotes"', "two\nlines", "ä"], dtype=object)
    return pyarrow.table(
        {
            "x": rng.normal(size=N).round(9),
            "word": words[rng.integers(5, size=N)],
            "y": rng.integers(9, size=N).astype(float),
        }
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


def as_excel(table, path):
    book = openpyxl.Workbook()
    for row in [table.column_names, *(list(row.values()) for row in table.to_pylist())]:
        book.active.append(row)
    book.save(path)


FORMATS = {
    "data.xlsx": as_excel,
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
            np.concatenate([reading.texts(batch[name]) for batch in found]).tolist()
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
    source = open_source(str(packed(path) if gz else path), BadRows())
    assert source.columns == ["x", "word", "y"]
    assert rows_of(source) == table.to_pydict()


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_comes_through_standard_input(name, gz, table, tmp_path, monkeypatch):
    path = tmp_path / name
    FORMATS[name](table, path)
    with open(packed(path) if gz else path, "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert rows_of(open_source("-", BadRows())) == table.to_pydict()


def test_a_pipe_is_not_waited_for(monkeypatch):
    """A row that has come is handed on although the next has not."""
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(read, "rb")))
    os.write(write, b"x,y\n1,2\n")
    source = open_source("-", BadRows())
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
    source = open_source(str(tmp_path / "long.csv"), BadRows())
    blocks = [block.rows for block in source.blocks()]
    assert len(blocks) > 2
    assert max(batch.nbytes for batch in blocks) < 2 * BLOCK_BYTES
    assert [int(number) for batch in blocks for number in batch["number"].to_pylist()] == list(range(9000))
    assert all(w.endswith(f"\n{i}") for i, w in enumerate(w for batch in blocks for w in batch["words"].to_pylist()))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_recognised(delimiter, tmp_path):
    (tmp_path / "data.csv").write_text(f"a{delimiter}b c{delimiter}d\n1{delimiter}2{delimiter}x\n")
    source = open_source(str(tmp_path / "data.csv"), BadRows())
    assert rows_of(source) == {"a": [1.0], "b c": [2.0], "d": ["x"]}


def test_odd_first_lines(tmp_path):
    (tmp_path / "data.csv").write_bytes('\ufeff"a, b",x,x,,"two\nlines"\r\n1,2,3,4,5\r\n'.encode())
    source = open_source(str(tmp_path / "data.csv"), BadRows())
    assert source.columns == ["a, b", "x", "x.2", "column 4", "two\nlines"]
    assert [value for (value,) in rows_of(source).values()] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("\n \n\r\na,b\n1,2\n", {"a": [1], "b": [2]}),
        ("a,b\n\n\n1,2\n\n", {"a": [1], "b": [2]}),
        ("m, raw, mean;m, b;c\n1;2;3\n", {"m, raw, mean": [1], "m, b": [2], "c": [3]}),
        ('"a; b";"c; d, e, f"\n1;2\n', {"a; b": [1], "c; d, e, f": [2]}),
        ("a,b\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4], "column 3": [np.nan, np.nan]}),
        ("a,b,,\n1,2,,\n", {"a": [1], "b": [2], "column 3": [np.nan], "column 4": [np.nan]}),
    ],
)
def test_odd_beginnings(text, columns, tmp_path):
    (tmp_path / "data.csv").write_text(text)
    found = rows_of(open_source(str(tmp_path / "data.csv"), BadRows()))
    assert list(found) == list(columns)
    np.testing.assert_equal(found, columns)


def test_lines_are_counted_from_the_first_even_if_it_is_empty(tmp_path):
    (tmp_path / "data.csv").write_text("\n\na,b\n1,2\noops\n")
    with pytest.raises(ValueError, match="line 5: it has 1 field"):
        list(open_source(str(tmp_path / "data.csv"), BadRows()).blocks())


def test_names_alone_in_a_pipe_are_waited_with(monkeypatch):
    """The delimiter is recognised from two lines, however they come."""
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(read, "rb")))
    os.write(write, b"m, raw, mean;b\n")
    threading.Timer(0.2, lambda: (os.write(write, b"1;2\n"), os.close(write))).start()
    assert rows_of(open_source("-", BadRows())) == {"m, raw, mean": [1], "b": [2]}


def test_old_text_is_read_line_by_line_with_a_note(tmp_path):
    """However it is cut into blocks: each line is UTF-8 or it is not."""
    lines = ["Größe,y", *("Köln,€" if i % 3 else "Ærø,é" for i in range(50))]
    codes = ["cp1252", *("utf-8" if i % 5 else "cp1252" for i in range(50))]
    data = b"".join((line + "\n").encode(code) for line, code in zip(lines, codes, strict=True))
    (tmp_path / "data.csv").write_bytes(data)
    source = open_source(str(tmp_path / "data.csv"), BadRows())
    assert rows_of(source) == {
        "Größe": [line.split(",")[0] for line in lines[1:]],
        "y": [line.split(",")[1] for line in lines[1:]],
    }
    assert source.format == "CSV (not UTF-8: read as Windows-1252)"


def test_missing_cells_are_missing(tmp_path):
    (tmp_path / "data.csv").write_text('a,b\n1,NA\n?,x\n,""\nnan,NULL\n')
    (batch,) = [block.rows for block in open_source(str(tmp_path / "data.csv"), BadRows()).blocks()]
    assert batch.to_pydict() == {"a": ["1", None, None, None], "b": [None, "x", None, None]}


# --- rows that cannot be read -----------------------------------------------------------------------------------------

RAGGED = 'a,b\n1,2\n"two\nlines",4\n5\n\n6,7\n8,9,10\n11,12\n13'


def test_carriage_returns_alone_end_no_line(tmp_path):
    (tmp_path / "old.csv").write_bytes(b"x,y\r1,2\r3,4\r")
    with pytest.raises(ValueError, match="carriage return only: convert it"):
        open_source(str(tmp_path / "old.csv"), BadRows())


def test_ragged_lines_stop_with_their_number(tmp_path):
    (tmp_path / "data.csv").write_text(RAGGED)
    with pytest.raises(ValueError, match=r"line 5: it has 1 field, but the first line has 2.*--on-error skip"):
        list(open_source(str(tmp_path / "data.csv"), BadRows()).blocks())


def test_ragged_lines_are_skipped_and_counted(tmp_path):
    (tmp_path / "data.csv").write_text(RAGGED)
    bad_rows = BadRows("skip")
    (block,) = open_source(str(tmp_path / "data.csv"), bad_rows).blocks()
    assert block.rows["a"].to_pylist() == ["1", "two\nlines", "6", "11"]
    assert bad_rows.n == 3
    assert [words.split(":")[0] for words in bad_rows.examples] == ["line 5", "line 8", "line 10"]
    assert [block.where(i) for i in range(4)] == ["line 2", "line 3", "line 7", "line 9"]
    assert block.place.tolist() == [0, 1, 3, 5], "ragged rows count, empty lines do not"
    assert (block.after(2).where(1), block.after(2).place.tolist()) == ("line 9", [3, 5])


def test_lines_are_counted_over_blocks(tmp_path):
    good = "1,2\n" * (BLOCK_BYTES // 2)
    (tmp_path / "data.csv").write_text("a,b\n" + good + "oops\n")
    with pytest.raises(ValueError, match=f"line {BLOCK_BYTES // 2 + 2:,}: it has 1 field"):
        list(open_source(str(tmp_path / "data.csv"), BadRows()).blocks())


@pytest.mark.parametrize("line", ['{"a": 1', "[1, 2]", "17", '{"a": NaN'])
def test_bad_json_lines(line, tmp_path):
    (tmp_path / "data.jsonl").write_text('{"a": 1}\n\n' + line + '\n{"a": 2}\n')
    with pytest.raises(ValueError, match="line 3: it is not"):
        list(open_source(str(tmp_path / "data.jsonl"), BadRows()).blocks())
    bad_rows = BadRows("skip")
    (block,) = open_source(str(tmp_path / "data.jsonl"), bad_rows).blocks()
    assert block.rows["a"].to_pylist() == [1, 2]
    assert block.where(1) == "line 4"
    assert block.place.tolist() == [0, 2]
    assert bad_rows.n == 1


def test_places_are_counted_over_blocks(tmp_path):
    lines = [f"{i},x" if i % 1000 != 500 else "ragged" for i in range(400_000)]
    (tmp_path / "data.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    blocks = list(open_source(str(tmp_path / "data.csv"), BadRows("skip")).blocks())
    assert len(blocks) > 2
    for block in blocks:
        assert block.rows["a"].cast("int64").to_pylist() == block.place.tolist()


def test_objects_within_json_objects_are_columns(tmp_path):
    lines = ['{"a": {"b": 1, "c": {"d": 2}}, "e": 3}', '{"a": {"b": 4}, "e": 5}', '{"a": null, "e": 6}']
    (tmp_path / "data.jsonl").write_text("\n".join(lines) + "\n")
    (block,) = open_source(str(tmp_path / "data.jsonl"), BadRows()).blocks()
    assert {name: block.rows[name].to_pylist() for name in ("a.b", "a.c.d", "e")} == {
        "a.b": [1, 4, None],
        "a.c.d": [2, None, None],
        "e": [3, 5, 6],
    }


def test_json_values_of_all_kinds(tmp_path):
    lines = ['{"a": 1, "b": "x", "c": true}', '{"b": 2.5, "a": null}', '{"a": "NA", "d": 9}', ""]
    (tmp_path / "data.jsonl").write_text("\n".join(lines))
    (block,) = open_source(str(tmp_path / "data.jsonl"), BadRows()).blocks()
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
    bad_rows = BadRows(on_error)
    source = open_source(str(tmp_path / "data.csv.gz"), bad_rows)
    if on_error == "stop":
        with pytest.raises(ValueError, match="cut short"):
            list(source.blocks())
        return
    rows = [int(number) for block in source.blocks() for number in block.rows["a"].to_pylist()]
    assert 10_000 < len(rows) < 40_000
    assert rows == list(range(len(rows)))
    assert any("cut short" in words for words in bad_rows.examples)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("data.xlsx", b"PK\x03\x04 and so on", "zip archive, but no Excel workbook"),
        ("data.xlsx", b"a,b\n1,2\n", "but its content does not"),
        ("data.xls", b"\xd0\xcf\x11\xe0 and so on", "old Excel: save it as .xlsx"),
        ("data.bin", bytes(range(256)), "its format is unknown"),
        ("data.parquet", b"a,b\n1,2\n", "but its content does not"),
        ("data.parquet", b"PAR1 cut short", "damaged or cut short"),
        ("data.feather", b"ARROW1 cut short", "damaged or cut short"),
        ("data.json", b'[{"a": 1}]', "jq -c"),
        ("data.csv", b"", "it is empty"),
        ("data.csv", b"\n \n\r\n", "it is empty"),
        ("data.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16: convert it"),
    ],
)
def test_files_that_cannot_be_read_say_so_in_a_line(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        list(open_source(str(path), BadRows()).blocks())
    assert str(path) in str(caught.value) or "line" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="a directory"):
        open_source(str(tmp_path), BadRows())


class Spaced:
    """A format of one's own: a mark, the names, then rows of numbers with blanks between them."""

    format = "spaced numbers"
    extensions = (".spaced",)
    n_first = 100

    def __init__(self, stream, bad_rows, *, live):
        _, names, *lines = stream.read().decode().splitlines()
        self.columns, self._lines = names.split(), lines

    @staticmethod
    def recognises(start):
        return start.startswith(b"SPACED\n")

    def blocks(self):
        values = np.array([line.split() for line in self._lines], float)
        rows = pyarrow.RecordBatch.from_arrays(list(map(pyarrow.array, values.T)), names=self.columns)
        yield Block(rows, row_places(0), np.arange(len(rows)))


def test_a_new_format_is_one_class_and_its_line_in_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr("streamlasso.data.sources.opening.SOURCES", [Spaced, *SOURCES])
    path = tmp_path / "data.spaced"
    path.write_text("SPACED\nx y\n" + "".join(f"{i % 7} {2 * (i % 7) + i % 3}\n" for i in range(50)))
    assert rows_of(open_source(str(packed(path)), BadRows()))["x"] == [float(i % 7) for i in range(50)]
    run = Run(Options(str(path), "y", tmp_path / "out"))
    assert run.go()
    assert (run.data.format, run.n_rows) == ("spaced numbers", 50)
    path.write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"its name ends in \.spaced, but its content does not"):
        open_source(str(path), BadRows())


# --- as people write them ---------------------------------------------------------------------------------------------


def content(text, tmp_path, name="data.txt"):
    (tmp_path / name).write_text(text)
    source = open_source(str(tmp_path / name), BadRows())
    return {"format": source.format, **rows_of(source)}


def test_cells_may_be_separated_by_spaces(tmp_path):
    text = '  x   city   y\n 1.5  Rome  2 \n-3    "New York" 4\n'
    expected = {"format": "text separated by spaces", "x": [1.5, -3], "city": ["Rome", "New York"], "y": [2, 4]}
    assert content(text, tmp_path) == expected
    tabs = content("x y\n1\t2\n3 \t 4\n", tmp_path)
    assert (tabs["x"], tabs["y"]) == ([1, 3], [2, 4])
    with pytest.raises(ValueError, match="line 3: it has 1 field, but the first line has 2"):
        content("x y\n1 2\n3\n", tmp_path)


def test_a_name_of_two_words_is_one_column(tmp_path):
    assert content("water flow\n1\n2\n", tmp_path)["water flow"] == [1, 2]


def test_rows_that_r_has_named(tmp_path):
    found = content('mpg cyl\n"Mazda RX4" 21 6\nDatsun 22.8 4\n', tmp_path)
    assert found == {
        "format": "text separated by spaces",
        "column 1": ["Mazda RX4", "Datsun"],
        "mpg": [21, 22.8],
        "cyl": [6, 4],
    }


def test_comments_before_the_names(tmp_path):
    text = "# made by a program\n#\n\n# on Monday, at noon\nx,y\n1,2\n3,4\n"
    assert content(text, tmp_path, "data.csv") == {"format": "CSV", "x": [1, 3], "y": [2, 4]}
    with pytest.raises(ValueError, match="line 7: it has 1 field"):
        content(text.replace("3,4", "3"), tmp_path)


def test_names_in_a_comment(tmp_path):
    assert content("# made by a program\n# x, y\n1,2\n3,4\n", tmp_path)["y"] == [2, 4]
    assert content("#chrom\tpos\nchr1\t2\nchr2\t4\n", tmp_path)["chrom"] == ["chr1", "chr2"]
    assert content("# x y\n1 2\n3 4\n", tmp_path)["x"] == [1, 3]


def test_names_between_single_quotes(tmp_path):
    assert content("'OBS' 'GPA'\n1 2.5\n2 3.5\n", tmp_path)["GPA"] == [2.5, 3.5]


def test_a_workbook_as_people_keep_them(tmp_path):
    """Empty rows above and between, a name that is missing, dates, an error of a formula, cells beyond the names."""
    day = datetime.datetime(2024, 1, 31)
    rows = [
        [],
        ["when", "x", None, "y"],
        [day, 1, "a", 2.5],
        [],
        [day, "#DIV/0!", None, 3, "aside"],
        [None, 7, "b", "NA"],
    ]
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "data.xlsx")
    source = open_source(str(tmp_path / "data.xlsx"), BadRows())
    (block,) = source.blocks()
    assert block.rows.to_pydict() == {
        "when": [day, day, None],
        "x": ["1", "#DIV/0!", "7"],
        "column 3": ["a", None, "b"],
        "y": [2.5, 3.0, None],
    }
    assert block.where(1) == "row 5"


def test_a_workbook_without_openpyxl_names_the_extra(tmp_path, table, monkeypatch):
    as_excel(table, tmp_path / "data.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install \"streamlasso\[excel\]\""):
        open_source(str(tmp_path / "data.xlsx"), BadRows())
