"""Earlier targets and the baselines compete with the model: by hand, and by what a user would notice."""

import math

import numpy as np
import pytest

from streamlasso.baselines import NumberBaselines
from streamlasso.cli import main
from streamlasso.families import Gaussian, Poisson
from streamlasso.run.competition import Competition


def write(path, **columns):
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def months(n):
    return [f"{2000 + i // 12}-{i % 12 + 1:02d}" for i in range(n)]


def mean_loss(trace, name="loss"):
    return np.nanmean(trace[name].to_numpy()[1:])


# --- what a user would notice -----------------------------------------------------------------------------------------


def test_a_random_walk_is_predicted_as_well_as_by_its_last_value(tmp_path, go):
    rng = np.random.default_rng(0)
    y, noise = np.cumsum(rng.normal(size=400)) + 1000, rng.normal(size=400)
    _, _, trace = go(write(tmp_path / "walk.csv", x=noise, y=y))
    assert mean_loss(trace) < 1.02 * mean_loss(trace, "persistence")
    _, _, alone = go(tmp_path / "walk.csv", out="alone", lags={})
    assert mean_loss(alone) > 1.2 * mean_loss(alone, "persistence"), "the model alone is worse"


def test_a_season_is_used_where_the_dates_have_one(tmp_path, go):
    rng = np.random.default_rng(1)
    shape = rng.normal(size=12) * 10
    y = np.array([shape[i % 12] for i in range(240)]) + rng.normal(size=240)
    run, _, trace = go(write(tmp_path / "months.csv", month=months(240), y=y))
    assert run.state.encoder.season == 12
    assert "y lag 12" in run.state.encoder.features
    assert mean_loss(trace) < 0.1 * mean_loss(trace, "persistence")


def test_ten_rows_are_enough_to_be_no_worse_than_the_last_value(tmp_path, go):
    y = [100.0, 110, 125, 131, 148, 160, 171, 185, 196, 214]
    _, _, trace = go(write(tmp_path / "short.csv", year=range(1990, 2000), y=y))
    assert mean_loss(trace) < mean_loss(trace, "persistence")


def test_lags_none_is_the_model_alone(tmp_path, go):
    path = write(tmp_path / "data.csv", month=months(60), x=np.arange(60) % 7, y=np.arange(60) % 7 / 3 + 0.1)
    run, _, _ = go(path, lags={})
    assert run.state.learning.competition is None
    assert not any("lag" in name for name in run.state.encoder.features)
    assert main(["run", str(path), "--target", "y", "--lags", "none", "--out", str(tmp_path / "cli"), "--quiet"]) == 0


