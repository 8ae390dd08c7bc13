"""Files that arrive late, twice, broken, in pieces and in any order. The clock is an argument: no test waits."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.network.imaging.arrivals import SETTLED, Arrival, Arrivals, Notice
from streamlasso.network.imaging.atlas import load_atlas
from streamlasso.network.imaging.regions import RegionReader
from streamlasso.network.imaging.volumes import Reading, Refused, Unreadable, number_of
from support.scans import SHAPE, made_run, save_atlas, save_nifti

PATIENCE = 5.0


def fake_read(path):
    """A file with "ok" is a volume; "short" may still become one; "odd" never will."""
    series, number = number_of(path)
    text = path.read_text()
    if text == "odd":
        raise Refused("odd", series, number)
    if text != "ok":
        raise Unreadable("too short")
    return Reading(series, number, np.zeros(2))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


class Folder:
    """A folder and a clock."""

    def __init__(self, path):
        self.path, self.now = path, 100.0
        self.arrivals = Arrivals(path, fake_read, PATIENCE)

    def put(self, number, text="ok", name="vol_{:04d}.nii"):
        path = self.path / name.format(number)
        path.write_text(text)
        return path

    def poll(self, seconds=0.0, closed=()):
        """What arrives after some seconds: numbers of volumes, and the kinds of notices."""
        self.now += seconds
        found = list(self.arrivals.poll(self.now, frozenset(closed)))
        return [item.number if isinstance(item, Arrival) else item.kind for item in found]

    @property
    def waiting(self):
        return self.arrivals._pending or self.arrivals._ready

    def settle(self):
        """Two polls, between which no file grows."""
        return self.poll() + self.poll(2 * SETTLED)


def test_a_file_is_read_once_it_has_stopped_growing(folder):
    folder.put(1)
    assert folder.poll() == []
    assert folder.poll(SETTLED / 2) == []
    assert folder.poll(2 * SETTLED) == [1]
    assert folder.poll(100) == []


def test_a_file_that_was_closed_is_read_immediately(folder):
    path = folder.put(1)
    assert folder.poll(closed=[path]) == [1]


def test_a_file_that_grows_is_waited_for_however_long(folder):
    for k in range(20):
        folder.put(1, "." * (k + 1))
        assert folder.poll(PATIENCE - 1) == []
    folder.put(1, "ok")
    assert folder.settle() == [1]


def test_a_broken_file_is_given_up_once_it_no_longer_grows(folder):
    folder.put(1)
    folder.settle()
    folder.put(2, "short")
    folder.put(3)
    assert folder.settle() == []
    assert folder.poll(PATIENCE) == ["unreadable", 3]
    assert not folder.waiting


def test_a_broken_file_that_is_fixed_in_time_is_used(folder):
    folder.put(1, "short")
    folder.poll()
    folder.poll(PATIENCE - 1)
    folder.put(1, "ok")
    assert folder.settle() == [1]


@pytest.mark.parametrize("order", list(itertools.permutations(range(1, 5)))[::5])
def test_volumes_are_in_order_whatever_the_order_of_arrival(folder, order):
    folder.put(0)
    out = folder.settle()
    for number in order:
        folder.put(number)
        out += folder.settle()
    assert out == [0, 1, 2, 3, 4]


def test_a_missing_volume_is_waited_for_then_reported_and_left_out(folder):
    for number in (1, 2, 5, 6):
        folder.put(number)
    assert folder.settle() == [1, 2]
    assert folder.poll(PATIENCE - 1) == []
    assert folder.poll(1.1) == ["missing", 5, 6]
    folder.put(3)
    assert folder.settle() == ["late"]


def notices_after_waiting(folder):
    """The texts of the notices once patience is over."""
    folder.settle()
    folder.now += PATIENCE
    return [item.text for item in folder.arrivals.poll(folder.now) if isinstance(item, Notice)]


def test_the_notice_names_the_missing_volumes(folder):
    for number in (1, 4):
        folder.put(number)
    assert notices_after_waiting(folder) == ["volumes 2 to 3 did not arrive within 5 s; left out"]


def test_the_notice_states_which_part_of_a_missing_volume_arrived(folder):
    for number in (1, 4):
        folder.put(number)
    texts = ["volumes 2 to 3 did not arrive within 5 s; left out"]
    assert notices_after_waiting(folder) == texts


def test_a_missing_volume_that_is_being_written_is_waited_for(folder):
    folder.put(1)
    folder.settle()
    folder.put(3)
    for k in range(4):
        folder.put(2, "." * (k + 1))
        assert folder.poll(PATIENCE - 1) == []
    folder.put(2)
    assert folder.settle() == [2, 3]


def test_a_scan_may_start_at_any_number(folder):
    folder.put(17)
    folder.put(18)
    assert folder.settle() == []
    assert folder.poll(PATIENCE) == ["start", 17, 18]


def test_numbers_far_ahead_do_not_end_the_scan(folder):
    folder.put(1)
    folder.put(99999)
    assert folder.settle() == [1]
    assert folder.poll(PATIENCE) == ["stray"]
    folder.put(2)
    assert folder.settle() == [2]


def test_a_second_series_is_reported_once_and_ignored(folder):
    for number in (1, 2):
        folder.put(number)
        folder.put(number, name="vol_other_{:04d}.nii")
    folder.put(3, "odd", name="vol_other_{:04d}.nii")
    assert folder.settle() == [1, 2, "other series"]
    folder.put(3)
    assert folder.settle() == [3]


def test_the_pattern_selects_a_series(tmp_path):
    folder = Folder(tmp_path)
    folder.arrivals.pattern = "b_*"
    folder.put(1, name="a_{}.nii")
    folder.put(1, name="b_{}.nii")
    assert folder.settle() == [1]
    assert folder.arrivals.series == "b_"


def test_an_unusable_volume_is_reported_and_not_waited_for(folder):
    folder.put(1)
    folder.put(2, "odd")
    folder.put(3)
    assert folder.settle() == [1, "refused", 3]


def test_a_volume_that_arrives_twice_is_used_once(folder):
    folder.put(1)
    folder.settle()
    folder.put(3)
    folder.put(3, name="vol_{}.nii")
    assert folder.settle() == ["twice"]
    folder.put(2)
    assert folder.settle() == [2, 3]


def test_a_file_closed_just_now_does_not_overtake_earlier_volumes(folder):
    """Until the first is read, which fixes the series and the grid."""
    folder.put(1)
    late = folder.put(2, text="odd")
    assert folder.poll(closed=[late]) == []
    assert folder.poll(2 * SETTLED) == [1, "refused"]
    assert folder.poll(closed=[folder.put(3)]) == [3]


def test_files_without_numbers_are_numbered_in_order(tmp_path):
    folder = Folder(tmp_path)
    folder.arrivals.read = lambda path: Reading("", None, np.zeros(2))
    for name in "abc":
        folder.put(0, name=name + ".nii")
        folder.poll()
        folder.now += SETTLED
    assert folder.poll() == [3]
    assert folder.arrivals.expected == 4


def test_files_that_vanish_and_other_files_are_ignored(folder):
    path = folder.put(1)
    folder.poll()
    path.unlink()
    for name in ("notes.txt", ".hidden_1.nii", "vol_0002.nii.part"):
        folder.put(0, name=name)
    assert folder.poll(SETTLED) == []
    assert not folder.waiting


@given(
    order=st.permutations(range(1, 9)),
    texts=st.lists(st.sampled_from(["ok", "ok", "ok", "short", "odd"]), min_size=8, max_size=8),
    waits=st.lists(st.sampled_from([0.0, 0.1, 1.0, 6.0]), min_size=8, max_size=8),
)
def test_every_file_is_used_once_in_order_or_reported(order, texts, waits):
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        out = []
        for number, text, wait in zip(order, texts, waits, strict=True):
            folder.put(number, text)
            out += folder.poll(wait)
        for _ in range(20):
            out += folder.poll(PATIENCE)
        used = [item for item in out if isinstance(item, int)]
        assert used == sorted(set(used))
        good = {number for number, text in zip(order, texts, strict=True) if text == "ok"}
        assert len(used) + out.count("late") == len(good)
        assert set(used) <= good
        assert out.count("unreadable") == texts.count("short")
        assert out.count("refused") == texts.count("odd")
        assert not folder.waiting


def test_a_folder_that_disappears_is_reported_once_and_waited_for(tmp_path):
    (tmp_path / "in").mkdir()
    folder = Folder(tmp_path / "in")
    folder.put(1)
    assert folder.settle() == [1]
    (tmp_path / "in").rename(tmp_path / "away")
    assert folder.poll(1) + folder.poll(1) == ["folder"]
    (tmp_path / "away").rename(tmp_path / "in")
    folder.put(2)
    assert folder.settle() == [2]


def test_real_volumes_of_another_shape_are_reported_and_the_scan_goes_on(tmp_path):
    reader = RegionReader(load_atlas(save_atlas(tmp_path / "atlas.nii")))
    (tmp_path / "in").mkdir()
    run = made_run(3)
    for k in range(3):
        volume = run[..., k] if k != 1 else run[:4, ..., k]
        save_nifti(tmp_path / "in" / f"vol_{k + 1}.nii", volume)
    arrivals = Arrivals(tmp_path / "in", reader)
    list(arrivals.poll(0.0))
    first, notice, last = arrivals.poll(1.0)
    assert (first.number, last.number) == (1, 3)
    assert "its grid (4 x 5 x 4 voxels" in notice.text
    assert f"({' x '.join(map(str, SHAPE))} voxels" in notice.text
