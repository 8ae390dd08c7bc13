"""Region series, one row per time point and one column per region: CSV, TSV, text, Parquet, Arrow or NumPy files."""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import feather, parquet

from streamlasso._text import count, listed
from streamlasso.data.sources.base import distinct

SERIES_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow", ".npy", ".npz")
#: Read if named, but not searched for in folders: most such files are notes.
TEXT_SUFFIXES = (".txt", ".1d")
#: With fewer rows a column may have equal steps by chance.
MIN_CLOCK_ROWS = 10
#: Names listed in a note or message.
MAX_NAMES = 12
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class Series:
    """One subject's series.

    values : (time, region)
    tr : seconds between rows, or None if unknown
    coords : (region, 3) in mm, or None if unknown
    notes : what was left out or changed, as sentences for the report
    """

    subject: str
    values: np.ndarray
    regions: tuple[str, ...]
    tr: float | None = None
    coords: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def keep(self, mask: np.ndarray, note: str = "") -> Series:
        """The regions of a mask; the note, if given, is preceded by the names of the others."""
        if mask.all():
            return self
        dropped = [name for name, stays in zip(self.regions, mask, strict=True) if not stays]
        return replace(
            self,
            values=self.values[:, mask],
            regions=tuple(name for name, stays in zip(self.regions, mask, strict=True) if stays),
            coords=None if self.coords is None else self.coords[mask],
            notes=(*self.notes, f"{listed(dropped, MAX_NAMES)}: {note}") if note else self.notes,
        )

    def usable(self) -> Series:
        """Without regions that have missing values or are constant."""
        if len(self.values) < 2:
            raise ValueError(
                f"{self.subject}: {count(len(self.values), 'time point')}, but a network needs two or more"
            )
        finite = np.isfinite(self.values).all(axis=0)
        series = self.keep(finite, "missing values at some time points; left out")
        series = series.keep(np.ptp(series.values, axis=0) > 0, "constant; left out")
        if len(series.regions) < 2:
            raise ValueError(
                f"{self.subject}: {count(len(series.regions), 'varying region')}, but a network needs two or more. "
                f"{'. '.join(series.notes)}"
            )
        return series

    def without_clocks(self) -> Series:
        """Without columns that are row numbers or seconds, whatever their name."""
        n = len(self.values)
        if n < MIN_CLOCK_ROWS:
            return self
        first, last = self.values[0], self.values[-1]
        with np.errstate(invalid="ignore", over="ignore"):
            step = (last - first) / (n - 1)
            off = np.abs(self.values - first - np.arange(n)[:, None] * step).max(axis=0)
            clocks = off < np.abs(step) / 2
        return self.keep(~clocks, "equal steps between rows, so row numbers or times, not a region; left out")


def subject_of(path: Path) -> str:
    """The subject of a file: its name without the endings.

    >>> subject_of(Path("data/subject_1.csv.gz")), subject_of(Path("sub-01_task-rest_desc-preproc_bold.nii.gz"))
    ('subject_1', 'sub-01_task-rest_desc-preproc_bold')
    """
    name = path.name
    for suffix in (".gz", *SERIES_SUFFIXES, *TEXT_SUFFIXES, ".nii"):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name


def is_series(path: Path) -> bool:
    """Whether the name ends as that of a region series."""
    return path.name.lower().removesuffix(".gz").endswith(SERIES_SUFFIXES)


def is_text(path: Path) -> bool:
    """Whether the name ends as that of plain text; .txt and .1D are series only if they are named as data."""
    return path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", *TEXT_SUFFIXES))


def read_series(path: Path) -> Series:
    """The numbers in a file, missing ones as nan. Columns of text, and row numbers or times, are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "one.csv")
    ...     _ = path.write_text("day,left,right\\nmonday,1,2\\ntuesday,3,\\n")
    ...     series = read_series(path)
    >>> series.regions, series.values.tolist(), series.notes
    (('left', 'right'), [[1.0, 2.0], [3.0, nan]], ('day: not numeric; left out',))
    """
    series = _read_numpy(path) if path.suffix.lower() in (".npy", ".npz") else _read_table(path)
    series = series.without_clocks()
    n, p = series.values.shape
    if p <= n:
        return series
    note = f"{p} regions but only {n} time points: rows must be time points; is the matrix transposed?"
    return replace(series, notes=(*series.notes, note))


# --- NumPy ------------------------------------------------------------------------------------------------------------


def _read_numpy(path: Path) -> Series:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {name: loaded[name] for name in loaded.files} if isinstance(loaded, np.lib.npyio.NpzFile) else None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a NumPy file of numbers, or is truncated ({error})") from error
    values, names = (loaded, None) if arrays is None else _from_archive(path, arrays)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds {_shape(values)} of {values.dtype}: use one matrix of numbers per subject, "
            "time points x regions"
        )
    regions = tuple(names) if names is not None else numbered(values.shape[1])
    if len(regions) != values.shape[1]:
        raise ValueError(f"{path} has {len(regions)} names for {values.shape[1]} columns: use one name per column")
    return Series(subject_of(path), np.asarray(values, dtype=float), regions)


