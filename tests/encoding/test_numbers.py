"""Rows of numbers, encoded without a table: the same bits and the same state as with one, or nothing at all."""

import json

import numpy as np
import pyarrow
import pytest

from streamlasso.data.encoding import Encoder, Target, encoder_for

NAMES = ["heat", "wind", "flow"]


def table_of(rng, n, labels):
    columns = {name: rng.normal(size=n).round(3) for name in NAMES}
    y = rng.choice(["a", "b", "c"], size=n) if labels else rng.normal(size=n)
    return pyarrow.RecordBatch.from_pydict({**columns, "y": y.tolist()})


def twins(rng, lags, labels):
    """An encoder after some rows, twice."""
    table = table_of(rng, 40, labels)
    encoder = encoder_for(table, Target.guess("y", table["y"], "auto"), lags=lags)
    encoder.encode(encoder.read(table))
    return [Encoder.from_state(json.loads(json.dumps(encoder.state()))) for _ in range(2)]


def values_of(table):
    return {name: table[name].to_numpy(zero_copy_only=False).astype(float) for name in NAMES}


def state(encoder):
    return json.dumps(encoder.state())


@pytest.mark.parametrize("lags", [{}, {"y": [1, 3], "heat": [2]}])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_bits_and_state_are_those_of_a_table(n, labels, lags):
    rng = np.random.default_rng(n)
    plain, fast = twins(rng, lags, labels)
    for _ in range(4):
        table = table_of(rng, n, labels)
        new = table.drop_columns(["y"])
        each = plain.encode_each(plain.read(new, needs_target=False))
        assert fast.encode_numbers_each(values_of(new)).tobytes() == each.tobytes()
        wanted, found = plain.encode(plain.read(table)), fast.encode_numbers(values_of(table), table["y"])
        assert found.X.tobytes() == wanted.X.tobytes() and found.X.shape == wanted.X.shape
        for name in ("width", "target", "place"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name)), name
        assert state(fast) == state(plain)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e200])
def test_what_a_table_refuses_or_fills_is_left_to_it(bad):
    rng = np.random.default_rng(0)
    encoder, _ = twins(rng, {"y": [1]}, False)
    table, before = table_of(rng, 5, False), state(encoder)
    values = values_of(table)
    values["wind"][3] = bad
    assert encoder.encode_numbers(values, table["y"]) is None
    assert encoder.encode_numbers_each(values) is None
    assert encoder.encode_numbers({"heat": values["heat"]}, table["y"]) is None
    assert state(encoder) == before


def test_a_refused_label_is_left_to_the_table():
    rng = np.random.default_rng(0)
    encoder, _ = twins(rng, {}, False)
    table, before = table_of(rng, 3, False), state(encoder)
    assert encoder.encode_numbers(values_of(table), pyarrow.array(["1", "2", "no"])) is None
    assert state(encoder) == before


def test_other_columns_are_left_to_the_table():
    table = pyarrow.RecordBatch.from_pydict({"heat": [1.0, 2.0, 3.0], "city": ["u", "v", "u"], "y": [1.0, 2.0, 3.0]})
    encoder = encoder_for(table, Target.guess("y", table["y"], "auto"), lags={})
    numbers = {"heat": np.ones(3), "city": np.ones(3)}
    assert encoder.encode_numbers(numbers, table["y"]) is None
