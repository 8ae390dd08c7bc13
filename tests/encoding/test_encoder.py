"""Columns become features as a slow, obvious loop over rows would make them, however the rows are cut into blocks."""

import datetime
import json
import math
from itertools import pairwise

import numpy as np
import pyarrow
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamlasso.data.encoding import Encoder, Target, encoder_for
from streamlasso.data.encoding.columns import MOST_LEVELS
from streamlasso.data.encoding.reading import joined

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def batch(**columns):
    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array(values) for name, values in columns.items()})


def encoder_of(rows, target="y", family="auto", **options):
    return encoder_for(rows, Target.guess(target, rows[target], family), **options)


def features_of(encoder, rows, cuts=()):
    """Feature by feature, over all rows; those that come later are 0 until then."""
    cells = encoder.read(rows)
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(cells)}), len(cells)]
    parts = [encoder.encode(cells.part(slice(a, b))) for a, b in pairwise(edges)]
    X = np.zeros((len(cells), len(encoder.features)))
    for a, part in zip(edges, parts, strict=False):
        X[a : a + len(part.X), : part.X.shape[1]] = part.X
    return dict(zip(encoder.features, X.T, strict=True)), np.concatenate([part.width for part in parts])


# --- an oracle that goes row by row ---------------------------------------------------------------------------------


def slowly(rows, first):
    """Features of rows (dicts) as dicts; `first` stands for values missing before there was any."""
    last, past, out = dict(first), {"a": [], "y": []}, []
    for row in rows:
        found = {f"{name} missing": 1.0 for name in "ab" if row[name] is None}
        last.update({name: row[name] for name in "ab" if row[name] is not None})
        found["a"], found[f"b = {last['b']}"] = last["a"], 1.0
        for name, step in (("y", 1), ("y", 3), ("a", 2)):
            known = past[name] or [{"y": row["y"], "a": last["a"]}[name]]
            found[f"{name} lag {step}"] = known[max(len(known) - step, 0)]
        past["y"].append(row["y"])
        past["a"].append(last["a"])
        out.append(found)
    return out


cells = st.fixed_dictionaries(
    {
        "a": st.none() | st.floats(-1e6, 1e6),
        "b": st.none() | st.sampled_from(["u", "v", "w", "x y", "ü"]),
        "y": st.floats(-100, 100),
    }
)


def table_of(rows):
    return pyarrow.RecordBatch.from_pydict(
        {
            "a": pyarrow.array([row["a"] for row in rows], pyarrow.float64()),
            "b": pyarrow.array([row["b"] for row in rows], pyarrow.string()),
            "y": pyarrow.array([row["y"] for row in rows]),
        }
    )


@given(st.lists(cells, min_size=1, max_size=40), st.lists(st.integers(1, 39), max_size=5), st.integers(1, 40))
def test_as_a_loop_over_rows_would(rows, cuts, reach):
    first = {name: next((row[name] for row in rows[:reach] if row[name] is not None), None) for name in "ab"}
    assume(None not in first.values())
    table = table_of(rows)
    encoder = encoder_of(table.slice(0, reach), family="gaussian", lags={"y": [1, 3], "a": [2]}, keep=["a", "b"])
    found, width = features_of(encoder, table, cuts)
    expected = slowly(rows, first)
    for i, row in enumerate(expected):
        for name, column in found.items():
            assert column[i] == row.get(name, 0.0), (i, name)
        assert set(row) <= set(encoder.features[: width[i]]), "a feature is there when its row comes"


@given(st.lists(cells, min_size=2, max_size=30), st.integers(1, 29))
def test_a_state_that_is_saved_continues_as_if_never_saved(rows, cut):
    rows[0] |= {"a": 1.5, "b": "u"}
    table = table_of(rows)
    cut = min(cut, len(rows) - 1)
    whole = encoder_of(table.slice(0, 1), family="gaussian", lags={"y": [2], "b": [1]}, keep=["a", "b"])
    expected = whole.encode(whole.read(table))
    part = encoder_of(table.slice(0, 1), family="gaussian", lags={"y": [2], "b": [1]}, keep=["a", "b"])
    part.encode(part.read(table.slice(0, cut)))
    part = Encoder.from_state(json.loads(json.dumps(part.state(), allow_nan=False)))
    rest = part.encode(part.read(table.slice(cut)))
    assert part.features == whole.features
    np.testing.assert_array_equal(rest.X, expected.X[cut:])
    np.testing.assert_array_equal(rest.width, expected.width[cut:])
    assert json.dumps(part.state()) == json.dumps(whole.state())


