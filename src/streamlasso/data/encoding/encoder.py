"""A table's rows as numbers: the columns with their features, and the last value of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Self

import numpy as np
import pyarrow

from streamlasso._text import count, shortened
from streamlasso.core.base.checks import LARGEST
from streamlasso.data.encoding import reading
from streamlasso.data.encoding.cells import Cells, Encoded
from streamlasso.data.encoding.columns import MOST_LEVELS, OTHER, Column, column_from
from streamlasso.data.encoding.lags import Lags
from streamlasso.data.encoding.sparse.columns import SparseColumn
from streamlasso.data.encoding.suggestions import suggestion
from streamlasso.data.encoding.target import Target
from streamlasso.data.encoding.times.joined_times import JoinedTime

#: When there are so many features, no further level gets one of its own.
MOST_FEATURES = 500

#: Columns, and columns of lags, with their values.
Values = list[tuple[Column, np.ndarray]]


class Encoder:
    """Encodes blocks of a table in order; `features` are the names so far, in the order of the columns of X.

    joined : the time, where it is spread over several columns
    season : the number of rows in a season, if there is one
    in_time : whether the rows are in the order of time, or are series one after the other that are
    key : the column with the key of each row, if there is one; lags are those of the same key
    sparse : columns of many features (`sparse/encoder.py`), none here
    unseen : of columns that were encoded without growing, the levels that have no feature, and how often they occur

    >>> import pyarrow
    >>> from streamlasso.data.encoding import Target, encoder_for
    >>> table = pyarrow.RecordBatch.from_pydict({"city": ["Rome", "Oslo", None], "y": ["1.5", "2", "4"]})
    >>> encoder = encoder_for(table, Target.guess("y", table["y"], "auto"))
    >>> encoder.features
    ['city = Rome', 'city = Oslo', 'city missing']
    >>> encoder.encode(encoder.read(table)).X
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 1.]])
    """

    sparse: list[SparseColumn] = []  # noqa: RUF012 (of a subclass)

    def __init__(
        self,
        target: Target,
        columns: list[Column],
        features: Iterable[str] = (),
        *,
        lags: Lags | None = None,
        time: str | None = None,
        time_column: Column | None = None,
        joined: JoinedTime | None = None,
        season: int | None = None,
        in_time: bool = False,
        key: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.target, self.columns, self.features = target, columns, list(features)
        self.place = {name: j for j, name in enumerate(self.features)}
        self.lags = lags or Lags({}, target, columns)
        self.time, self.time_column = time, time_column
        self.joined, self.season, self.in_time, self.key = joined, season, in_time, key
        self.notes = list(notes)
        self.unseen: dict[str, dict[str, int]] = {}

    def ahead(self) -> Encoder:
        """A copy that encodes the next rows while the encoder itself stays where it is."""
        other = copy(self)
        other.columns = [copy(column) for column in self.columns]
        other.features, other.place, other.notes = list(self.features), dict(self.place), list(self.notes)
        return other

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, rows: pyarrow.RecordBatch, *, needs_target: bool = True) -> Cells:
        """The cells of some rows; nothing is kept of them yet. needs_target=False: the table may lack the target."""
        rows = self.with_time(rows)
        needed = [column.name for column in self.columns] + [self.target.name] * needs_target
        needed += [] if self.key is None else [self.key]
        for name in needed:
            self._refuse_absent(name, rows.schema.names)
        columns = {column.name: column.read(rows[column.name]) for column in self.columns}
        time = self._times(rows) if self.time in rows.schema.names else None
        has_target = self.target.name in rows.schema.names
        target = self.target.read(rows[self.target.name]) if has_target else self.target.missing(rows.num_rows)
        keys = None if self.key is None else reading.keys(rows[self.key])
        return Cells(rows, columns, target, time, keys)

    def _refuse_absent(self, name: str, names: list[str]) -> None:
        if name not in names:
            raise ValueError(f"there is no column {name!r}: {suggestion(name, names)}")

    def with_time(self, rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """The table, with the time that several of its columns are together, if they are."""
        return rows if self.joined is None else self.joined.added_to(rows)

    def _times(self, rows: pyarrow.RecordBatch) -> np.ndarray:
        assert self.time_column is not None
        values, unfit = self.time_column.read(rows[self.time])
        values = values.copy()
        values[unfit] = self.time_column.missing_value
        return values

    # --- encoding -----------------------------------------------------------------------------------------------------

    def encode(
        self, cells: Cells, on_bad_row: Callable[[int, str], None] | None = None, *, grow: bool = True
    ) -> Encoded:
        """The next rows. `on_bad_row(i, reason)` is called for rows that cannot be read; if it returns, they are left
        out. grow=False: a level, or a missing value, that has no feature yet gets none.
        """
        target, bad = self._checked(cells, on_bad_row)
        good: Any = slice(None)
        if bad:
            good = np.ones(len(target), dtype=bool)
            good[list(bad)] = False
        read = {name: values[good] for name, (values, _) in cells.columns.items()}
        target, place = target[good], np.arange(len(target))[good]
        keys = None if cells.keys is None else cells.keys[good]
        columns = self._filled(read, target, keys)
        holes = {column.missing_feature: column.missing(read[column.name]) for column in self.columns}
        width = self._widths(len(place), columns, holes, grow)
        time = None if cells.time is None else cells.time[good]
        return Encoded(self._features(len(place), columns, holes), width, target, time, place, keys)

    def encode_each(self, cells: Cells) -> np.ndarray:
        """The features (row, feature) of rows each of which may be the next one; nothing is kept of them.

        >>> import pyarrow
        >>> from streamlasso.data.encoding import Target, encoder_for
        >>> table = pyarrow.RecordBatch.from_pydict({"heat": [20, 31, None, None], "y": [1.5, 2, 4, 5]})
        >>> encoder = encoder_for(table, Target.guess("y", table["y"], "auto"), lags={"y": [1]})
        >>> _ = encoder.encode(encoder.read(table))
        >>> new = pyarrow.RecordBatch.from_pydict({"heat": [7.0, None]})
        >>> encoder.encode_each(encoder.read(new, needs_target=False))
        array([[ 7.,  0.,  5.],
               [31.,  1.,  5.]])
        """
        for _, reason in self._unfit(cells):
            raise ValueError(reason)
        read = {name: values for name, (values, _) in cells.columns.items()}
        filled = {column.name: column.filled_each(read[column.name]) for column in self.columns}
        target, _ = self.target.values(self.target.missing(len(cells)))
        columns = [(column, filled[column.name]) for column in self.columns] + self.lags.next(filled, target)
        holes = {column.missing_feature: column.missing(read[column.name]) for column in self.columns}
        return self._features(len(cells), columns, holes)

    # --- rows of numbers ----------------------------------------------------------------------------------------------

    def encode_numbers(self, values: Mapping[str, np.ndarray], labels: pyarrow.Array) -> Encoded | None:
        """As `encode` of these columns and labels, for a few rows in a fraction of the time; None, and nothing has
        changed, where a value is missing or refused, or the table is not one of numbers alone."""
        block = self._block(values)
        if block is None:
            return None
        n_classes = len(self.target.classes or [])
        target, bad = self.target.values(self.target.read(labels))
        if bad:
            del (self.target.classes or [])[n_classes:]
            return None
        for column, last in zip(self.columns, block[:, -1], strict=True):
            column.last = last
        lags = self.lags.shifted(dict(zip(values, block, strict=True)), target)
        width = self._widths(len(target), lags, {}, True)
        return Encoded(self._number_features(block, lags), width, target, None, np.arange(len(target)))

    def encode_numbers_each(self, values: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """As `encode_each`; None as in `encode_numbers`."""
        block = self._block(values)
        if block is None:
            return None
        target, _ = self.target.values(self.target.missing(block.shape[1]))
        return self._number_features(block, self.lags.next(dict(zip(values, block, strict=True)), target))

    def _block(self, values: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """(column, row), if it is as `encode_numbers` needs it."""
        if self.time is not None or self.joined is not None or self.key is not None or self.sparse or not values:
            return None
        if not all(column.is_numeric for column in self.columns) or list(values) != [c.name for c in self.columns]:
            return None
        block = np.array(list(values.values()))
        return block if (np.abs(block) <= LARGEST).all() else None

    def _number_features(self, block: np.ndarray, lags: Values) -> np.ndarray:
        X = self._features(block.shape[1], lags, {})
        X[:, [self.place[column.name] for column in self.columns]] = block.T
        return X

    # --- rows that are not as they should be --------------------------------------------------------------------------

    def _checked(
        self, cells: Cells, on_bad_row: Callable[[int, str], None] | None
    ) -> tuple[np.ndarray, dict[int, str]]:
        """The target, and the rows that cannot be read, if they are left out; if not, no class is new."""
        n_classes = len(self.target.classes or [])
        try:
            target, bad = self.target.values(cells.target)
            for i, reason in self._unfit(cells):
                bad.setdefault(i, reason)
            for i in sorted(bad):
                if on_bad_row is None:
                    raise ValueError(bad[i])
                on_bad_row(i, bad[i])
        except BaseException:
            del (self.target.classes or [])[n_classes:]
            raise
        return target, bad

    def _unfit(self, cells: Cells) -> Iterator[tuple[int, str]]:
        """Rows with a cell that does not belong in its column, and the reason."""
        for i in [] if cells.keys is None else np.flatnonzero(cells.keys == None).tolist():  # noqa: E711 (elementwise)
            yield i, f"column {self.key!r} is empty, where every row needs a key"
        for column in self.columns:
            values, unfit = cells.columns[column.name]
            for i in np.flatnonzero(unfit).tolist():
                cell = cells.rows[column.name][i].as_py()
                yield (
                    i,
                    f"column {column.name!r} holds {shortened(repr(cell))}, where the first rows had {column.content}",
                )
            for i in np.flatnonzero(column.too_large(values)).tolist():
                cell = shortened(cells.rows[column.name][i].as_py())
                yield i, f"column {column.name!r} holds {cell}, which is beyond +-{LARGEST:g}"

    def _filled(self, read: Mapping[str, np.ndarray], target: np.ndarray, keys: np.ndarray | None) -> Values:
        """Columns and lags with their values, where missing ones are the last before."""
        filled = {column.name: column.filled(read[column.name]) for column in self.columns}
        return [*((column, filled[column.name]) for column in self.columns), *self.lags.shifted(filled, target, keys)]

    def _features(self, n_rows: int, columns: Values, holes: Mapping[str, np.ndarray]) -> np.ndarray:
        X = np.zeros((n_rows, len(self.features)))
        for column, values in columns:
            column.fill(X, values, self.place)
        for feature, missing in holes.items():
            if feature in self.place:
                X[:, self.place[feature]] = missing
        return X

    # --- features -----------------------------------------------------------------------------------------------------

    def add_features(self, rows: pyarrow.RecordBatch) -> None:
        """Those of the first rows, in the order of the columns: fixed ones, levels, missing values; then the lags."""
        levels = {self.target.name: list(map(str, self.target.classes or []))}
        for column in self.columns:
            values, unfit = column.read(rows[column.name])
            levels[column.name] = list(column.levels_of(values))
            self._add_column(column, levels[column.name])
            if np.any(column.missing(values) & ~unfit):
                self._add(column.missing_feature)
        for name, _, column in self.lags.columns:
            self._add_column(column, levels[name])

    def add_column(self, column: Column) -> None:
        """A column that appears late: its features were 0 until now."""
        self.columns.append(column)
        self._add_column(column, [])

    def _add_column(self, column: Column, levels: list[str]) -> None:
        for feature in column.fixed_features():
            self._add(feature)
        for level in levels:
            self._add_level(column, level)

    def _widths(self, n_rows: int, columns: Values, holes: Mapping[str, np.ndarray], grow: bool) -> np.ndarray:
        """The number of features at each row; levels and missing values that are new are added at their rows."""
        width = np.full(n_rows, len(self.features))
        for row, k, column, level in sorted(self._new(columns, holes), key=lambda new: new[:2]):
            if not grow:
                self._note_unseen(column, level, columns[k][1])
                continue
            self._add(column.missing_feature) if level is None else self._add_level(column, level)
            width[row:] = len(self.features)
        return width

    def _note_unseen(self, column: Column, level: str | None, values: np.ndarray) -> None:
        """A level of a column that has neither a feature of its own nor one for other levels."""
        if level is not None and column in self.columns and column.level_feature(OTHER) not in self.place:
            levels = self.unseen.setdefault(column.name, {})
            levels[level] = levels.get(level, 0) + int(np.sum(values == level))

    def _new(self, columns: Values, holes: Mapping[str, np.ndarray]) -> Iterator[tuple[int, int, Column, str | None]]:
        """Levels, and columns with missing values (None), that have no feature: row, place of the column, column."""
        for k, (column, values) in enumerate(columns):
            for level, row in column.levels_of(values).items():
                if column.level_feature(level) not in self.place:
                    yield row, k, column, level
            missing = holes.get(column.missing_feature)
            if missing is not None and missing.any() and column.missing_feature not in self.place:
                yield int(np.argmax(missing)), k, column, None

    def _add(self, feature: str) -> None:
        if feature not in self.place:
            self.place[feature] = len(self.features)
            self.features.append(feature)

    def _add_level(self, column: Column, level: str) -> None:
        prefix = column.level_feature("")
        taken = sum(feature.startswith(prefix) for feature in self.features)
        if taken < MOST_LEVELS and len(self.features) < MOST_FEATURES:
            self._add(column.level_feature(level))
        elif column.level_feature(OTHER) not in self.place:
            self._add(column.level_feature(OTHER))
            self.notes.append(f"column {column.name!r} has more than {taken} levels: further ones share a feature")

    @property
    def described(self) -> str:
        """For people: what the features come from."""
        return f"{count(len(self.features), 'feature')} from {count(len(self.columns), 'column')}"

    # --- for checkpoints ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What the next row needs, as JSON."""
        return {
            "target": self.target.state(),
            "columns": [column.state() for column in self.columns],
            "features": self.features,
            "lags": self.lags.state(),
            "time": self.time,
            "time_column": self.time_column and self.time_column.state(),
            "joined": self.joined,
            "season": self.season,
            "in_time": self.in_time,
            "key": self.key,
            "notes": self.notes,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        target = Target(**state["target"])
        columns = [column_from(column) for column in state["columns"]]
        return cls(
            target,
            columns,
            state["features"],
            lags=Lags(target=target, columns=columns, **state["lags"]),
            time=state["time"],
            time_column=state["time_column"] and column_from(state["time_column"]),
            joined=state["joined"] and JoinedTime(*map(tuple, state["joined"])),
            season=state["season"],
            in_time=state["in_time"],
            key=state.get("key"),
            notes=state["notes"],
        )
