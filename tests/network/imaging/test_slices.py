"""Slices into volumes: in any order, the same voxels at the same positions; what does not fit is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.network.imaging.slices import MAX_WAITING, Stacks
from streamlasso.network.imaging.volumes import Refused, Slice, Volume, read_volume
from support.scans import SHAPE, made_run, save_slice, save_slices

WHOLE = np.arange(np.prod(SHAPE)).reshape(SHAPE)
N = SHAPE[2]


def piece(number, k, series="a", apart=3.0):
    """A slice whose only voxel identifies it."""
    affine = np.eye(4)
    affine[2, 3] = apart * k
    return Slice(np.full((1, 1), 100.0 * number + k), affine, apart * k, series, number)


def numbers(volumes):
    return [volume.number for volume in volumes]


@pytest.mark.parametrize("tag", ["TemporalPositionIdentifier", "AcquisitionNumber"])
def test_voxels_are_where_the_headers_say(tmp_path, tag):
    """The oracle is DICOM's equation, slice by slice: rows along y, columns along x, NIfTI's the other way."""
    stacks, volumes = Stacks(), []
    for number in (1, 2):
        for path in save_slices(tmp_path, WHOLE + number, number, tag=tag):
            volumes += stacks.add(read_volume(path))
    assert numbers(volumes) == [1, 2]
    for volume in volumes:
        row, column, depth = np.indices(SHAPE).reshape(3, -1)
        places = np.array([-3.0 * column, -3.0 * row, 3.0 * depth, np.ones(len(row))])
        i, j, k = np.rint(np.linalg.inv(volume.affine) @ places).astype(int)[:3]
        np.testing.assert_array_equal(volume.data[i, j, k], (WHOLE + volume.number).ravel())
        np.testing.assert_allclose(np.linalg.norm(volume.affine[:3, :3], axis=0), 3)


@pytest.mark.parametrize("order", list(itertools.permutations(range(N)))[::5])
def test_any_order_of_the_slices_gives_the_same_volume(tmp_path, order):
    run = np.rint(made_run(2))
    stacks = Stacks()
    found = [
        volume
        for number in (1, 2)
        for path in save_slices(tmp_path, run[..., number - 1], number, order=order)
        for volume in stacks.add(read_volume(path))
    ]
    assert numbers(found) == [1, 2]
    for volume in found:
        # Slices are stacked upwards along their normal, which points down here: nibabel's is row x column.
        upwards = volume.data if volume.affine[2, 2] > 0 else volume.data[..., ::-1]
        np.testing.assert_array_equal(upwards, run[..., volume.number - 1])


def test_a_volume_is_complete_with_its_last_slice_once_two_have_the_same_positions():
    stacks = Stacks()
    completed = {(number, k): numbers(stacks.add(piece(number, k))) for number in (1, 2, 3) for k in range(N)}
    assert {key: volumes for key, volumes in completed.items() if volumes} == {(2, N - 1): [1, 2], (3, N - 1): [3]}
    assert stacks.n_waiting == 0


def test_an_incomplete_first_volume_does_not_define_the_positions():
    stacks = Stacks()
    for number in (1, 2, 3):
        for k in range(N):
            if (number, k) != (1, 1):
                found = stacks.add(piece(number, k))
    assert numbers(found) == [2, 3]
    assert stacks.partial("a", 1) == f"{N - 1} of {N} slices"
    assert stacks.partial("a", 2) == stacks.partial("b", 1) == stacks.partial(None, 7) == ""
    assert numbers(stacks.add(piece(1, 1))) == [1]


def test_slices_at_other_positions_are_refused():
    stacks = Stacks()
    for number, k in itertools.product((1, 2), range(N)):
        stacks.add(piece(number, k))
    with pytest.raises(Refused, match=r"at 12 mm, where earlier volumes have none .4 slices from 0 to 9 mm") as refused:
        stacks.add(piece(3, N))
    assert refused.value.series == "a"


def test_volumes_that_share_a_number_are_refused():
    stacks = Stacks()
    for k in range(N):
        stacks.add(piece(1, k))
    with pytest.raises(
        Refused, match="TemporalPositionIdentifier or AcquisitionNumber does not distinguish the volumes"
    ):
        stacks.add(piece(1, 0))


def test_slices_of_another_shape_or_orientation_are_refused():
    """A localiser has slices in three orientations."""
    stacks = Stacks()
    stacks.add(piece(1, 0))
    turned = piece(1, 1)
    turned.affine[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    larger = replace(piece(1, 1), data=np.zeros((2, 1)))
    for odd in (turned, larger):
        with pytest.raises(Refused, match="its shape or orientation differs from other slices of volume 1"):
            stacks.add(odd)


def test_unevenly_spaced_slices_are_not_a_volume():
    stacks = Stacks()
    for number in (1, 2):
        for k in (0, 1, 5):
            assert stacks.add(piece(number, k)) == []


def test_echoes_are_series_of_their_own(tmp_path):
    stacks, volumes = Stacks(), []
    for number in (1, 2):
        for echo in (1, 2):
            for path in save_slices(tmp_path, WHOLE + 1000 * echo, number, echo=echo):
                volumes += stacks.add(read_volume(path))
    assert sorted({volume.series.split()[-1] for volume in volumes}) == ["1", "2"]
    for volume in volumes:
        np.testing.assert_array_equal(np.unique(volume.data), WHOLE.ravel() + 1000 * int(volume.series.split()[-1]))


def test_slices_that_never_become_volumes_are_dropped():
    stacks = Stacks()
    for number in range(1, 10 * MAX_WAITING):
        stacks.add(piece(number, number % 7))
    assert stacks.n_waiting <= MAX_WAITING + 1


def test_a_slice_has_its_volume_and_position(tmp_path):
    found = read_volume(save_slice(tmp_path / "a.dcm", 17, data=WHOLE[..., 2], place=-6.0, AcquisitionNumber=5))
    assert isinstance(found, Slice)
    assert (found.number, abs(found.place)) == (5, 6.0)
    np.testing.assert_array_equal(found.data, WHOLE[..., 2])


@given(st.permutations([(number, k) for number in range(1, 5) for k in range(3)]))
def test_in_any_order_volumes_are_complete_or_absent(order):
    """At worst the first volumes define too few positions, and other slices are refused; none are mixed."""
    stacks, found, refused = Stacks(), [], 0
    for number, k in order:
        try:
            found += stacks.add(piece(number, k))
        except Refused:
            refused += 1
    assert len(numbers(found)) == len(set(numbers(found)))
    for volume in found:
        assert isinstance(volume, Volume)
        assert set(np.floor(volume.data.ravel() / 100)) == {volume.number}
        assert volume.data.shape[2] >= 2
    if not refused:
        assert sorted(numbers(found)) == [1, 2, 3, 4]