# --- dates ------------------------------------------------------------------------------------------------------------

MOMENTS = [datetime.datetime(2023, 12, 30, 5, 0) + datetime.timedelta(hours=7 * i, minutes=13 * i) for i in range(60)]
WRITTEN = {
    "%Y-%m-%d %H:%M:%S": True,
    "%Y-%m-%dT%H:%M:%S": True,
    "%Y-%m-%dT%H:%M:%SZ": True,
    "%Y-%m-%d %H:%M:%S.250": True,
    "%Y-%m-%d %H:%M:%S UTC": True,
    "%Y-%m-%d %H:%M:%S,250": True,
    "%Y-%m-%dT%H:%M:%S+02": True,
    "%Y-%m-%d %H:%M +0200": True,
    "%m/%d/%Y %I:%M %p": True,
    "%d.%m.%y %H:%M": True,
    "%d %b %Y %H:%M": True,
    "%d-%b-%y": False,
    "%b %d, %Y": False,
    "%m/%d/%y": False,
    "%d/%m/%y": False,
    "%d/%m/%Y %H:%M": True,
    "%m/%d/%Y %H:%M": True,
    "%d.%m.%Y": False,
    "%Y-%m-%d": False,
    "%Y/%m/%d": False,
    "%m/%d/%Y": False,
    "%d/%m/%Y": False,
}


def calendar(moment, hours):
    """Season, day, hour and trend of one moment, by the standard library."""
    day = moment if hours else moment.replace(hour=0, minute=0)
    turn = 2 * math.pi * (day - datetime.datetime(day.year, 1, 1)).total_seconds() / (365.25 * 86400)
    found = {"season sin": math.sin(turn), "season cos": math.cos(turn)}
    found |= {name: float(day.weekday() == k) for k, name in enumerate(DAYS)}
    if hours:
        turn = 2 * math.pi * (day.hour * 3600 + day.minute * 60 + day.second) / 86400
        found |= {"hour sin": math.sin(turn), "hour cos": math.cos(turn)}
        found |= {"hour sin 2": math.sin(2 * turn), "hour cos 2": math.cos(2 * turn)}
    start = MOMENTS[0] if hours else MOMENTS[0].replace(hour=0, minute=0)
    return {**found, "trend": (day - start).total_seconds() / (365.2425 * 86400)}


@pytest.mark.parametrize("form", WRITTEN)
def test_dates_become_calendar_features(form):
    rows = batch(when=[moment.strftime(form) for moment in MOMENTS], y=np.arange(60) / 7)
    encoder = encoder_of(rows)
    found, _ = features_of(encoder, rows)
    expected = [calendar(moment, WRITTEN[form]) for moment in MOMENTS]
    assert list(found) == [f"when: {name}" for name in expected[0]]
    for name, column in found.items():
        np.testing.assert_allclose(column, [row[name.removeprefix("when: ")] for row in expected], atol=1e-12)
    assert encoder.time == "when"


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("unit", [1, 1000, 1_000_000, 1_000_000_000])
def test_numbers_since_1970_are_moments_if_they_are_called_so(unit, as_text):
    epoch = datetime.datetime(1970, 1, 1)
    values = [int((moment - epoch).total_seconds()) * unit for moment in MOMENTS]
    rows = batch(Timestamp=list(map(str, values)) if as_text else values, other=values, y=np.arange(60) / 7)
    encoder = encoder_of(rows)
    found, _ = features_of(encoder, rows)
    assert encoder.time == "Timestamp"
    assert "other" in found, "a number by another name is a number"
    expected = [calendar(moment, True) for moment in MOMENTS]
    for name in expected[0]:
        np.testing.assert_allclose(found[f"Timestamp: {name}"], [row[name] for row in expected], atol=1e-12)


