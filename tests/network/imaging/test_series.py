"""Region series: the same numbers from every format, and clear errors about what is not a number."""

import gzip
from pathlib import Path

import numpy as np
import polars
import pytest

from streamlasso.network.imaging.series import Series, is_series, read_series, subject_of

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


def test_regions_of_a_bare_matrix_are_numbered(tmp_path):
    np.save(tmp_path / "a.npy", VALUES.astype(np.float32))
    series = read_series(tmp_path / "a.npy")
    assert series.regions == ("region 1", "region 2", "region 3")
    assert series.values.dtype == float


def test_names_may_be_numbers_in_order(tmp_path):
    (tmp_path / "a.csv").write_text("1,2,3\n0.5,1,2\n3,4,6\n")
    assert read_series(tmp_path / "a.csv").regions == ("1", "2", "3")


WITHOUT_NAMES = {
    "a.csv": "1.5,-2,3\n0.25,1e-9,-7\n4,5,6.5\n",
    "a.tsv": "1.5\t-2\t3\n0.25\t1e-9\t-7\n4\t5\t6.5\n",
    "a.txt": "  1.5 -2   3\n  0.25  1e-9 -7\n\n4 5 6.5\n",
    "commented.csv": "# made on a Monday\n1.5,-2,3\n0.25,1e-9,-7\n4,5,6.5\n",
    "commented.1D": "# made on a Monday\n1.5 -2 3\n0.25 1e-9 -7\n# so far\n4 5 6.5\n",
    "a.csv.gz": gzip.compress(b"1.5,-2,3\n0.25,1e-9,-7\n4,5,6.5\n"),
}


@pytest.mark.parametrize("name", WITHOUT_NAMES)
def test_a_file_without_names_is_read_from_its_first_line(tmp_path, name):
    content = WITHOUT_NAMES[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    series = read_series(tmp_path / name)
    np.testing.assert_array_equal(series.values, VALUES)
    assert series.regions == ("region 1", "region 2", "region 3")
    assert "no column names; regions are numbered" in series.notes


def test_a_first_line_of_equal_numbers_is_values(tmp_path):
    (tmp_path / "a.csv").write_text("0,0,0\n1,2,3\n4,5,6\n")
    assert read_series(tmp_path / "a.csv").values.tolist() == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]


def test_a_first_line_may_have_missing_values(tmp_path):
    (tmp_path / "a.csv").write_text("0.5, ,7,\n1,2,3,\n4,5,6,\n")
    expected = [[0.5, np.nan, 7, np.nan], [1, 2, 3, np.nan], [4, 5, 6, np.nan]]
    np.testing.assert_array_equal(read_series(tmp_path / "a.csv").values, expected)


@pytest.mark.parametrize("text", ["left right middle\n{}", "# left right middle\n{}", "#left right middle\n{}"])
def test_space_separated_columns_may_have_names(tmp_path, text):
    rows = "\n".join(" ".join(map(repr, row)) for row in VALUES.tolist())
    (tmp_path / "a.txt").write_text(text.format(rows))
    series = read_series(tmp_path / "a.txt")
    assert series.regions == NAMES
    np.testing.assert_array_equal(series.values, VALUES)


def test_names_of_a_csv_file_may_follow_a_hash(tmp_path):
    rows = "\n".join(",".join(map(repr, row)) for row in VALUES.tolist())
    (tmp_path / "a.csv").write_text(f"# {','.join(NAMES)}\n{rows}\n")
    series = read_series(tmp_path / "a.csv")
    assert series.regions == NAMES
    np.testing.assert_array_equal(series.values, VALUES)


def test_the_output_of_savetxt_is_read(tmp_path):
    np.savetxt(tmp_path / "a.txt", VALUES)
    np.testing.assert_array_equal(read_series(tmp_path / "a.txt").values, VALUES)


def test_the_index_that_pandas_writes_is_left_out(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 3))
    rows = "".join(f"{k},{','.join(map(repr, row))}\n" for k, row in enumerate(X.tolist()))
    (tmp_path / "a.csv").write_text(",0,1,2\n" + rows)
    series = read_series(tmp_path / "a.csv")
    assert series.regions == ("0", "1", "2")
    np.testing.assert_array_equal(series.values, X)


@pytest.mark.parametrize(
    "clock", [np.arange(40), 0.72 * np.arange(40) + 5, np.round(0.72 * np.arange(40), 1), -np.arange(40)]
)
def test_columns_of_times_are_left_out(clock):
    X = np.random.default_rng(0).normal(size=(40, 3)).cumsum(axis=0)
    series = Series("s", np.column_stack([X[:, 0], clock, X[:, 1:]]), ("a", "time", "b", "c")).without_clocks()
    assert series.regions == ("a", "b", "c")
    np.testing.assert_array_equal(series.values, X)
    assert series.notes[0].startswith("time: equal steps between rows")


