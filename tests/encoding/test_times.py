"""The calendar features follow the spacing of the dates, and times that are spread over columns join."""

import datetime
import json

import numpy as np
import pyarrow
import pytest

from streamlasso.data.encoding import Encoder, detect_encoder
from streamlasso.data.encoding.times.spacing import is_in_order, season_of

N = 60
Y = np.random.default_rng(0).normal(size=N)


def encoder_of(lags=None, **columns):
    rows = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(values) for name, values in columns.items()})
    return rows, detect_encoder(rows, "y", lags=lags)


def features_of(rows, encoder):
    return dict(zip(encoder.features, encoder.encode(encoder.read(rows)).X.T, strict=True))


def every(step, n=N, start="2020-01-01"):
    return np.datetime64(start, "s") + np.arange(n) * np.timedelta64(step, "s")


HOUR, DAY = 3600, 86_400
MONTHS = [f"{2000 + i // 12}-{i % 12 + 1:02d}-01" for i in range(N)]


# --- which features ---------------------------------------------------------------------------------------------------


def test_years_have_a_trend_and_no_weekday():
    """`Year: Tue` ranked sixth."""
    rows, encoder = encoder_of(year=range(1950, 1950 + N), y=Y)
    assert encoder.features == ["year: trend"]
    np.testing.assert_allclose(features_of(rows, encoder)["year: trend"], np.arange(N), atol=0.01)
    assert encoder.time == "year"


def test_months_have_a_season_and_a_trend():
    _, encoder = encoder_of(month=MONTHS, y=Y)
    assert encoder.features == ["month: season sin", "month: season cos", "month: trend"]


