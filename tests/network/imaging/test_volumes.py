"""Volumes from files: complete ones as they are; broken ones as errors, however they were broken."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from streamlasso.network.imaging.volumes import Refused, Unreadable, is_volume, number_of, read_volume
from support.scans import AFFINE, SHAPE, made_run, save_enhanced, save_mosaic, save_nifti, save_slice

WHOLE = np.arange(np.prod(SHAPE)).reshape(SHAPE)


def test_nifti_is_read_with_its_number_and_series(tmp_path):
    for name in ("run1_vol_0012.nii", "run1_vol_0012.nii.gz"):
        volume = read_volume(save_nifti(tmp_path / name, WHOLE.astype(np.float32)))
        np.testing.assert_array_equal(volume.data, WHOLE)
        np.testing.assert_allclose(volume.affine, AFFINE)
        assert (volume.series, volume.number) == ("run1_vol_", 12)


def test_a_volume_with_a_fourth_dimension_of_one_is_a_volume(tmp_path):
    volume = read_volume(save_nifti(tmp_path / "vol_1.nii", WHOLE[..., None].astype(np.float32)))
    assert volume.data.shape == SHAPE


@pytest.mark.parametrize(("save", "corner"), [(save_mosaic, (9.0, 7.5)), (save_enhanced, (0.0, 0.0))])
def test_dicom_voxels_are_where_the_header_says(tmp_path, save, corner):
    """Rows run along the patient's y, columns along x; NIfTI's point the other way. A mosaic's corner is off."""
    volume = read_volume(save(tmp_path / "whatever.dcm", WHOLE, number=7))
    assert volume.number == 7
    row, column, depth = np.indices(SHAPE).reshape(3, -1)
    places = np.array([-(corner[1] + 3 * column), -(corner[0] + 3 * row), 3 * depth, np.ones(len(row))])
    i, j, k = np.rint(np.linalg.inv(volume.affine) @ places).astype(int)[:3]
    np.testing.assert_array_equal(volume.data[i, j, k], WHOLE.ravel())


def test_dicom_series_are_distinguished(tmp_path):
    one, two, three = (
        read_volume(save_mosaic(tmp_path / f"{k}.dcm", WHOLE, number=k, series=series)).series
        for k, series in enumerate("aab")
    )
    assert one == two != three


def test_a_slice_is_refused_with_advice(tmp_path):
    with pytest.raises(Refused, match=r"6 x 5 is not one volume: export mosaics .* with dcm2niix"):
        read_volume(save_slice(tmp_path / "slice.dcm", 1))


def test_a_mosaic_without_its_header_is_not_read_as_a_slice(tmp_path):
    path = save_slice(tmp_path / "a.dcm", 1, ImageType=["ORIGINAL", "PRIMARY", "M", "MOSAIC"], AcquisitionNumber=1)
    with pytest.raises(Refused, match="a mosaic without a Siemens CSA header"):
        read_volume(path)


def test_a_whole_run_is_refused_with_advice(tmp_path):
    with pytest.raises(Refused, match=r"6 x 5 x 4 x 3 is not one volume.*streamlasso network"):
        read_volume(save_nifti(tmp_path / "run_1.nii", made_run(3)))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("kind", ["vol_1.nii", "vol_1.nii.gz", "mosaic.dcm", "enhanced.dcm"])
def test_a_file_truncated_anywhere_is_never_a_wrong_volume(tmp_path, kind, share):
    """A compressed file that lacks only its last bytes has all voxels, and may be read."""
    path = tmp_path / kind
    if kind.startswith("vol"):
        save_nifti(path, np.random.default_rng(0).normal(size=SHAPE))
    else:
        (save_mosaic if kind.startswith("mosaic") else save_enhanced)(path, WHOLE, number=1)
    data, right = path.read_bytes(), read_volume(path).data
    path.write_bytes(data[: int(share * len(data))])
    try:
        found = read_volume(path).data
    except Unreadable:
        return
    assert (kind, share) == ("vol_1.nii.gz", 0.999)
    np.testing.assert_array_equal(found, right)


def test_noise_is_unreadable(tmp_path):
    noise = np.random.default_rng(1).bytes(5000)
    for name, data in (("a.dcm", noise), ("a.nii", noise), ("a.nii.gz", noise), ("b.nii.gz", gzip.compress(noise))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(Unreadable):
            read_volume(tmp_path / name)


@pytest.mark.parametrize("name", ["a.nii", "b.nii.gz", "c.dcm", "d.IMA"])
def test_volumes_are_recognised_by_name(tmp_path, name):
    assert is_volume(tmp_path / name)
    assert not is_volume(tmp_path / f".{name}")
    assert not is_volume(tmp_path / f"{name}.part")


def test_the_last_number_of_a_name_counts():
    assert number_of(Path("sub-02_run-1_vol7.nii")) == ("sub-02_run-1_vol", 7)
    assert number_of(Path("001_000004_000123.dcm")) == ("001_000004_", 123)
