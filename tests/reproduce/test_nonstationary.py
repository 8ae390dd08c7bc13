"""The study's draws, scores, summary and continuation; learners are replaced by quick ones where possible."""

import csv
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from streamlasso import RAPRegressor, progressive
from streamlasso.reproduce import nonstationary, parts
from streamlasso.reproduce.comparison import BOTH, LearnerSummary, as_markdown, summaries
from streamlasso.reproduce.learners import (
    ALGORITHM_1,
    ALL_FEATURES,
    APPROXIMATE,
    GROUPS,
    PRINTED,
    RAP,
    STEPWISE,
    WARM_UP,
)
from streamlasso.reproduce.nonstationary import ORDERS, draw, plan, summarise
from streamlasso.reproduce.offline import Run, fixed
from streamlasso.reproduce.parts import claim, run_jobs
from streamlasso.simulate import f_score
from streamlasso.tuners import SGD, LogRMS


def quick(stream):
    yield STEPWISE, "r=0.9", fixed(stream, 0.1, 0.9)
    yield STEPWISE, "r=0.95", fixed(stream, 0.1, 0.95)


def truth(stream):
    yield "noise floor", "", Run(stream.floor, np.zeros(len(stream.y)), stream.beta)


def run_study(n, out, jobs=1, seed=0):
    planned = plan(n, seed)
    claim(out, seed=seed)
    run_jobs([(out, job) for job in planned], jobs, progress=False)
    return summarise(out, planned, n, seed)


@pytest.fixture
def quick_study(monkeypatch, tmp_path):
    """The study with two quick groups, three draws a block, and a count of the streams that were run."""
    ran = []

    def counted(stream):
        ran.append(stream)
        yield from quick(stream)

    monkeypatch.setattr(nonstationary, "GROUPS", {"cross-validation": counted, "truth": truth})
    monkeypatch.setattr(nonstationary, "FAMILIES", ("gaussian",))
    monkeypatch.setattr(parts, "BLOCK", 3)

    def run(n, out="out", **settings):
        return run_study(n, tmp_path / out, **settings)

    run.ran, run.folder = ran, tmp_path
    return run


def test_a_draw_depends_on_seed_and_number_alone():
    one, same = (draw(3, 7, "dense-sparse-dense", "gaussian") for _ in range(2))
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    assert not np.array_equal(one.y[:60], draw(4, 7, "dense-sparse-dense", "gaussian").y[:60])
    assert not np.array_equal(one.y[:60], draw(3, 8, "dense-sparse-dense", "gaussian").y[:60])


@pytest.mark.parametrize(
    ("order", "counts"), [("dense-sparse-dense", (16, 4, 16)), ("sparse-dense-sparse", (4, 16, 4))]
)
def test_orders_are_what_they_are_called(order, counts):
    stream = draw(0, 0, order, "binomial")
    assert tuple(np.count_nonzero(stream.beta[t]) for t in (0, 100, 200)) == counts
    assert set(stream.y) == {0.0, 1.0}


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_every_group_runs_over_the_whole_stream(family):
    stream = draw(0, 0, "dense-sparse-dense", family)
    for name in set(GROUPS) - {"cross-validation"}:
        for learner, _, run in GROUPS[name](stream):
            assert len(run.loss) == len(run.lam) == len(run.coef) == len(stream.y)
            assert np.isfinite(run.loss).all() or learner == ALL_FEATURES


def test_log_rms_is_log_rms_whatever_the_estimators_default():
    stream = draw(0, 0, "dense-sparse-dense", "gaussian")
    runs = {(learner, setting): run for learner, setting, run in GROUPS["log-rms"](stream)}
    trace = progressive(RAPRegressor(tuner=LogRMS(), memory=0.95), stream.X, stream.y)
    np.testing.assert_array_equal(runs["LogRMS, best r", "r=0.95"].loss, trace.loss)
    trace = progressive(RAPRegressor(tuner=LogRMS()), stream.X, stream.y)
    np.testing.assert_array_equal(runs["LogRMS, its default r", "r=0.99"].loss, trace.loss)


