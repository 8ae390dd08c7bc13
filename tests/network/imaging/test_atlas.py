"""Atlases: grids, names and centres."""

import nibabel
import numpy as np
import pytest
from scipy.ndimage import center_of_mass

from streamlasso.network.imaging.atlas import load_atlas, read_coords, read_names, same_grid
from streamlasso.network.imaging.nifti import load_run, read_run, seconds_per_volume
from support.scans import AFFINE, LABELS, NAMES, SHAPE, atlas_labels, made_run, region_means, save_atlas, save_nifti


@pytest.fixture
def atlas(tmp_path):
    return load_atlas(save_atlas(tmp_path / "atlas.nii.gz"))


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
    ("data", "words"),
    [
        (np.zeros((*SHAPE, 3)), "4 dimensions"),
        (np.full(SHAPE, 0.5), "whole numbers"),
        (-atlas_labels(), "whole numbers"),
        (np.ones(SHAPE), "1 regions"),
    ],
)
def test_what_is_no_atlas_is_refused(tmp_path, data, words):
    with pytest.raises(ValueError, match=words):
        load_atlas(save_nifti(tmp_path / "a.nii", np.asarray(data, dtype=np.float32)))


def test_a_damaged_atlas_is_refused(tmp_path):
    path = save_atlas(tmp_path / "a.nii")
    path.write_bytes(path.read_bytes()[:400])
    with pytest.raises(ValueError, match=r"--atlas .*a.nii: no image that can be read"):
        load_atlas(path)


def test_the_same_grid_is_left_alone(atlas):
    assert atlas.onto(SHAPE, AFFINE + 1e-6) == (atlas, [])
    assert not same_grid(SHAPE, AFFINE, SHAPE, np.diag([2.0, 3, 3, 1]))


def test_another_grid_is_met_by_the_nearest_label(atlas):
    """Voxels of a third of the side: every one of them lies within a known voxel of the atlas."""
    fine = AFFINE.copy()
    fine[:3, :3] /= 3
    fine[:3, 3] -= 1.0
    shape = tuple(3 * side for side in SHAPE)
    moved, notes = atlas.onto(shape, fine)
    expected = np.kron(atlas_labels(), np.ones((3, 3, 3), dtype=int))
    np.testing.assert_array_equal(np.asarray(moved.image().dataobj), expected)
    assert len(notes) == 1
    assert "6 x 5 x 4 voxels of 3 x 3 x 3 mm" in notes[0]
    assert "18 x 15 x 12 voxels of 1 x 1 x 1 mm" in notes[0]


def test_regions_outside_of_the_image_are_named(atlas):
    moved, (note,) = atlas.onto((4, *SHAPE[1:]), AFFINE)
    assert note.endswith("left out: left side, right side")
    assert moved.sizes.tolist()[-2:] == [0, 0]


def test_grids_that_do_not_overlap_are_refused(atlas):
    away = AFFINE.copy()
    away[0, 3] += 500
    with pytest.raises(ValueError, match="do not overlap: 6 of 6 regions"):
        atlas.onto(SHAPE, away)


def test_grids_that_sound_alike_are_told_apart(atlas):
    shifted = AFFINE.copy()
    shifted[0, 3] += 1.0
    assert "voxels of 3 x 3 x 3 mm, 1 mm off at most) are on different grids" in atlas.onto(SHAPE, shifted)[1][0]
    turned = AFFINE @ np.diag([-1.0, 1, 1, 1])
    turned[0, 3] += 15
    moved, (note,) = atlas.onto(SHAPE, turned)
    assert ", 15 mm off at most)" in note
    np.testing.assert_array_equal(moved.labels, atlas.labels[::-1])


