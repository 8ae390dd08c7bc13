"""The encoder as a transformer: as `streamlasso run` encodes a file; scikit-learn's checks, chunks, frames, files."""

import datetime
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.data.encoding import StreamEncoder, detect_encoder
from streamlasso.run.data import Data
from support.estimators import bits

CITIES = ["Rome", "Oslo", "Lima"]
EFFECT = {"Rome": 3.0, "Oslo": -1.0, "Lima": 0.0}


def table(n=300, cities=CITIES, seed=0):
    """A frame with a date, text, categories, numbers and holes; and a response."""
    rng = np.random.default_rng(seed)
    city = rng.choice(cities, size=n)
    heat = rng.normal(20, 5, size=n).round(2)
    hours = pd.date_range("2024-01-01", periods=n, freq="h")
    y = np.array([EFFECT.get(name, 0.0) for name in city]) + 0.2 * heat + np.sin(2 * np.pi * hours.hour / 24)
    frame = pd.DataFrame(
        {"when": hours, "city": city, "heat": heat, "wind": rng.integers(0, 9, size=n), "open": city > "N"}
    )
    frame.loc[rng.random(n) < 0.1, "heat"] = np.nan
    frame.loc[5:7, "city"] = None
    return frame, y + 0.1 * rng.normal(size=n)


def known(encoder):
    """All that the next row depends on."""
    return json.dumps(encoder.encoder_.state()), encoder.n_features_in_, encoder.feature_names_in_.tolist()


def as_dict(encoder, X):
    return dict(zip(encoder.get_feature_names_out(), np.asarray(X).T.tolist(), strict=True))


# --- the promise ------------------------------------------------------------------------------------------------------


def test_a_frame_is_encoded_as_the_command_encodes_its_file(tmp_path):
    X, y = table()
    X.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    data = Data(str(tmp_path / "data.csv"))
    of_run = detect_encoder(data.first_rows(), "y")
    rows = np.vstack([rows.X for rows, _ in data.encoded(of_run)])
    encoder = StreamEncoder()
    found = encoder.fit_transform(X)
    assert encoder.get_feature_names_out().tolist() == of_run.features
    np.testing.assert_allclose(found, rows, rtol=1e-12)


