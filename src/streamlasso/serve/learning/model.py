"""A model that lives: an encoder and a learner as in `streamlasso run`."""

from __future__ import annotations

import json
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor, compact
from streamlasso.data.encoding import Encoder
from streamlasso.data.encoding.cells import Encoded
from streamlasso.data.encoding.first_rows import detect_column
from streamlasso.model.stream_model import StreamModel
from streamlasso.serve.learning.alarms import Alarm
from streamlasso.serve.learning.encode import encoded, encoded_each
from streamlasso.serve.learning.first_rows import (
    FIRST,
    detected,
    in_words,
    is_detected_after,
    kind_of_labels,
    refuse_unreadable,
    started,
    until_detection,
)
from streamlasso.serve.learning.monitor import Monitor
from streamlasso.serve.learning.rows import Row, Rows, Value
from streamlasso.serve.learning.selected import selected
from streamlasso.serve.limits import MOST_CELLS, MOST_NAMES
from streamlasso.serve.problems import Problem
from streamlasso.serve.settings import ModelSettings


class Learnt(NamedTuple):
    """Of each row: what was predicted before it was learnt, None if nothing, and the loss of that, None if it has none;
    and the alarms that came with the rows."""

    predictions: list[Any]
    losses: list[float | None]
    alarms: list[Alarm]


