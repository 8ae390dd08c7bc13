"""Recorded runs: region means, the time between volumes, damaged files."""

import nibabel
import numpy as np
import pytest

from streamlasso.network.imaging.nifti import load_run, read_run, seconds_per_volume
from support.scans import AFFINE, LABELS, NAMES, SHAPE, atlas_labels, made_run, region_means, save_nifti


def test_a_run_becomes_the_means_of_its_regions(tmp_path, atlas):
    run = made_run(8)
    series = read_run(save_nifti(tmp_path / "run.nii.gz", run, tr=0.72), atlas)
    np.testing.assert_allclose(series.values, [region_means(run[..., t]) for t in range(8)], rtol=1e-5)
    assert (series.regions, series.subject) == (NAMES, "run")
    assert series.tr == pytest.approx(0.72)
    np.testing.assert_allclose(series.coords, atlas.centres)


@pytest.mark.parametrize("name", ["run.nii", "run.nii.gz"])
def test_large_runs_are_read_in_blocks_from_disk(tmp_path, atlas, monkeypatch, name):
    monkeypatch.setattr("streamlasso.network.imaging.nifti.BLOCK_BYTES", 3 * 8 * np.prod(SHAPE))
    run = made_run(8)
    series = read_run(save_nifti(tmp_path / name, run, tr=0.72), atlas)
    np.testing.assert_allclose(series.values, [region_means(run[..., t]) for t in range(8)], rtol=1e-5)
    assert series.tr == pytest.approx(0.72)


@pytest.mark.filterwarnings("error", "ignore:Applying .mask_img. before:DeprecationWarning")
def test_a_missing_voxel_is_not_zero(tmp_path, atlas):
    run = made_run(8)
    run[*np.argwhere(atlas_labels() == LABELS[1])[0], 5] = np.nan
    run[*np.argwhere(atlas_labels() == 0)[0], 2] = np.nan
    series = read_run(save_nifti(tmp_path / "run.nii.gz", run, tr=0.72), atlas)
    np.testing.assert_allclose(series.values, [region_means(run[..., t]) for t in range(8)], rtol=1e-5)
    assert np.isnan(series.values).sum() == np.isnan(series.values[5, 1]) == 1
    assert f"{NAMES[1]}: missing values at some time points; left out" in series.usable().notes


def test_scaled_integers_are_rescaled(tmp_path, atlas):
    image = nibabel.Nifti1Image(made_run(4), AFFINE)
    image.set_data_dtype(np.int16)
    nibabel.save(image, tmp_path / "run.nii.gz")
    stored = nibabel.load(tmp_path / "run.nii.gz").get_fdata()
    assert nibabel.load(tmp_path / "run.nii.gz").dataobj.slope != 1
    series = read_run(tmp_path / "run.nii.gz", atlas)
    np.testing.assert_allclose(series.values, [region_means(stored[..., t]) for t in range(4)], rtol=1e-5)


def test_regions_outside_the_image_are_left_out_with_a_note(tmp_path, atlas):
    run = made_run(8)[:4]
    series = read_run(save_nifti(tmp_path / "run.nii", run, tr=0.72), atlas)
    assert series.regions == NAMES[:4]
    assert len(series.notes) == 1
    assert "left side and right side" in series.notes[0]
    expected = [[run[..., t][atlas_labels()[:4] == value].mean() for value in LABELS[:4]] for t in range(8)]
    np.testing.assert_allclose(series.values, expected, rtol=1e-5)


def test_milliseconds_are_seconds(tmp_path):
    image = nibabel.Nifti1Image(made_run(3), AFFINE)
    image.header.set_xyzt_units("mm", "msec")
    image.header.set_zooms((3, 3, 3, 720))
    nibabel.save(image, tmp_path / "run.nii")
    assert seconds_per_volume(tmp_path / "run.nii", load_run(tmp_path / "run.nii")) == pytest.approx(0.72)


def test_milliseconds_stated_as_seconds_are_noted(tmp_path, atlas):
    series = read_run(save_nifti(tmp_path / "run.nii", made_run(3), tr=2000.0), atlas)
    assert series.tr == 2.0
    assert series.notes == ("2000 s between volumes is read as milliseconds: 2 s",)


def test_volumes_and_damaged_runs_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"6 x 5 x 4, not a 4-D run.*--watch"):
        load_run(save_nifti(tmp_path / "one.nii", made_run(1)[..., 0]))
    path = save_nifti(tmp_path / "run.nii.gz", made_run(10))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="damaged or truncated"):
        load_run(path)
