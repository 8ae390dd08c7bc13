"""Region series: a row a time point, a column a region, from CSV, TSV, plain text, Parquet, Arrow or NumPy files."""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import pyarrow

from streamlasso.sources.base import Complaints
from streamlasso.sources.delimited import Delimited, distinct
from streamlasso.sources.opening import open_source

SERIES_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow", ".npy", ".npz")
#: Read where they are named, but not looked for in folders: most of them are notes.
TEXT_SUFFIXES = (".txt", ".1d")
#: Rows from which on a column that rises evenly is no coincidence.
LEAST_FOR_A_CLOCK = 10
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


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
        if len(self.values) < 2:
            raise ValueError(f"{self.subject}: a network needs two time points or more")
        finite = np.isfinite(self.values).all(axis=0)
        series = self.keep(finite, "not a number at some time points; left out")
        series = series.keep(np.ptp(series.values, axis=0) > 0, "constant; left out")
        if len(series.regions) < 2:
            raise ValueError(
                f"{self.subject}: a network needs two regions that vary, and there "
                f"{'is one' if len(series.regions) == 1 else 'are none'}. {'. '.join(series.notes)}"
            )
        return series

    def without_clocks(self) -> Series:
        """Without columns that count the rows, or the seconds, whatever they are called."""
        n = len(self.values)
        if n < LEAST_FOR_A_CLOCK:
            return self
        first, last = self.values[0], self.values[-1]
        with np.errstate(invalid="ignore", over="ignore"):
            step = (last - first) / (n - 1)
            off = np.abs(self.values - first - np.arange(n)[:, None] * step).max(axis=0)
            clocks = off < np.abs(step) / 2
        return self.keep(~clocks, "changes by the same from row to row: a clock or a count, not a region; left out")


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
    for suffix in (".gz", *SERIES_SUFFIXES, *TEXT_SUFFIXES, ".nii"):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name


def is_series(path: Path) -> bool:
    """By the end of its name."""
    return path.name.lower().removesuffix(".gz").endswith(SERIES_SUFFIXES)


def is_text(path: Path) -> bool:
    """By the end of its name: text that may be a series, if someone says so."""
    return path.name.lower().removesuffix(".gz").endswith(TEXT_SUFFIXES)


def read_series(path: Path) -> Series:
    """The numbers of a file as they are, missing ones as nan. Columns without numbers, and clocks, are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "one.csv")
    ...     _ = path.write_text("day,left,right\\nmonday,1,2\\ntuesday,3,\\n")
    ...     series = read_series(path)
    >>> series.regions, series.values.tolist(), series.notes
    (('left', 'right'), [[1.0, 2.0], [3.0, nan]], ('day: no numbers; left out',))
    """
    series = _read_numpy(path) if path.suffix.lower() in (".npy", ".npz") else _read_table(path)
    series = series.without_clocks()
    n, p = series.values.shape
    turned = f"{p} regions, but {n} time points: a row is a time point, a column a region; is it the other way round?"
    return replace(series, notes=(*series.notes, turned)) if p > n else series


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
            f"{path}: {_shape(values)} of {values.dtype}; a file holds one subject, time points x regions of numbers"
        )
    regions = tuple(names) if names is not None else numbered(values.shape[1])
    if len(regions) != values.shape[1]:
        raise ValueError(f"{path}: {len(regions)} names for {values.shape[1]} columns")
    return Series(subject_of(path), np.asarray(values, dtype=float), regions)


def _shape(array: np.ndarray) -> str:
    return " x ".join(map(str, array.shape)) or "one value"


def _of_archive(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str] | None]:
    """The only matrix, and the only list of words beside it: the regions' names, whatever it is called."""
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) != 1:
        there = ", ".join(f"{name} ({_shape(array)})" for name, array in arrays.items()) or "nothing"
        raise ValueError(f"{path}: one matrix (time points x regions) is needed, alone; in it: {there}")
    lists = [name for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "US"]
    chosen = "names" if "names" in arrays else lists[0] if len(lists) == 1 else None
    names = None if chosen is None else [_word(name) for name in np.ravel(arrays[chosen])]
    return arrays[matrices[0]], None if names is None else distinct(names)


