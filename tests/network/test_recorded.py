"""`streamlasso network` on recorded subjects: the files hold the estimator's results, and bad input is reported."""

import json

import numpy as np
import pyarrow.compute as pc
import pytest
from pyarrow import csv, parquet

from streamlasso.cli import main
from streamlasso.memories import Window
from streamlasso.network import StreamingNetwork, read_networks
from streamlasso.network.options import Design, Images, Model
from streamlasso.network.recorded import run_network
from streamlasso.network.subjects import find_files
from streamlasso.tuners import LARS
from support.scans import NAMES, made_run, region_means, save_atlas, save_nifti

TR = 0.5
EVENTS = "onset\tduration\ttrial_type\n4\t6\tfear\n12\t6\tneutral\n20\t6\tfear\n500\t6\tneutral\n"
FILES = [
    "edges.csv", "lam.csv", "lam.png", "lam.svg", "networks.parquet", "networks.png", "networks.svg", "nodes.parquet",
    "report.html", "run.json",
]  # fmt: skip


def made_series(seed, n=60, p=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1] += X[:, 0]
    X[n // 2 :, 3] -= 2 * X[n // 2 :, 2]
    return X


def matrix_of(edges, picture, regions):
    """One picture of the table of edges, as a matrix."""
    matrix = np.zeros((len(regions), len(regions)))
    for row in edges.to_pylist():
        if row["picture"] == picture:
            i, j = regions.index(row["source"]), regions.index(row["target"])
            matrix[i, j] = matrix[j, i] = row["strength"] * (1 if row["sign"] == "+" else -1)
    return matrix


def save_series(path, X, names=None):
    names = names or [f"r{k}" for k in range(X.shape[1])]
    path.write_text(",".join(names) + "\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist()) + "\n")
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two subjects with events, run from the command line."""
    folder = tmp_path_factory.mktemp("study")
    for k in (1, 2):
        save_series(folder / f"subject_{k}.csv", made_series(k))
    (folder / "events.tsv").write_text(EVENTS)
    out = folder / "out"
    arguments = ["--events", str(folder / "events.tsv"), "--tr", str(TR), "--out", str(out)]
    assert main(["network", str(folder), *arguments]) == 0
    return folder, out


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_all_files_are_written(study):
    assert sorted(path.name for path in study[1].iterdir()) == FILES


def test_networks_are_those_of_the_estimator(study):
    for k in (1, 2):
        expected = StreamingNetwork().fit_transform(standardised(made_series(k)))
        found = read_networks(study[1], f"subject_{k}")
        np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_array_equal(read_networks(study[1]), read_networks(study[1], "subject_1"))
    with pytest.raises(ValueError, match=r"has no subject nobody: use one of subject_1, subject_2"):
        read_networks(study[1], "nobody")


def test_nodes_are_those_of_the_estimator(study):
    table = parquet.read_table(study[1] / "nodes.parquet")
    trace = StreamingNetwork().follow(standardised(made_series(2)))
    mine = table.filter(pc.equal(table["subject"], "subject_2"))
    for name in ("lam", "lam_max", "loss", "n_active"):
        np.testing.assert_array_equal(mine[name].to_numpy().reshape(60, 5), getattr(trace, name))
    np.testing.assert_allclose(mine["seconds"].to_numpy()[::5], TR * np.arange(60))


def test_the_lam_table_is_the_mean_over_subjects(study):
    table = csv.read_csv(study[1] / "lam.csv")
    lam = np.array([StreamingNetwork().follow(standardised(made_series(k))).lam.mean(axis=1) for k in (1, 2)])
    np.testing.assert_allclose(table["mean"].to_numpy()[1:], lam.mean(axis=0)[1:])
    error = np.abs(lam[0] - lam[1])[1:] / 2
    np.testing.assert_allclose(table["high"].to_numpy()[1:] - table["mean"].to_numpy()[1:], error)


def test_conditions_are_shifted_by_the_delay(study):
    table = csv.read_csv(study[1] / "lam.csv")
    shown = np.array(table["condition"].to_pylist())
    seconds = table["seconds"].to_numpy()
    fear = ((seconds >= 9) & (seconds < 15)) | ((seconds >= 25) & (seconds < 31))
    np.testing.assert_array_equal(shown == "fear", fear)
    np.testing.assert_array_equal(shown == "neutral", (seconds >= 17) & (seconds < 23))


def test_drawn_networks_are_block_means_over_subjects(study):
    table = csv.read_csv(study[1] / "edges.csv")
    regions = [f"r{k}" for k in range(5)]
    seconds = TR * np.arange(60)
    rows = (seconds >= 17) & (seconds < 23)
    expected = np.mean([read_networks(study[1], f"subject_{k}")[rows].mean(axis=0) for k in (1, 2)], axis=0)
    np.testing.assert_allclose(matrix_of(table, "neutral, mean of blocks", regions), expected, atol=1e-6)


def test_events_outside_the_scan_are_reported(study, capsys, tmp_path):
    folder, _ = study
    arguments = ["--events", str(folder / "events.tsv"), "--tr", str(TR), "--out", str(tmp_path / "out")]
    assert main(["network", str(folder / "subject_1.csv"), *arguments]) == 0
    assert "events outside the scan (0 to 30 s) are dropped: neutral at 500 s" in capsys.readouterr().err


def test_run_json_holds_the_settings(study):
    run = json.loads((study[1] / "run.json").read_text())
    assert run["regions"] == [f"r{k}" for k in range(5)]
    assert run["model"]["memory"] == 0.95
    events = run["subjects"]["subject_2"]["events"]
    assert [event["condition"] for event in events] == ["fear", "neutral", "fear"]


def test_settings_reach_the_estimator(tmp_path):
    save_series(tmp_path / "one.csv", made_series(3))
    outcome = run_network([tmp_path / "one.csv"], tmp_path / "out", model=Model(60, "lars", 0.025, rule="or"))
    model = StreamingNetwork(memory=Window(60), tuner=LARS(step_size=0.025), rule="or")
    expected = model.fit_transform(standardised(made_series(3)))
    np.testing.assert_allclose(read_networks(tmp_path / "out"), expected, atol=1e-7)
    table = csv.read_csv(tmp_path / "out" / "edges.csv")
    np.testing.assert_allclose(matrix_of(table, "time point 44", outcome.group.regions), expected[44], atol=1e-6)


def test_images_and_series_of_the_same_scan_agree(tmp_path):
    atlas = save_atlas(tmp_path / "atlas.nii.gz")
    run = made_run(40)
    save_nifti(tmp_path / "run.nii.gz", run, tr=0.72)
    assert main(["network", str(tmp_path / "run.nii.gz"), "--atlas", str(atlas), "--out", str(tmp_path / "out")]) == 0
    X = standardised(np.array([region_means(run[..., t]) for t in range(40)]))
    np.testing.assert_allclose(read_networks(tmp_path / "out"), StreamingNetwork().fit_transform(X), atol=1e-4)
    run_file = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run_file["regions"] == list(NAMES)
    assert np.shape(run_file["coords"]) == (6, 3)


def test_a_bids_image_finds_its_events_confounds_and_tr(tmp_path):
    atlas = save_atlas(tmp_path / "atlas.nii.gz")
    func = tmp_path / "sub-01" / "func"
    func.mkdir(parents=True)
    run = made_run(40)
    drift = np.linspace(-1, 1, 40)
    save_nifti(func / "sub-01_task-x_bold.nii.gz", (run + 500 * drift).astype(np.float32), tr=2.0)
    (func / "sub-01_task-x_bold.json").write_text('{"RepetitionTime": 0.5}')
    (func / "sub-01_task-x_events.tsv").write_text(EVENTS)
    rows = "\n".join(map(repr, drift.tolist()))
    (func / "sub-01_task-x_desc-confounds_timeseries.tsv").write_text(f"cosine00\n{rows}\n")
    out = tmp_path / "out"
    assert main(["network", str(tmp_path), "--atlas", str(atlas), "--confounds", "auto", "--out", str(out)]) == 0
    table = csv.read_csv(out / "lam.csv")
    assert table["seconds"].to_pylist()[1] == 0.5
    assert set(table["condition"].to_pylist()) == {"", "fear", "neutral"}
    notes = json.loads((out / "run.json").read_text())["subjects"]["sub-01_task-x_bold"]["notes"]
    assert any("confounds regressed out: cosine00" in note for note in notes)


def test_subjects_may_have_their_own_events(tmp_path):
    """Two BIDS subjects with the conditions in different order: the mean of a condition follows each one's events."""
    for k, order in ((1, ("fear", "neutral")), (2, ("neutral", "fear"))):
        func = tmp_path / f"sub-{k}"
        func.mkdir()
        save_series(func / f"sub-{k}_task-x_bold.csv", made_series(k))
        rows = "".join(f"{10 + 8 * j}\t8\t{name}\n" for j, name in enumerate(order))
        (func / f"sub-{k}_task-x_events.tsv").write_text("onset\tduration\ttrial_type\n" + rows)
    out = tmp_path / "out"
    outcome = run_network([tmp_path], out, design=Design(tr=TR, delay=0.0))
    early, late = slice(20, 36), slice(36, 52)
    one, two = (read_networks(out, f"sub-{k}_task-x_bold") for k in (1, 2))
    expected = (one[early].mean(axis=0) + two[late].mean(axis=0)) / 2
    table = csv.read_csv(out / "edges.csv")
    found = matrix_of(table, "fear, mean of blocks", outcome.group.regions)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert outcome.group.events == ()
    assert not any(csv.read_csv(out / "lam.csv")["condition"].to_pylist())


# --- bad input -------------------------------------------------------------------------------------------------------


def refused(capsys, *arguments):
    """The last line of the error."""
    assert main(["network", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.err.strip().splitlines()[-1]


def test_constant_and_incomplete_regions_are_left_out_with_a_note(tmp_path, capsys):
    X = made_series(1)
    X[:, 2] = 5.0
    save_series(tmp_path / "one.csv", X)
    text = (tmp_path / "one.csv").read_text().splitlines()
    text[7] = text[7].rsplit(",", 1)[0] + ","
    (tmp_path / "one.csv").write_text("\n".join(text))
    assert main(["network", str(tmp_path / "one.csv"), "--out", str(tmp_path / "out")]) == 0
    err = capsys.readouterr().err
    assert "one: r2: constant; left out" in err
    assert "one: r4: missing values at some time points; left out" in err
    assert read_networks(tmp_path / "out").shape == (60, 3, 3)


def test_means_are_over_the_subjects_that_have_a_region(tmp_path):
    X = made_series(1)
    save_series(tmp_path / "a.csv", X)
    Y = made_series(2)
    Y[:, 0] = 1.0
    save_series(tmp_path / "b.csv", Y)
    outcome = run_network([tmp_path], tmp_path / "out")
    a, b = (read_networks(tmp_path / "out", name)[59] for name in "ab")
    expected = a.copy()
    expected[1:, 1:] = (a[1:, 1:] + b) / 2
    table = csv.read_csv(tmp_path / "out" / "edges.csv")
    np.testing.assert_allclose(matrix_of(table, "time point 59", outcome.group.regions), expected, atol=1e-6)


def test_subjects_may_differ_in_length(tmp_path):
    save_series(tmp_path / "a.csv", made_series(1, n=60))
    save_series(tmp_path / "b.csv", made_series(2, n=40))
    outcome = run_network([tmp_path], tmp_path / "out")
    table = csv.read_csv(tmp_path / "out" / "edges.csv")
    found = matrix_of(table, "time point 59", outcome.group.regions)
    np.testing.assert_allclose(found, read_networks(tmp_path / "out", "a")[59], atol=1e-6)
    lam = csv.read_csv(tmp_path / "out" / "lam.csv")
    assert lam["subjects"].to_pylist()[1:] == [2] * 39 + [1] * 20


def test_one_bad_subject_does_not_stop_the_others(tmp_path, capsys):
    save_series(tmp_path / "good.csv", made_series(1))
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1,oops\n")
    line = refused(capsys, tmp_path, "--out", tmp_path / "out")
    assert "1 of 2 subjects left out" in line
    assert "'oops' is not a number" in line
    assert read_networks(tmp_path / "out", "good").shape == (60, 5, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "not both"),
        (["{series}", "--watch", "x"], "not both"),
        (["{tmp}/nothing.csv"], "no such file or folder"),
        (["{tmp}/empty"], "holds no region series"),
        (["{image}"], "--atlas"),
        (["{image}", "--atlas", "{tmp}/nothing.nii"], "nothing.nii"),
        (["{series}", "--memory", "1.5"], "--memory 1.5 is not a forgetting factor"),
        (["{series}", "--tr", "0"], "--tr 0"),
        (["{series}", "--delay", "-1"], "--delay -1"),
        (["{series}", "--events", "{events}"], "add --tr"),
        (["{series}", "--tr", "1", "--events", "{tmp}/none.tsv"], "none.tsv: No such file"),
        (["{series}", "--tuner", "mixture", "--step-size", "0.1"], "--tuner mixture has no step"),
        (["{series}", "--volumes", "5"], "--volumes is only for --watch"),
        (["{series}", "--idle", "5"], "--idle is only for --watch"),
        (["{series}", "--patience", "5"], "--patience is only for --watch"),
        (["{series}", "--pattern", "x*"], "--pattern is only for --watch"),
        (["{series}", "--tr", "720"], "--tr 720 is not a time between volumes: use seconds, such as 0.72"),
        (["{series}", "--atlas", "{tmp}/nothing.nii"], "--atlas is for images"),
        (["{series}", "--labels", "{events}"], "--labels names the regions of an atlas"),
        (["{series}", "--confound-columns", "csf"], "--confound-columns needs a file"),
        (["{series}", "--confounds", "auto"], "no desc-confounds_timeseries.tsv"),
        (["{series}", "--tuner", "adam"], "--tuner adam is unknown: use one of mixture, logrms"),
        (["{series}", "--family", "beta"], "--family beta is unknown: use one of gaussian, binomial"),
        (["{series}", "--family", "binomial"], "one.csv: X: a binomial response lies between 0 and 1"),
        (["{series}", "--tuner", "lars"], "--step-size: try 0.01"),
        (["{series}", "--tuner", "sgd"], "--step-size: try 0.01"),
        (["{series}", "--memory", "inf"], "--memory inf is not a forgetting factor"),
        (["{series}", "--tr", "1", "--start", "inf"], "--start inf"),
        (["{series}", "--out", "{series}"], "name another directory"),
        (["{series}", "{series}"], "two files for subject one"),
        (["{tmp}/notes.txt"], "notes.txt: it is empty"),
        (["{tmp}/series.mat"], "has an unknown format"),
    ],
)
def test_bad_arguments_give_a_one_line_error(tmp_path, capsys, arguments, message):
    series = save_series(tmp_path / "one.csv", made_series(1))
    image = save_nifti(tmp_path / "run.nii", made_run(5))
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "series.mat").write_text("")
    events = tmp_path / "some_events.tsv"
    events.write_text(EVENTS)
    places = dict(tmp=tmp_path, series=series, image=image, events=events)
    given = [argument.format(**places) for argument in arguments]
    if "--out" not in given:
        given += ["--out", str(tmp_path / "out")]
    assert message in refused(capsys, *given)
    assert not (tmp_path / "out" / "run.json").exists()


def test_subjects_without_a_common_region_are_reported(tmp_path, capsys):
    for name, regions in (("a", "rstuv"), ("b", "klmno")):
        save_series(tmp_path / f"{name}.csv", made_series(1), list(regions))
    assert main(["network", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "no region is in all subjects: do their files use the same names?" in capsys.readouterr().err
    assert "do their files use the same names" in (tmp_path / "out" / "report.html").read_text()
    save_series(tmp_path / "b.csv", made_series(1), list("rstuw"))
    assert main(["network", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "v and w: not in all subjects; means are over the subjects that have them" in capsys.readouterr().err


def test_subjects_with_and_without_a_tr_are_matched_by_time_points(tmp_path):
    """The seconds of one and the numbers of the other cannot be compared."""
    save_series(tmp_path / "a.csv", made_series(1, n=60))
    save_nifti(tmp_path / "run.nii", made_run(40), tr=0.5)
    atlas = save_atlas(tmp_path / "atlas.nii")
    files = [tmp_path / "a.csv", tmp_path / "run.nii"]
    outcome = run_network(files, tmp_path / "out", images=Images(atlas))
    table = csv.read_csv(tmp_path / "out" / "edges.csv")
    found = matrix_of(table, "time point 30", outcome.group.regions)
    np.testing.assert_allclose(found[5:, 5:], read_networks(tmp_path / "out", "run")[30], atol=1e-6)


def test_many_conditions_are_not_all_drawn(tmp_path, capsys, recwarn):
    series = save_series(tmp_path / "one.csv", made_series(1, n=100))
    rows = "".join(f"{k}\t{2 if k == 30 else 1}\tface {k}\n" for k in range(40))
    (tmp_path / "events.tsv").write_text("onset\tduration\ttrial_type\n" + rows)
    arguments = ["--events", str(tmp_path / "events.tsv"), "--tr", "0.5", "--out", str(tmp_path / "out")]
    assert main(["network", str(series), *arguments]) == 0
    printed = capsys.readouterr()
    assert "40 conditions: the 12 longest are drawn; nodes.parquet has all" in printed.err
    assert not [warning for warning in recwarn if not issubclass(warning.category, ResourceWarning)]
    assert all(len(line) <= 80 for line in printed.out.splitlines()[:-1])
    pictures = set(csv.read_csv(tmp_path / "out" / "edges.csv")["picture"].to_pylist())
    assert len(pictures) == 12
    known = set(parquet.read_table(tmp_path / "out" / "nodes.parquet")["condition"].to_pylist())
    assert known >= {f"face {k}" for k in range(40)}


def test_events_without_durations_are_reported_and_print_no_nan(tmp_path, capsys):
    series = save_series(tmp_path / "one.csv", made_series(1))
    (tmp_path / "events.tsv").write_text("onset\tduration\ttrial_type\n4\tn/a\tcue\n10\t6\tfear\n")
    arguments = ["--events", str(tmp_path / "events.tsv"), "--tr", "0.5", "--out", str(tmp_path / "out")]
    assert main(["network", str(series), *arguments]) == 0
    printed = capsys.readouterr()
    assert "one: cue: no time point falls into these events" in printed.err
    assert "nan" not in printed.out
    assert "cue" not in printed.out


def test_very_large_and_very_small_numbers_are_scaled(tmp_path, recwarn):
    X = made_series(1)
    save_series(tmp_path / "plain.csv", X)
    save_series(tmp_path / "wild.csv", X * np.array([1e200, 1e-200, 1.0, 1e90, 1e-90]))
    run_network([tmp_path], tmp_path / "out")
    plain, wild = (read_networks(tmp_path / "out", name) for name in ("plain", "wild"))
    np.testing.assert_allclose(plain, wild, atol=1e-6)
    assert not [warning for warning in recwarn if not issubclass(warning.category, ResourceWarning)]


def test_binary_series_are_not_standardised(tmp_path):
    X = (made_series(1) > 0).astype(float)
    series = save_series(tmp_path / "votes.csv", X)
    assert main(["network", str(series), "--family", "binomial", "--out", str(tmp_path / "out")]) == 0
    expected = StreamingNetwork(family="binomial").fit_transform(X)
    np.testing.assert_allclose(read_networks(tmp_path / "out"), expected, rtol=1e-6, atol=1e-7)


def test_an_error_names_the_file_whatever_its_name(tmp_path, capsys):
    series = save_series(tmp_path / "bin.csv", made_series(1))
    assert "bin.csv: X: " in refused(capsys, series, "--family", "binomial", "--out", tmp_path / "out")


def test_dollar_signs_in_names_are_not_formulas(tmp_path):
    series = save_series(tmp_path / "one.csv", made_series(1), [r"$\nothing{$", "$b_1$", "c", "d", "e"])
    (tmp_path / "events.tsv").write_text("onset\tduration\ttrial_type\n4\t6\t$\\what{$\n")
    arguments = ["--events", str(tmp_path / "events.tsv"), "--tr", "0.5", "--out", str(tmp_path / "out")]
    assert main(["network", str(series), *arguments]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES


def test_an_earlier_report_does_not_remain_beside_new_tables(tmp_path, monkeypatch):
    series = save_series(tmp_path / "one.csv", made_series(1))
    run_network([series], tmp_path / "out")

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("streamlasso.network.files.draw_networks", fail)
    with pytest.raises(OSError, match="no space"):
        run_network([series], tmp_path / "out", model=Model(rule="or"))
    assert not {"report.html", "run.json"} & {path.name for path in (tmp_path / "out").iterdir()}


def test_every_option_is_explained(capsys):
    assert main(["network", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for phrase in (
        "lam moves",
        "lars and sgd need one",
        "stop after this many volumes",
        "stop after this many seconds",
    ):
        assert phrase in text.replace("│ │ ", "")


def test_folders_are_searched_for_subjects_only(study):
    """The folder also holds events, and the output of a run."""
    folder, out = study
    assert [path.name for path in find_files([folder])] == ["subject_1.csv", "subject_2.csv"]
    assert [path.name for path in find_files([folder], [folder / "subject_1.csv"])] == ["subject_2.csv"]
    assert out.is_relative_to(folder)
