"""The twelve streams: features hold what is known before the response; the script writes the leaderboard."""

import doctest
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streams
from streams import AUTOREGRESSIVE, TASKS, load_task
from support import made_up_streams as fake

#: Rows and features of the real tasks.
SHAPES = {
    "elec2": (5000, 60),
    "usenet1": (1500, 99),
    "ozone8h": (2534, 72),
    "senate_101_109": (5000, 198),
    "bike_sharing": (5000, 58),
    "flu_counts": (415, 140),
    "air_quality": (5000, 32),
    "frm_returns": (2923, 99),
    "yeast_cellcycle": (5000, 106),
    "exchange_rate": (5000, 40),
    "hcp_rest": (1200, 93),
    "nyu_rest": (197, 89),
}


def loaded(name, files, lagged=False):
    with TemporaryDirectory() as folder:
        return load_task(name, fake.write_stream(Path(folder), name, files), lagged=lagged)


def other(values):
    """Different responses of the same kind."""
    if values.dtype.kind == "U":
        return np.where(values == "UP", "DOWN", "UP")
    if set(np.unique(values)) <= {-1, 0, 1} and -1 in values:
        return -values
    return 1 - values if set(np.unique(values)) <= {0, 1} else values * 1.5 + 1


@pytest.mark.parametrize("lagged", [False, True])
@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=5)
@given(k=st.integers(8, fake.N_ROWS - 1), seed=st.integers(0, 100))
def test_features_know_nothing_of_their_own_response_nor_of_later_ones(name, lagged, k, seed):
    files = fake.made_up(name, np.random.default_rng(seed))
    before = loaded(name, files, lagged)
    file, column = fake.RESPONSES[name]
    files[file][column] = np.concatenate([files[file][column][:k], other(files[file][column])[k:]])
    after = loaded(name, files, lagged)
    changed = np.flatnonzero(before.y != after.y)
    known = changed[0] + 1 if len(changed) else len(before.y)
    np.testing.assert_array_equal(before.X[:known], after.X[:known])


@pytest.mark.parametrize("lagged", [False, True])
@pytest.mark.parametrize("name", [name for name in TASKS if name != "yeast_cellcycle"])
@settings(max_examples=5)
@given(k=st.integers(8, fake.N_ROWS - 1), seed=st.integers(0, 100))
def test_shuffling_the_future_leaves_the_past_alone(name, lagged, k, seed):
    """In the yeast files, time does not run down the rows."""
    rng = np.random.default_rng(seed)
    files = fake.made_up(name, rng)
    order = np.concatenate([np.arange(k), k + rng.permutation(fake.N_ROWS - k)])
    shuffled = {file: {c: v[order] for c, v in columns.items()} for file, columns in files.items()}
    past = {file: {c: v[:k] for c, v in columns.items()} for file, columns in files.items()}
    one, two, n_past = loaded(name, files, lagged), loaded(name, shuffled, lagged), len(loaded(name, past, lagged).y)
    np.testing.assert_array_equal(one.X[:n_past], two.X[:n_past])
    np.testing.assert_array_equal(one.y[:n_past], two.y[:n_past])


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_whole(name, fake_data):
    task = load_task(name, fake_data, rows=20)
    assert task.X.shape == (20, len(task.names)) and len(set(task.names)) == len(task.names)
    assert np.isfinite(task.X).all() and np.isfinite(task.y).all()
    assert task.family != "binomial" or set(task.y) <= {0, 1}
    assert task.family != "poisson" or (task.y >= 0).all()


@pytest.mark.parametrize("name", TASKS)
def test_lagged_adds_the_previous_response_where_it_is_not_there(name, fake_data):
    plain, lagged = load_task(name, fake_data), load_task(name, fake_data, lagged=True)
    np.testing.assert_array_equal(plain.y, lagged.y)
    before = plain.y[:-1] if plain.family != "poisson" else np.log1p(plain.y[:-1])
    if name in AUTOREGRESSIVE:
        assert lagged.name == name and lagged.X.shape == plain.X.shape
        assert any(np.allclose(column[1:], before) for column in plain.X.T)
    else:
        assert lagged.name == f"{name} lagged"
        np.testing.assert_array_equal(lagged.X[:, :-1], plain.X)
        np.testing.assert_array_equal(lagged.X[:, -1], [0, *before])


def test_missing_values_are_the_last_ones_seen():
    files = fake.made_up("ozone8h", np.random.default_rng(0))
    files["ozone8h.csv.gz"]["T0"][:5] = [np.nan, 2, np.nan, np.nan, 7]
    np.testing.assert_array_equal(loaded("ozone8h", files).X[:5, 0], [0, 2, 2, 2, 7])


def test_exchange_rates_are_regressed_on_the_five_last_moves(fake_data):
    files = fake.made_up("exchange_rate", np.random.default_rng(3))
    rates = np.column_stack(list(files["exchange_rate.csv.gz"].values()))
    task = loaded("exchange_rate", files)
    t = 11
    moves = [np.log(rates[t + 5 - lag + 1] / rates[t + 5 - lag]) for lag in range(1, 6)]
    np.testing.assert_allclose(task.X[t], np.concatenate(moves), atol=1e-12)
    np.testing.assert_allclose(task.y[t], np.log(rates[t + 6, 0] / rates[t + 5, 0]), atol=1e-12)


def test_unknown_task_missing_file_and_no_rows_are_refused_in_one_line(tmp_path, fake_data):
    for refused, words in (
        (lambda: load_task("elec3", fake_data), "the tasks are"),
        (lambda: load_task("elec2", tmp_path), "--data"),
        (lambda: load_task("elec2", fake_data, rows=0), "at least one row"),
    ):
        with pytest.raises(ValueError, match=words) as error:
            refused()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", TASKS)
def test_real_tasks_have_the_shapes_they_should(name, shared_data):
    task = load_task(name, shared_data)
    assert task.X.shape == SHAPES[name]
    assert np.isfinite(task.X).all() and np.isfinite(task.y).all()


def test_the_script_writes_the_leaderboard_and_prints_the_summary(fake_data, tmp_path, capsys):
    arguments = ["--tasks", "nyu_rest", "usenet1", "--methods", "running-mean", "persistence", "--rows", "60"]
    streams.main(["--data", str(fake_data), "--out", str(tmp_path), *arguments])
    assert capsys.readouterr().out == (tmp_path / "summary.md").read_text() + "\n"
    names = {"leaderboard.csv", "summary.md", "leaderboard.png", "leaderboard.svg"}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("option", ["--tasks", "--methods", "--redo"])
def test_the_script_refuses_unknown_names(option, fake_data, tmp_path, capsys):
    with pytest.raises(SystemExit):
        streams.main(["--data", str(fake_data), "--out", str(tmp_path / "out"), option, "elec3"])
    assert "elec3" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_examples_are_true():
    assert doctest.testmod(streams).failed == 0
