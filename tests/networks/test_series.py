"""Region series: the same numbers from every format, and clear words about what is not a number."""

import gzip
from pathlib import Path

import numpy as np
import polars
import pytest

from streamlasso.sources.series import Series, is_series, read_series, subject_of

VALUES = np.array([[1.5, -2.0, 3.0], [0.25, 1e-9, -7.0], [4.0, 5.0, 6.5]])
NAMES = ("left", "right", "middle")


def write(path):
    frame = polars.DataFrame(VALUES, schema=list(NAMES))
    match path.suffix:
        case ".csv":
            frame.write_csv(path)
        case ".tsv":
            frame.write_csv(path, separator="\t")
        case ".parquet":
            frame.write_parquet(path)
        case ".feather":
            frame.write_ipc(path)
        case ".npz":
            np.savez(path, series=VALUES, names=np.array(NAMES))
        case ".gz":
            path.write_bytes(gzip.compress(frame.write_csv().encode()))
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.feather", "a.npz", "a.csv.gz"])
def test_every_format_gives_the_same(tmp_path, name):
    path = write(tmp_path / name)
    series = read_series(path)
    assert is_series(path)
    assert (series.subject, series.regions, series.notes) == ("a", NAMES, ())
    np.testing.assert_array_equal(series.values, VALUES)


def test_a_bare_matrix_gets_names(tmp_path):
    np.save(tmp_path / "a.npy", VALUES.astype(np.float32))
    series = read_series(tmp_path / "a.npy")
    assert series.regions == ("region 1", "region 2", "region 3")
    assert series.values.dtype == float


def test_names_may_be_numbers_in_order(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,3\n0.5,1,2\n3,4,6\n")
    assert read_series(tmp_path / "a.csv").regions == ("1", "2", "3")


REFUSED = {
    "headless.csv": ("0.5,1.25,-3\n1,2,3\n", "the first line holds numbers"),
    "empty.csv": ("", "nothing in it"),
    "no_rows.csv": ("a,b\n", "no rows"),
    "ragged.csv": ("a,b\n1,2\n3\n", "line 3"),
    "word.csv": ("a,b\n1,2\n3,oops\n", "b, row 2: 'oops' is no number"),
    "words.csv": ("a,b\nx,y\n", "no column of numbers"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:30], "cut short"),
    "broken.parquet": ("PAR1 nothing", "damaged"),
    "broken.npy": ("nothing", "no NumPy file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_named_with_the_reason(tmp_path, name):
    content, words = REFUSED[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=words) as refused:
        read_series(path)
    assert name in str(refused.value)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 3, 4)), np.array([["a", "b"]])])
def test_arrays_that_are_no_series_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ValueError, match="time points x regions"):
        read_series(tmp_path / "a.npy")


def test_objects_in_numpy_files_are_never_run(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="no NumPy file of numbers"):
        read_series(tmp_path / "a.npy")


def test_constant_and_missing_regions_are_left_out_by_name():
    values = np.random.default_rng(0).normal(size=(20, 5))
    values[:, 1] = 7.0
    values[3, 2] = np.nan
    values[4, 4] = np.inf
    series = Series("s", values, ("a", "flat", "holes", "b", "far"), coords=np.arange(15.0).reshape(5, 3)).usable()
    assert series.regions == ("a", "b")
    np.testing.assert_array_equal(series.values, values[:, [0, 3]])
    np.testing.assert_array_equal(series.coords, [[0, 1, 2], [9, 10, 11]])
    assert series.notes == ("holes, far: not a number at some time points; left out", "flat: constant; left out")


def test_too_little_is_refused():
    with pytest.raises(ValueError, match=r"two regions that vary, and there is one\. flat: constant"):
        Series("s", np.array([[1.0, 2.0], [1.0, 3.0]]), ("flat", "b")).usable()
    with pytest.raises(ValueError, match="two time points"):
        Series("s", np.zeros((0, 2)), ("a", "b")).usable()


def test_subjects_are_called_like_their_files():
    assert subject_of(Path("x/sub-07_bold.nii.gz")) == "sub-07_bold"
    assert subject_of(Path("x/one.two.parquet")) == "one.two"
    assert subject_of(Path("x/One.CSV.GZ")) == "One"


def test_endings_may_be_capitals(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "ONE.NPY")
    np.testing.assert_array_equal(read_series(tmp_path / "ONE.NPY").values, X)