def test_what_competes_is_printed_and_reported(tmp_path, capsys, undrawn):
    rng = np.random.default_rng(0)
    path = write(tmp_path / "walk.csv", x=rng.normal(size=200), y=np.cumsum(rng.normal(size=200)))
    assert main(["run", str(path), "--target", "y", "--out", str(tmp_path / "out")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the next prediction is" in said
    assert "the last value" in said
    assert "the next prediction is" in (tmp_path / "out" / "report.html").read_text()


def test_errors_in_the_report_are_those_of_the_written_predictions(tmp_path, go):
    """A walk that the model alone predicts badly, with gaps: those of the blend, the mean and the last value."""
    rng = np.random.default_rng(2)
    y = np.round(np.cumsum(rng.normal(size=150)) + 100, 6).astype(object)
    y[[20, 21, 77]] = ""
    run, predictions, _ = go(write(tmp_path / "walk.csv", x=rng.normal(size=150), y=y))
    found = run.state.summary()
    known, errors = [], []
    for value, predicted in zip(y, predictions["prediction"].to_numpy(), strict=True):
        if value != "":
            if known:
                errors.append(np.abs(value - np.array([predicted, np.mean(known), known[-1]])))
            known.append(value)
    names = ("error", "baseline_error", "persistence_error")
    np.testing.assert_allclose([found.means[name] for name in names], np.mean(errors, axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.recent.values[-1][:2], [[known[-1]], [predictions["prediction"][-1].as_py()]])


def test_predict_goes_on_with_the_last_value(tmp_path, go, capsys, undrawn):
    """A walk far from its mean: a prediction that ignored the last value would be far off."""
    rng = np.random.default_rng(2)
    y = np.cumsum(rng.normal(size=300)) + np.where(np.arange(300) < 299, 0, 500)
    path = write(tmp_path / "walk.csv", x=rng.normal(size=300), y=y)
    assert main(["run", str(path), "--target", "y", "--out", str(tmp_path / "out"), "--quiet"]) == 0
    write(tmp_path / "new.csv", x=[0.0, 0.0])
    assert main(["predict", str(tmp_path / "out" / "model.safetensors"), str(tmp_path / "new.csv")]) == 0
    first, second = (float(line.split(",")[-1]) for line in capsys.readouterr().out.splitlines()[1:])
    assert abs(first - y[-1]) < 0.2 * abs(y[-1] - y[-2]), "it jumped in its last row"
    assert abs(second - y[-1]) < 0.2 * abs(y[-1] - y[-2])


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [(), (1,), (3, 4, 9)])
def test_baselines_are_as_a_loop_over_rows_would(cuts):
    rng = np.random.default_rng(0)
    y = rng.poisson(5, size=20).astype(float)
    y[[0, 4, 5, 12, 19]] = np.nan
    baselines, found = NumberBaselines(Poisson(), season=3), []
    for part in np.split(y, cuts):
        state = NumberBaselines(Poisson(), **baselines.state())
        found.append(np.column_stack(list(state.etas(part).values())))
        baselines = state
    expected, seen, series = [], [], []
    for value in y:
        if not seen:
            expected.append([0.0] * 4)
        else:
            last, first = (math.log(max(v, 0.5)) for v in (seen[-1][1], seen[0][1]))
            ahead = len(expected) - seen[-1][0]
            season = series[-3] if len(series) >= 3 else seen[-1][1]
            mean = math.log((sum(v for _, v in seen) + 0.5) / len(seen))
            drift = last + ahead * (last - first) / (len(seen) + 1)
            expected.append([mean, last, drift, math.log(max(season, 0.5))])
        if not np.isnan(value):
            seen.append((len(expected) - 1, value))
        if seen:
            known = not np.isnan(value)
            series.append(value if known else (series[-3] if len(series) >= 3 else seen[-1][1]))
    np.testing.assert_allclose(np.vstack(found), expected, rtol=1e-12)


def test_weights_are_the_likelihood_of_the_losses():
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=(30, 3)) * [1.0, 2.0, 0.5]
    prior = {"the model": 0.2, "the mean": 0.5, "the last value": 0.3}
    scored = np.arange(30) % 7 != 0
    competition = Competition(prior)
    weights = np.vstack([competition.weights(losses[:11], scored[:11]), competition.weights(losses[11:], scored[11:])])
    for t in range(30):
        past = [i for i in range(t) if scored[i]]
        ages = [0.99 ** (len(past) - 1 - k) for k in range(len(past))]
        n = sum(ages)
        sums = [sum(age * losses[i, k] for age, i in zip(ages, past, strict=True)) for k in range(3)]
        floor = min(sums) / max(n, 1)
        exact = [p * (s + floor) ** (-n / 2) if past else p for p, s in zip(prior.values(), sums, strict=True)]
        np.testing.assert_allclose(weights[t], np.array(exact) / sum(exact), rtol=1e-9)


def test_weights_take_losses_of_any_size():
    """A unit of the response must not matter, nor losses of 0, nor one that is infinite."""
    rng = np.random.default_rng(1)
    losses, scored = rng.exponential(size=(40, 2)), np.ones(40, bool)
    prior = {"the model": 0.5, "the mean": 0.5}
    one, other = (Competition(prior).weights(losses * unit, scored) for unit in (1.0, 1e-40))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert np.all(np.isfinite(Competition(prior).weights(np.zeros((5, 2)), scored[:5])))
    best = Competition(prior).weights(np.column_stack([np.zeros(5), np.full(5, np.inf)]), scored[:5])
    assert best[-1, 0] == pytest.approx(1.0)


def test_one_jump_does_not_tell_against_the_last_value():
    losses = np.full((50, 2), [2.0, 1.0])
    losses[40] = [3.0, 1e6]
    competition = Competition({"the model": 0.5, "the last value": 0.5})
    assert competition.weights(losses, np.ones(50, bool))[49, 1] > 0.1


def test_persistence_and_mean_are_those_of_the_gaussian():
    y = np.array([3.0, 5.0, 4.0])
    etas = NumberBaselines(Gaussian()).etas(y)
    assert etas["the mean"].tolist() == [0.0, 3.0, 4.0]
    assert etas["the last value"].tolist() == [0.0, 3.0, 5.0]
