"""The table is right and grows line by line, and an interrupted run continues to the same table."""

import importlib.util
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from scipy import stats

from streamlasso.bench import leaderboard
from streamlasso.bench.entries import Entry
from streamlasso.bench.figures import draw_streams
from streamlasso.bench.leaderboard import installed, run_leaderboard, score
from streamlasso.bench.losses import BURN_IN
from streamlasso.bench.results import COLUMNS, SCHEMA, ResultsFile
from streamlasso.bench.summary import above_ours, standing, summary
from streamlasso.bench.task import Task
from streams import load_task, losses_by_stream, write_leaderboard

TASKS = ("nyu_rest", "usenet1")
#: These need nothing but what streamlasso needs.
METHODS = ("running-mean", "persistence", "refit", "streamlasso")
QUICK = dict(methods=METHODS[:2], progress=False)


def without_times(table):
    return sorted(map(str, table.drop_columns(["microseconds"]).to_pylist()))


@pytest.fixture(scope="module")
def tasks(fake_data):
    return [load_task(name, fake_data) for name in TASKS]


@pytest.fixture(scope="module")
def whole(tasks, tmp_path_factory):
    """The table of all methods on two tasks, and its directory."""
    out = tmp_path_factory.mktemp("whole")
    table = run_leaderboard(tasks, out, methods=METHODS, progress=False)
    write_leaderboard(table, out)
    return table, out


def test_the_running_mean_loses_exactly_what_it_loses(whole):
    lines = [line for line in whole[0].to_pylist() if line["method"] == "running-mean"]
    assert len(lines) == len(TASKS)
    assert all(line["relative"] == 1.0 for line in lines)


def test_each_line_says_what_was_done(whole):
    lines = whole[0].to_pylist()
    assert {line["method"] for line in lines} == set(METHODS)
    assert all(line["status"] == "ok" and line["rows"] == 60 and line["scored"] == 60 - BURN_IN for line in lines)
    assert all(line["microseconds"] > 0 and np.isfinite(line["loss"]) for line in lines)


