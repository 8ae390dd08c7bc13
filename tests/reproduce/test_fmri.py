"""The fMRI study: its tables are the estimator's, tested by shifts of the design."""

import csv
import io

import numpy as np
import pytest

from streamlasso.cli import main
from streamlasso.network import StreamingNetwork
from streamlasso.network.imaging.events import Event, conditions_of
from streamlasso.reproduce.fmri import MEASURES, SETTINGS, WARM_UP, relative, run_fmri

N, TR = 150, 0.72
EVENTS = [Event(10.0 + 20 * k, 16.0, ("neutral", "fear")[k % 2]) for k in range(5)]


@pytest.fixture
def conditions():
    return conditions_of(TR * np.arange(N), EVENTS, 5.0)


def test_relative_has_no_trend_and_no_units():
    rng = np.random.default_rng(2)
    lam = 5 + rng.uniform(size=(2, N))
    trend = np.arange(N) - (N - 1) / 2
    found = relative(lam)
    np.testing.assert_allclose(relative(1e6 * lam), found)
    np.testing.assert_allclose(found @ trend, 0, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=1), 1)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fmri")
    series = {}
    for k in range(3):
        X = np.random.default_rng(k).normal(size=(N, 4))
        X[:, 1] += X[:, 0]
        series[f"s{k}"] = X
        rows = "\n".join(",".join(map(repr, row)) for row in X.tolist())
        (folder / f"s{k}.csv").write_text(f"a,b,c,d\n{rows}\n")
    lines = "".join(f"{event.onset}\t{event.duration}\t{event.condition}\n" for event in EVENTS)
    (folder / "events.tsv").write_text("onset\tduration\ttrial_type\n" + lines)
    summary = run_fmri(folder, folder / "out", TR, start=0.0)
    return folder, series, summary


def test_the_table_is_the_estimators(study, conditions):
    folder, series, summary = study
    rows = _blocks(folder / "out")
    assert len(rows) == len(SETTINGS) * len(MEASURES) * 4
    late = conditions[WARM_UP:]
    for name, setting in SETTINGS.items():
        lam, density = [], []
        for X in series.values():
            Z = (X - X.mean(axis=0)) / X.std(axis=0)
            trace = StreamingNetwork(memory=0.95, **setting).follow(Z)
            lam.append(trace.lam.mean(axis=1)[WARM_UP:])
            density.append((np.abs(trace.networks) > 1e-9).sum(axis=(1, 2))[WARM_UP:] / 12)
        for measure, values, claim in (("lam", np.array(lam), -1), ("density", np.array(density), 1)):
            mine = [row for row in rows if (row["setting"], row["measure"]) == (name, measure)]
            assert [row["subject"] for row in mine] == [*series, "all"]
            emotion, neutral = values[:, late == "fear"].mean(axis=1), values[:, late == "neutral"].mean(axis=1)
            np.testing.assert_allclose([float(row["emotion"]) for row in mine], [*emotion, emotion.mean()])
            np.testing.assert_allclose([float(row["neutral"]) for row in mine], [*neutral, neutral.mean()])
            together = np.array([_contrast(relative(values).mean(axis=0), np.roll(late, k)) for k in range(len(late))])
            assert float(mine[-1]["detrended"]) == pytest.approx(together[0])
            assert float(mine[-1]["p"]) == pytest.approx(np.mean(claim * together >= claim * together[0] - 1e-12))
            assert f"| {name} | {measure} | all |" in summary
    for row in rows:
        assert float(row["low"]) <= float(row["high"])
        assert float(row["p"]) <= float(row["p_corrected"])


def _contrast(values, conditions):
    return values[conditions == "fear"].mean() - values[conditions == "neutral"].mean()


def _blocks(out):
    return list(csv.DictReader(io.StringIO((out / "fmri" / "blocks.csv").read_text())))


def test_figures_and_the_page_are_there(study):
    out = study[0] / "out"
    for name in ("fmri-contrasts", "fmri-lam"):
        assert (out / "fmri" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "index.html").read_text()
    assert "Application: fMRI, 3 subjects, 4 regions" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "nowhere"], "there is no events.tsv"),
        (["--data", "{data}", "--emotion", "joy"], "--emotion joy: the events are fear, neutral"),
        (["--data", "{data}", "--emotion", "neutral"], "the two conditions are the same"),
        (["--data", "{data}", "--tr", "-1"], "--tr -1"),
    ],
)
def test_bad_arguments_are_one_line(study, tmp_path, capsys, arguments, words):
    given = [argument.format(data=study[0]) for argument in arguments]
    assert main(["reproduce", "fmri", *given, "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def _refused(tmp_path, capsys, events, n=60):
    """The one line, if a series of n time points comes with these events."""
    (tmp_path / "events.tsv").write_text("onset\tduration\ttrial_type\n" + events)
    if n:
        np.save(tmp_path / "one.npy", np.random.default_rng(0).normal(size=(n, 3)))
    assert main(["reproduce", "fmri", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out" / "index.html").exists()
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


def test_a_condition_that_is_over_before_lam_is_under_way_has_no_p(tmp_path, capsys):
    err = _refused(tmp_path, capsys, "1\t2\tfear\n20\t10\tneutral\n")
    assert "--emotion fear: none of its blocks, 5 s later, reaches into the time points that are compared" in err


def test_series_that_are_too_short_are_refused(tmp_path, capsys):
    assert "a series has 12 time points" in _refused(tmp_path, capsys, "1\t2\tfear\n4\t2\tneutral\n", n=12)


def test_images_are_no_series(tmp_path, capsys):
    (tmp_path / "sub-01_bold.nii.gz").write_bytes(b"")
    assert "sub-01_bold.nii.gz: an image; region series are needed" in _refused(tmp_path, capsys, "1\t2\tfear\n", n=0)


def test_the_published_direction_on_the_real_subjects(shared_data, tmp_path):
    """What docs/gallery/fmri.md says of the paper's equation: lower in emotion blocks in all four, but not certain."""
    summary = run_fmri(shared_data / "hcp_emotion", tmp_path)
    mine = [row for row in _blocks(tmp_path) if row["setting"] == "paper's equation: SGD(0.025)"]
    lams = [row for row in mine if row["measure"] == "lam"]
    assert all(float(row["relative"]) < 0 for row in lams)
    assert float(lams[-1]["p"]) < 0.05 < float(lams[-1]["p_corrected"])
    assert summary.count("and with 0 once all contrasts are corrected for") == 2
