"""Region series: a row a time point, a column a region, from CSV, TSV, Parquet, Arrow or NumPy files."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow

from streamlasso.sources.base import Complaints
from streamlasso.sources.delimited import distinct
from streamlasso.sources.opening import open_source

SERIES_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow", ".npy", ".npz")


@dataclass(frozen=True)
class Series:
    """One subject's series. `tr` is the seconds from row to row, `coords` (p, 3) in mm: None where not known.

    notes : what had to be left out or mended, in words
    """

    subject: str
    values: np.ndarray
    regions: tuple[str, ...]
    tr: float | None = None
    coords: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def keep(self, kept: np.ndarray, note: str = "") -> Series:
        """Some of the regions, by a mask; the others are named in the note, if there is one."""
        if kept.all():
            return self
        lost = [name for name, stays in zip(self.regions, kept, strict=True) if not stays]
        return replace(
            self,
            values=self.values[:, kept],
            regions=tuple(name for name, stays in zip(self.regions, kept, strict=True) if stays),
            coords=None if self.coords is None else self.coords[kept],
            notes=(*self.notes, f"{named(lost)}: {note}") if note else self.notes,
        )

    def usable(self) -> Series:
        """Without regions that hold no number somewhere, or the same number everywhere."""
        finite = np.isfinite(self.values).all(axis=0)
        series = self.keep(finite, "not a number at some time points; left out")
        moves = np.ptp(series.values, axis=0) > 0 if len(series.values) else np.ones(len(series.regions), bool)
        series = series.keep(moves, "constant; left out")
        if len(series.regions) < 2:
            raise ValueError(
                f"{self.subject}: a network needs two regions that vary, and there "
                f"{'is one' if len(series.regions) == 1 else 'are none'}. {'. '.join(series.notes)}"
            )
        if len(series.values) < 2:
            raise ValueError(f"{self.subject}: a network needs two time points or more")
        return series


def named(names: Sequence[str], most: int = 12) -> str:
    """Some names in words, not all if there are many.

    >>> named(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def subject_of(path: Path) -> str:
    """The name of a file without its endings.

    >>> subject_of(Path("data/subject_1.csv.gz")), subject_of(Path("sub-01_task-rest_desc-preproc_bold.nii.gz"))
    ('subject_1', 'sub-01_task-rest_desc-preproc_bold')
    """
    name = path.name
    for suffix in (".gz", *SERIES_SUFFIXES, ".nii"):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name


def is_series(path: Path) -> bool:
    """By the end of its name."""
    return path.name.lower().removesuffix(".gz").endswith(SERIES_SUFFIXES)


def read_series(path: Path) -> Series:
    """The numbers of a file as they are, missing ones as nan. Columns without numbers, say dates, are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "one.csv")
    ...     _ = path.write_text("day,left,right\\nmonday,1,2\\ntuesday,3,\\n")
    ...     series = read_series(path)
    >>> series.regions, series.values.tolist(), series.notes
    (('left', 'right'), [[1.0, 2.0], [3.0, nan]], ('day: no numbers; left out',))
    """
    if path.suffix.lower() in (".npy", ".npz"):
        return _read_numpy(path)
    return _read_table(path)


# --- NumPy ------------------------------------------------------------------------------------------------------------


def _read_numpy(path: Path) -> Series:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {name: loaded[name] for name in loaded.files} if isinstance(loaded, np.lib.npyio.NpzFile) else None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: no NumPy file of numbers, or one that is cut short ({error})") from error
    if arrays is None:
        values, names = loaded, None
    else:
        values, names = _of_archive(path, arrays)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"{path}: {values.ndim} dimensions of {values.dtype}; time points x regions of numbers are needed"
        )
    regions = tuple(names) if names is not None else numbered(values.shape[1])
    if len(regions) != values.shape[1]:
        raise ValueError(f"{path}: {len(regions)} names for {values.shape[1]} columns")
    return Series(subject_of(path), np.asarray(values, dtype=float), regions)


def _of_archive(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str] | None]:
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) != 1:
        raise ValueError(f"{path}: one matrix (time points x regions) is needed, and there are {len(matrices)}")
    names = arrays.get("names")
    return arrays[matrices[0]], None if names is None else distinct([str(name) for name in names])


def numbered(p: int) -> tuple[str, ...]:
    """Names for regions that have none.

    >>> numbered(3)
    ('region 1', 'region 2', 'region 3')
    """
    return tuple(f"region {i + 1}" for i in range(p))


# --- tables -----------------------------------------------------------------------------------------------------------


def _read_table(path: Path) -> Series:
    complaints = Complaints(on_error="skip")
    source = open_source(str(path), complaints)
    _refuse_headless(path, source.columns)
    try:
        blocks = list(source.blocks())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if complaints.kept:
        raise ValueError(f"{path}: {complaints.kept[0]}. Mend it")
    if not blocks:
        raise ValueError(f"{path}: there are no rows below the names")
    table = pyarrow.Table.from_batches([block.rows for block in blocks])
    columns: dict[str, np.ndarray] = {}
    words = []
    for name in table.column_names:
        values = _numbers(path, name, table[name])
        if values is None:
            words.append(name)
        else:
            columns[name] = values
    if not columns:
        raise ValueError(f"{path}: no column of numbers; time points x regions are needed")
    notes = (f"{named(words)}: no numbers; left out",) if words else ()
    return Series(subject_of(path), np.column_stack(list(columns.values())), tuple(columns), notes=notes)


def _refuse_headless(path: Path, columns: Sequence[str]) -> None:
    """Names that are numbers can be names, 1, 2, 3, ...; others are a first row of values."""
    try:
        numbers = np.array(columns, dtype=float)
    except ValueError:
        return
    if len(numbers) and not np.array_equal(numbers, np.arange(len(numbers)) + numbers[0]):
        raise ValueError(
            f"{path}: the first line holds numbers, not names; put a line with the regions' names above it, "
            "or save the matrix as .npy"
        )


def _numbers(path: Path, name: str, column: pyarrow.ChunkedArray) -> np.ndarray | None:
    """The column as numbers; None if it begins with a word."""
    kind = column.type
    if pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind):
        return np.asarray(column.cast(pyarrow.float64()).fill_null(np.nan))
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_null(kind)):
        return None
    texts = column.to_pylist()
    first = next((text for text in texts if text is not None), None)
    if first is not None and _number(first) is None:
        return None
    values = [np.nan if text is None else _number(text) for text in texts]
    if None in values:
        bad = values.index(None)
        raise ValueError(f"{path}: {name}, row {bad + 1:,}: {texts[bad]!r} is no number. Mend it, or leave it empty")
    return np.array(values, dtype=float)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
