"""Files that arrive: late, twice, broken, in pieces and in any order. Time is told, never waited for."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.network.imaging.arrivals import SETTLED, Arrival, Arrivals, FolderWatch, Notice
from streamlasso.network.imaging.atlas import load_atlas
from streamlasso.network.imaging.regions import RegionReader
from streamlasso.network.imaging.volumes import Reading, Refused, Unreadable, number_of
from support.scans import SHAPE, made_run, save_atlas, save_nifti

PATIENCE = 5.0


def fake_read(path):
    """A file that says "ok" is a volume; "short" may still become one; "odd" never will."""
    series, number = number_of(path)
    text = path.read_text()
    if text == "odd":
        raise Refused("odd", series, number)
    if text != "ok":
        raise Unreadable("too short")
    return [Reading(series, number, np.zeros(2))]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


class Folder:
    """A folder, a clock, and what has come out so far."""

    def __init__(self, path):
        self.path, self.now = path, 100.0
        self.arrivals = Arrivals(path, fake_read, PATIENCE)

    def put(self, number, text="ok", name="vol_{:04d}.nii"):
        path = self.path / name.format(number)
        path.write_text(text)
        return path

    def look(self, seconds=0.0, closed=()):
        """What comes out after so many seconds: numbers of volumes, and the kinds of notices."""
        self.now += seconds
        found = list(self.arrivals.look(self.now, frozenset(closed)))
        return [item.number if isinstance(item, Arrival) else item.kind for item in found]

    def settle(self):
        """Two looks, between which nothing grows."""
        return self.look() + self.look(2 * SETTLED)


def test_a_file_is_read_once_it_has_stopped_growing(folder):
    folder.put(1)
    assert folder.look() == []
    assert folder.look(SETTLED / 2) == []
    assert folder.look(2 * SETTLED) == [1]
    assert folder.look(100) == []


def test_a_file_that_was_closed_is_read_at_once(folder):
    path = folder.put(1)
    assert folder.look(closed=[path]) == [1]


def test_a_file_that_grows_is_waited_for_however_long(folder):
    for k in range(20):
        folder.put(1, "." * (k + 1))
        assert folder.look(PATIENCE - 1) == []
    folder.put(1, "ok")
    assert folder.settle() == [1]


def test_a_broken_file_is_given_up_once_it_no_longer_grows(folder):
    folder.put(1)
    folder.settle()
    folder.put(2, "short")
    folder.put(3)
    assert folder.settle() == []
    assert folder.look(PATIENCE) == ["unreadable", 3]
    assert not folder.arrivals.waiting


def test_a_broken_file_that_is_mended_in_time_counts(folder):
    folder.put(1, "short")
    folder.look()
    folder.look(PATIENCE - 1)
    folder.put(1, "ok")
    assert folder.settle() == [1]


@pytest.mark.parametrize("order", list(itertools.permutations(range(1, 5)))[::5])
def test_volumes_come_out_in_order_whatever_the_order_of_arrival(folder, order):
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
    assert folder.look(PATIENCE - 1) == []
    assert folder.look(1.1) == ["missing", 5, 6]
    folder.put(3)
    assert folder.settle() == ["late"]


def words_after_waiting(folder):
    """What is said once patience has come to its end."""
    folder.settle()
    folder.now += PATIENCE
    return [item.words for item in folder.arrivals.look(folder.now) if isinstance(item, Notice)]


def test_the_words_name_what_is_missing(folder):
    for number in (1, 4):
        folder.put(number)
    assert words_after_waiting(folder) == ["volumes 2 to 3 did not come within 5 s; left out"]


def test_the_words_say_what_came_of_a_missing_volume(folder):
    folder.arrivals.came = lambda series, number: "7 of 9 slices" if (series, number) == ("vol_", 3) else ""
    for number in (1, 4):
        folder.put(number)
    words = ["volumes 2 to 3 did not come within 5 s (7 of 9 slices of volume 3 did); left out"]
    assert words_after_waiting(folder) == words


def test_a_file_that_is_no_whole_volume_is_waited_for_no_longer(folder):
    folder.arrivals.read = lambda path: fake_read(path) if number_of(path)[1] % 2 == 0 else []
    for number in (1, 2):
        folder.put(number)
    assert folder.settle() == []
    assert folder.look(PATIENCE) == ["start", 2]
    assert not folder.arrivals.waiting


def test_a_missing_volume_that_is_being_written_is_waited_for(folder):
    folder.put(1)
    folder.settle()
    folder.put(3)
    for k in range(4):
        folder.put(2, "." * (k + 1))
        assert folder.look(PATIENCE - 1) == []
    folder.put(2)
    assert folder.settle() == [2, 3]


def test_a_scan_that_starts_late_starts_where_it_is(folder):
    folder.put(17)
    folder.put(18)
    assert folder.settle() == []
    assert folder.look(PATIENCE) == ["start", 17, 18]


def test_numbers_far_ahead_do_not_end_the_scan(folder):
    folder.put(1)
    folder.put(99999)
    assert folder.settle() == [1]
    assert folder.look(PATIENCE) == ["stray"]
    folder.put(2)
    assert folder.settle() == [2]


def test_a_second_series_is_named_once_and_passed_over(folder):
    for number in (1, 2):
        folder.put(number)
        folder.put(number, name="vol_other_{:04d}.nii")
    folder.put(3, "odd", name="vol_other_{:04d}.nii")
    assert folder.settle() == [1, 2, "other series"]
    folder.put(3)
    assert folder.settle() == [3]


def test_the_pattern_chooses_a_series(tmp_path):
    folder = Folder(tmp_path)
    folder.arrivals.pattern = "b_*"
    folder.put(1, name="a_{}.nii")
    folder.put(1, name="b_{}.nii")
    assert folder.settle() == [1]
    assert folder.arrivals.series == "b_"


def test_a_volume_of_another_kind_is_reported_and_not_waited_for(folder):
    folder.put(1)
    folder.put(2, "odd")
    folder.put(3)
    assert folder.settle() == [1, "refused", 3]


def test_a_volume_that_comes_twice_counts_once(folder):
    folder.put(1)
    folder.settle()
    folder.put(3)
    folder.put(3, name="vol_{}.nii")
    assert folder.settle() == ["twice"]
    folder.put(2)
    assert folder.settle() == [2, 3]


def test_a_file_that_is_written_anew_is_told_and_not_read_again(folder):
    path = folder.put(1)
    assert folder.look(closed=[path]) == [1]
    assert folder.look(closed=[path]) == []
    path.write_text("ok, but later")
    assert folder.look(closed=[path]) == ["changed"]
    assert folder.look(closed=[path]) == []
    path.unlink()
    assert folder.look(closed=[path]) == []
    assert folder.arrivals.expected == 2


def test_volumes_that_lie_there_are_not_overtaken_by_one_that_is_closed_just_now(folder):
    """Before the first is read: it decides which series and grid are followed."""
    folder.put(1)
    late = folder.put(2, text="odd")
    assert folder.look(closed=[late]) == []
    assert folder.look(2 * SETTLED) == [1, "refused"]
    assert folder.look(closed=[folder.put(3)]) == [3]


def test_names_without_numbers_count_in_their_order(tmp_path):
    folder = Folder(tmp_path)
    folder.arrivals.read = lambda path: [Reading("", None, np.zeros(2))]
    for name in "abc":
        folder.put(0, name=name + ".nii")
        folder.look()
        folder.now += SETTLED
    assert folder.look() == [3]
    assert folder.arrivals.expected == 4


def test_files_that_vanish_and_files_of_others_are_no_matter(folder):
    path = folder.put(1)
    folder.look()
    path.unlink()
    for name in ("notes.txt", ".hidden_1.nii", "vol_0002.nii.part"):
        folder.put(0, name=name)
    assert folder.look(SETTLED) == []
    assert not folder.arrivals.waiting


@given(
    order=st.permutations(range(1, 9)),
    texts=st.lists(st.sampled_from(["ok", "ok", "ok", "short", "odd"]), min_size=8, max_size=8),
    waits=st.lists(st.sampled_from([0.0, 0.1, 1.0, 6.0]), min_size=8, max_size=8),
)
def test_whatever_comes_is_learnt_once_in_order_or_complained_about(order, texts, waits):
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place))
        out = []
        for number, text, wait in zip(order, texts, waits, strict=True):
            folder.put(number, text)
            out += folder.look(wait)
        for _ in range(20):
            out += folder.look(PATIENCE)
        learnt = [item for item in out if isinstance(item, int)]
        assert learnt == sorted(set(learnt))
        good = {number for number, text in zip(order, texts, strict=True) if text == "ok"}
        assert len(learnt) + out.count("late") == len(good)
        assert set(learnt) <= good
        assert out.count("unreadable") == texts.count("short")
        assert out.count("refused") == texts.count("odd")
        assert not folder.arrivals.waiting


def test_a_folder_that_goes_away_is_told_once_and_waited_for(tmp_path):
    (tmp_path / "in").mkdir()
    folder = Folder(tmp_path / "in")
    folder.put(1)
    assert folder.settle() == [1]
    (tmp_path / "in").rename(tmp_path / "away")
    assert folder.look(1) + folder.look(1) == ["folder"]
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
    list(arrivals.look(0.0))
    first, notice, last = arrivals.look(1.0)
    assert (first.number, last.number) == (1, 3)
    assert "another grid (4 x 5 x 4 voxels" in notice.words
    assert f"({' x '.join(map(str, SHAPE))} voxels" in notice.words


def test_the_watch_says_what_was_closed(tmp_path):
    with FolderWatch(tmp_path) as watch:
        path = tmp_path / "vol_1.nii"
        path.write_text("ok")
        (tmp_path / "part").write_text("ok")
        (tmp_path / "part").rename(tmp_path / "vol_2.nii")
        closed = set()
        for _ in range(50):
            closed |= watch.wait(0.1)
            if {path, tmp_path / "vol_2.nii"} <= closed:
                return
    raise AssertionError(closed)