def test_the_mixtures_single_model_is_sparser_and_scored_before_the_row():
    stream = draw(0, 0, "sparse-dense-sparse", "gaussian")
    (_, _, mixed), (_, _, single) = GROUPS["mixture"](stream)
    assert np.count_nonzero(single.coef) < np.count_nonzero(mixed.coef)
    shuffled = replace(stream, y=np.concatenate([stream.y[:150], -stream.y[150:]]))
    _, (_, _, other) = GROUPS["mixture"](shuffled)
    np.testing.assert_array_equal(other.coef[:150], single.coef[:150])
    # The row that differs is still predicted by the same model: +y and -y around one eta.
    eta = [y - s * np.sqrt(2 * single.loss[150]) for y in stream.y[150:151] for s in (1, -1)]
    assert min(abs((-stream.y[150] - e) ** 2 / 2 - other.loss[150]) for e in eta) < 1e-9


def test_summary_is_means_and_paired_differences():
    rng = np.random.default_rng(0)
    stepwise, better = rng.normal(5, 1, 30), rng.normal(4, 1, 30)
    rows = [
        dict(family="gaussian", order="o", draw=i, learner=learner, setting=setting, loss=loss, f=0.5)
        for learner, setting, losses in ((STEPWISE, "a", stepwise), (STEPWISE, "b", stepwise + 1), ("new", "", better))
        for i, loss in reversed(list(enumerate(losses)))
    ]
    lines = {(line.learner, line.setting): line for line in summaries(pyarrow.Table.from_pylist(rows))}
    new, gap = lines["new", ""], better - stepwise
    assert lines[STEPWISE, "a"].best
    assert not lines[STEPWISE, "b"].best
    assert new.loss == pytest.approx(better.mean())
    assert new.difference == pytest.approx(gap.mean())
    # 2.0452 is the tables' quantile of Student's t, 29 degrees of freedom.
    assert new.high - new.difference == pytest.approx(2.0452 * gap.std(ddof=1) / np.sqrt(30), rel=1e-4)
    assert lines[STEPWISE, "b"].difference == pytest.approx(1)


def test_both_orders_are_averaged_draw_by_draw_and_measured_from_the_floor():
    rng = np.random.default_rng(1)
    losses = {(order, learner): rng.normal(5, 1, 12) for order in ("a", "b") for learner in (STEPWISE, "new")}
    rows = [
        dict(family="gaussian", order=order, draw=i, learner=learner, setting="", loss=loss, f=0.5)
        for (order, learner), values in losses.items()
        for i, loss in enumerate(values)
    ]
    rows += [row | dict(learner="noise floor", loss=1.0) for row in rows if row["learner"] == "new"]
    lines = {(line.order, line.learner): line for line in summaries(pyarrow.Table.from_pylist(rows))}
    new = (losses["a", "new"] + losses["b", "new"]) / 2
    stepwise = (losses["a", STEPWISE] + losses["b", STEPWISE]) / 2
    line = lines[BOTH, "new"]
    assert line.loss == pytest.approx(new.mean())
    assert line.loss_se == pytest.approx(new.std(ddof=1) / np.sqrt(12))
    assert line.difference == pytest.approx((new - stepwise).mean())
    assert line.excess == pytest.approx((new.mean() - 1) / (stepwise.mean() - 1))
    assert lines["a", "new"].loss == pytest.approx(losses["a", "new"].mean())


def test_like_for_like_is_one_memory_and_plain_cross_validation():
    settings = {STEPWISE: ("r=0.95", "r=0.95, weighted", "r=0.9"), RAP: ("r=0.95, step=0.1", "r=0.93, step=0.1")}
    rows = [
        dict(family="gaussian", order=order, draw=i, learner=learner, setting=setting, loss=i + len(setting), f=0.5)
        for learner, those in settings.items()
        for setting in those
        for order in "ab"
        for i in range(3)
    ]
    lines = [line for line in summaries(pyarrow.Table.from_pylist(rows)) if line.order == f"{BOTH}, all at r=0.95"]
    assert [(line.learner, line.setting) for line in lines] == [(STEPWISE, "r=0.95"), (RAP, "r=0.95, step=0.1")]
    assert lines[1].difference == pytest.approx(len("r=0.95, step=0.1") - len("r=0.95"))


def test_all_features_has_the_support_of_everything_and_no_loss():
    stream = draw(0, 0, "dense-sparse-dense", "gaussian")
    _, (learner, _, run) = GROUPS["truth"](stream)
    assert learner == ALL_FEATURES
    assert f_score(run.coef, stream.beta)[[0, 100]] == pytest.approx([2 * 16 / 36, 2 * 4 / 24])
    assert np.isnan(run.loss).all()


