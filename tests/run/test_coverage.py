"""Intervals in a run: what is written is the rule, and holds the share that was asked for."""

import numpy as np
import pytest
from pyarrow import csv, table

from oracles.quantiles import LEVELS, followed, wider
from streamlasso import RAPRegressor
from streamlasso.cli import main
from streamlasso.run.predict import predict_file
from streamlasso.run.results import finish


@pytest.fixture
def stream(tmp_path):
    """1,200 rows whose noise doubles half-way, as a file."""

    def make(counts=False):
        rng = np.random.default_rng(0)
        x = rng.normal(size=1200)
        y = x + rng.normal(size=1200) * np.where(np.arange(1200) < 600, 1, 2)
        path = tmp_path / "stream.csv"
        csv.write_csv(table({"x": x, "y": rng.poisson(np.exp(x)) if counts else y}), path)
        return path

    return make


@pytest.mark.parametrize("more", [{}, {"lags": {}}], ids=["competition", "the model alone"])
def test_the_ends_are_quantiles_of_the_errors_so_far(more, stream, go):
    _, predictions, _ = go(stream(), coverage=0.9, **more)
    y, mean, low, high = (predictions[name].to_numpy() for name in ("y", "prediction", "low", "high"))
    assert np.isnan([low[:3], high[:3]]).all()
    said = np.array(list(followed((y - mean)[1:])))[:-1]
    for end, level in ((low, 0.05), (high, 0.95)):
        wide = np.array([wider(n, level) for n in range(2, 1199)])
        expected = mean[3:] + wide * said[2:, np.searchsorted(LEVELS, level)]
        np.testing.assert_allclose(end[3:], expected, rtol=1e-9, atol=1e-9)
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.015)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_has_the_ends(form, stream, tmp_path, go):
    _, predictions, trace = go(stream(), coverage=0.8, predictions=tmp_path / f"p.{form}")
    for written in (predictions, trace):
        low, mean, high = (written[name].to_numpy()[3:].astype(float) for name in ("low", "prediction", "high"))
        assert np.all((low <= mean) & (mean <= high))
    assert "low" not in go(stream(), out="other")[1].column_names


def test_the_report_says_what_share_was_inside(stream, go, tmp_path, capsys):
    run, predictions, _ = go(stream(), coverage=0.9)
    y, low, high = (predictions[name].to_numpy()[1:] for name in ("y", "low", "high"))
    inside = np.mean(np.isnan(low) | ((low <= y) & (y <= high)))
    summary = finish(run)
    assert summary.means["covered"] == pytest.approx(inside)
    report = (tmp_path / "out" / "report.html").read_text()
    assert f"The 90 % intervals held {100 * inside:.1f} % of the responses" in report
    picture = (tmp_path / "out" / "figure.svg").read_text()
    assert "90 % interval" in picture
    assert summary.interval.shape == (len(summary.t), 2, 1)
    # Means of stretches, without the first rows, whose intervals have no end.
    np.testing.assert_allclose(summary.interval[3:, 0, 0], low[2:])


def test_predict_goes_on_where_the_run_stopped(stream, go, tmp_path):
    data = stream()
    run, *_ = go(data)
    finish(run)
    new = tmp_path / "new.csv"
    csv.write_csv(table({"x": [0.0, 1.0], "y": [0.5, 1e6]}), new)
    done = predict_file(tmp_path / "out" / "model.safetensors", str(new), tmp_path / "p.csv", coverage=0.9)
    assert (done.scored, done.covered) == (2, 1)
    found = csv.read_csv(tmp_path / "p.csv")
    errors = run.model.errors.errors([0.05, 0.95])
    for end, error in zip(("low", "high"), errors, strict=True):
        np.testing.assert_allclose(found[end].to_numpy(), found["prediction"].to_numpy() + error)


def test_a_model_from_python_has_its_own_intervals(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = RAPRegressor().fit(X, X[:, 0] + rng.normal(size=300))
    model.save(tmp_path / "model.safetensors")
    csv.write_csv(table({"a": X[:5, 0], "b": X[:5, 1]}), tmp_path / "new.csv")
    predict_file(tmp_path / "model.safetensors", str(tmp_path / "new.csv"), tmp_path / "p.csv", coverage=0.9)
    found = csv.read_csv(tmp_path / "p.csv")
    expected = model.predict_interval(X[:5], 0.9)
    np.testing.assert_allclose(np.column_stack([found["low"], found["high"]]), expected)


@pytest.mark.parametrize("coverage", ["0", "1", "-0.5", "nan", "90"])
def test_a_coverage_is_a_probability(coverage, stream, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    assert main(["run", str(stream()), "--target", "y", "--coverage", coverage, *out]) != 0
    assert "--coverage" in capsys.readouterr().err
