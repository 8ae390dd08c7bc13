"""Means over regions: files from a scanner, on the grid of the first volume."""

import nibabel
import numpy as np
import pytest
from nilearn.maskers import NiftiLabelsMasker

from streamlasso.network.imaging.atlas import load_atlas
from streamlasso.network.imaging.regions import RegionReader
from streamlasso.network.imaging.volumes import Refused, read_volume
from support.scans import (
    AFFINE,
    NAMES,
    SHAPE,
    atlas_labels,
    made_run,
    region_means,
    save_atlas,
    save_mosaic,
    save_nifti,
)

WHOLE = np.arange(np.prod(SHAPE)).reshape(SHAPE)


def test_means_agree_with_a_plain_loop_and_with_nilearn(tmp_path):
    atlas = load_atlas(save_atlas(tmp_path / "atlas.nii"))
    run = made_run(5)
    ours = np.array([atlas.means(run[..., t]) for t in range(5)])
    np.testing.assert_allclose(ours, [region_means(run[..., t]) for t in range(5)], rtol=1e-6)
    labels = nibabel.Nifti1Image(atlas_labels(), AFFINE)
    theirs = NiftiLabelsMasker(labels, standardize=None).fit_transform(nibabel.Nifti1Image(run, AFFINE))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert atlas.names == NAMES


def test_the_first_volume_fixes_the_grid(tmp_path):
    reader = RegionReader(load_atlas(save_atlas(tmp_path / "atlas.nii")))
    volume = made_run(1)[..., 0]
    reading = reader(save_nifti(tmp_path / "vol_1.nii", volume))
    np.testing.assert_allclose(reading.means, region_means(volume), rtol=1e-6)
    with pytest.raises(Refused, match=r"its grid .5 x 5 x 4 voxels.* differs") as refused:
        reader(save_nifti(tmp_path / "vol_2.nii", volume[:5]))
    assert (refused.value.series, refused.value.number) == ("vol_", 2)
    moved = AFFINE.copy()
    moved[0, 3] += 3
    with pytest.raises(Refused, match="its grid"):
        reader(save_nifti(tmp_path / "vol_3.nii", volume, moved))


def test_dicom_volumes_are_matched_with_the_atlas_by_position(tmp_path):
    """The same voxels both ways: the atlas is on the grid of the mosaic."""
    first = read_volume(save_mosaic(tmp_path / "1.dcm", WHOLE, number=1))
    save_nifti(tmp_path / "atlas.nii", atlas_labels(), first.affine)
    reader = RegionReader(load_atlas(tmp_path / "atlas.nii"))
    np.testing.assert_allclose(reader(tmp_path / "1.dcm").means, region_means(WHOLE))
    assert not reader.notes
