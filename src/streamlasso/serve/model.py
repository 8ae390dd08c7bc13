"""A model that lives: an encoder and a learner as in `streamlasso run`, and what is told about them."""

from __future__ import annotations

import json
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from streamlasso import RAPClassifier, RAPRegressor, compact
from streamlasso._text import shortened
from streamlasso.data.encoding import Encoder
from streamlasso.data.encoding.detect_columns import detect_column
from streamlasso.data.encoding.encoder import Encoded
from streamlasso.run.learning import Learning, Outcomes
from streamlasso.serve.alarms import Alarm, Watch
from streamlasso.serve.first_rows import FIRST, detected, is_detected_after
from streamlasso.serve.history import History
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import JsonRows, Row, Rows, Value
from streamlasso.serve.scores import Scores, Spread
from streamlasso.serve.selected import selected
from streamlasso.serve.settings import ModelSettings

#: The most columns and features of a model.
MOST_COLUMNS, MOST_FEATURES = 1000, 2000


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

    >>> model = LiveModel(ModelSettings())
    >>> heat = [i * 7919 % 101 / 10 for i in range(300)]
    >>> learnt = model.learn(JsonRows([{"heat": value} for value in heat], [2 * value for value in heat]), time=0.0)
    >>> [round(answer["prediction"], 1) for answer in model.predict([{"heat": 3}, {"heat": 5}])]
    [6.0, 10.0]
    """

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.n_rows, self.last_learn = 0, 0.0
        self.first = JsonRows([], [])
        self.names: set[str] = set()
        self.encoder: Encoder | None = None
        self.learning: Learning | None = None
        self.scores, self.spread, self.history, self.watch = Scores(), Spread(), History(), Watch()

    # --- learning -----------------------------------------------------------------------------------------------------

    def learn(self, rows: Rows, time: float) -> Learnt:
        """Predict each row, then learn it; all of them, or a Problem."""
        self._refuse_many(rows.names() | self.names)
        if self.n_rows >= FIRST:
            return self._learn_next(rows, time)
        before = self._first_state()
        found: list[Learnt] = []
        try:
            start = 0
            while start < len(rows) and self.n_rows < FIRST:
                stop = start + min(len(rows) - start, _until_detection(self.n_rows))
                piece = rows.part(start, stop)
                found.append(self._learn_first(JsonRows(piece.dicts(), list(piece.labels())), time))
                start = stop
            if start < len(rows):
                found.append(self._learn_next(rows.part(start, len(rows)), time))
        except Problem:
            self._restore_first(before)
            raise
        return _together(found)

    def _learn_first(self, rows: JsonRows, time: float) -> Learnt:
        """Some of the first rows, after which the columns may be looked at again."""
        try:
            learnt = self._learn_next(rows, time)
        except (Problem, _Unknown) as refusal:
            if len(rows) > 1:
                pieces = [self._learn_first(rows.part(i, i + 1), time) for i in range(len(rows))]
                return _together(pieces)
            learnt = self._kept(rows, time)
            self._keep(rows)
            self._detect(refusal)
            return learnt
        self._keep(rows)
        if is_detected_after(self.n_rows):
            self._detect()
        return learnt

    def _kept(self, rows: Rows, time: float) -> Learnt:
        """Nothing is predicted yet."""
        n = len(rows)
        nothing = np.full((n, len(self.history.rows[0])), np.nan)
        nothing[:, 0] = time
        if all(isinstance(label, int | float) for label in rows.labels()):
            nothing[:, 1] = np.array(rows.labels(), float)
        self.history.add(nothing)
        self.n_rows, self.last_learn = self.n_rows + n, time
        return Learnt([None] * n, [None] * n, [])

    def _keep(self, rows: JsonRows) -> None:
        self.first = JsonRows([*self.first.rows, *rows.rows], [*self.first.y, *rows.y])
        self.names |= rows.names()

    def _detect(self, refusal: Exception | None = None) -> None:
        """An encoder and a learner anew, by all rows so far."""
        try:
            encoder, learning = detected(self.first, self.settings)
            table = self.first.table([column.name for column in encoder.columns], self.settings.target)
            rows = encoder.encode(encoder.read(encoder.with_time(table)))
        except ValueError as error:
            if self.n_rows < FIRST and not isinstance(refusal, Problem):
                return
            raise refusal if isinstance(refusal, Problem) else Problem(422, _in_words(error)) from None
        for piece in learning.pieces(rows, encoder.features):
            learning.learn(rows.X[piece, : rows.width[piece.start]], rows.target[piece])
        self.encoder, self.learning = encoder, learning
        self.spread = Spread()
        self.spread.add(rows.X)
        if self.n_rows >= FIRST:
            self.first = JsonRows([], [])

    def _learn_next(self, rows: Rows, time: float) -> Learnt:
        """Rows whose columns are known, or new ones that get a column."""
        if self.encoder is None or self.learning is None:
            raise _Unknown
        found = [self._learn_encoded(encoded, time) for encoded in self._all_encoded(rows)]
        return found[0] if len(found) == 1 else _together(found)

    def _learn_encoded(self, encoded: Encoded, time: float) -> Learnt:
        assert self.encoder is not None and self.learning is not None
        outcomes = [
            self.learning.learn(encoded.X[piece, : encoded.width[piece.start]], encoded.target[piece])
            for piece in self.learning.pieces(encoded, self.encoder.features)
        ]
        losses, alarms = self.noted(encoded, outcomes, time)
        predictions = [value for piece in outcomes for value in self._predicted(piece.eta)]
        return Learnt(predictions, [loss if loss == loss else None for loss in losses.tolist()], alarms)

    def noted(self, encoded: Encoded, outcomes: list[Outcomes], time: float) -> tuple[np.ndarray, list[Alarm]]:
        """The losses of rows that were learnt, NaN of those that are not scored, and the alarms that came with them."""
        alarms = self._look(encoded, time)
        self.n_rows, self.last_learn = self.n_rows + len(encoded.target), time
        losses = np.concatenate([self._note(piece, time) for piece in outcomes])
        self._keep_spread(encoded)
        return losses, alarms + self._changes(time)

    def _all_encoded(self, rows: Rows) -> list[Encoded]:
        """The rows as numbers, in parts that end where a column appears; if one is refused, nothing has changed."""
        assert self.encoder is not None
        new = rows.names() - self.names - {self.settings.target, *self.settings.drop}
        if not new or self.settings.keep:
            return [self._encoded(rows)]
        before, names = as_text(self.encoder.state()), set(self.names)
        first: dict[str, int] = {}
        for i, row in enumerate(rows.dicts()):
            for name in new & row.keys():
                if row[name] is not None:
                    first.setdefault(name, i)
        ends = sorted({0, *first.values(), len(rows)})
        try:
            found = []
            for start, stop in pairwise(ends):
                part = rows.part(start, stop)
                self._add_columns(part, [name for name in sorted(new) if first.get(name) == start])
                found.append(self._encoded(part))
        except BaseException:
            self.encoder, self.names = Encoder.from_state(json.loads(before)), names
            self.learning.target = self.encoder.target  # type: ignore[union-attr]
            raise
        return found

    def _encoded(self, rows: Rows) -> Encoded:
        assert self.encoder is not None
        table = rows.table(self._columns(), self.settings.target)
        bad: list[tuple[int, str]] = []
        try:
            return self.encoder.encode(self.encoder.read(table), lambda i, reason: _refuse(bad, i, reason))
        except ValueError as error:
            row = {"row": bad[0][0]} if bad else {}
            raise Problem(422, _in_words(bad[0][1] if bad else error), **row) from None

    def _columns(self) -> list[str]:
        """The names that a table of rows needs."""
        assert self.encoder is not None
        joined = [] if self.encoder.joined is None else list(self.encoder.joined.columns)
        made = [] if self.encoder.joined is None else [self.encoder.joined.name]
        time = [] if self.encoder.time is None else [self.encoder.time]
        return [
            name
            for name in dict.fromkeys([*(column.name for column in self.encoder.columns), *joined, *time])
            if name not in made
        ]

    def _add_columns(self, rows: Rows, names: list[str]) -> None:
        """Columns for names that come in the first of these rows, by what they hold there."""
        assert self.encoder is not None
        table = rows.part(0, 1).table(names, self.settings.target)
        for name in names:
            self.encoder.add_column(detect_column(name, table[name]))
            self.names.add(name)

    def _refuse_many(self, names: set[str]) -> None:
        if len(names) > MOST_COLUMNS:
            raise Problem(422, f"a model has at most {MOST_COLUMNS:,} features by name: these rows would bring more")

    def _look(self, rows: Encoded, time: float) -> list[Alarm]:
        assert self.encoder is not None
        n_rows = self.n_rows + len(rows.target)
        return self.watch.look(self.encoder, rows.X, self.spread, self.scores, n_rows, time)

    def _keep_spread(self, rows: Encoded) -> None:
        self.spread.add(rows.X)

    def _changes(self, time: float) -> list[Alarm]:
        """Where the estimator tells of changes."""
        assert self.learning is not None
        changes = getattr(self.learning.estimator, "changes_", None)
        if changes is None or not len(changes):
            return []
        return self.watch.changes(len(changes), f"a change was found: {changes[-1]}", self.n_rows, time)

    def _note(self, outcomes: Outcomes, time: float) -> np.ndarray:
        """Losses and history; the loss of each row that is scored, NaN of others."""
        assert self.learning is not None
        least = outcomes.least_loss if self.learning.family.deviance_name else 0.0
        losses = np.column_stack([outcomes.loss, outcomes.baseline, outcomes.persistence]) - np.reshape(least, (-1, 1))
        losses[~outcomes.scored] = np.nan
        self.scores.add(losses[outcomes.scored])
        fit, after = outcomes.fit, outcomes.after
        if fit.classes is None:
            pair = fit.actual[:, 0], fit.predicted[:, 0]
        else:
            y = np.where(fit.classes[:, 0] < 0, np.nan, fit.classes[:, 0].astype(float))
            two = fit.predicted.shape[1] == 2
            pair = y, fit.predicted[:, 1] if two else fit.classes[:, 1].astype(float)
        times = np.full(len(losses), time)
        model = after["lam"], after["effective_size"], after["n_active"]
        self.history.add(np.column_stack([times, *pair, losses, *model]))
        return losses[:, 0]

    # --- predicting ---------------------------------------------------------------------------------------------------

    def predict(self, rows: list[Row]) -> list[dict[str, Any]]:
        """Each row as if it were the next one; nothing is kept of it."""
        if self.encoder is None or self.learning is None:
            return [{"prediction": None} for _ in rows]
        eta = self.eta(self.encoded(rows))
        if not self.learning.classes:
            return [{"prediction": value} for value in self._predicted(eta)]
        named = self.learning.predictions(eta, len(self.learning.labels))
        labels = list(map(str, self.learning.labels))
        shares = np.column_stack([named[f"P({label})"] for label in self.learning.labels]).tolist()
        best = named["prediction"].tolist()
        return [
            {"prediction": label, "probabilities": dict(zip(labels, each, strict=True))}
            for label, each in zip(best, shares, strict=True)
        ]

    def encoded(self, rows: list[Row]) -> np.ndarray:
        """(row, feature), each row as the next one."""
        assert self.encoder is not None
        given = JsonRows(rows, [None] * len(rows))
        table = given.table(self._columns(), self.settings.target)
        try:
            return self.encoder.encode_each(self.encoder.read(table, needs_target=False))
        except ValueError as error:
            raise Problem(422, _in_words(error)) from None

    def eta(self, X: np.ndarray) -> np.ndarray:
        """(row, learner)"""
        assert self.learning is not None
        X = np.ascontiguousarray(X[:, : self.learning.learners[0].n_features])
        eta = np.column_stack([learner.decision_each(X) for learner in self.learning.learners])
        return self.learning.blended_each(eta)

    def _predicted(self, eta: np.ndarray) -> list[Value]:
        assert self.learning is not None
        return self.learning.predictions(eta, 0)["prediction"].tolist()

    # --- what is told -------------------------------------------------------------------------------------------------

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
            "encoder": self.encoder and self.encoder.state(),
            "learning": self.learning and self.learning.state(),
            "scores": self.scores.state(),
            "spread": self.spread.state(),
            "watch": self.watch.state(),
        }
        return notes, None if self.learning is None else self.learning.estimator.to_bytes()

    @classmethod
    def restored(cls, settings: ModelSettings, notes: dict[str, Any], data: bytes | None) -> LiveModel:
        """The model whose state this is: the next row does to it what it would have done to that one."""
        model = cls(settings)
        model.n_rows, model.last_learn, model.names = notes["n_rows"], notes["last_learn"], set(notes["names"])
        model.first = JsonRows(*notes["first"])
        if data is not None:
            model.encoder = Encoder.from_state(notes["encoder"])
            estimator = compact.from_bytes([RAPRegressor, RAPClassifier], data)
            model.learning = Learning(model.encoder.target, estimator, notes["learning"])
        model.scores, model.spread = Scores(**notes["scores"]), Spread(**notes["spread"])
        model.watch, model.history = Watch(notes["watch"]), History(model.n_rows)
        return model

    def _first_state(self) -> tuple[Any, ...]:
        """Of a model in its first rows, which may be refused halfway."""
        notes, data = self.state()
        return as_text(notes), data, self.history.n, self.history.rows[: self.history.n].copy()

    def _restore_first(self, before: tuple[Any, ...]) -> None:
        notes, data, n, rows = before
        history = self.history
        self.__dict__.update(vars(LiveModel.restored(self.settings, json.loads(notes), data)))
        history.rows[:n], history.n = rows, n
        self.history = history


def _together(found: list[Learnt]) -> Learnt:
    return Learnt(*(list(chain.from_iterable(parts)) for parts in zip(*found, strict=True)))


class _Unknown(Exception):
    """Nothing is known about the columns yet."""


def _until_detection(n_rows: int) -> int:
    """Rows until the columns are looked at again."""
    return 1 if n_rows == 0 else (1 << n_rows.bit_length()) - n_rows


def _refuse(bad: list[tuple[int, str]], i: int, reason: str) -> None:
    bad.append((i, reason))
    raise ValueError(reason)


def _in_words(error: object) -> str:
    """Without the options of the command line, which a request does not have."""
    return shortened(str(error).replace("--target", "target").replace("--family ", "family="), 500)


def as_text(notes: dict[str, Any]) -> str:
    """For a checkpoint."""
    return json.dumps(notes, allow_nan=False, separators=(",", ":"))
