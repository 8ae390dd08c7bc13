"""The encoder for river: its checks, the features of the scikit-learn one, rows that come one by one."""

import datetime
import pickle

import numpy as np
import pandas as pd
import pytest
from river import checks, evaluate, linear_model, metrics, preprocessing

from streamlasso.data.encoding import StreamEncoder as TableEncoder
from streamlasso.data.encoding.row_encoder import FIRST
from streamlasso.river import RAPRegressor, StreamEncoder


def rows(n=300, seed=0):
    """Rows of a shop: a date, a city, a temperature that is sometimes missing; and what it sells."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        when = datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=i)
        city, heat = str(rng.choice(["Rome", "Oslo", "Lima"])), float(rng.normal(20, 5))
        y = {"Rome": 9.0, "Oslo": -3.0, "Lima": 0.0}[city] + 0.2 * heat + float(np.sin(when.hour / 24 * 2 * np.pi))
        out.append(({"when": when, "city": city, "heat": None if rng.random() < 0.1 else heat}, y))
    return out


@pytest.mark.parametrize("check", list(checks.yield_checks(StreamEncoder())), ids=lambda check: check.__name__)
def test_rivers_checks_pass(check):
    check(StreamEncoder())


def test_rows_are_encoded_as_the_rows_of_a_table():
    xs = [x for x, _ in rows()]
    whole = TableEncoder().fit(pd.DataFrame(xs[:FIRST])).set_output(transform="pandas")
    expected = whole.transform(pd.DataFrame(xs[FIRST:])).to_dict("records")
    encoder = StreamEncoder()
    for x in xs[:FIRST]:
        encoder.learn_one(x)
    for x, row in zip(xs[FIRST:], expected, strict=True):
        assert encoder.transform_one(x) == pytest.approx(row)
        encoder.learn_one(x)
        assert encoder.transform_one(x) == pytest.approx(row)


def test_a_pipeline_learns_from_text_and_dates():
    model = StreamEncoder() | RAPRegressor()
    with_encoder = evaluate.progressive_val_score(rows(600), model, metrics.MAE()).get()
    numbers = [({"heat": x["heat"] or 0.0}, y) for x, y in rows(600)]
    without = evaluate.progressive_val_score(numbers, RAPRegressor(), metrics.MAE()).get()
    assert with_encoder < 0.2 * without
    assert {"city = Rome", "heat", "heat missing"} <= set(model["RAPRegressor"].coef_)


def test_models_of_river_take_the_features():
    model = StreamEncoder() | preprocessing.StandardScaler() | linear_model.LinearRegression()
    assert np.isfinite(evaluate.progressive_val_score(rows(), model, metrics.MAE()).get())


def test_what_is_transformed_is_not_kept():
    encoder = StreamEncoder()
    for x, _ in rows(50):
        encoder.learn_one(x)
    new = {"when": datetime.datetime(2024, 2, 1), "city": "Bern", "heat": None, "wind": 3.0}
    first = encoder.transform_one(new)
    assert encoder.transform_one(dict(new)) == first
    assert "wind" not in first
    assert not any(value for name, value in first.items() if name.startswith("city ="))
    encoder.learn_one(new)
    then = encoder.transform_one(new)
    assert (then["wind"], then["city = Bern"], then["heat missing"]) == (3.0, 1.0, 1.0)


def test_a_row_that_was_changed_is_another_row():
    encoder = StreamEncoder()
    row = {"a": 1.0}
    encoder.learn_one(row)
    row["a"] = 2.0
    assert encoder.transform_one(row) == {"a": 2.0}


def test_text_stays_text():
    encoder = StreamEncoder()
    for code in ("5", "A7", "2024-01-01"):
        encoder.learn_one({"code": code})
        assert encoder.transform_one({"code": code})[f"code = {code}"] == 1.0


def test_text_among_numbers_is_refused_and_nothing_changes():
    encoder = StreamEncoder()
    for i in range(200):
        encoder.learn_one({"a": float(i)})
    before = encoder.transform_one({})
    for refuse in (encoder.transform_one, encoder.learn_one):
        with pytest.raises(ValueError, match="column 'a' holds 'word', where the first rows had numbers"):
            refuse({"a": "word"})
    assert encoder.transform_one({}) == before


def test_a_column_that_soon_holds_text_is_text():
    """Detected again after 2, 4, ... rows, numbers and words are text."""
    encoder = StreamEncoder()
    encoder.learn_one({"a": 1.0})
    encoder.learn_one({"a": "word"})
    assert encoder.transform_one({"a": "word"})["a = word"] == 1.0


def test_nothing_is_known_before_the_first_value():
    encoder = StreamEncoder()
    assert encoder.transform_one({"a": 1.0}) == {}
    encoder.learn_one({})
    encoder.learn_one({"a": None})
    assert encoder.transform_one({"a": 1.0}) == {}
    for _ in range(2):
        encoder.learn_one({"a": 3.0})
    assert encoder.transform_one({"a": None}) == {"a": 3.0, "a missing": 1.0}


def test_names_that_differ_in_every_row_are_left_out_and_stay_out():
    encoder = StreamEncoder()
    for i in range(FIRST + 20):
        encoder.learn_one({"id": f"id{i}", "a": i})
    assert encoder.transform_one({"id": "id3", "a": 1}) == {"a": 1.0}


def test_an_encoder_that_was_pickled_continues():
    xs = [x for x, _ in rows(200)]
    encoder = StreamEncoder()
    for x in xs[:150]:
        encoder.learn_one(x)
    again = pickle.loads(pickle.dumps(encoder))
    for x in xs[150:]:
        assert again.transform_one(x) == encoder.transform_one(x)
        again.learn_one(x)
        encoder.learn_one(x)
