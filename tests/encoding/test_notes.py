"""Notes about the first rows: only what is so."""

import numpy as np
import pyarrow
import pytest

from streamlasso.data.encoding import Target, detect_encoder, encoder_for
from streamlasso.data.encoding.leakage import leakage_notes, leaking_columns
from streamlasso.data.encoding.notes import first_row_notes, placeholder_in

RNG = np.random.default_rng(0)
A, B, C, NOISE = RNG.normal(size=(4, 500))
WORDS = np.array(["red", "green", "blue"])[RNG.integers(3, size=500)]


def columns_of(target="y", **columns):
    rows = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(values) for name, values in columns.items()})
    encoder = encoder_for(rows, Target.guess(target, rows[target], "auto"))
    return rows, encoder


def found(**columns):
    rows, encoder = columns_of(**columns)
    return sorted(leaking_columns(rows, encoder.target, encoder.columns))


@pytest.mark.parametrize(
    ("columns", "leaking"),
    [
        ({"a": 3 * A + 7, "b": B, "y": A}, ["a"]),
        ({"a": A, "b": B, "c": C, "y": A + B}, ["a", "b"]),
        ({"a": A, "b": B, "c": C, "y": (A + 0.1 * B).round(3)}, ["a", "b"]),
        ({"a": A, "colour": WORDS, "y": np.where(WORDS == "red", "warm", "cold")}, ["colour"]),
        ({"a": A, "b": (A > 0).astype(int), "y": np.where(A > 0, "up", "down")}, ["b"]),
        ({"a": (10 * np.exp(A)).round(), "b": (5 * np.exp(B)).round(), "c": C}, None),
    ],
)
def test_columns_that_give_the_target_are_found(columns, leaking):
    if leaking is None:  # counts: the sum is in the target, not in its logarithm
        columns = {**columns, "y": (columns["a"] + columns["b"]).astype(int)}
        leaking = ["a", "b"]
    assert found(**columns) == leaking


@pytest.mark.parametrize(
    "columns",
    [
        {"a": A, "b": B, "y": A + 0.05 * NOISE},
        {"a": A, "b": B, "y": np.where(A + 0.1 * NOISE > 0, "up", "down")},
        {"a": A, "b": B, "y": A * B},
        {"a": A, "y": np.where(np.arange(500) == 17, 1.5, 0.0), "b": np.arange(500) == 17},
        {"a": A[:20], "b": B[:20], "c": C[:20], "y": A[:20] + B[:20] + C[:20]},
        {"a": A, "b": B, "y": pyarrow.array([None] * 499 + [1.5])},
        {"name": [f"n{i % 40}" for i in range(100)], "y": [float(i % 40) for i in range(100)]},
    ],
    ids=["a little noise", "classes", "a product", "one odd row", "few rows", "one value", "many levels for few rows"],
)
def test_no_alarm_where_the_target_is_not_given(columns):
    assert found(**columns) == []


def test_the_past_of_the_target_gives_nothing_away():
    rows = pyarrow.RecordBatch.from_pydict({"a": A, "y": np.arange(500) / 4})
    encoder = encoder_for(rows, Target.guess("y", rows["y"], "auto"), lags={"y": [1]})
    assert leaking_columns(rows, encoder.target, encoder.columns) == []


def test_the_columns_are_left_as_they_were():
    rows, encoder = columns_of(a=pyarrow.array([None, *A[1:]]), colour=WORDS, y=B)
    before = encoder.state()
    first_row_notes(rows, encoder, {})
    assert repr(encoder.state()) == repr(before)


def test_the_note_says_what_to_do():
    assert leakage_notes("cnt", []) == []
    assert leakage_notes("cnt", ["casual", "registered"])[0].endswith("--drop casual,registered")


@pytest.mark.parametrize(
    ("values", "placeholder"),
    [
        ([*A, -200, -200, -200], -200),
        ([*np.exp(A), -9, -9, -9], -9),
        ([*np.abs(A), 999, 999, 999], 999),
        ([*A, -200, -200], None),
        ([*A, -200.5, -200.5, -200.5], None),
        ([*np.linspace(-199, 5, 90), -200, -200, -200], None),
        ([*np.linspace(0, 998, 90), 999, 999, 999], None),
        ([-100, 0, 100] * 30, None),
        ([np.nan] * 5, None),
    ],
)
def test_numbers_that_stand_for_no_value(values, placeholder):
    assert placeholder_in(np.array(values, float)) == placeholder


def test_a_placeholder_is_noted_with_its_columns():
    rows, encoder = columns_of(a=[*A, -999, -999, -999], b=[*B, 1, 2, 3], y=[*C, -999, -999, -999])
    (note,) = first_row_notes(rows, encoder, {})
    assert note.startswith("-999 may stand for a missing value (columns a and y)")


# --- what the file is like --------------------------------------------------------------------------------------------


def test_a_difference_that_gives_the_target_is_found_though_a_row_does_not_fit():
    """As in macrodata: the real interest rate is the nominal one less inflation, but for the first row and rounding."""
    inflation, nominal = 4 + 2 * A, 6 + 3 * B + A
    real = np.where(np.arange(500) == 0, 0.0, nominal - inflation).round(2)
    others = {f"z{j}": RNG.normal(size=500) + A for j in range(8)}
    assert found(**others, tbilrate=nominal.round(2), realint=real, y=inflation.round(2)) == ["realint", "tbilrate"]


def notes(**columns):
    rows = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(values) for name, values in columns.items()})
    return detect_encoder(rows, "y", lags="auto").notes


@pytest.mark.parametrize(
    ("y", "is_sorted"),
    [
        (np.sort(A), True),
        (-np.sort(A), True),
        (A, False),
        (np.sort(RNG.integers(0, 4, size=500)), True),
        (np.repeat(["a", "b", "c"], [200, 200, 100]), True),
        (np.repeat(["a", "b", "a"], [200, 200, 100]), False),
        (np.array([1.5, 2.5, 3.5]), False),
    ],
)
def test_rows_that_are_sorted_by_the_target_are_noted(y, is_sorted):
    assert any("sorted by y" in note for note in notes(a=B[: len(y)], y=y)) == is_sorted


def test_a_series_that_grows_is_not_sorted():
    days = np.arange("2020-01-01", "2021-05-15", dtype="datetime64[D]")
    assert not any("sorted" in note for note in notes(day=days.astype(str), y=np.arange(500.0)))


def test_names_are_left_out_of_small_files_too():
    cars = [f"car {i}" for i in range(32)]
    (note,) = notes(name=cars, make=["Fiat", "Ford"] * 16, y=A[:32])
    assert note.startswith("column 'name' is left out")