class LiveModel:
    """Rows go in, in order; each is predicted, then learnt. A row that is refused changes nothing.

    n_rows : rows so far, also those without a label
    first : the first rows, until their columns are recognised for good
    names : all names in the first rows, and those of columns that came later
    labels : "numbers" or "text", as the first label was; None where a family is declared, or no label has come

    >>> model = LiveModel(ModelSettings())
    >>> heat = [i * 7919 % 101 / 10 for i in range(300)]
    >>> learnt = model.learn(Rows([{"heat": value} for value in heat], [2 * value for value in heat]), time=0.0)
    >>> [round(answer["prediction"], 1) for answer in model.predict([{"heat": 3}, {"heat": 5}])]
    [6.0, 10.0]
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.n_rows, self.last_learn = 0, 0.0
        self.first = Rows([], [])
        self.names: set[str] = set()
        self.labels: str | None = None
        self.encoder: Encoder | None = None
        self.learning: StreamModel | None = None
        self.monitor = Monitor()

    # --- learning -----------------------------------------------------------------------------------------------------

    def learn(self, rows: Rows, time: float) -> Learnt:
        """Predict each row, then learn it; all of them, or a Problem."""
        self._refuse_many(len(rows), rows.names())
        labels = self.labels if self.settings.declares_kind else kind_of_labels(rows.y, self.labels)
        if self.n_rows >= FIRST:
            learnt = self._learn_next(rows, time)
        else:
            refuse_unreadable(self.first, rows, self.settings)
            before = self._first_state()
            try:
                learnt = self._learn_first_rows(rows, time)
            except BaseException:
                self._restore_first(before)
                raise
        self.labels = labels
        return learnt

    def _learn_first_rows(self, rows: Rows, time: float) -> Learnt:
        found: list[Learnt] = []
        start = 0
        while start < len(rows) and self.n_rows < FIRST:
            stop = start + min(len(rows) - start, until_detection(self.n_rows))
            found.append(self._learn_first(rows.part(start, stop), time))
            start = stop
        if self.n_rows >= FIRST:
            self.first = Rows([], [])
        if start < len(rows):
            found.append(self._learn_next(rows.part(start, len(rows)), time))
        return _together(found)

    def _learn_first(self, rows: Rows, time: float) -> Learnt:
        """Some of the first rows, after which the columns may be looked at again."""
        try:
            learnt = self._learn_next(rows, time)
        except (Problem, _Unknown) as refusal:
            if len(rows) > 1:
                return _together([self._learn_first(rows.part(i, i + 1), time) for i in range(len(rows))])
            self.monitor.note_unpredicted(rows.y, time)
            self.n_rows, self.last_learn = self.n_rows + 1, time
            self._keep(rows)
            self._detect(refusal)
            return Learnt([None], [None], [])
        self._keep(rows)
        if is_detected_after(self.n_rows):
            self._detect()
        return learnt

    def _keep(self, rows: Rows) -> None:
        self.first = Rows([*self.first.rows, *rows.rows], [*self.first.y, *rows.y])
        self.names |= rows.names()

    def _detect(self, refusal: Exception | None = None) -> None:
        """A new encoder and a new learner, by all rows so far."""
        try:
            encoder = detected(self.first, self.settings)
            learning = started(encoder, self.settings)
            table = self.first.table([column.name for column in encoder.columns], self.settings.target)
            rows = encoder.encode(encoder.read(encoder.with_time(table)))
        except ValueError as error:
            if isinstance(refusal, Problem):
                raise refusal from None
            if self.encoder is None and self.n_rows >= FIRST:
                raise Problem(422, in_words(error)) from None
            return
        learning.learn(rows)
        self.encoder, self.learning = encoder, learning
        self.monitor.restart_spread(rows)

    def _learn_next(self, rows: Rows, time: float) -> Learnt:
        """Rows whose columns are known, or that bring new ones."""
        if self.encoder is None or self.learning is None:
            raise _Unknown
        return _together([self._learn_encoded(part, time) for part in self._all_encoded(rows)])

    def _learn_encoded(self, rows: Encoded, time: float) -> Learnt:
        assert self.encoder is not None and self.learning is not None
        outcomes = self.learning.learn(rows)
        losses, alarms = self.monitor.note(self, rows, outcomes, time)
        self.n_rows, self.last_learn = self.n_rows + len(rows.target), time
        predictions = [value for piece in outcomes for value in self._predicted(piece.eta)]
        return Learnt(predictions, [loss if loss == loss else None for loss in losses.tolist()], alarms)

    # --- rows as numbers ----------------------------------------------------------------------------------------------

    def _refuse_many(self, n_rows: int, names: set[str]) -> None:
        names = names | self.names
        if len(names) > MOST_NAMES:
            raise Problem(422, f"a model has at most {MOST_NAMES:,} features by name: these rows would bring more")
        most = MOST_CELLS // max(len(names), self.n_features, 1)
        if n_rows > most:
            raise Problem(413, f"of so many features at most {most:,} rows can come at a time: send fewer")

    def _all_encoded(self, rows: Rows) -> list[Encoded]:
        """The rows as numbers, in parts that end where a column appears; if one is refused, nothing has changed."""
        assert self.encoder is not None and self.learning is not None
        new = rows.names() - self.names - {self.settings.target, *self.settings.drop}
        if not new or self.settings.keep:
            return [encoded(self.encoder, rows)]
        before, names = as_text(self.encoder.state()), set(self.names)
        first: dict[str, int] = {}
        for i, row in enumerate(rows.rows):
            for name in new & row.keys():
                if row[name] is not None:
                    first.setdefault(name, i)
        ends = sorted({0, *first.values(), len(rows)})
        try:
            found = []
            for start, stop in pairwise(ends):
                part = rows.part(start, stop)
                self._add_columns(part, [name for name in sorted(new) if first.get(name) == start])
                found.append(encoded(self.encoder, part))
        except BaseException:
            self.encoder, self.names = Encoder.from_state(json.loads(before)), names
            self.learning.encoder = self.encoder
            raise
        return found

    def _add_columns(self, rows: Rows, names: list[str]) -> None:
        """Columns for names that come in the first of these rows, by what they hold there."""
        assert self.encoder is not None
        table = rows.part(0, 1).table(names, self.settings.target)
        for name in names:
            self.encoder.add_column(detect_column(name, table[name]))
            self.names.add(name)

    # --- predicting ---------------------------------------------------------------------------------------------------

    def predict(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Each row as if it were the next one; nothing is kept of it."""
        if self.encoder is None or self.learning is None:
            return [{"prediction": None} for _ in rows]
        self._refuse_many(len(rows), set())
        eta = self.eta(encoded_each(self.encoder, rows))
        if not self.learning.classes:
            return [{"prediction": value} for value in self._predicted(eta)]
        labels = list(map(str, self.learning.labels))
        named = self.learning.predictions(eta, len(labels))
        shares = np.column_stack([named[f"P({label})"] for label in labels]).tolist()
        best = named["prediction"].tolist()
        return [
            {"prediction": label, "probabilities": dict(zip(labels, each, strict=True))}
            for label, each in zip(best, shares, strict=True)
        ]

    def eta(self, X: np.ndarray) -> np.ndarray:
        """(row, learner)"""
        assert self.learning is not None
        return self.learning.predict_each(X)

    def _predicted(self, eta: np.ndarray) -> list[Value]:
        assert self.learning is not None
        return self.learning.predictions(eta, 0)["prediction"].tolist()

    # --- for people ---------------------------------------------------------------------------------------------------

    @property
    def features(self) -> list[str]:
        return [] if self.encoder is None else self.encoder.features

    @property
    def n_features(self) -> int:
        return len(self.features)

    def selected(self) -> list[dict[str, Any]]:
        """The selected model, or one for each class."""
        return [] if self.learning is None else selected(self)

    # --- for checkpoints ----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], bytes | None]:
        """As JSON, and the bytes of the model; the history is kept elsewhere."""
        notes = {
            "n_rows": self.n_rows,
            "last_learn": self.last_learn,
            "first": [self.first.rows, self.first.y],
            "names": sorted(self.names),
            "labels": self.labels,
            "encoder": self.encoder and self.encoder.state(),
            "learning": self.learning and self.learning.state(),
            **self.monitor.state(),
        }
        return notes, None if self.learning is None else self.learning.estimator.to_bytes()

    @classmethod
    def restored(cls, settings: ModelSettings, notes: dict[str, Any], data: bytes | None) -> LiveModel:
        """The model whose state this is: the next row does to it what it would have done to that one."""
        model = cls(settings)
        model.n_rows, model.last_learn, model.names = notes["n_rows"], notes["last_learn"], set(notes["names"])
        model.first, model.labels = Rows(*notes["first"]), notes["labels"]
        if data is not None:
            model.encoder = Encoder.from_state(notes["encoder"])
            estimator = compact.from_bytes([RAPRegressor, RAPClassifier], data)
            model.learning = StreamModel(model.encoder, estimator, notes["learning"])
        model.monitor = Monitor(notes, model.n_rows)
        return model

    def _first_state(self) -> tuple[Any, ...]:
        """Of a model in its first rows, which may be refused halfway."""
        notes, data = self.state()
        history = self.monitor.history
        return as_text(notes), data, history.n, history.rows[: history.n].copy()

    def _restore_first(self, before: tuple[Any, ...]) -> None:
        notes, data, n, rows = before
        history = self.monitor.history
        self.__dict__.update(vars(LiveModel.restored(self.settings, json.loads(notes), data)))
        history.rows[:n], history.n = rows, n
        self.monitor.history = history


def _together(found: list[Learnt]) -> Learnt:
    return Learnt(*(list(chain.from_iterable(parts)) for parts in zip(*found, strict=True)))


class _Unknown(Exception):
    """Nothing is known about the columns yet."""


def as_text(notes: dict[str, Any]) -> str:
    """For a checkpoint."""
    return json.dumps(notes, allow_nan=False, separators=(",", ":"))
