"""Earlier targets and the baselines compete with the model: by hand, and by what a user would notice."""

import math

import numpy as np
import pytest

from streamlasso.baselines import LAST, MEAN, NumberBaselines
from streamlasso.cli import main
from streamlasso.families import Gaussian, Poisson
from streamlasso.model.competition import MODEL, Competition


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


@pytest.mark.parametrize("dated", [True, False])
def test_amounts_do_not_lose_to_their_mean(tmp_path, go, dated):
    """Independent responses with heavy tails, where the last value is often close and sometimes far off."""
    rng = np.random.default_rng(3)
    columns = {"x": rng.normal(size=1000), "y": rng.lognormal(0, 1.5, size=1000)}
    dates = {"day": np.arange("2020-01-01", 1000, dtype="datetime64[D]")} if dated else {}
    _, _, trace = go(write(tmp_path / "amounts.csv", **dates, **columns))
    assert mean_loss(trace) < 1.01 * mean_loss(trace, "baseline")


def test_a_season_is_used_where_the_dates_have_one(tmp_path, go):
    rng = np.random.default_rng(1)
    shape = rng.normal(size=12) * 10
    y = np.array([shape[i % 12] for i in range(240)]) + rng.normal(size=240)
    run, _, trace = go(write(tmp_path / "months.csv", month=months(240), y=y))
    assert run.model.encoder.season == 12
    assert "y lag 12" in run.model.encoder.features
    assert mean_loss(trace) < 0.1 * mean_loss(trace, "persistence")


def test_lags_none_is_the_model_alone(tmp_path, go):
    path = write(tmp_path / "data.csv", month=months(60), x=np.arange(60) % 7, y=np.arange(60) % 7 / 3 + 0.1)
    run, _, _ = go(path, lags={})
    assert run.model.competition is None
    assert not any("lag" in name for name in run.model.encoder.features)
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
    found = run.model.summary()
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
            expected.append([0.0] * 3)
        else:
            season = series[-3] if len(series) >= 3 else seen[-1]
            mean = math.log((sum(seen) + 0.5) / len(seen))
            expected.append([mean, *(math.log(max(v, 0.5)) for v in (seen[-1], season))])
        if not np.isnan(value):
            seen.append(value)
        if seen:
            known = not np.isnan(value)
            series.append(value if known else (series[-3] if len(series) >= 3 else seen[-1]))
    np.testing.assert_allclose(np.vstack(found), expected, rtol=1e-12)


def stream(family, n=200, seed=0):
    """Responses, and etas of a model that finds out slowly, of the mean and of the last value."""
    rng = np.random.default_rng(seed)
    eta = 1 + np.cumsum(rng.normal(size=n)) / 10
    y = family.sample(rng, eta)
    y[rng.random(n) < 0.1] = np.nan
    etas = {LAST: np.roll(eta, 1) + 0.1, MEAN: np.ones(n), MODEL: eta + np.linspace(3, 0, n)}
    return y, etas, ~np.isnan(y) & (np.arange(n) > 0)


@pytest.mark.parametrize("family", [Gaussian(), Poisson()])
def test_the_average_is_that_of_the_written_rule(family):
    """Excess losses in units of their fading mean, at most 15; weights of which a thousandth returns to the prior."""
    y, etas, scored = stream(family)
    prior = np.array([0.4, 0.4, 0.1]) / 0.9
    w, past, expected = prior, [], []
    for i in range(len(y)):
        own = np.array([etas[name][i] for name in (MODEL, LAST, MEAN)])
        used = np.maximum(w - 0.002 * prior, 0)
        expected.append(used @ own / used.sum())
        if not scored[i]:
            continue
        value = y[i : i + 1]
        excess = [
            family.losses(value, np.array([eta]))[0] - family.least_loss(value)[0] for eta in (*own, expected[-1])
        ]
        if past:
            fading = 0.995 ** np.arange(len(past))[::-1]
            dispersion = 2 * np.sum(fading * past) / np.sum(fading)
            w = w * np.exp(-0.25 * np.minimum(np.array(excess[:3]) / dispersion, 15))
            w = 0.999 * w / w.sum() + 0.001 * prior
        past.append(excess[3])
    competition = Competition(family, [MEAN, LAST])
    np.testing.assert_allclose(competition.blend(etas, y, scored), expected, rtol=1e-9)
    assert competition.weights == pytest.approx(dict(zip((MODEL, LAST, MEAN), w, strict=True)), rel=1e-9)


def test_cuts_and_copies_change_no_bit():
    y, etas, scored = stream(Gaussian(), seed=1)
    whole, found, state = Competition(Gaussian(), etas).blend(etas, y, scored), [], None
    for rows in np.split(np.arange(len(y)), (1, 2, 50, 128)):
        competition = Competition(Gaussian(), etas)
        if state is not None:
            competition.unpack(state)
        found.append(competition.blend({name: eta[rows] for name, eta in etas.items()}, y[rows], scored[rows]))
        state = competition.pack()
    assert np.concatenate(found).tobytes() == whole.tobytes()


def test_units_of_the_response_do_not_matter():
    y, etas, scored = stream(Gaussian(), seed=2)
    one = Competition(Gaussian(), etas).blend(etas, y, scored)
    other = Competition(Gaussian(), etas).blend({name: 1e9 * eta for name, eta in etas.items()}, 1e9 * y, scored)
    np.testing.assert_allclose(other, 1e9 * one, rtol=1e-9)


def test_weights_stay_finite_where_nothing_errs_and_where_one_is_infinitely_wrong():
    y, rows = np.full(30, 2.0), np.ones(30, bool)
    for model in (2.0, 1e300):
        competition = Competition(Gaussian(), [MEAN])
        assert np.isfinite(competition.blend({MODEL: np.full(30, model), MEAN: y}, y, rows)).all()
        assert sum(competition.weights.values()) == pytest.approx(1.0)


def test_one_jump_does_not_tell_against_the_last_value():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    last, model = y + rng.normal(size=100), y + 2 * rng.normal(size=100)
    last[90] = 1e6
    competition = Competition(Gaussian(), [LAST])
    competition.blend({MODEL: model, LAST: last}, y, np.ones(100, bool))
    assert competition.weights[LAST] > 0.5


def test_persistence_and_mean_are_those_of_the_gaussian():
    y = np.array([3.0, 5.0, 4.0])
    etas = NumberBaselines(Gaussian()).etas(y)
    assert etas["the mean"].tolist() == [0.0, 3.0, 4.0]
    assert etas["the last value"].tolist() == [0.0, 3.0, 5.0]
