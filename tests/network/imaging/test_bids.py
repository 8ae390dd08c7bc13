"""Events and confounds as BIDS has them."""

import json

import numpy as np
import pytest

from streamlasso.network.imaging.bids import (
    Event,
    doubts_about,
    find_confounds,
    find_events,
    never_seen,
    read_confounds,
    read_events,
    repetition_time,
    within,
    without_confounds,
)


def tsv(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(" ", "\t"))
    return path


def test_events_are_read_in_order_of_time(tmp_path):
    path = tsv(tmp_path / "events.tsv", "duration onset trial_type extra\n18 52.7 fear 1\nn/a 10 cue n/a\n2 -1 n/a 3\n")
    assert read_events(path) == [Event(10, 0, "cue"), Event(52.7, 18, "fear")]


def test_events_without_kinds_are_of_one(tmp_path):
    assert read_events(tsv(tmp_path / "e.tsv", "onset duration\n1 2\n")) == [Event(1, 2, "event")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("onset trial_type\n1 fear\n", "no column duration"),
        ("onset duration\nsoon 2\n", "line 2: the onset 'soon'"),
        ("onset duration\n1 2\n1 -2\n", "line 3: the duration is -2"),
        ("onset duration\n1 2 3\n", "line 2: 3 fields"),
        ("onset;duration\n1;2\n", "no column onset and duration; .* with tabs or commas"),
        ("", "nothing in it"),
        ("onset duration\nnan 2\n", "the onset 'nan'"),
    ],
)
def test_bad_events_are_named(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_events(tsv(tmp_path / "events.tsv", text))


@pytest.mark.parametrize(
    "text",
    [
        "Onset Duration Trial_Type\n1 2 fear\n",
        "onset,duration,trial_type\n1,2,fear\n",
        "onset duration condition\n1 2 fear\n",
    ],
)
def test_events_may_be_written_a_little_differently(tmp_path, text):
    path = tsv(tmp_path / "e.tsv", text)
    assert read_events(path) == [Event(1, 2, "fear")]
    assert doubts_about(path, read_events(path)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("onset duration trial_type\n", "there are no events in it"),
        ("onset duration trial_type\n1 2 n/a\n", "there are no events in it"),
        ("onset duration\n1 2\n", "no column trial_type, so all events are of one kind"),
        ("onset duration stimulus rt\n1 2 face 3\n", "if one of stimulus, rt tells them apart, call it so"),
    ],
)
def test_events_that_may_be_meant_otherwise_are_told(tmp_path, text, words):
    path = tsv(tmp_path / "e.tsv", text)
    assert words in doubts_about(path, read_events(path))[0]


def test_conditions_that_no_time_point_shows_are_told():
    events = [Event(1, 0, "cue"), Event(5, 6, "fear"), Event(3.1, 0.2, "blink")]
    (words,) = never_seen(events, np.arange(0.0, 30.0, 2.0), 1.0, 2.0)
    assert words.startswith("cue, blink: no time point falls into such events, 1 s later (the longest lasts 0.2 s")
    assert never_seen(events[1:2], np.arange(0.0, 30.0, 2.0), 1.0, 2.0) == []


def test_onsets_in_milliseconds_are_suspected():
    assert within([Event(10000, 18000, "fear")], 0.0, 100.0)[1].endswith(
        "none is left; onsets, --tr and --start are in seconds"
    )


def test_events_beyond_the_scan_are_left_out_and_the_last_is_cut():
    events = [Event(0, 10, "a"), Event(95, 20, "b"), Event(100, 5, "a"), Event(300, 5, "b")]
    kept, words = within(events, 0.0, 100.0)
    assert kept == [Event(0, 10, "a"), Event(95, 5, "b")]
    assert "outside of the scan (0 to 100 s) left out: a at 100 s, b at 300 s" in words
    assert "b at 95 s: cut where the scan ends, at 100 s" in words
    assert within(events[:1], 0.0, 100.0) == (events[:1], "")


def test_events_before_the_first_volume_count_if_they_last():
    kept, _ = within([Event(-20, 5, "gone"), Event(-2, 5, "on")], 0.0, 50.0)
    assert kept == [Event(-2, 5, "on")]


# --- confounds --------------------------------------------------------------------------------------------------------