def _shape(array: np.ndarray) -> str:
    return " x ".join(map(str, array.shape)) or "one value"


def _from_archive(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str] | None]:
    """The only matrix, and the regions' names: the array "names", or the only list of strings."""
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) != 1:
        contents = ", ".join(f"{name} ({_shape(array)})" for name, array in arrays.items()) or "nothing"
        raise ValueError(f"{path} holds {contents}: use exactly one matrix (time points x regions)")
    lists = [name for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "US"]
    chosen = "names" if "names" in arrays else lists[0] if len(lists) == 1 else None
    names = None if chosen is None else [_decoded(name) for name in np.ravel(arrays[chosen])]
    return arrays[matrices[0]], None if names is None else distinct(names)


def _decoded(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def numbered(p: int) -> tuple[str, ...]:
    """Names for unnamed regions.

    >>> numbered(3)
    ('region 1', 'region 2', 'region 3')
    """
    return tuple(f"region {i + 1}" for i in range(p))


# --- tables -----------------------------------------------------------------------------------------------------------


def _read_table(path: Path) -> Series:
    columns, notes = _text_columns(path) if is_text(path) else (_arrow_columns(path), ())
    found = {name: _numbers(path, name, cells) for name, cells in columns.items()}
    numeric = {name: values for name, values in found.items() if values is not None}
    if not numeric:
        raise ValueError(f"{path} has no numeric column: use one row per time point and one column per region")
    text = [name for name in found if name not in numeric]
    notes = (*notes, f"{listed(text, MAX_NAMES)}: not numeric; left out") if text else notes
    return Series(subject_of(path), np.column_stack(list(numeric.values())), tuple(numeric), notes=notes)


def _arrow_columns(path: Path) -> dict[str, Sequence[Any]]:
    """The columns of a Parquet or Arrow file."""
    read = parquet.read_table if path.suffix.lower() in (".parquet", ".pq") else feather.read_table
    try:
        table = read(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"{path} is damaged, or has another format than its name says ({error})") from error
    return {name: table[name].to_pylist() for name in table.column_names}


def _text_columns(path: Path) -> tuple[dict[str, Sequence[Any]], tuple[str, ...]]:
    """Cells separated by tabs, semicolons, commas or spaces; without names the regions are numbered, with a note.

    The names are the first line, or follow a # in front, as np.savetxt, AFNI and the HCP write them.
    """
    lines = _lines(path)
    remarks = [line.lstrip("# ") for _, line in lines if line.startswith("#")]
    body = [(number, line) for number, line in lines if not line.startswith("#")]
    if not body:
        raise ValueError(f"{path}: it is empty")
    delimiter = next((mark for mark in "\t;," if mark in body[0][1]), None)
    rows = [(number, _cells(line, delimiter)) for number, line in body]
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise ValueError(f"{path}, line {number:,}: {len(row)} fields, but the first line has {width}: fix it")
    names = _cells(remarks[0], delimiter) if remarks else []
    notes: tuple[str, ...] = ()
    if len(names) != width:
        has_names = _are_names(rows[0][1])
        names = rows.pop(0)[1] if has_names else list(numbered(width))
        notes = () if has_names else ("no column names; regions are numbered",)
    if not rows:
        raise ValueError(f"{path} has no rows below the column names: use one row per time point")
    cells = zip(*(row for _, row in rows), strict=True)
    return dict(zip(distinct(names), cells, strict=True)), notes


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines that are not empty, with their numbers."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if compressed else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as text:
            return [(number, line.strip("\r\n ")) for number, line in enumerate(text, 1) if line.strip()]
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is cut short, or damaged ({error})") from error


def _cells(line: str, delimiter: str | None) -> list[str]:
    cells = line.split() if delimiter is None else next(csv.reader([line], delimiter=delimiter))
    return [cell.strip() for cell in cells]


def _are_names(cells: Sequence[str]) -> bool:
    """Whether the cells of the first line are names, which may be numbers that count up: 1, 2, 3, ..."""
    found = [_number(cell) for cell in cells]
    counted = np.array([number for number, cell in zip(found, cells, strict=True) if cell and number is not None])
    return None in found or np.array_equal(counted, np.arange(len(counted)) + counted[:1])


def _numbers(path: Path, name: str, cells: Sequence[Any]) -> np.ndarray | None:
    """The column as numbers, empty cells and BIDS' n/a as nan; None if its first value is not a number."""
    first = str(next((cell for cell in cells if cell is not None and str(cell).lower() not in ("", "n/a")), ""))
    if DECIMAL_COMMA.fullmatch(first):
        raise ValueError(f"{path}, column {name}: {first} has a decimal comma: use decimal points")
    if _number(first) is None:
        return None
    values = [_number(cell) for cell in cells]
    if None in values:
        bad = values.index(None)
        raise ValueError(
            f"{path}, column {name}, row {bad + 1:,}: {cells[bad]!r} is not a number: fix it, or leave it empty"
        )
    return np.array(values, dtype=float)


def _number(cell: Any) -> float | None:
    try:
        return np.nan if cell is None or str(cell).lower() in ("", "n/a") else float(cell)
    except (TypeError, ValueError):
        return None
