"""Numbers as people write them: written by a slow, obvious hand in many ways, and read back."""

import re

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.data.encoding import Target, detect_encoder, encoder_for, reading
from streamlasso.data.encoding.detect_formats import detect_formats, format_notes
from streamlasso.data.encoding.reading import BLANKS, example
from streamlasso.run.data import Data


def text(*cells):
    return pyarrow.array(list(cells), pyarrow.string())


def batch(**columns):
    return pyarrow.RecordBatch.from_pydict({name: text(*cells) for name, cells in columns.items()})


def written(value, mark, gap, digits, sign):
    """By hand: groups of three from the right, the decimal mark, and a sign behind, or before a currency's amount."""
    whole, _, fraction = f"{abs(value):.{digits}f}".partition(".")
    groups = [whole[max(i - 3, 0) : i] for i in range(len(whole), 0, -3)][::-1]
    number = gap.join(groups) + (mark + fraction if digits else "")
    minus = "-" if value < 0 else ""
    return f"{minus}{sign}{number}" if sign == "$" else f"{minus}{number}{sign}"


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20),
    st.sampled_from([(".", ","), (".", ""), (".", "'"), (",", "."), (",", ""), (",", "\u00a0"), (",", " ")]),
    st.integers(0, 6),
    st.sampled_from(["", "%", " %", "$", " €"]),
)
def test_what_is_written_is_read_back(values, marks, digits, sign):
    cells = text(*(written(value, *marks, digits, sign) for value in values))
    found, unfit = reading.numbers(cells, marks[0] + sign.strip())
    assert not unfit.any()
    np.testing.assert_array_equal(found, [float(f"{value:.{digits}f}") for value in values])


@pytest.mark.parametrize(
    ("form", "cell"),
    [
        (",", "1.5"),
        (",", "1.2345,6"),
        (",", "1,2,3"),
        (",", "a"),
        (",", "1,5 %"),
        (".", "1,5"),
        (".", "12,34.5"),
        (".", "1.234.5"),
        (".%", "12"),
        (".$", "$"),
    ],
)
def test_what_is_written_in_another_format_is_not_a_number(form, cell):
    _, unfit = reading.numbers(text(cell), form)
    assert unfit.all()


@pytest.mark.parametrize(
    ("columns", "formats"),
    [
        ({"a": ["0,5", "1,25"], "b": ["7", "8"], "c": ["u", "v"]}, {"a": ",", "b": ","}),
        ({"a": ["1,234", "2,500"]}, {"a": "."}),
        ({"a": ["1,234", "12"], "b": ["1.5", "2.5"]}, {"a": "."}),
        ({"a": ["1,234", "2,500"], "b": ["12,5", "7"]}, {"a": ",", "b": ","}),
        ({"a": ["1,234,567", "5"], "b": ["1,2", "3,4"]}, {"a": "."}),
        ({"a": ["5 %", "6 %"], "b": ["0,5", "7"]}, {"a": ",%", "b": ","}),
        ({"a": ["1 234", "12"], "b": ["0,5", "7"]}, {"a": ",", "b": ","}),
        ({"a": ["1.234", "987"], "b": ["12,5", "7"]}, {"a": ",", "b": ","}),
        ({"a": ["1.234", "9.870"], "b": ["12,5", "7"]}, {"b": ","}),
        ({"a": ["1.5", "2.25"], "b": ["12,5", "7"]}, {"b": ","}),
        ({"a": ["5%", "12.5 %"], "b": ["$5", "$1,000"]}, {"a": ".%", "b": ".$"}),
        ({"a": ["5,5 %", "-"]}, {"a": ",%"}),
        ({"a": ["5%", "12"]}, {}),
        ({"a": ["192.168.100.101", "192.168.100.102"]}, {}),
        ({"a": ["10/03/2004", "11/03/2004"], "b": ["18.00.00", "19.00.00"]}, {}),
        ({"a": ["1", "2.5"], "b": ["x", "1,5"]}, {}),
    ],
)
def test_the_format_is_detected_from_all_columns(columns, formats):
    assert detect_formats(batch(**columns)) == formats


def test_one_example_of_each_format_is_noted():
    rows = batch(a=["7", "2,6"], b=["1", "0,5"], c=["5 %", "6 %"], d=["1", "2"])
    assert format_notes(rows, detect_formats(rows), ["a", "b", "c", "d"]) == [
        "'2,6' is read as 2.6 (columns a and b)",
        "'5 %' is read as 5 (column c)",
    ]