def test_drifts_and_missing_values_are_not_times():
    t = np.arange(40.0)
    rng = np.random.default_rng(0)
    X = np.column_stack([t + rng.normal(size=40), np.where(t == 7, np.nan, t), np.ones(40), t**1.2])
    assert Series("s", X, ("drift", "hole", "flat", "bent")).without_clocks().regions == (
        "drift",
        "hole",
        "flat",
        "bent",
    )


def test_missing_values_may_be_written_as_in_bids(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tc\nn/a\t1.5\tn/a\n2.5\tn/a\tn/a\n")
    series = read_series(tmp_path / "a.tsv")
    np.testing.assert_array_equal(series.values, [[np.nan, 1.5, np.nan], [2.5, np.nan, np.nan]])


def test_more_regions_than_time_points_are_noted(tmp_path):
    np.save(tmp_path / "a.npy", VALUES[:2])
    assert read_series(tmp_path / "a.npy").notes == (
        "3 regions but only 2 time points: rows must be time points; is the matrix transposed?",
    )


def test_archives_may_hold_the_names_under_any_key(tmp_path):
    np.savez(tmp_path / "a.npz", ts=VALUES, tr=0.72, roi_labels=np.array(NAMES, dtype="S10"))
    assert read_series(tmp_path / "a.npz").regions == NAMES
    np.savez(tmp_path / "b.npz", ts=VALUES, conn=np.eye(3))
    with pytest.raises(ValueError, match=r"holds ts \(3 x 3\), conn \(3 x 3\): use exactly one matrix"):
        read_series(tmp_path / "b.npz")


REFUSED = {
    "empty.csv": ("", "it is empty"),
    "no_rows.csv": ("a,b\n", "no rows below the column names"),
    "ragged.csv": ("a,b\n1,2\n3\n", "line 3"),
    "word.csv": ("a,b\n1,2\n3,oops\n", "column b, row 2: 'oops' is not a number"),
    "words.csv": ("a,b\nx,y\n", "no numeric column"),
    "commas.csv": ("a;b\n0,5;1,25\n", "column a: 0,5 has a decimal comma"),
    "remark.txt": ("# nothing but a remark\n", "it is empty"),
    "ragged.txt": ("1.5 2 3\n\n4 5\n", "line 3: 2 fields, but the first line has 3"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:30], "cut short"),
    "broken.parquet": ("PAR1 nothing", "damaged"),
    "broken.npy": ("nothing", "not a NumPy file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unreadable_files_are_refused_with_the_reason(tmp_path, name):
    content, message = REFUSED[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as refused:
        read_series(path)
    assert name in str(refused.value)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 3, 4)), np.array([["a", "b"]])])
def test_arrays_that_are_not_series_are_refused(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(ValueError, match="time points x regions"):
        read_series(tmp_path / "a.npy")


def test_objects_in_numpy_files_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a NumPy file of numbers"):
        read_series(tmp_path / "a.npy")


def test_constant_and_incomplete_regions_are_left_out_with_a_note():
    values = np.random.default_rng(0).normal(size=(20, 5))
    values[:, 1] = 7.0
    values[3, 2] = np.nan
    values[4, 4] = np.inf
    series = Series("s", values, ("a", "flat", "holes", "b", "far"), coords=np.arange(15.0).reshape(5, 3)).usable()
    assert series.regions == ("a", "b")
    np.testing.assert_array_equal(series.values, values[:, [0, 3]])
    np.testing.assert_array_equal(series.coords, [[0, 1, 2], [9, 10, 11]])
    assert series.notes == ("holes and far: missing values at some time points; left out", "flat: constant; left out")


def test_too_little_is_refused():
    with pytest.raises(ValueError, match=r"1 varying region, but a network needs two or more\. flat: constant"):
        Series("s", np.array([[1.0, 2.0], [1.0, 3.0]]), ("flat", "b")).usable()
    for n in (0, 1):
        with pytest.raises(ValueError, match=f"{n} time points?, but a network needs two or more"):
            Series("s", np.zeros((n, 2)), ("a", "b")).usable()


def test_subjects_are_named_after_their_files():
    assert subject_of(Path("x/sub-07_bold.nii.gz")) == "sub-07_bold"
    assert subject_of(Path("x/one.two.parquet")) == "one.two"
    assert subject_of(Path("x/One.CSV.GZ")) == "One"


def test_endings_may_be_upper_case(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "one.npy", X)
    (tmp_path / "one.npy").rename(tmp_path / "ONE.NPY")
    np.testing.assert_array_equal(read_series(tmp_path / "ONE.NPY").values, X)