def test_rap_is_the_papers_rule_with_either_derivative():
    stream = draw(1, 0, "sparse-dense-sparse", "gaussian")
    runs = {(learner, setting): run for learner, setting, run in GROUPS["rap"](stream)}
    settings = {
        (RAP, "r=0.95, step=0.005"): dict(tuner=SGD(0.005), memory=0.95),
        (APPROXIMATE, "r=0.95, step=0.005"): dict(tuner=SGD(0.005), memory=0.95, gradient="diagonal"),
        (ALGORITHM_1, "r=0.95, step=0.005"): dict(tuner=SGD(0.005), memory=0.95, curvature="previous"),
        (PRINTED, "r=0.95, step=0.025"): dict(tuner=SGD(0.025), memory=0.95),
    }
    for who, setting in settings.items():
        trace = progressive(RAPRegressor(**setting), stream.X, stream.y)
        np.testing.assert_array_equal(runs[who].loss, trace.loss)


def test_saved_draws_are_what_the_learners_did(quick_study):
    quick_study(2)
    for row in parquet.read_table(quick_study.folder / "out" / "draws.parquet").to_pylist():
        stream = draw(row["draw"], 0, row["order"], "gaussian")
        if row["learner"] == "noise floor":
            assert row["loss"] == stream.floor[WARM_UP:].mean()
            assert row["f"] == 1
        else:
            assert row["loss"] == fixed(stream, 0.1, float(row["setting"][2:])).loss[WARM_UP:].mean()


def test_curves_average_to_the_draws(quick_study):
    quick_study(4)
    curves = parquet.read_table(quick_study.folder / "out" / "curves.parquet").to_pylist()
    draws = [draw(i, 0, order, "gaussian") for i in range(4) for order in ORDERS]
    floor = sum(point["loss"] for point in curves if point["learner"] == "noise floor")
    assert floor == pytest.approx(sum(stream.floor.sum() for stream in draws))


def test_a_longer_run_keeps_what_is_done(quick_study):
    quick_study(3)
    done = len(quick_study.ran)
    resumed = quick_study(6)
    assert len(quick_study.ran) == 2 * done
    assert resumed == quick_study(6, out="at once")


def test_a_part_without_its_curves_is_run_again(quick_study):
    whole = quick_study(3)
    next((quick_study.folder / "out" / "parts").glob("*cross-validation*.curves.parquet")).unlink()
    done = len(quick_study.ran)
    assert quick_study(3) == whole
    assert len(quick_study.ran) == done + 3


def test_the_number_of_processes_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(nonstationary, "FAMILIES", ("gaussian",))
    monkeypatch.setattr(nonstationary, "GROUPS", {name: GROUPS[name] for name in ("cross-validation", "truth")})
    one, two = (run_study(2, tmp_path / str(jobs), jobs) for jobs in (1, 2))
    assert str(one) == str(two)


def test_summary_files_hold_the_lines(quick_study):
    lines = quick_study(3)
    with open(quick_study.folder / "out" / "summary.csv", newline="") as file:
        saved = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in saved] == [line.loss for line in lines]
    text = (quick_study.folder / "out" / "summary.md").read_text()
    for line in lines:
        if line.best:
            assert f"| {line.learner} | {line.setting} | {line.loss:.3f}" in text


def test_stepwise_is_shown_at_its_least_loss_and_at_its_best_support():
    def line(setting, best, loss, f):
        return LearnerSummary(
            "gaussian", "o", STEPWISE, setting, best, 9, loss, 0.1, f, 0.1, loss - 1, loss - 2, loss, 1.0
        )

    lines = [line("least loss", True, 1.0, 0.4), line("neither", False, 1.5, 0.5), line("best F", False, 2.0, 0.6)]
    text = as_markdown(lines, "heading")
    assert "least loss | 1.000" in text
    assert "best F | 2.000" in text
    assert "neither | 1.500" not in text


def test_a_directory_holds_one_study(quick_study):
    quick_study(2)
    with pytest.raises(ValueError, match="name another directory"):
        quick_study(2, seed=1)


@pytest.mark.parametrize(("n", "jobs", "words"), [(1, 1, "two draws or more"), (2, 0, "at least one process")])
def test_too_few_draws_or_processes_are_refused(n, jobs, words):
    with pytest.raises(ValueError, match=words):
        parts.refuse_numbers(n, jobs)