def test_text_dates_and_holes_go_through_a_pipeline():
    X, y = table(600)
    numbers_only = X[["heat", "wind"]].ffill().bfill()
    model = make_pipeline(StreamEncoder(), RAPRegressor(memory="all")).fit(X[:400], y[:400])
    without = RAPRegressor(memory="all").fit(numbers_only[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9 > 0.6 > without.score(numbers_only[400:], y[400:])
    labels = np.where(y > np.median(y), "high", "low")
    assert make_pipeline(StreamEncoder(), RAPClassifier(memory="all")).fit(X, labels).score(X, labels) > 0.9


def test_names_reach_the_model():
    X, y = table()
    pipeline = make_pipeline(StreamEncoder(), RAPRegressor()).set_output(transform="pandas").fit(X, y)
    names = pipeline[:-1].get_feature_names_out().tolist()
    assert pipeline[-1].feature_names_in_.tolist() == names
    assert {"city = Rome", "city missing", "heat", "heat missing", "open"} <= set(names)
    assert pipeline[-1].selected_.coef["heat"] == pytest.approx(0.2, abs=0.05)


@parametrize_with_checks([StreamEncoder()])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# --- a stream ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 100])
def test_chunks_are_encoded_as_the_whole(size):
    X, _ = table()
    whole = StreamEncoder().fit(X)
    expected = StreamEncoder().fit_transform(X)
    encoder = StreamEncoder()
    found = [encoder.fit_transform(X[:100])]
    assert encoder.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    for start in range(100, 300, size):
        chunk = X[start : start + size]
        found.append(encoder.transform(chunk))
        encoder.partial_fit(chunk)
    np.testing.assert_array_equal(np.vstack(found), expected)


def test_transform_keeps_nothing():
    X, _ = table()
    encoder = StreamEncoder().fit(X[:200])
    before = known(encoder)
    new = X[200:].assign(city="Bern", heat=[np.nan, *X["heat"][201:]])
    first = encoder.transform(new)
    np.testing.assert_array_equal(first, encoder.transform(new))
    assert known(encoder) == before
    assert not np.any([values for name, values in as_dict(encoder, first).items() if name.startswith("city =")])


def test_a_missing_value_is_the_last_one_before_it():
    encoder = StreamEncoder()
    X = pd.DataFrame({"a": [np.nan, 2.0, np.nan, 5.0]})
    assert as_dict(encoder, encoder.fit_transform(X)) == {"a": [2, 2, 2, 5], "a missing": [1, 0, 1, 0]}
    after = pd.DataFrame({"a": [np.nan, 7.0]})
    assert as_dict(encoder, encoder.transform(after)) == {"a": [5, 7], "a missing": [1, 0]}


def test_new_levels_get_features_that_come_last():
    X, _ = table(cities=CITIES[:2])
    encoder = StreamEncoder().fit(X)
    names = encoder.get_feature_names_out().tolist()
    more, _ = table(cities=CITIES)
    encoder.partial_fit(more)
    assert encoder.get_feature_names_out().tolist() == [*names, "city = Lima"]
    lima = as_dict(encoder, encoder.transform(more))["city = Lima"]
    np.testing.assert_array_equal(lima, more["city"].ffill() == "Lima")


@pytest.mark.parametrize("make", [RAPRegressor, RAPClassifier])
def test_a_model_takes_the_features_of_new_levels(make):
    """As if these had been 0 until then."""
    X, y = table(200, cities=CITIES[:2])
    more, z = table(200, cities=CITIES, seed=1)
    if make is RAPClassifier:
        y, z = (np.where(values > np.median(values), "high", "low") for values in (y, z))
    encoder = StreamEncoder().set_output(transform="pandas").fit(X)
    narrow, model = encoder.transform(X), make()
    model.partial_fit(narrow, y)
    wide = encoder.partial_fit(more).transform(more)
    assert list(wide)[: narrow.shape[1]] == list(narrow)
    before = model.predict(narrow)
    np.testing.assert_array_equal(model.predict(narrow.assign(new=1.0)), before)
    model.partial_fit(wide, z)
    other = make().partial_fit(narrow.reindex(columns=list(wide), fill_value=0.0), y).partial_fit(wide, z)
    assert bits(model) == bits(other)
    assert model.feature_names_in_.tolist() == list(wide)


def test_a_refused_batch_with_new_columns_leaves_the_model_as_it_was():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["a", "b"])
    model = RAPRegressor().partial_fit(X, X["a"])
    before = bits(model)
    for bad, y in ((X.assign(c=np.nan), X["a"]), (X.assign(c=1.0), X["a"] * np.nan)):
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(bad, y)
        assert bits(model) == before
        assert model.feature_names_in_.tolist() == ["a", "b"]
    for wrong in (X.assign(c=1.0)[["c", "a", "b"]], X[["a"]]):
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(wrong, X["a"])


# --- all kinds of rows ------------------------------------------------------------------------------------------------

COLUMNS = {"n": [1.5, None, 2.0, 4.0], "word": ["u", "v", None, "u"], "flag": [True, False, True, True]}
FRAMES = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, odd index": pd.DataFrame(COLUMNS, index=[9, 9, 3, 1]),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, categories": pd.DataFrame(COLUMNS).astype({"word": "category"}),
    "polars": pl.DataFrame(COLUMNS),
    "polars, categories": pl.DataFrame(COLUMNS, schema_overrides={"word": pl.Categorical}),
    "pyarrow": pyarrow.table(COLUMNS),
    "pyarrow, batch": pyarrow.RecordBatch.from_pydict(COLUMNS),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_all_kinds(name):
    encoder = StreamEncoder()
    assert as_dict(encoder, encoder.fit_transform(FRAMES[name])) == {
        "n": [1.5, 1.5, 2.0, 4.0],
        "n missing": [0, 1, 0, 0],
        "word = u": [1, 0, 0, 1],
        "word = v": [0, 1, 1, 0],
        "word missing": [0, 0, 1, 0],
        "flag": [1, 0, 1, 1],
    }


def test_rows_without_names():
    for X in ([[1, "u"], [2, "v"]], np.array([[1, "u"], [2, "v"]], dtype=object), np.array([["1", "u"], ["2", "v"]])):
        encoder = StreamEncoder()
        assert as_dict(encoder, encoder.fit_transform(X)) == {"x0": [1, 2], "x1 = u": [1, 0], "x1 = v": [0, 1]}


KINDS = {
    "numbers as categories are levels": (pd.Categorical([3, 1, 3]), {"a = 3": [1, 0, 1], "a = 1": [0, 1, 0]}),
    "mixed types are text": ([1, "u", 1], {"a = 1": [1, 0, 1], "a = u": [0, 1, 0]}),
    "numbers in text": (["1,234.5", "2,000.0", "7.0"], {"a": [1234.5, 2000, 7]}),
    "whole numbers": (np.array([1, 2, 3], dtype=np.uint8), {"a": [1, 2, 3]}),
    "time spans are seconds of a kind": (pd.to_timedelta([1, 2, 3], unit="h"), None),
    "periods are dates": (pd.period_range("2024-01", periods=3, freq="M"), None),
    "dates": ([datetime.date(2024, 1, day) for day in (1, 2, 3)], None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_all_kinds(kind):
    values, expected = KINDS[kind]
    encoder = StreamEncoder()
    found = as_dict(encoder, encoder.fit_transform(pd.DataFrame({"a": values})))
    if expected is None:
        assert np.ptp(list(found.values()), axis=1).any()
        assert all(name.startswith("a:") for name in found) or list(found) == ["a"]
    else:
        assert found == expected


def test_beside_other_transformers():
    X, y = table()
    both = make_column_transformer(
        (StreamEncoder(), ["when", "city", "heat"]), (StandardScaler(), ["wind"]), verbose_feature_names_out=False
    )
    assert make_pipeline(both, RAPRegressor(memory="all")).fit(X, y).score(X, y) > 0.9
    assert {"city = Rome", "wind"} <= set(both.fit(X).get_feature_names_out())


def test_columns_are_chosen_and_notes_are_kept():
    X, _ = table()
    X["id"] = [f"id{i}" for i in range(len(X))]
    X["price"] = [f"{i},5" for i in range(len(X))]
    encoder = StreamEncoder(drop=["when"]).fit(X)
    names = encoder.get_feature_names_out().tolist()
    assert not any(name.startswith(("when", "id")) for name in names)
    assert any("column 'id' is left out" in note for note in encoder.notes_)
    assert any("'0,5' is read as 0.5" in note or "is read as" in note for note in encoder.notes_)
    assert StreamEncoder(keep=["heat", "wind"]).fit(X).get_feature_names_out().tolist() == [
        "heat",
        "heat missing",
        "wind",
    ]
    assert clone(encoder).get_params() == {"keep": None, "drop": ["when"], "time": None}


# --- refusals ---------------------------------------------------------------------------------------------------------

REFUSED = [
    (StreamEncoder(keep="a"), pd.DataFrame({"a": [1]}), ["keep='a' is not a list: use ['a']"]),
    (StreamEncoder(keep=["Hea"]), pd.DataFrame({"heat": [1], "b": [1]}), ["keep: 'Hea'", "did you mean 'heat'?"]),
    (StreamEncoder(time="t"), pd.DataFrame({"a": [1], "b": [1]}), ["time: 't' is not a column"]),
    (StreamEncoder(drop=["a"]), pd.DataFrame({"a": [1]}), ["no column of X gives a feature"]),
    (StreamEncoder(), pd.DataFrame({"a": [None, None]}), ["no column of X gives a feature"]),
    (StreamEncoder(), pd.DataFrame({"a": []}), ["at least one row"]),
    (StreamEncoder(), pd.DataFrame([[1, 2]], columns=["a", "a"]), ["column"]),
    (StreamEncoder(), csr_array(np.eye(2)), ["sparse"]),
    (StreamEncoder(), [1, 2], ["Expected 2D array"]),
]


@pytest.mark.parametrize(("encoder", "X", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_encoded_is_refused(encoder, X, words):
    with pytest.raises((ValueError, TypeError)) as error:
        encoder.fit(X)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert not [name for name in vars(encoder) if name.endswith("_")]


def test_a_cell_that_does_not_belong_is_refused_and_nothing_changes():
    X, _ = table()
    encoder = StreamEncoder().fit(X)
    before = known(encoder)
    bad = X.astype({"heat": object})
    bad.loc[3, "heat"] = "warm"
    for refuse in (encoder.partial_fit, encoder.transform):
        with pytest.raises(ValueError, match="column 'heat' holds 'warm', where the first rows had numbers"):
            refuse(bad)
    with pytest.raises(ValueError, match="feature names"):
        encoder.partial_fit(X[["city", "heat"]])
    assert known(encoder) == before


def test_before_the_first_row():
    for ask in (
        lambda e: e.transform([[1]]),
        lambda e: e.get_feature_names_out(),
        lambda e: e.save("x"),
        lambda e: e.notes_,
    ):
        with pytest.raises(NotFittedError):
            ask(StreamEncoder())


# --- checkpoints ------------------------------------------------------------------------------------------------------


def test_a_saved_encoder_continues_where_it_was(tmp_path):
    X, _ = table()
    path = tmp_path / "encoder.json"
    encoder = StreamEncoder(drop=["wind"]).fit(X[:150])
    encoder.save(path)
    for again in (StreamEncoder.load(path), pickle.loads(pickle.dumps(encoder))):
        assert again.get_params() == encoder.get_params()
        np.testing.assert_array_equal(again.transform(X[150:]), encoder.transform(X[150:]))
        again.partial_fit(X[150:])
    encoder.partial_fit(X[150:])
    np.testing.assert_array_equal(again.transform(X), encoder.transform(X))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "else"}', "\x00"])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "encoder.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"was not written by StreamEncoder\.save"):
        StreamEncoder.load(path)


def test_an_altered_file_is_refused(tmp_path):
    path = tmp_path / "encoder.json"
    StreamEncoder().fit(table()[0]).save(path)
    record = json.loads(path.read_text())
    del record["encoder"]["features"]
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="or was altered"):
        StreamEncoder.load(path)