@pytest.mark.parametrize(
    ("written", "season"),
    [
        ([f"{1974 + i // 4}Q{i % 4 + 1}" for i in range(N)], 4),
        ([f"{1974 + i // 4}-Q{i % 4 + 1}" for i in range(N)], 4),
        ([f"{2001 + i // 52}-W{i % 52 + 1:02d}" for i in range(N)], 52),
        ([datetime.date(2000 + i // 12, i % 12 + 1, 1).strftime("%b-%d-%Y") for i in range(N)], 12),
        ([datetime.date(2000 + i // 12, i % 12 + 1, 1).strftime("%b %Y") for i in range(N)], 12),
        ([f"{i % 12 + 1:02d}/{2000 + i // 12}" for i in range(N)], 12),
    ],
)
def test_quarters_weeks_and_months_as_they_are_written(written, season):
    _, encoder = encoder_of(when=written, y=Y)
    assert encoder.season == season
    assert encoder.features == ["when: season sin", "when: season cos", "when: trend"]


def test_ordinal_days_are_days():
    first = datetime.date(2017, 3, 5)
    rows, encoder = encoder_of(ordinal_date=[first.toordinal() + i for i in range(N)], y=Y)
    sundays = [(first + datetime.timedelta(days=i)).weekday() == 6 for i in range(N)]
    np.testing.assert_array_equal(features_of(rows, encoder)["ordinal_date: Sun"], sundays)


def test_elapsed_days_where_rows_come_irregularly(tmp_path):
    gaps = np.random.default_rng(1).integers(1, 20, size=N) * DAY
    moments = np.datetime64("2020-01-01", "s") + np.cumsum(gaps)
    rows, encoder = encoder_of(when=moments, y=Y)
    cells = encoder.read(rows)
    first = encoder.encode(cells.part(slice(0, 25)))
    encoder = Encoder.from_state(json.loads(json.dumps(encoder.state())))
    rest = encoder.encode(cells.part(slice(25, N)))
    found = np.vstack([first.X, rest.X])[:, encoder.features.index("when: elapsed")]
    np.testing.assert_allclose(found, [0, *gaps[1:] / DAY])
    assert "when: elapsed" not in encoder_of(when=every(DAY), y=Y)[1].features


# --- seasons and lags -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moments", "season"),
    [
        (every(HOUR), 24),
        (every(HOUR // 2), 48),
        (every(DAY), 7),
        (np.array([day for day in every(DAY, 90) if day.astype(object).weekday() < 5]), 5),
        (every(7 * DAY), 52),
        (np.array(MONTHS, "datetime64[s]"), 12),
        (every(365 * DAY), None),
        (np.concatenate([every(HOUR, 30), every(HOUR, 30)]), None),
        (np.repeat(every(DAY, 30), 2), None),
    ],
)
def test_the_season_follows_the_spacing(moments, season):
    assert season_of(moments) == season


def test_clocks_that_are_set_back_are_still_in_order():
    moments = every(HOUR, 300)
    moments[150:] -= np.timedelta64(HOUR, "s")
    assert is_in_order(moments)
    moments[200:] -= np.timedelta64(5 * DAY, "s")
    assert not is_in_order(moments)


def test_lags_are_features_only_where_the_rows_are_in_the_order_of_time():
    _, ordered = encoder_of("auto", month=MONTHS, x=Y[::-1], y=Y)
    assert ordered.lags.steps == {"y": [1, 12]}
    _, shuffled = encoder_of("auto", month=MONTHS[::2] + MONTHS[1::2], x=Y[::-1], y=Y)
    assert shuffled.lags.steps == {}
    _, undated = encoder_of("auto", x=Y[::-1], y=Y)
    assert undated.lags.steps == {}
    _, alone = encoder_of("auto", y=Y)
    assert alone.lags.steps == {"y": [1]}, "there is nothing else to learn from"


# --- several columns --------------------------------------------------------------------------------------------------


def test_a_date_and_a_clock_join():
    moments = every(HOUR).astype(object)
    rows, encoder = encoder_of(
        Date=[moment.strftime("%d/%m/%Y") for moment in moments],
        Time=[moment.strftime("%H.%M.%S") for moment in moments],
        y=Y,
    )
    assert (encoder.time, encoder.season) == ("Date + Time", 24)
    whole, expected = encoder_of(moment=every(HOUR), y=Y)
    found = features_of(rows, encoder)
    for name, column in features_of(whole, expected).items():
        np.testing.assert_allclose(found[name.replace("moment", "Date + Time")], column, atol=1e-12)
    assert encoder.encode(encoder.read(rows)).time.tolist() == list(moments)


@pytest.mark.parametrize(
    ("columns", "season"),
    [
        ({"year": [1959 + i // 4 for i in range(N)], "quarter": [i % 4 + 1 for i in range(N)]}, 4),
        ({"Year": [1959.0 + i // 12 for i in range(N)], "Month": [i % 12 + 1.0 for i in range(N)]}, 12),
        ({"year": [2001 + i // 52 for i in range(N)], "week": [i % 52 + 1 for i in range(N)]}, 52),
        ({"dteday": [f"2011-01-0{i // 24 + 1}" for i in range(N)], "hr": [i % 24 for i in range(N)]}, 24),
    ],
)
def test_numbers_that_are_parts_of_a_date_join_and_stay_features(columns, season):
    rows, encoder = encoder_of(**columns, y=Y)
    assert encoder.time == " + ".join(columns)
    assert encoder.season == season
    assert list(columns)[1] in encoder.features
    again = Encoder.from_state(json.loads(json.dumps(encoder.state())))
    np.testing.assert_array_equal(again.encode(again.read(rows)).X, encoder.encode(encoder.read(rows)).X)


def test_columns_that_run_back_do_not_join():
    months = np.random.default_rng(0).integers(1, 13, size=N)
    _, encoder = encoder_of(year=[2000 + i % 7 for i in range(N)], month=months, y=Y)
    assert encoder.joined is None
    assert encoder.time is None


def test_a_cell_that_is_no_clock_is_a_bad_row():
    _, encoder = encoder_of(day=["2024-01-01", "2024-01-02"], at=["10:00", "11:00"], y=[0.5, 1.5])
    later = pyarrow.RecordBatch.from_pydict({"day": ["2024-01-03"], "at": ["noon"], "y": [2.5]})
    with pytest.raises(ValueError, match="column 'day \\+ at' holds '2024-01-03 noon'"):
        encoder.encode(encoder.read(later))