@pytest.mark.parametrize("form", [".", ",", ",€", ".%"])
def test_a_cell_of_another_format_is_refused_with_an_example(form):
    rows = batch(a=[example(form), example(form)], y=["1.5", "2"])
    encoder = encoder_for(rows, Target.guess("y", rows["y"], "auto"), {"a": form})
    assert encoder.encode(encoder.read(rows)).X.tolist() == [[1234.5], [1234.5]]
    with pytest.raises(
        ValueError, match=f"holds '12#', where the first rows had numbers like {re.escape(example(form))}"
    ):
        encoder.encode(encoder.read(batch(a=["12#"], y=["1"])))


@pytest.mark.parametrize("blank", sorted(BLANKS | {" NA ", " - "}))
@pytest.mark.parametrize("form", [None, ","])
def test_blanks_among_numbers_are_missing(blank, form):
    values, unfit = reading.numbers(text("1", blank, "-3"), form)
    np.testing.assert_array_equal(values, [1, np.nan, -3])
    assert not unfit.any()


def test_a_column_of_blanks_is_empty():
    rows = batch(a=["-", "-", "."], x=["1", "2", "3"], y=["1.5", "2", "7"])
    encoder = encoder_for(rows, Target.guess("y", rows["y"], "auto"))
    assert encoder.features == ["x"]
    assert "'a' is left out: it is empty" in encoder.notes[0]


def test_spaces_around_words_do_not_count():
    rows = batch(city=[" Rome", "Rome ", " NA ", "Oslo"], y=["1.5", "2", "7", "1"])
    encoder = encoder_for(rows, Target.guess("y", rows["y"], "auto"))
    assert encoder.features == ["city = Rome", "city = Oslo", "city missing"]


def test_a_minus_of_print_is_a_minus():
    np.testing.assert_array_equal(reading.numbers(text("−1.5", "2"))[0], [-1.5, 2])
    np.testing.assert_array_equal(reading.numbers(text("−1,5", "2"), ",")[0], [-1.5, 2])


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["(12.50)", "3.00", "(1,200.00)"], [-12.5, 3, -1200]),
        (["($5.00)", "$7.25", "$1,000"], [-5, 7.25, 1000]),
        (["5 kg", "12.5kg", "1,250 kg"], [5, 12.5, 1250]),
        (["-3 °C", "21.5 °C", None], [-3, 21.5, np.nan]),
        (["1,234", "5,678", "12,345"], [1234, 5678, 12345]),
    ],
)
def test_numbers_as_people_write_them(cells, values):
    rows = pyarrow.RecordBatch.from_pydict({"a": pyarrow.array(cells), "y": pyarrow.array([0.5, 1.5, 9.0])})
    encoder = detect_encoder(rows, "y")
    found, unfit = encoder.columns[0].read(rows["a"])
    np.testing.assert_array_equal(found, values)
    assert not unfit.any()
    assert any("is read as" in note for note in encoder.notes)


def test_a_semicolon_between_cells_makes_a_comma_a_decimal_mark(tmp_path):
    """1,234 alone can be both: where cells are separated by semicolons, the comma was needed for something else."""
    (tmp_path / "data.csv").write_text("a;y\n" + "".join(f"{i},{i}23;{i / 2}\n" for i in range(1, 9)))
    data = Data(str(tmp_path / "data.csv"))
    encoder = detect_encoder(data.first_rows(), "y", decimal_comma=data.decimal_comma)
    found, _ = encoder.columns[0].read(data.first_rows()["a"])
    np.testing.assert_allclose(found, [float(f"{i}.{i}23") for i in range(1, 9)])


@pytest.mark.parametrize(
    "cells", [["1st", "2nd", "3rd"], ["5 kg", "5 lb", "7 kg"], ["A4", "A5", "A4"], ["1a", "b2", "1a"]]
)
def test_text_with_numbers_in_it_stays_text(cells):
    rows = pyarrow.RecordBatch.from_pydict({"a": pyarrow.array(cells), "y": pyarrow.array([0.5, 1.5, 9.0])})
    assert detect_encoder(rows, "y").columns[0].kind == "text"