def test_eight_digits_are_a_day_if_they_are_called_so():
    written = [int(moment.strftime("%Y%m%d")) for moment in MOMENTS]
    rows = batch(date=written, number=written, y=np.arange(60) / 7)
    found, _ = features_of(encoder_of(rows), rows)
    np.testing.assert_array_equal(found["date: Sun"], [moment.weekday() == 6 for moment in MOMENTS])
    np.testing.assert_array_equal(found["number"], written)
    rows = batch(date=[*written[:-1], 20231399], y=np.arange(60) / 7)
    assert "date" in encoder_of(rows).features


def test_months():
    rows = batch(month=["2023-11", "2023-12", "2024-01"] * 20, y=np.arange(60) / 7)
    found, _ = features_of(encoder_of(rows), rows)
    assert found["month: season cos"][2] == 1


@pytest.mark.parametrize(
    "kind", [pyarrow.timestamp("us"), pyarrow.timestamp("ns", "Europe/Rome"), pyarrow.timestamp("s"), pyarrow.date32()]
)
def test_dates_that_a_table_knows(kind):
    zoned = getattr(kind, "tz", None)
    moments = pyarrow.array(MOMENTS, pyarrow.timestamp("us"))
    if zoned:
        moments = pyarrow.compute.assume_timezone(moments, zoned)
    rows = pyarrow.RecordBatch.from_pydict({"when": moments.cast(kind), "y": pyarrow.array(np.arange(60) / 7)})
    found, _ = features_of(encoder_of(rows), rows)
    expected = [calendar(moment, kind != pyarrow.date32()) for moment in MOMENTS]
    for name, column in found.items():
        np.testing.assert_allclose(column, [row[name.removeprefix("when: ")] for row in expected], atol=1e-12)


def test_midnight_may_be_left_out():
    written = [str(moment).removesuffix(" 00:00:00") for moment in map(datetime.datetime.fromisoformat, NEAR_MIDNIGHT)]
    assert "2024-03-02" in written
    rows = batch(when=written, y=np.arange(4) / 7)
    found, _ = features_of(encoder_of(rows), rows)
    np.testing.assert_allclose(found["when: hour cos"], [math.cos(2 * math.pi * h / 24) for h in (23, 0, 1, 2)])
    np.testing.assert_array_equal(found["when: Sat"], [0, 1, 1, 1])


NEAR_MIDNIGHT = ("2024-03-01T23:00:00", "2024-03-02T00:00:00", "2024-03-02T01:00:00", "2024-03-02T02:00:00")


@pytest.mark.parametrize("form", ["%H:%M", "%H:%M:%S", "%H.%M.%S"])
def test_a_time_without_a_day_has_hours_only(form):
    rows = batch(at=[moment.strftime(form) for moment in MOMENTS], y=np.arange(60) / 7)
    encoder = encoder_of(rows)
    assert encoder.features == ["at: hour sin", "at: hour cos", "at: hour sin 2", "at: hour cos 2"]
    assert encoder.time is None


# --- which columns ----------------------------------------------------------------------------------------------------


def test_keep_drop_and_time():
    rows = batch(a=[1.0, 2.0], b=[3.0, 4.0], c=[5.0, 6.0], y=[1.5, 2.5])
    assert encoder_of(rows).features == ["a", "b", "c"]
    assert encoder_of(rows, keep=["b"]).features == ["b"]
    assert encoder_of(rows, drop=["b"]).features == ["a", "c"]
    assert encoder_of(rows, time="a").features == ["b", "c"], "a number that says when is no feature"
    with pytest.raises(ValueError, match="--drop bb is not a column: did you mean 'b'"):
        encoder_of(rows, drop=["bb"])
    with pytest.raises(ValueError, match="no feature is left"):
        encoder_of(rows, drop=["a", "b", "c"])


def test_flags_and_text_that_looks_like_numbers():
    rows = batch(flag=["true", "False", "TRUE"], number=[" 1", "2.5 ", "-3e2"], real=[True, False, None], y=[1.5, 2, 4])
    found, _ = features_of(encoder_of(rows), rows)
    assert {name: column.tolist() for name, column in found.items()} == {
        "flag": [1, 0, 1],
        "number": [1, 2.5, -300],
        "real": [1, 0, 0],
        "real missing": [0, 0, 1],
    }


