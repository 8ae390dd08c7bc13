"""Numbers as people write them: written by a slow, obvious hand in many ways, and read back."""

import re

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.encoding import Target, encoder_for, reading
from streamlasso.encoding.detect_formats import detect_formats, format_notes
from streamlasso.encoding.number_formats import BLANKS, example


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
