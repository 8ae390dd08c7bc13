"""A table's rows as numbers: which columns are features, how each is read, and what was seen last in each."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow

from streamlasso.core.values import LARGEST
from streamlasso.encoding.columns import KINDS, MOST_LEVELS, OTHER, Calendar, Levels, Number, carried
from streamlasso.encoding.kinds import column_of, is_category
from streamlasso.encoding.notation import example
from streamlasso.encoding.reading import is_nested
from streamlasso.encoding.target import Target, nearest

#: Features in all beyond which no level gets one of its own.
MOST_FEATURES = 500


class Cells(NamedTuple):
    """Rows, and how they were read: of each column the values and which are unfit; the target; the time, or None."""

    rows: pyarrow.RecordBatch
    columns: dict[str, tuple[np.ndarray, np.ndarray]]
    target: np.ndarray
    time: np.ndarray | None

    def __len__(self) -> int:
        return len(self.target)

    def part(self, rows: slice) -> Cells:
        columns = {name: (values[rows], unfit[rows]) for name, (values, unfit) in self.columns.items()}
        table = self.rows.slice(rows.start, rows.stop - rows.start)
        return Cells(table, columns, self.target[rows], None if self.time is None else self.time[rows])


class Encoded(NamedTuple):
    """Rows as the engine takes them.

    X : (row, feature), as wide as it is after the last row
    width : how many of the features were there when each row came; the others were 0 until then
    target : numbers, or places among the classes; NaN, or -1, where missing
    known : rows that can be learnt: not those without a past, where lags were asked for
    time : what the time column holds, or None
    place : which of the rows given these are: not those that could not be read
    """

    X: np.ndarray
    width: np.ndarray
    target: np.ndarray
    known: np.ndarray
    time: np.ndarray | None
    place: np.ndarray


class Encoder:
    """Reads blocks of a table in order; `features` are the names so far, in the order of their columns.

    >>> import pyarrow
    >>> from streamlasso.encoding import Encoder, Target
    >>> table = pyarrow.RecordBatch.from_pydict({"city": ["Rome", "Oslo", None], "y": ["1.5", "2", "4"]})
    >>> encoder = Encoder.from_first_rows(table, Target.guess("y", table["y"], "auto"))
    >>> encoder.features
    ['city = Rome', 'city = Oslo', 'city missing']
    >>> encoder.encode(encoder.read(table)).X
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 1.]])
    """

    def __init__(
        self,
        target: Target,
        columns: list[Any],
        features: list[str],
        *,
        lags: Mapping[str, list[int]] | None = None,
        past: Mapping[str, list[Any]] | None = None,
        time: str | None = None,
        time_column: Any = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.target, self.columns, self.features = target, columns, list(features)
        self.place = {name: j for j, name in enumerate(self.features)}
        self.lags = {name: list(of) for name, of in (lags or {}).items()}
        self.past = {name: list(values) for name, values in (past or {}).items()}
        self.time, self.time_column = time, time_column
        self.notes = list(notes)
        self.last_target: Any = None

    # --- from the first rows ------------------------------------------------------------------------------------------

    @classmethod
    def from_first_rows(
        cls,
        rows: pyarrow.RecordBatch,
        target: Target,
        *,
        keep: Iterable[str] = (),
        drop: Iterable[str] = (),
        lags: Mapping[str, list[int]] | None = None,
        time: str | None = None,
        forms: Mapping[str, str] | None = None,
    ) -> Self:
        """Judge every column by these rows. What they show has its features from the start.

        forms : how the numbers of columns are written, where it is not plainly (`forms.py`)
        """
        keep, drop = list(keep), list(drop)
        _refuse_unknown(rows, {"--keep": keep, "--drop": drop, "--lags": lags or {}, "--time": [time] if time else []})
        names = [name for name in (keep or rows.schema.names) if name != target.name and name not in drop]
        forms = forms or {}
        nested = [name for name in names if is_nested(rows[name]) and name not in keep]
        names = [name for name in names if name not in nested]
        found = {name: column_of(name, rows[name], forms.get(name)) for name in names}
        notes = [f"column {name!r} is left out: it holds {rows[name].type}, no number, text or date" for name in nested]
        reasons = {name: _left_out(column, rows[name], name in keep) for name, column in found.items()}
        notes += [why for why in reasons.values() if why]
        columns = [column for name, column in found.items() if not reasons[name]]
        time = time or _time_among(columns)
        columns = [column for column in columns if column.name != time or not isinstance(column, Number)]
        encoder = cls(target, columns, [], lags=lags, time=time, notes=notes)
        encoder.time_column = column_of(time, rows[time], forms.get(time)) if time else None
        encoder._check_lags()
        encoder._lay_out(rows)
        if not encoder.features:
            raise ValueError(
                f"there is no feature left beside the target {target.name!r}: see --keep and --drop, or take its past "
                f"for one, --lags {shlex.quote(target.name)}:1" + "".join(f"; {note}" for note in notes[:3])
            )
        return encoder

    def _check_lags(self) -> None:
        kinds = {column.name: column for column in self.columns}
        for name in self.lags:
            if name != self.target.name and not isinstance(kinds.get(name), Number | Levels):
                raise ValueError(f"--lags {name}: a feature of numbers or text, or the target, is needed")

    def _lay_out(self, rows: pyarrow.RecordBatch) -> None:
        """Features in the order of the columns: those that are always there, and what the first rows show."""
        levels = {self.target.name: list(map(str, self.target.classes or []))}
        for column in self.columns:
            values, unfit = column.read(rows[column.name])
            levels[column.name] = list(column.levels_of(values))
            self._add_features(column, levels[column.name])
            if np.any(column.missing(values) & ~unfit):
                self._add(f"{column.name} missing")
        bases = [name for name, lags in self.lags.items() for _ in lags]
        for name, column in zip(bases, self._lagged(), strict=True):
            self._add_features(column, levels[name])

    def _add_features(self, column: Any, levels: list[str]) -> None:
        for feature in column.fixed():
            self._add(feature)
        for level in levels if isinstance(column, Levels) else []:
            self._add_level(column, level)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def read(self, rows: pyarrow.RecordBatch, *, targeted: bool = True) -> Cells:
        """The cells of some rows, each column after its kind; nothing is remembered of them yet.

        targeted=False: the table need not have the target.
        """
        missing = [column.name for column in self.columns if column.name not in rows.schema.names]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r}; {nearest(missing[0], rows.schema.names)}")
        columns = {column.name: column.read(rows[column.name]) for column in self.columns}
        time = self._times(rows) if self.time in rows.schema.names else None
        return Cells(rows, columns, self._read_target(rows, targeted), time)

    def encode(self, cells: Cells, complain: Callable[[int, str], None] | None = None, *, grow: bool = True) -> Encoded:
        """The next rows. `complain(i, words)` is told of rows that cannot be read; if it returns, they are left out.

        grow=False: what has no feature yet gets none.
        """
        read = cells.columns
        target, wrong = self.target.values(cells.target)
        for i, words in self._unfit(cells):
            wrong.setdefault(i, words)
        for i in sorted(wrong):
            if complain is None:
                raise ValueError(wrong[i])
            complain(i, wrong[i])
        fit = np.array([i not in wrong for i in range(len(target))], dtype=bool)
        time = None if cells.time is None else cells.time[fit]
        filled = {name: values[fit] for name, (values, _) in read.items()}
        return self._encode(filled, target[fit], time, np.flatnonzero(fit), grow)

    def _unfit(self, cells: Cells) -> Iterator[tuple[int, str]]:
        """Rows with a cell that is not what its column held so far, and what is wrong."""
        for column in self.columns:
            values, unfit = cells.columns[column.name]
            for i in np.flatnonzero(unfit).tolist():
                cell = cells.rows[column.name][i].as_py()
                yield i, f"column {column.name!r} holds {cell!r}, where the first rows had {_said(column)}"
            if isinstance(column, Number):
                for i in np.flatnonzero(np.abs(values) > LARGEST).tolist():
                    yield i, f"column {column.name!r} holds {values[i]}: beyond +-{LARGEST:g}"

    def _read_target(self, rows: pyarrow.RecordBatch, targeted: bool) -> np.ndarray:
        if self.target.name in rows.schema.names:
            return self.target.read(rows[self.target.name])
        if targeted:
            raise ValueError(f"there is no column {self.target.name!r}; {nearest(self.target.name, rows.schema.names)}")
        return np.full(rows.num_rows, np.nan) if self.target.classes is None else np.full(rows.num_rows, None)

    def _times(self, rows: pyarrow.RecordBatch) -> np.ndarray:
        values, unfit = self.time_column.read(rows[self.time])
        values = values.copy()
        values[unfit] = self.time_column.nothing
        return values

    def _encode(
        self,
        read: dict[str, np.ndarray],
        target: np.ndarray,
        time: np.ndarray | None,
        place: np.ndarray,
        grow: bool,
    ) -> Encoded:
        n_rows = len(target)
        filled, holes, known = {}, {}, np.ones(n_rows, bool)
        for column in self.columns:
            holes[column.name] = column.missing(read[column.name])
            filled[column.name] = carried(column, read[column.name])
        everything = [(column, filled[column.name]) for column in self.columns]
        for column, values in self._shifted(filled, target):
            everything.append((column, values))
            known &= ~column.missing(values)
        width = np.full(n_rows, len(self.features))
        if grow:
            for row, column, level in self._newcomers(everything, holes):
                self._add_level(column, level) if level is not None else self._add(f"{column.name} missing")
                width[row:] = len(self.features)
        X = np.zeros((n_rows, len(self.features)))
        for column, values in everything:
            column.fill(X, values, self.place)
            indicator = self.place.get(f"{column.name} missing")
            if indicator is not None and column.name in holes:
                X[:, indicator] = holes[column.name]
        return Encoded(X, width, target, known, time, place)

    def _newcomers(
        self, everything: list[tuple[Any, np.ndarray]], holes: dict[str, np.ndarray]
    ) -> list[tuple[int, Any, str | None]]:
        """Levels, and columns with holes (None), that are new, in the order of their rows."""
        found = []
        for k, (column, values) in enumerate(everything):
            for level, row in column.levels_of(values).items():
                if column.feature(level) not in self.place:
                    found.append((row, k, level))
            if column.name in holes and holes[column.name].any() and f"{column.name} missing" not in self.place:
                found.append((int(np.argmax(holes[column.name])), k, None))
        return [(row, everything[k][0], level) for row, k, level in sorted(found, key=lambda new: new[:2])]

    # --- lags ---------------------------------------------------------------------------------------------------------

    def _lagged(self) -> list[Any]:
        """A column for each lag, of the kind of the column it is of."""
        names = {name: self.target.lagged_name if name == self.target.name else name for name in self.lags}
        return [self._kind(name)(f"{names[name]} lag {lag}") for name, lags in self.lags.items() for lag in lags]

    def _kind(self, name: str) -> Any:
        if name == self.target.name:
            return Number if self.target.classes is None else Levels
        return next(type(column) for column in self.columns if column.name == name)

    def _shifted(self, filled: dict[str, np.ndarray], target: np.ndarray) -> list[tuple[Any, np.ndarray]]:
        """Each lagged column with its values; before there are so many rows, the oldest value there is."""
        out = []
        columns = iter(self._lagged())
        for name, lags in self.lags.items():
            values = self._known_target(target) if name == self.target.name else filled[name]
            past = self.past.get(name, [])
            series = np.empty(len(past) + len(values), dtype=values.dtype)
            series[: len(past)] = [np.nan if value is None and values.dtype != object else value for value in past]
            series[len(past) :] = values
            at = len(past) + np.arange(len(values))
            for lag in lags:
                column = next(columns)
                source = np.maximum(at - lag, 0)
                shifted = np.where(at > 0, series[np.minimum(source, len(series) - 1)], column.nothing)
                out.append((column, shifted.astype(values.dtype)))
            self.past[name] = series[max(len(series) - max(lags), 0) :].tolist()
        return out

    def _known_target(self, target: np.ndarray) -> np.ndarray:
        """The target as it is known afterwards: the last value where one is missing; labels for classes."""
        if self.target.classes is None:
            column: Any = Number(self.target.name, np.nan if self.last_target is None else self.last_target)
            values = carried(column, target)
            self.last_target = None if np.isnan(column.last) else float(column.last)
            return self.target.lagged(values)
        labels = np.array([*map(str, self.target.classes), None], dtype=object)
        words = Levels(self.target.name, self.last_target)
        values = carried(words, labels[target])
        self.last_target = words.last
        return values

    # --- features -----------------------------------------------------------------------------------------------------

    def _add(self, feature: str) -> None:
        if feature not in self.place:
            self.place[feature] = len(self.features)
            self.features.append(feature)

    def _add_level(self, column: Levels, level: str) -> None:
        prefix = column.feature("")
        taken = sum(feature.startswith(prefix) for feature in self.features)
        if taken < MOST_LEVELS and len(self.features) < MOST_FEATURES:
            self._add(column.feature(level))
        elif column.feature(OTHER) not in self.place:
            self._add(column.feature(OTHER))
            self.notes.append(f"column {column.name!r} has more levels than {taken}: further ones share a feature")

    # --- for checkpoints ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What the next row needs, as JSON."""
        return {
            "target": self.target.state(),
            "columns": [{"kind": column.kind, **column.state()} for column in self.columns],
            "features": self.features,
            "lags": self.lags,
            "past": {name: [None if value != value else value for value in past] for name, past in self.past.items()},
            "time": self.time,
            "time_column": self.time_column and {"kind": self.time_column.kind, **self.time_column.state()},
            "notes": self.notes,
            "last_target": self.last_target,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        columns = [_revived(column) for column in state["columns"]]
        encoder = cls(
            Target(**state["target"]),
            columns,
            state["features"],
            lags=state["lags"],
            past=state["past"],
            time=state["time"],
            time_column=state["time_column"] and _revived(state["time_column"]),
            notes=state["notes"],
        )
        encoder.last_target = state["last_target"]
        return encoder


def _revived(state: dict[str, Any]) -> Any:
    state = dict(state)
    return KINDS[state.pop("kind")](**state)


def _refuse_unknown(rows: pyarrow.RecordBatch, asked: Mapping[str, Iterable[str]]) -> None:
    for option, names in asked.items():
        for name in names:
            if name not in rows.schema.names:
                raise ValueError(f"{option} {name}: there is no such column; {nearest(name, rows.schema.names)}")


def _left_out(column: Any, cells: pyarrow.Array, kept: bool) -> str:
    """Why a column is no feature, or nothing."""
    if column.missing(np.array([column.last]))[0]:
        return f"column {column.name!r} is left out: it is empty in the first {len(cells):,} rows"
    if isinstance(column, Levels) and not kept and not is_category(cells):
        keep = f"--keep {shlex.quote(column.name)} keeps it"
        return f"column {column.name!r} is left out: its text differs in nearly every row; {keep}"
    return ""


def _time_among(columns: list[Any]) -> str | None:
    """The first column of dates, if there is one."""
    return next((column.name for column in columns if isinstance(column, Calendar) and column.days), None)


def _said(column: Any) -> str:
    if isinstance(column, Calendar):
        return "dates"
    return f"numbers like {example(column.form)}" if column.form else "numbers"