def test_categoricals_of_a_table_are_levels_whatever_they_are_made_of():
    grades = pyarrow.array([3, 1, 3, None]).dictionary_encode()
    rows = pyarrow.RecordBatch.from_pydict({"grade": grades, "y": pyarrow.array([1.5, 2.5, 3.0, 4.0])})
    found, _ = features_of(encoder_of(rows), rows)
    assert {name: column.tolist() for name, column in found.items()} == {
        "grade = 3": [1, 0, 1, 1],
        "grade = 1": [0, 1, 0, 0],
        "grade missing": [0, 0, 0, 1],
    }


def test_first_rows_of_several_types_are_joined():
    numbers, texts = batch(a=[1, 2], b=[0.5, 1.5]), batch(a=["x", None], b=[1, 2])
    assert joined([numbers, texts], 3).to_pydict() == {"a": ["1", "2", "x"], "b": [0.5, 1.5, 1.0]}
    assert joined([numbers, batch(a=[None, 7], b=[1, 2])], 9).to_pydict() == {
        "a": [1, 2, None, 7],
        "b": [0.5, 1.5, 1, 2],
    }


def test_levels_are_bounded_with_a_note():
    words = [f"w{i % 200}" for i in range(1000)]
    rows = batch(word=words, y=np.arange(1000) / 3)
    encoder = encoder_of(rows.slice(0, 50), keep=["word"])
    found, _ = features_of(encoder, rows)
    assert len(found) == MOST_LEVELS + 1
    assert found["word = (other)"].sum() == 1000 - 5 * MOST_LEVELS
    np.testing.assert_array_equal(np.sum(list(found.values()), axis=0), 1.0)
    assert any("'word' has more than 30 levels" in note for note in encoder.notes)


def test_text_that_differs_in_every_row_is_left_out_with_a_note():
    rows = batch(name=[f"customer {i}" for i in range(300)], x=np.arange(300) / 7, y=np.arange(300) / 3)
    encoder = encoder_of(rows)
    assert encoder.features == ["x"]
    assert any("'name' is left out" in note and "--keep name" in note for note in encoder.notes)


def test_a_column_that_is_empty_at_first_is_left_out_with_a_note():
    rows = batch(empty=pyarrow.nulls(3, pyarrow.string()), x=[1.0, 2.0, 3.0], y=[1.5, 2.5, 9.0])
    encoder = encoder_of(rows)
    assert encoder.features == ["x"]
    assert encoder.notes == ["column 'empty' is left out: it is empty in the first 3 rows"]


def test_nested_columns_are_left_out_with_a_note():
    rows = batch(items=[[1, 2], [3]], x=[1.0, 2.0], y=[1.5, 2.5])
    encoder = encoder_of(rows)
    assert encoder.features == ["x"]
    assert encoder.notes == ["column 'items' is left out: it holds list<item: int64>, not numbers, text or dates"]
    with pytest.raises(ValueError, match="--drop items"):
        encoder_of(rows, keep=["items"])
    with pytest.raises(ValueError, match="'items' holds list"):
        encoder_of(rows, target="items")


def test_cells_of_another_kind_are_bad_rows_and_left_out():
    first = batch(a=["1", "2", "3"], when=["2020-01-01", "2020-01-02", "2020-01-03"], y=["1", "2.5", "3"])
    later = batch(a=["4", "abc", "5", "1e99"], when=["2020-01-04", "2020-01-05", "soon", "2020-01-06"], y=["1"] * 4)
    encoder = encoder_of(first)
    reasons = {}
    encoded = encoder.encode(encoder.read(later), lambda i, reason: reasons.setdefault(i, reason))
    assert list(reasons) == [1, 2, 3]
    assert "column 'a' holds 'abc', where the first rows had numbers" in reasons[1]
    assert "column 'when' holds 'soon'" in reasons[2]
    assert "beyond" in reasons[3]
    assert encoded.X.shape[0] == 1
    with pytest.raises(ValueError, match="abc"):
        encoder.encode(encoder.read(later))


