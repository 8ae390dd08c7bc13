"""The weights of the default over time: the table against the model and the peers, the figure from the table."""

import doctest

import numpy as np
import pytest
from pyarrow import parquet

import anatomy
from anatomy import AGES, NEVER, draw, memory_columns, power_columns, weights_table
from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.bench.losses import half_deviance
from streamlasso.bench.prequential import RunningMean, predict_then_learn
from streamlasso.bench.task import Task
from streamlasso.families import Binomial, Gaussian, Poisson
from streams import load_task

FAMILIES = {"gaussian": Gaussian(), "binomial": Binomial(), "poisson": Poisson()}


def flipped(family, n_rows=240, seed=0):
    """The sign of the only coefficient changes half-way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    sign = np.where(np.arange(n_rows) < n_rows // 2, 1.0, -1.0)
    return Task("flipped", family, X, FAMILIES[family].sample(rng, 1.5 * sign * X[:, 0]), list("abcd"))


@pytest.fixture(scope="module", params=FAMILIES)
def tabled(request):
    task = flipped(request.param)
    table = weights_table(task)
    return task, {name: table[name].to_numpy() for name in table.column_names}


def test_weights_of_memories_and_of_penalties_sum_to_one(tabled):
    _, table = tabled
    for names in (memory_columns(), power_columns()):
        weights = np.array([table[name] for name in names])
        assert np.all(weights >= 0)
        np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-9)


def test_rows_one_at_a_time_are_the_same_run_as_all_at_once(tabled):
    task, table = tabled
    model = RAPClassifier() if task.family == "binomial" else RAPRegressor(family=task.family)
    trace = progressive(model, task.X, task.y)
    for name in ("lam", "lam_max", "effective_size"):
        np.testing.assert_allclose(table[name], trace[name], rtol=1e-9)


def test_the_running_mean_is_that_of_the_leaderboard(tabled):
    task, table = tabled
    means, _ = predict_then_learn(RunningMean(task.family), task.X, task.y)
    inside = slice(20, None)
    expected = half_deviance(task.family, task.y, means)
    np.testing.assert_allclose(table["loss of the running mean"][inside], expected[inside])
    so_far = table["loss"][50:].sum() / table["loss of the running mean"][50:].sum()
    assert table["relative"][-1] == pytest.approx(so_far)
    assert np.isnan(table["relative"][:50]).all()


def test_after_the_change_memories_that_began_after_it_take_over(tabled):
    task, table = tabled
    restarted = sum(table[name] for name in AGES)
    if task.family != "binomial":  # 120 classes hold too little information
        assert restarted[-20:].mean() > 0.5 > table[NEVER][-20:].mean()
    assert table["effective_size"][-1] < 0.75 * len(task.y)


def test_the_figure_draws_the_table_and_nothing_else(tabled):
    task, _ = tabled
    table = weights_table(task)
    figure = draw(table, changes=[120])
    memories, penalty, loss = figure.axes
    assert len(memories.collections) == len(memory_columns())
    assert memories.get_ylim() == (0, 1)
    share = table["lam"].to_numpy()[1:] / table["lam_max"].to_numpy()[1:]
    assert penalty.lines[0].get_ydata()[1:] == pytest.approx(share, rel=1e-9)
    named = [text.get_text().split(",")[0].split("\n")[0] for text in loss.get_legend().get_texts()]
    assert named == ["running mean", "persistence", "LogRMS", "default"]


def test_too_few_rows_to_draw_are_refused():
    with pytest.raises(ValueError, match="50 rows are too few for a figure"):
        draw(weights_table(flipped("gaussian", n_rows=50)))


def test_the_command_writes_tables_figures_and_a_summary(fake_data, tmp_path, capsys):
    anatomy.main(["--data", str(fake_data), "--out", str(tmp_path), "--streams", "usenet1", "exchange_rate"])
    names = {path.name for path in tmp_path.iterdir()}
    tables = {"usenet1.parquet", "usenet1_lagged.parquet", "exchange_rate.parquet"}
    assert names == tables | {"usenet1.png", "exchange_rate.png", "summary.md"}
    lines = capsys.readouterr().out.splitlines()
    assert lines == (tmp_path / "summary.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| usenet1", "| usenet1 lagged", "| exchange rate"]
    table = parquet.read_table(tmp_path / "usenet1.parquet")
    assert len(table) == len(load_task("usenet1", fake_data).y)


def test_a_stretch_beyond_the_table_draws_all_of_it():
    figure = draw(weights_table(flipped("gaussian", n_rows=80)), stretch=(2000, 3000))
    assert figure.axes[-1].get_xlim() == (0, 80)


def test_examples_are_true():
    assert doctest.testmod(anatomy).failed == 0