TABLES = {
    "bids.tsv": "index\tname\tcolor\n2\tA\tred\n7\tB\tblue\n11\tC\tgreen\n",
    "others.tsv": "id\tlabel\n2\tA\n3\tX\n7\tB\n11\tC\n",
    "bare.csv": "2,A\n7,B\n11,C\n",
    "aal.txt": "1 A 2\n2 B 7\n3 C 11\n",
    "freesurfer.txt": "#No. Label R G B A\n0 Unknown 0 0 0 0\n2 A 25 5 25 0\n7 B 7 7 25 0\n11 C 1 1 1 0\n",
    "list.txt": "A\nB\nC\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_names_are_found_in_the_tables_that_people_have(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name])
    assert read_names(tmp_path / name, [2, 7, 11]) == ("A", "B", "C")


@pytest.mark.parametrize("names", [("area 1", "area 2", "area 3"), ("left V1", "left M1", "right V1"), ("1", "2", "3")])
def test_names_of_two_words_are_no_table(tmp_path, names):
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


# --- runs -------------------------------------------------------------------------------------------------------------


def test_a_run_becomes_the_means_of_its_regions(tmp_path, atlas):
    run = made_run(8)
    series = read_run(save_nifti(tmp_path / "run.nii.gz", run, tr=0.72), atlas)
    np.testing.assert_allclose(series.values, [region_means(run[..., t]) for t in range(8)], rtol=1e-5)
    assert (series.regions, series.subject) == (NAMES, "run")
    assert series.tr == pytest.approx(0.72)
    np.testing.assert_allclose(series.coords, atlas.centres)


@pytest.mark.parametrize("name", ["run.nii", "run.nii.gz"])
def test_large_runs_are_read_in_pieces_from_the_disk(tmp_path, atlas, monkeypatch, name):
    monkeypatch.setattr("streamlasso.network.imaging.nifti.LARGE", 0)
    monkeypatch.setattr("streamlasso.network.imaging.nifti.BLOCK_BYTES", 3 * 8 * np.prod(SHAPE))
    run = made_run(8)
    series = read_run(save_nifti(tmp_path / name, run, tr=0.72), atlas)
    np.testing.assert_allclose(series.values, [region_means(run[..., t]) for t in range(8)], rtol=1e-5)
    assert series.tr == pytest.approx(0.72)


@pytest.mark.filterwarnings("error")
def test_a_voxel_that_is_not_a_number_is_no_zero(tmp_path, atlas):
    run = made_run(8)
    run[*np.argwhere(atlas_labels() == LABELS[1])[0], 5] = np.nan
    run[*np.argwhere(atlas_labels() == 0)[0], 2] = np.nan
    series = read_run(save_nifti(tmp_path / "run.nii.gz", run, tr=0.72), atlas)
    np.testing.assert_allclose(series.values, [region_means(run[..., t]) for t in range(8)], rtol=1e-5)
    assert np.isnan(series.values).sum() == np.isnan(series.values[5, 1]) == 1
    assert f"{NAMES[1]}: not a number at some time points; left out" in series.usable().notes


def test_scaled_integers_are_read_as_what_they_stand_for(tmp_path, atlas):
    image = nibabel.Nifti1Image(made_run(4), AFFINE)
    image.set_data_dtype(np.int16)
    nibabel.save(image, tmp_path / "run.nii.gz")
    stored = nibabel.load(tmp_path / "run.nii.gz").get_fdata()
    assert nibabel.load(tmp_path / "run.nii.gz").dataobj.slope != 1
    series = read_run(tmp_path / "run.nii.gz", atlas)
    np.testing.assert_allclose(series.values, [region_means(stored[..., t]) for t in range(4)], rtol=1e-5)


def test_regions_that_the_image_does_not_reach_are_left_out_by_name(tmp_path, atlas):
    run = made_run(8)[:4]
    series = read_run(save_nifti(tmp_path / "run.nii", run, tr=0.72), atlas)
    assert series.regions == NAMES[:4]
    assert len(series.notes) == 1
    assert "left side, right side" in series.notes[0]
    expected = [[run[..., t][atlas_labels()[:4] == value].mean() for value in LABELS[:4]] for t in range(8)]
    np.testing.assert_allclose(series.values, expected, rtol=1e-5)


def test_milliseconds_are_seconds(tmp_path):
    image = nibabel.Nifti1Image(made_run(3), AFFINE)
    image.header.set_xyzt_units("mm", "msec")
    image.header.set_zooms((3, 3, 3, 720))
    nibabel.save(image, tmp_path / "run.nii")
    assert seconds_per_volume(tmp_path / "run.nii", load_run(tmp_path / "run.nii")) == pytest.approx(0.72)


def test_milliseconds_that_are_called_seconds_are_told(tmp_path, atlas):
    series = read_run(save_nifti(tmp_path / "run.nii", made_run(3), tr=2000.0), atlas)
    assert series.tr == 2.0
    assert series.notes == ("2000 s between volumes, it says: taken for milliseconds, 2 s",)


def test_volumes_and_damaged_runs_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"6 x 5 x 4; a run is 4-D.*--watch"):
        load_run(save_nifti(tmp_path / "one.nii", made_run(1)[..., 0]))
    path = save_nifti(tmp_path / "run.nii.gz", made_run(10))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match="damaged or cut short"):
        load_run(path)