# --- the target -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "family", "classes"),
    [
        (["a", "b", "a"], "binomial", ["a", "b"]),
        (["a", "b", "c"], "binomial", ["a", "b", "c"]),
        (["1", "x"], "binomial", ["1", "x"]),
        ([0, 1, 1, 0], "binomial", [0, 1]),
        ([True, False], "binomial", [0, 1]),
        (["1", "2", "1"], "binomial", [1, 2]),
        ([0.5, 1.5, 0.5], "gaussian", None),
        ([0, 3, 1, 9, 2], "poisson", None),
        ([16, 40, 32, 13, 1, 977], "poisson", None),
        ([5, 6, 7, 5, 6, 3, 8], "gaussian", None),
        ([1360, 1292, 1402, 1376], "gaussian", None),
        ([-1, 0, 1], "gaussian", None),
        ([7.25, -3.0], "gaussian", None),
    ],
)
def test_the_family_is_guessed(values, family, classes):
    target = Target.guess("y", pyarrow.array(values), "auto")
    assert (target.family, target.classes) == (family, classes)


def test_a_family_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="'a', but --family gaussian needs numbers"):
        Target.guess("y", pyarrow.array(["a", "b"]), "gaussian")
    with pytest.raises(ValueError, match="3 different numbers in the first 3 rows, and not all are whole"):
        Target.guess("y", pyarrow.array([1, 2, 3.5]), "binomial")
    with pytest.raises(ValueError, match="50 different numbers in the first 50 rows, and there may be 20 classes"):
        Target.guess("y", pyarrow.array(list(range(50))), "binomial")
    with pytest.raises(ValueError, match="has no value in the first 2 rows"):
        Target.guess("y", pyarrow.array([None, None], pyarrow.float64()), "auto")
    with pytest.raises(ValueError, match="looks like a name"):
        Target.guess("y", pyarrow.array([f"row {i}" for i in range(100)]), "auto")


def test_values_that_the_family_cannot_have_are_bad_rows():
    counts = Target.guess("y", pyarrow.array([0, 3, 1, 9]), "auto")
    values, wrong = counts.values(counts.read(pyarrow.array([2.0, -1.0, None])))
    assert values[0] == 2
    assert np.isnan(values[2])
    assert list(wrong) == [1]
    assert "--family" in wrong[1]
    flags = Target.guess("y", pyarrow.array([0, 1]), "auto")
    values, wrong = flags.values(flags.read(pyarrow.array([1, 2, None, 0])))
    assert values[[0, 2, 3]].tolist() == [1, -1, 0]
    assert "is 2, where there were two classes, 0 and 1" in wrong[1]
    assert "--family binomial" in wrong[1]


def test_whole_numbers_are_classes_if_asked_for():
    target = Target.guess("y", pyarrow.array(["3", "1", "2"]), "binomial")
    assert target.classes == [1, 2, 3]
    values, wrong = target.values(target.read(pyarrow.array(["2", "7", None, "1.5", "x", "7"])))
    assert target.classes == [1, 2, 3, 7]
    assert values.tolist() == [1, 3, -1, -1, -1, 3]
    assert list(wrong) == [3, 4]
    assert "is 1.5, where there were the classes, 1, 2, 3 and 7" in wrong[3]


def test_whole_numbers_that_may_be_classes_are_known():
    assert Target.guess("y", pyarrow.array([0, 2, 1, 0]), "auto").maybe_classes == [0, 1, 2]
    assert Target.guess("y", pyarrow.array([0, 2, 1, 0]), "poisson").maybe_classes == []
    assert Target.guess("y", pyarrow.array([0, 1.5, 1, 0]), "auto").maybe_classes == []
    assert Target.guess("y", pyarrow.array(list(range(11))), "auto").maybe_classes == []


def test_classes_appear_as_they_come():
    target = Target.guess("y", pyarrow.array(["b", "a"]), "auto")
    values, wrong = target.values(target.read(pyarrow.array(["c", "a", None, "d", "c"])))
    assert target.classes == ["a", "b", "c", "d"]
    assert values.tolist() == [2, 0, -1, 3, 2]
    assert not wrong


def test_a_wave_that_stands_still_is_constant():
    """Every six hours the second harmonic of the day is 0: its rounding errors must not be taken for a feature."""
    moments = np.datetime64("2024-01-01T00:00:00", "s") + np.arange(40) * np.timedelta64(6, "h")
    rows = batch(date=moments, y=np.arange(40.0))
    found, _ = features_of(encoder_of(rows), rows)
    assert np.ptp(found["date: hour sin 2"]) == 0