@pytest.mark.parametrize("stop_after", [0, 1, 3])
def test_a_run_that_was_stopped_goes_on_to_the_same_table(stop_after, tasks, tmp_path, monkeypatch):
    expected = run_leaderboard(tasks, tmp_path / "expected", **QUICK)
    score_as_it_is, scored = leaderboard.score, []

    def interrupted(entry, *rest):
        if len(scored) == stop_after:
            raise KeyboardInterrupt
        scored.append((entry.method, entry.setting))
        return score_as_it_is(entry, *rest)

    monkeypatch.setattr(leaderboard, "score", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_leaderboard(tasks, tmp_path / "out", **QUICK)
    assert len(ResultsFile(tmp_path / "out" / "leaderboard.csv").results) == stop_after
    stop_after = None
    table = run_leaderboard(tasks, tmp_path / "out", **QUICK)
    assert without_times(table) == without_times(expected)
    assert len(scored) == table.num_rows


def test_a_line_that_was_cut_short_is_run_again(tasks, tmp_path):
    expected = run_leaderboard(tasks, tmp_path, **QUICK)
    file = tmp_path / "leaderboard.csv"
    file.write_bytes(file.read_bytes()[:-9])
    assert without_times(run_leaderboard(tasks, tmp_path, **QUICK)) == without_times(expected)


def test_what_is_there_is_not_run_again(tasks, tmp_path, monkeypatch):
    run_leaderboard(tasks, tmp_path, **QUICK)
    score_as_it_is, scored = leaderboard.score, []

    def noted(entry, *rest):
        scored.append(entry.method)
        return score_as_it_is(entry, *rest)

    monkeypatch.setattr(leaderboard, "score", noted)
    run_leaderboard(tasks, tmp_path, **QUICK)
    assert scored == []


def test_processes_make_the_same_table(tasks, tmp_path):
    one = run_leaderboard(tasks, tmp_path / "one", **QUICK)
    two = run_leaderboard(tasks, tmp_path / "two", jobs=2, **QUICK)
    assert without_times(one) == without_times(two)


def test_other_rows_do_not_go_into_the_same_table(tasks, tmp_path):
    run_leaderboard(tasks, tmp_path, **QUICK)
    with pytest.raises(ValueError, match=r"\(60 rows x \d+ features, now 55 x \d+\): name another directory"):
        run_leaderboard([replace(task, X=task.X[:55], y=task.y[:55]) for task in tasks], tmp_path, **QUICK)


def test_other_values_do_not_go_into_the_same_table(tasks, tmp_path):
    run_leaderboard(tasks, tmp_path, **QUICK)
    with pytest.raises(ValueError, match="on other data"):
        run_leaderboard([tasks[0], replace(tasks[1], X=tasks[1].X + 1)], tmp_path, **QUICK)


def test_another_table_is_not_overwritten(tasks, tmp_path):
    (tmp_path / "leaderboard.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not a leaderboard"):
        run_leaderboard(tasks, tmp_path, **QUICK)
    assert (tmp_path / "leaderboard.csv").read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(methods=["vw"]), "vw: unknown; the methods are running-mean, "),
        (dict(jobs=0), "at least one process"),
    ],
)
def test_unknown_names_are_refused_before_anything_is_written(options, words, tasks, tmp_path):
    with pytest.raises(ValueError, match=words):
        run_leaderboard(tasks, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_left_out_or_if_named_an_error(tasks, tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "river" else find(name))
    with pytest.raises(ImportError, match=r'river needs river: pip install "streamlasso\[bench\]"'):
        run_leaderboard(tasks, tmp_path, methods=["river"], progress=False)
    assert installed(["persistence", "river"], named=False) == ["persistence"]
    assert capsys.readouterr().err == 'left out: river needs river: pip install "streamlasso[bench]"\n'


# --- trouble ----------------------------------------------------------------------------------------------------------


def noise(n=80):
    rng = np.random.default_rng(0)
    return Task("noise", "gaussian", rng.normal(size=(n, 2)), rng.normal(size=n), ["a", "b"])


def overflow(task, limit):
    raise OverflowError("math range error\nat some place")


def test_a_peer_that_fails_is_a_line_of_its_own():
    result = score(Entry("peer", "default", "streamlasso", overflow), noise())
    assert result.status == "failed: OverflowError: math range error at some place"
    assert np.isnan(result.relative) and result.scored == 0


def test_a_peer_that_predicts_no_number_has_failed():
    task = noise()
    means = np.where(np.arange(80) < 60, 0.0, np.nan)
    result = score(Entry("peer", "default", "streamlasso", lambda *_: (means, 1.0)), task)
    assert result.status == "failed: no number predicted for row 60" and np.isnan(result.loss)


def test_too_slow_is_a_status_and_scored_on_the_rows_so_far(tasks, tmp_path):
    table = run_leaderboard(tasks, tmp_path, limit=-1, **QUICK)
    assert set(table["status"].to_pylist()) == {"too slow"}
    assert set(table["scored"].to_pylist()) == {0}


# --- standings --------------------------------------------------------------------------------------------------------


def line(method, setting, relative, status="ok", task="elec2"):
    blocks = " ".join(f"{relative * unit:g}" for unit in (0.5, 1, 1.5, 1))
    values = (task, "binomial", 99, 8, method, setting, relative, relative, 90.0, 49, status, "1.0", "0", blocks)
    return dict(zip(COLUMNS, values, strict=True))


LINES = [
    line("running-mean", "default", 1.0),
    line("river", "default", float("nan"), "failed: OverflowError: math range error"),
    line("river", "lr=0.1 l1=0", 0.8),
    line("river", "lr=0.3 l1=0", 0.7),
    line("ondil", "default: forget=0", 0.01, "too slow"),
    line("refit", "default: last 1000 rows", 0.75),
    line("streamlasso", "default", 0.5),
    line("streamlasso", "Mixture()", 0.35),
]


def table_of(lines):
    return pyarrow.Table.from_pylist(lines, SCHEMA)


def test_standings_are_default_and_best_of_those_that_got_through():
    text = losses_by_stream(table_of(LINES))
    assert "| river | fails / 0.700, +40 ± 8 |" in text
    assert "| ondil | too slow |" in text
    assert "| refit | 0.750, +50 ± 10 |" in text
    assert "| streamlasso | 0.500 / 0.350, -30 ± 6 |" in text
    assert standing(LINES, "elec2", "sklearn-sgd").trouble == "-"


def test_the_summary_names_the_best_peer_and_how_far_we_are_from_it():
    text = summary(table_of(LINES))
    assert (
        "The loss of streamlasso at its default is 29 % below that of the best peer in hindsight, river (lr=0." in text
    )
    assert "| river | fails | - | 0.700 | +40 ± 8 % | lr=0.3 l1=0 | 3 |" in text


def test_the_error_of_a_difference_is_that_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    ours = rng.uniform(1, 2, 20)
    other = ours + rng.normal(0.1, 0.2, 20)
    rows = [{"loss": each.mean(), "blocks": " ".join(f"{block:.9g}" for block in each)} for each in (ours, other)]
    share, error = above_ours(*rows)
    expected = stats.ttest_rel(other, ours)
    assert share / error == pytest.approx(expected.statistic)


def test_blocks_are_means_of_the_losses_of_their_rows():
    rng = np.random.default_rng(0)
    n = 450
    task = Task("counts", "poisson", rng.normal(size=(n, 2)), rng.poisson(3, n).astype(float), ["a", "b"])
    means = rng.uniform(1, 6, n)
    result = vars(score(Entry("peer", "default", "streamlasso", lambda *_: (means, 1.0)), task))
    loss = np.array([2 * (y * np.log(y / m) if y else 0.0) - 2 * (y - m) for y, m in zip(task.y, means, strict=True)])
    blocks = [float(block) for block in result["blocks"].split()]
    np.testing.assert_allclose(blocks, loss[50:].reshape(20, 20).mean(axis=1), rtol=1e-6)


def test_defaults_only_leaves_the_grids_out(tasks, tmp_path):
    table = run_leaderboard(tasks, tmp_path, methods=["refit", "streamlasso"], defaults_only=True, progress=False)
    assert table["setting"].to_pylist() == ["default: last 1000 rows", "default"] * 2


def test_files_are_written_and_the_figure_comes_from_the_table(whole):
    table, out = whole
    assert {file.name for file in out.iterdir()} == {
        "leaderboard.csv",
        "summary.md",
        "leaderboard.png",
        "leaderboard.svg",
    }
    losses = draw_streams(table).axes[::2]
    assert [axes.get_title(loc="left") for axes in losses] == ["nyu_rest", "usenet1"]
    marks = [mark for axes in losses for mark in axes.lines if mark.get_label() == "streamlasso, default"]
    ours = [x for x in table.to_pylist() if x["method"] == "streamlasso" and x["setting"] == "default"]
    assert [mark.get_xdata()[0] for mark in marks] == [min(x["relative"], 2.0) for x in ours]
