"""Confounds as in fMRIPrep's tables."""

import numpy as np
import pytest

from streamlasso.network.imaging.confounds import read_confounds, without_confounds
from support.scans import write_tsv


def test_confounds_are_regressed_out_as_by_nilearn():
    from nilearn.signal import clean

    rng = np.random.default_rng(0)
    values, confounds = rng.normal(size=(60, 4)) + 50, rng.normal(size=(60, 3))
    confounds[:, 2] = 1000 + np.arange(60)
    ours = without_confounds(values, confounds)
    theirs = clean(values, confounds=confounds, detrend=False, standardize=None, standardize_confounds=True)
    np.testing.assert_allclose(ours - ours.mean(axis=0), theirs - theirs.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(ours.mean(axis=0), values.mean(axis=0))


def test_constant_confounds_change_nothing():
    values = np.random.default_rng(0).normal(size=(10, 2))
    np.testing.assert_allclose(without_confounds(values, np.ones((10, 1))), values)


@pytest.mark.filterwarnings("error")
def test_a_confound_without_values_is_not_used(tmp_path):
    path = tmp_path / "confounds.tsv"
    path.write_text("trans_x\tcsf\nn/a\tn/a\n1\tn/a\n3\tn/a\n")
    values, used = read_confounds(path)
    assert used == ["trans_x"]
    np.testing.assert_array_equal(values, [[2], [1], [3]])


def test_the_default_columns_are_those_present(tmp_path):
    path = write_tsv(
        tmp_path / "c.tsv",
        "global_signal trans_x rot_z cosine00 cosine01 trans_x_derivative1\n9 1 2 3 4 n/a\n8 2 3 4 5 6\n7 3 4 5 7 8\n",
    )
    values, names = read_confounds(path)
    assert names == ["trans_x", "rot_z", "cosine00", "cosine01"]
    values, names = read_confounds(path, ["trans_x_*"])
    assert names == ["trans_x_derivative1"]
    np.testing.assert_array_equal(values, [[7], [6], [8]])
    with pytest.raises(
        ValueError, match="no column csf: choose from its columns with --confound-columns: global_signal"
    ):
        read_confounds(path, ["csf"])
