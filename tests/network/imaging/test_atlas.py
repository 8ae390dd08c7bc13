"""Atlases: grids, names and centres."""

import nibabel
import numpy as np
import pytest
from scipy.ndimage import center_of_mass

from streamlasso.network.imaging.atlas import load_atlas, read_coords, read_names, same_grid
from support.scans import AFFINE, LABELS, NAMES, SHAPE, atlas_labels, save_atlas, save_nifti


def test_labels_names_and_centres(atlas):
    assert atlas.values == LABELS
    assert atlas.names == NAMES
    voxels = np.array([center_of_mass(atlas_labels() == value) for value in LABELS])
    np.testing.assert_allclose(atlas.centres, nibabel.affines.apply_affine(AFFINE, voxels))
    np.testing.assert_array_equal(np.asarray(atlas.image().dataobj), atlas_labels())


def test_names_come_from_a_file_a_list_or_numbers(tmp_path):
    path = save_atlas(tmp_path / "bare.nii", names=False)
    assert load_atlas(path).names[2] == "region 5"
    (tmp_path / "list.txt").write_text("\n".join("abcdef"))
    assert load_atlas(path, tmp_path / "list.txt").names == tuple("abcdef")
    (tmp_path / "twice.txt").write_text("a\nb\na\na\ne\nf\n")
    assert load_atlas(path, tmp_path / "twice.txt").names == ("a", "b", "a.2", "a.3", "e", "f")
    (tmp_path / "short.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match="2 names for 6 regions"):
        load_atlas(path, tmp_path / "short.txt")
    (tmp_path / "some.csv").write_text("name,index\nfive,5\n")
    assert load_atlas(path, tmp_path / "some.csv").names[1:3] == ("region 3", "five")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((*SHAPE, 3)), "4 dimensions"),
        (np.full(SHAPE, 0.5), "whole numbers"),
        (-atlas_labels(), "whole numbers"),
        (np.ones(SHAPE), "1 regions"),
    ],
)
def test_an_image_that_is_not_an_atlas_is_refused(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        load_atlas(save_nifti(tmp_path / "a.nii", np.asarray(data, dtype=np.float32)))


def test_a_damaged_atlas_is_refused(tmp_path):
    path = save_atlas(tmp_path / "a.nii")
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(ValueError, match=r"--atlas .*a.nii cannot be read as an image"):
        load_atlas(path)


def test_on_the_same_grid_nothing_is_resampled(atlas):
    assert atlas.onto(SHAPE, AFFINE + 1e-6) == (atlas, [])
    assert not same_grid(SHAPE, AFFINE, SHAPE, np.diag([2.0, 3, 3, 1]))


def test_on_another_grid_each_voxel_has_the_nearest_label(atlas):
    """Voxels of a third of the side: every one of them lies within a known voxel of the atlas."""
    fine = AFFINE.copy()
    fine[:3, :3] /= 3
    fine[:3, 3] -= 1.0
    shape = tuple(3 * side for side in SHAPE)
    resampled, notes = atlas.onto(shape, fine)
    expected = np.kron(atlas_labels(), np.ones((3, 3, 3), dtype=int))
    np.testing.assert_array_equal(np.asarray(resampled.image().dataobj), expected)
    assert len(notes) == 1
    assert "6 x 5 x 4 voxels of 3 x 3 x 3 mm" in notes[0]
    assert "18 x 15 x 12 voxels of 1 x 1 x 1 mm" in notes[0]


def test_regions_outside_the_image_are_noted(atlas):
    resampled, (note,) = atlas.onto((4, *SHAPE[1:]), AFFINE)
    assert note.endswith("left out, without voxels there: left side and right side")
    assert resampled.sizes.tolist()[-2:] == [0, 0]


def test_grids_that_do_not_overlap_are_refused(atlas):
    away = AFFINE.copy()
    away[0, 3] += 500
    with pytest.raises(ValueError, match="do not overlap: 6 of 6 regions"):
        atlas.onto(SHAPE, away)


def test_grids_with_the_same_description_are_distinguished(atlas):
    shifted = AFFINE.copy()
    shifted[0, 3] += 1.0
    assert "voxels of 3 x 3 x 3 mm, up to 1 mm off) are on different grids" in atlas.onto(SHAPE, shifted)[1][0]
    flipped = AFFINE @ np.diag([-1.0, 1, 1, 1])
    flipped[0, 3] += 15
    resampled, (note,) = atlas.onto(SHAPE, flipped)
    assert ", up to 15 mm off)" in note
    np.testing.assert_array_equal(resampled.labels, atlas.labels[::-1])


TABLES = {
    "bids.tsv": "index\tname\tcolor\n2\tA\tred\n7\tB\tblue\n11\tC\tgreen\n",
    "others.tsv": "id\tlabel\n2\tA\n3\tX\n7\tB\n11\tC\n",
    "bare.csv": "2,A\n7,B\n11,C\n",
    "aal.txt": "1 A 2\n2 B 7\n3 C 11\n",
    "freesurfer.txt": "#No. Label R G B A\n0 Unknown 0 0 0 0\n2 A 25 5 25 0\n7 B 7 7 25 0\n11 C 1 1 1 0\n",
    "list.txt": "A\nB\nC\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_names_are_found_in_common_tables(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name])
    assert read_names(tmp_path / name, [2, 7, 11]) == ("A", "B", "C")


@pytest.mark.parametrize("names", [("area 1", "area 2", "area 3"), ("left V1", "left M1", "right V1"), ("1", "2", "3")])
def test_names_of_two_words_are_not_a_table(tmp_path, names):
    (tmp_path / "names.txt").write_text("\n".join(names))
    assert read_names(tmp_path / "names.txt", [1, 2, 3]) == names


def test_coords_by_name_or_in_order(tmp_path):
    path = tmp_path / "coords.csv"
    path.write_text("name,x,y,z\nb,4,5,6\na,1,2,3\n")
    np.testing.assert_array_equal(read_coords(path, ("a", "b")), [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ValueError, match="no row for c"):
        read_coords(path, ("a", "c"))
    path.write_text("x\ty\tz\n1\t2\t3\n")
    np.testing.assert_array_equal(read_coords(path, ("a",)), [[1, 2, 3]])
    with pytest.raises(ValueError, match="1 rows for 2 regions"):
        read_coords(path, ("a", "b"))
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="x, y, z"):
        read_coords(path, ("a",))