def _word(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def numbered(p: int) -> tuple[str, ...]:
    """Names for regions that have none.

    >>> numbered(3)
    ('region 1', 'region 2', 'region 3')
    """
    return tuple(f"region {i + 1}" for i in range(p))


# --- tables -----------------------------------------------------------------------------------------------------------


def _read_table(path: Path) -> Series:
    table, first = _cells(path)
    if not table.num_rows:
        raise ValueError(f"{path}: there are no rows below the names")
    found = {name: _numbers(path, name, table[name]) for name in table.column_names}
    columns = {name: values for name, values in found.items() if values is not None}
    if not columns:
        raise ValueError(f"{path}: no column of numbers; time points x regions are needed")
    values = np.column_stack(list(columns.values()))
    if first is not None and len(first) == len(columns):
        note = "no line with names; regions are numbered"
        return Series(subject_of(path), np.vstack([first, values]), numbered(len(first)), notes=(note,))
    words = [name for name in found if name not in columns]
    notes = (f"{named(words)}: no numbers; left out",) if words else ()
    return Series(subject_of(path), values, tuple(columns), notes=notes)


def _cells(path: Path) -> tuple[pyarrow.Table, list[float] | None]:
    """What stands below the first line; and the first line, if it holds numbers and not names."""
    complaints = Complaints(on_error="skip")
    source = open_source(str(path), complaints)
    first = None
    if isinstance(source, Delimited):
        # A network has two columns or more: a single one with blanks in its name is as many columns.
        if len(source.columns) == 1 and len(source.columns[0].split()) > 1:
            return _spaced_cells(path)
        with _text(path) as text:
            first = _values(next(row for row in csv.reader(text, delimiter=source.delimiter) if any(row)))
    try:
        blocks = [block.rows for block in source.blocks()]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if complaints.kept:
        raise ValueError(f"{path}: {complaints.kept[0]}. Mend it")
    return pyarrow.Table.from_batches(blocks) if blocks else pyarrow.table({}), first


def _spaced_cells(path: Path) -> tuple[pyarrow.Table, list[float] | None]:
    """Columns with blanks between them, as np.savetxt, AFNI and the HCP write them; names may stand behind a #."""
    with _text(path) as text:
        lines = [(number, line) for number, line in enumerate(text, 1) if line.strip()]
    said = next((line.lstrip("#").split() for _, line in lines if line.startswith("#")), [])
    rows = [(number, line.split()) for number, line in lines if not line.startswith("#")]
    width = len(rows[0][1]) if rows else len(said)
    names = said if len(said) == width else rows.pop(0)[1]
    for number, row in rows:
        if len(row) != width:
            raise ValueError(
                f"{path}: line {number:,}: it has {len(row)} fields, where the first line has {width}. Mend it"
            )
    columns = [pyarrow.array([row[k] for _, row in rows], pyarrow.string()) for k in range(width)]
    return pyarrow.table(columns, distinct(names)), _values(names)


def _text(path: Path) -> TextIO:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    how: Any = gzip.open if packed else open
    return cast(TextIO, how(path, "rt", encoding="utf-8-sig", errors="replace"))


def _values(cells: Sequence[str]) -> list[float] | None:
    """A first line that holds a time point, not names. Names can be numbers too, but then they are 1, 2, 3, ..."""
    found = [number for cell in cells if (number := _number(cell.strip() or "nan")) is not None]
    counted = np.array([number for number, cell in zip(found, cells, strict=False) if cell.strip()])
    names = len(found) < len(cells) or np.array_equal(counted, np.arange(len(counted)) + counted[:1])
    return None if names else found


def _numbers(path: Path, name: str, column: pyarrow.ChunkedArray) -> np.ndarray | None:
    """The column as numbers, n/a (as BIDS has it) as nan; None if it begins with a word."""
    kind = column.type
    if pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_boolean(kind):
        return np.asarray(column.cast(pyarrow.float64()).fill_null(np.nan))
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_null(kind)):
        return None
    texts = column.to_pylist()
    first = next((text for text in texts if text is not None), "")
    if DECIMAL_COMMA.fullmatch(first):
        raise ValueError(f"{path}: {name}: {first}: decimals are written with a point; replace the commas")
    if first and _number(first) is None:
        return None
    values = [np.nan if text is None else _number(text) for text in texts]
    if None in values:
        bad = values.index(None)
        raise ValueError(f"{path}: {name}, row {bad + 1:,}: {texts[bad]!r} is no number. Mend it, or leave it empty")
    return np.array(values, dtype=float)


def _number(text: str) -> float | None:
    try:
        return np.nan if text.strip().lower() == "n/a" else float(text)
    except ValueError:
        return None
