"""Files beside an image in a BIDS dataset."""

import json

import pytest

from streamlasso.network.imaging.bids import find_confounds, find_events, repetition_time
from support.scans import write_tsv


@pytest.fixture
def dataset(tmp_path):
    """A raw dataset with derivatives inside; two tasks, two subjects."""
    (tmp_path / "dataset_description.json").parent.mkdir(exist_ok=True)
    (tmp_path / "dataset_description.json").write_text("{}")
    (tmp_path / "task-emotion_bold.json").write_text(json.dumps({"RepetitionTime": 0.72}))
    for sub in ("01", "02"):
        for task in ("emotion", "rest"):
            write_tsv(
                tmp_path / f"sub-{sub}/func/sub-{sub}_task-{task}_events.tsv",
                f"onset duration trial_type\n1 2 {sub}{task}\n",
            )
    derived = tmp_path / "derivatives/fmriprep/sub-02/func"
    write_tsv(derived / "sub-02_task-emotion_desc-confounds_timeseries.tsv", "trans_x\n1\n")
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