def test_confounds_are_taken_out_as_nilearn_does():
    from nilearn.signal import clean

    rng = np.random.default_rng(0)
    values, confounds = rng.normal(size=(60, 4)) + 50, rng.normal(size=(60, 3))
    confounds[:, 2] = 1000 + np.arange(60)
    ours = without_confounds(values, confounds)
    theirs = clean(values, confounds=confounds, detrend=False, standardize=None, standardize_confounds=True)
    np.testing.assert_allclose(ours - ours.mean(axis=0), theirs - theirs.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(ours.mean(axis=0), values.mean(axis=0))


def test_constant_confounds_do_no_harm():
    values = np.random.default_rng(0).normal(size=(10, 2))
    np.testing.assert_allclose(without_confounds(values, np.ones((10, 1))), values)


@pytest.mark.filterwarnings("error")
def test_a_confound_without_values_is_not_said_to_be_taken_out(tmp_path):
    path = tmp_path / "confounds.tsv"
    path.write_text("trans_x\tcsf\nn/a\tn/a\n1\tn/a\n3\tn/a\n")
    values, used = read_confounds(path)
    assert used == ["trans_x"]
    np.testing.assert_array_equal(values, [[2], [1], [3]])


def test_the_usual_columns_are_taken_where_they_are_there(tmp_path):
    path = tsv(
        tmp_path / "c.tsv",
        "global_signal trans_x rot_z cosine00 cosine01 trans_x_derivative1\n9 1 2 3 4 n/a\n8 2 3 4 5 6\n7 3 4 5 7 8\n",
    )
    values, names = read_confounds(path)
    assert names == ["trans_x", "rot_z", "cosine00", "cosine01"]
    values, names = read_confounds(path, ["trans_x_*"])
    assert names == ["trans_x_derivative1"]
    np.testing.assert_array_equal(values, [[7], [6], [8]])
    with pytest.raises(
        ValueError, match="no column csf; name some of its columns with --confound-columns: global_signal"
    ):
        read_confounds(path, ["csf"])


# --- where things lie -------------------------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path):
    """A raw dataset with derivatives inside; two tasks, two subjects."""
    (tmp_path / "dataset_description.json").parent.mkdir(exist_ok=True)
    (tmp_path / "dataset_description.json").write_text("{}")
    (tmp_path / "task-emotion_bold.json").write_text(json.dumps({"RepetitionTime": 0.72}))
    for sub in ("01", "02"):
        for task in ("emotion", "rest"):
            tsv(
                tmp_path / f"sub-{sub}/func/sub-{sub}_task-{task}_events.tsv",
                f"onset duration trial_type\n1 2 {sub}{task}\n",
            )
    derived = tmp_path / "derivatives/fmriprep/sub-02/func"
    tsv(derived / "sub-02_task-emotion_desc-confounds_timeseries.tsv", "trans_x\n1\n")
    return tmp_path


def test_the_events_of_the_same_run_are_found(dataset):
    raw = dataset / "sub-01/func/sub-01_task-emotion_bold.nii.gz"
    derived = dataset / "derivatives/fmriprep/sub-02/func/sub-02_task-emotion_space-MNI_desc-preproc_bold.nii.gz"
    assert find_events(raw).name == "sub-01_task-emotion_events.tsv"
    assert find_events(derived).name == "sub-02_task-emotion_events.tsv"
    assert find_events(dataset / "sub-01/func/sub-01_task-other_bold.nii.gz") is None
    assert find_events(dataset / "plain.nii.gz") is None
    assert find_events(dataset / "derivatives/sub-01_task-emotion_bold.nii.gz") is None


def test_confounds_and_sidecars_are_found(dataset):
    derived = dataset / "derivatives/fmriprep/sub-02/func/sub-02_task-emotion_space-MNI_desc-preproc_bold.nii.gz"
    assert find_confounds(derived).name == "sub-02_task-emotion_desc-confounds_timeseries.tsv"
    assert find_confounds(dataset / "sub-01/func/sub-01_task-emotion_bold.nii.gz") is None
    assert repetition_time(dataset / "sub-01/func/sub-01_task-emotion_bold.nii.gz") == 0.72
    assert repetition_time(dataset / "sub-01/func/sub-01_task-rest_bold.nii.gz") is None
