"""Names and cells of the user are shown as they are: no markup, no commands to a terminal, no formulas."""

import csv
import io
import json

import numpy as np
import pyarrow
import pytest

from streamlasso import RAPClassifier
from streamlasso._csv import csv_bytes
from streamlasso._text import plain
from streamlasso.cli import main

#: Each was a crash, a hole in what was printed, or a command to the terminal.
HOSTILE = [
    "[/b]",
    "[/red]",
    "[bold]",
    "load [kw]",
    "[link=x]y",
    "\x1b[2J\x1b]0;pwned\x07",
    "a\u202eb",
    ":smile:",
    "\\[b]",
]
FORMULAS = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "=HYPERLINK(0)", "\t=1", "\r=1"]


def table(path, names, target, n=60, levels=("a", "b")):
    rng = np.random.default_rng(0)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, target])
        for row in rng.normal(size=(n, len(names))):
            writer.writerow([*row[:-1], levels[int(row[-1] > 0)], row[0] + row[-1]])
    return str(path)


@pytest.mark.filterwarnings("error:Glyph 27")
@pytest.mark.parametrize("target", ["y [/b]", "count [/red]\x1b[2J"])
def test_names_targets_and_levels_are_printed_as_they_are(target, tmp_path, capsys):
    data = table(tmp_path / "data.csv", [*HOSTILE, "level"], target, levels=("[/red]", "\x1b[2Jb"))
    assert main(["run", data, "--target", target, "--out", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert main(["inspect", str(tmp_path / "out" / "model.safetensors")]) == 0
    shown = out + err + capsys.readouterr().out
    assert "\x1b" not in shown and "\u202e" not in shown and "\x07" not in shown
    for text in [target, *HOSTILE]:
        assert plain(text)[:10] in shown, text


def test_names_that_differ_in_brackets_stay_apart(tmp_path, capsys):
    data = table(tmp_path / "data.csv", ["load [kw]", "load [kwh]", "level"], "y", n=300)
    assert main(["run", data, "--target", "y", "--out", str(tmp_path / "out"), "--quiet"]) == 0
    main(["inspect", str(tmp_path / "out" / "model.safetensors")])
    out = capsys.readouterr().out
    assert "load [kw]" in out and "load [kwh]" in out


def test_an_error_message_has_no_commands_for_the_terminal(tmp_path, capsys):
    data = table(tmp_path / "data.csv", ["a", "b", "c"], "y")
    assert main(["run", data, "--target", "\x1b[2Jy", "--out", str(tmp_path / "out")]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_class_that_is_a_formula_is_text_in_csv_and_itself_in_json(tmp_path):
    rng = np.random.default_rng(0)
    for kind in ("csv", "tsv", "jsonl"):
        data = tmp_path / "data.csv"
        with open(data, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["x", "y"])
            writer.writerows([x, "=cmd|'/C calc'!A0" if x > 0 else "-1"] for x in rng.normal(size=60))
        path = tmp_path / f"predictions.{kind}"
        options = ["--predictions", str(path), "--out", str(tmp_path / "out"), "--quiet"]
        assert main(["run", str(data), "--target", "y", *options]) == 0
        text = path.read_text()
        if kind == "jsonl":
            found = {json.loads(line)["y"] for line in text.splitlines()}
            assert found == {"=cmd|'/C calc'!A0", "-1"}
            continue
        rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if kind == "tsv" else ","))
        assert {row["y"] for row in rows} == {"'=cmd|'/C calc'!A0", "-1"}
        assert not any(cell.startswith(("=", "@")) for row in rows for cell in row.values())


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_ours_is_a_formula(text):
    for cell in (text, text + "1"):
        written = csv_bytes(pyarrow.table({cell: [cell, "fine"], "n": [-1.5, 2.0]}))
        head, first, _ = csv.reader(io.StringIO(written.decode(), newline=""))
        assert head[0] == first[0] == "'" + cell
        assert first[1] == "-1.5"


@pytest.mark.parametrize("number", ["-1", "+1", "-1.5e-3", "-.5", "-5.", "+", "-"])
def test_numbers_stay_numbers(number):
    written = csv_bytes(pyarrow.table({"x": [number]})).decode()
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["x"], [number]]


def test_names_with_commas_quotes_and_line_breaks_do_not_break_the_first_line():
    names = ["a,b", 'c"d', "e\nf"]
    written = csv_bytes(pyarrow.table({name: [1] for name in names}))
    assert next(csv.reader(io.StringIO(written.decode(), newline=""))) == names


def test_the_table_of_a_notebook_has_no_markup_of_a_class():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = RAPClassifier().fit(X, np.where(X[:, 0] > 0, "<script>", "b"))
    assert "<script>" not in model._learnt_html()
