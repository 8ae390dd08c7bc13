"""Slices into volumes: in any order, the same voxels at the same places; what does not fit is told."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.network.imaging.slices import MOST_WAITING, Stacks
from streamlasso.network.imaging.volumes import Refused, Slice, Volume, read_volume
from support.scans import SHAPE, made_run, save_slice, save_slices

WHOLE = np.arange(np.prod(SHAPE)).reshape(SHAPE)
N = SHAPE[2]


def piece(number, k, series="a", apart=3.0):
    """A slice whose only voxel says which it is."""
    affine = np.eye(4)
    affine[2, 3] = apart * k
    return Slice(np.full((1, 1), 100.0 * number + k), affine, apart * k, series, number)


def numbers(volumes):
    return [volume.number for volume in volumes]


@pytest.mark.parametrize("tag", ["TemporalPositionIdentifier", "AcquisitionNumber"])
def test_voxels_lie_where_the_headers_say(tmp_path, tag):
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


def test_a_volume_is_whole_with_its_last_slice_once_two_have_shown_how_many_there_are():
    stacks = Stacks()
    came = {(number, k): numbers(stacks.add(piece(number, k))) for number in (1, 2, 3) for k in range(N)}
    assert {key: whole for key, whole in came.items() if whole} == {(2, N - 1): [1, 2], (3, N - 1): [3]}
    assert stacks.n_waiting == 0


def test_a_first_volume_with_a_hole_is_no_measure():
    stacks = Stacks()
    for number in (1, 2, 3):
        for k in range(N):
            if (number, k) != (1, 1):
                found = stacks.add(piece(number, k))
    assert numbers(found) == [2, 3]
    assert stacks.came("a", 1) == f"{N - 1} of {N} slices"
    assert stacks.came("a", 2) == stacks.came("b", 1) == stacks.came(None, 7) == ""
    assert numbers(stacks.add(piece(1, 1))) == [1]


def test_slices_at_other_places_are_refused_in_words():
    stacks = Stacks()
    for number, k in itertools.product((1, 2), range(N)):
        stacks.add(piece(number, k))
    with pytest.raises(Refused, match=r"4 slices from 0 to 9 mm; this one is at 12 mm") as refused:
        stacks.add(piece(3, N))
    assert refused.value.series == "a"


def test_volumes_that_share_a_number_are_refused_in_words():
    stacks = Stacks()
    for k in range(N):
        stacks.add(piece(1, k))
    with pytest.raises(Refused, match="cannot be told apart by TemporalPositionIdentifier or AcquisitionNumber"):
        stacks.add(piece(1, 0))


def test_slices_of_another_shape_or_direction_are_refused_in_words():
    """A localiser has slices in three directions."""
    stacks = Stacks()
    stacks.add(piece(1, 0))
    turned = piece(1, 1)
    turned.affine[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    larger = replace(piece(1, 1), data=np.zeros((2, 1)))
    for odd in (turned, larger):
        with pytest.raises(Refused, match="another shape or direction than others of volume 1"):
            stacks.add(odd)


def test_slices_that_are_not_evenly_apart_are_no_volume():
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


def test_slices_that_never_become_volumes_are_let_go():
    stacks = Stacks()
    for number in range(1, 10 * MOST_WAITING):
        stacks.add(piece(number, number % 7))
    assert stacks.n_waiting <= MOST_WAITING + 1


def test_a_slice_knows_its_volume_and_place(tmp_path):
    found = read_volume(save_slice(tmp_path / "a.dcm", 17, data=WHOLE[..., 2], place=-6.0, AcquisitionNumber=5))
    assert isinstance(found, Slice)
    assert (found.number, abs(found.place)) == (5, 6.0)
    np.testing.assert_array_equal(found.data, WHOLE[..., 2])


@given(st.permutations([(number, k) for number in range(1, 5) for k in range(3)]))
def test_whatever_the_order_volumes_are_whole_or_not_there(order):
    """At worst the first ones show fewer places than there are, and slices elsewhere are refused; none is mixed."""
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
