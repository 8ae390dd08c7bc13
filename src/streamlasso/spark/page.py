"""A page: the models of the keys that share a number, and what is kept beside them. Nothing here knows Spark.

Each row in is one row out, with a status:

    learnt    it was predicted, then learnt
    waiting   it was predicted, and waits for its label
    refused   it changed nothing; `error` has the reason

A row that waits too long comes out once more, as expired. A prediction is always the one that was made when the
features came, and the loss is that of this prediction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from streamlasso.core.base.checks import LARGEST, first_unfit
from streamlasso.estimators.base import Rows
from streamlasso.estimators.validation import ENCODER
from streamlasso.keyed import files
from streamlasso.keyed.groups import groups_of
from streamlasso.spark.job import Job

LEARNT, WAITING, REFUSED, EXPIRED = "learnt", "waiting", "refused", "expired"
#: A repeated id is recognised among as many rows of its page.
REMEMBERED = 1024
NEITHER = "features and target are missing"

Name = tuple[str, str]


class State(NamedTuple):
    """What the state store keeps of a page.

    settings : JSON, what it was made with
    models : `Keyed.to_bytes`
    marks : by key, in the order of the models: rows and totals of the response
    ids : hashes of the last rows
    waiting : JSON, the rows without a label: key, id, when it expires, eta, x
    timer : when the first of them expires, in ms, or 0
    """

    settings: str
    models: bytes
    marks: bytes
    ids: bytes
    waiting: str
    timer: int

    @property
    def n_bytes(self) -> int:
        return len(self.models) + len(self.marks) + len(self.ids) + len(self.waiting)

    @property
    def n_waiting(self) -> int:
        return len(json.loads(self.waiting))


class Events(NamedTuple):
    """Rows of a page as they came.

    order : the id, where it is a whole number, else 0
    time : whole numbers; 0 where there is no time
    X : nan where a value is missing
    y : numbers, nan where missing; of classes texts, or None
    """

    keys: list[str | None]
    ids: list[str | None]
    order: list[int]
    time: list[int]
    has_time: list[bool]
    X: np.ndarray
    y: np.ndarray | list[str | None]

    def sorted(self) -> list[int]:
        """By time and id. Rows that share both are repeated: they are sorted by what they hold, to be so anywhere."""

        def when(i: int) -> tuple[int, int, str]:
            return self.time[i], self.order[i], self.ids[i] or ""

        places = sorted(range(len(self.keys)), key=when)
        if all(when(i) < when(j) for i, j in pairwise(places)):
            return places
        return sorted(places, key=lambda i: (*when(i), self.keys[i] or "", str(self.y[i]), self.X[i].tobytes()))


class Waiting:
    """A row that waits for its label; eta, what was predicted for it."""

    __slots__ = ("eta", "expires", "x")

    def __init__(self, x: np.ndarray, expires: int, eta: np.ndarray | None = None) -> None:
        self.x, self.expires, self.eta = x, expires, eta


class Step(NamedTuple):
    """A row that passed every check. weight : 0 predicts only. row : the one whose prediction counts."""

    event: int
    key: str
    x: np.ndarray
    y: float
    weight: float
    row: Waiting | None


class Results:
    """What comes out, by event."""

    def __init__(self, keys: Sequence[str | None], ids: Sequence[str | None]) -> None:
        n = len(keys)
        self.keys, self.ids = keys, ids
        self.prediction: list[Any] = [None] * n
        self.probabilities: list[Any] = [None] * n
        self.loss: list[float | None] = [None] * n
        self.baseline: list[float | None] = [None] * n
        self.status: list[str] = [REFUSED] * n
        self.error: list[str | None] = [None] * n


class Pages:
    """Learns pages, one after the other."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.keyed = job.no_models()

    def learn(self, before: State | None, events: Events, now: int = 0) -> tuple[State | None, Results]:
        """The state after these events. A page that is too large takes no new keys, and no more rows that wait."""
        self._open(before)
        results = self._learn(events, now)
        return self._close(before), results

    def expire(self, before: State, now: int) -> tuple[State, list[tuple[str, str, np.ndarray]]]:
        """The state without the rows whose time is up, and these: key, id, eta."""
        self.job.refuse_other(before.settings)
        waiting = _unpack_waiting(before.waiting, self.job)
        due = [(name, row) for name, row in waiting.items() if row.expires <= now]
        for name, _ in due:
            del waiting[name]
        after = before._replace(waiting=_pack_waiting(waiting), timer=_first_timer(waiting))
        return after, [(*name, row.eta) for name, row in due if row.eta is not None]

    # --- the state --------------------------------------------------------------------------------------------------

    def _open(self, state: State | None) -> None:
        self._totals: dict[str, list[float]] = {}
        self._seen: dict[int, None] = {}
        self._waiting: dict[Name, Waiting] = {}
        self._full = state is not None and state.n_bytes > self.job.most_bytes
        if state is None:
            files.refill(self.keyed, None)
            return
        self.job.refuse_other(state.settings)
        files.refill(self.keyed, state.models)
        keys = self.keyed.keys()
        width = 1 + self.job.n_learners
        totals = np.frombuffer(state.marks).reshape(len(keys), width)
        self._totals = dict(zip(keys, totals.tolist(), strict=True))  # type: ignore[arg-type]
        self._seen = dict.fromkeys(np.frombuffer(state.ids, np.uint64).tolist())
        self._waiting = _unpack_waiting(state.waiting, self.job)

    def _close(self, before: State | None) -> State | None:
        keys = self.keyed.keys()
        if not keys:
            return before
        totals = np.array([self._totals[key] for key in keys])  # type: ignore[index]
        ids = np.array(list(self._seen)[-REMEMBERED:], dtype=np.uint64)
        return State(
            self.job.settings,
            files.to_bytes(self.keyed),
            totals.tobytes(),
            ids.tobytes(),
            _pack_waiting(self._waiting),
            _first_timer(self._waiting),
        )

    # --- one row ----------------------------------------------------------------------------------------------------

    def _learn(self, events: Events, now: int) -> Results:
        results = Results(events.keys, events.ids)
        checked = _Checked(self.job, events)
        steps: list[Step] = []
        for i in events.sorted():
            step = self._step(checked, i, now)
            if isinstance(step, str):
                results.error[i] = step
            else:
                steps.append(step)
        if steps:
            self._take(steps, results)
        return results

    def _step(self, checked: _Checked, i: int, now: int) -> Step | str:
        """What to do with a row, or why it is refused."""
        key, name = checked.events.keys[i], checked.events.ids[i]
        missing = checked.missing(i)
        if key is None or name is None or missing:
            return missing or "the key or the id is missing"
        if self._full and (key not in self._totals or not checked.has_y[i]):
            return (
                f"its page is larger than {self.job.most_bytes / 2**20:g} MB, so it takes no new keys, and no rows "
                f"without a target: start again with more pages (now {self.job.pages}) and a new checkpoint, or with "
                "a smaller model"
            )
        step = self._accepted(checked, i, (key, name), now)
        if isinstance(step, Step):
            self._totals.setdefault(key, [0.0] * (1 + self.job.n_learners))
        return step

    def _accepted(self, checked: _Checked, i: int, name: Name, now: int) -> Step | str:
        """A whole row, features that wait for their label, or the label of such a row."""
        row, hashed = self._waiting.get(name), _hash(name)
        has_x, has_y = checked.has_x[i], checked.has_y[i]
        if not has_y and (not has_x or self.job.wait_ms is None):
            return "the target is missing: for labels that come later use label_wait" if has_x else NEITHER
        if hashed in self._seen and (row is None or not has_y):
            return f"duplicate: id {name[1]!r} of {name[0]!r} was here before"
        if row is None and not has_x:
            return f"no row waits with id {name[1]!r} of {name[0]!r}: it never came, or has expired"
        wrong = (checked.wrong_y(i) if has_y else None) or (checked.wrong_x(i) if row is None else None)
        if wrong:
            return wrong
        self._seen[hashed] = None
        if has_y:
            self._waiting.pop(name, None)
            return Step(i, name[0], checked.events.X[i] if row is None else row.x, checked.y[i], 1.0, row)
        assert self.job.wait_ms is not None
        row = self._waiting[name] = Waiting(checked.events.X[i], now + self.job.wait_ms)
        return Step(i, name[0], row.x, 1.0 if self.job.classes is None else 0.0, 0.0, row)

    # --- all rows ---------------------------------------------------------------------------------------------------

    def _take(self, steps: list[Step], results: Results) -> None:
        y = np.array([step.y for step in steps])
        targets = self.job.targets(y)
        weights = np.array([step.weight for step in steps])
        X = np.ascontiguousarray([step.x for step in steps])
        models = self.keyed._models
        assert models is not None
        rows = Rows(X, targets, weights, self.keyed.pooled.learners_)
        groups = groups_of([step.key for step in steps], len(steps))
        eta = np.array(models.learn(groups, rows, [None] * len(targets)), order="C")
        for j, step in enumerate(steps):
            if step.row is not None and step.row.eta is None:
                step.row.eta = eta[j].copy()
            elif step.row is not None:
                eta[j] = step.row.eta
        self._note(steps, y, eta, np.transpose(targets), results)

    def _note(self, steps: list[Step], y: np.ndarray, eta: np.ndarray, targets: np.ndarray, results: Results) -> None:
        predicted, probabilities = self.job.predictions(eta)
        losses = self.job.losses(y, eta).tolist()
        baseline = self.job.losses(y, self._baseline(steps, targets)).tolist()
        for j, step in enumerate(steps):
            i, learnt = step.event, step.weight > 0.0
            results.prediction[i] = predicted[j]
            results.probabilities[i] = None if probabilities is None else probabilities[j]
            results.status[i] = LEARNT if learnt else WAITING
            results.loss[i] = losses[j] if learnt else None
            results.baseline[i] = baseline[j] if learnt else None

    def _baseline(self, steps: list[Step], targets: np.ndarray) -> np.ndarray:
        """eta of the running mean of the key before each row."""
        before = np.empty((len(steps), 1 + targets.shape[1]))
        for j, step in enumerate(steps):
            totals = self._totals[step.key]
            before[j] = totals
            if step.weight > 0.0:
                totals[0] += 1.0
                for c, target in enumerate(targets[j].tolist(), start=1):
                    totals[c] += target
        eta = [self.job.family.running_mean(before[:, 0], total) for total in before[:, 1:].T]
        return np.full(targets.shape, np.nan) if eta[0] is None else np.column_stack(eta)


class _Checked:
    """Which values of the events can be learnt."""

    def __init__(self, job: Job, events: Events) -> None:
        self.job, self.events = job, events
        missing = np.isnan(events.X)
        self.has_x = (~missing.all(axis=1)).tolist()
        self._fit_x = np.ones(len(missing), dtype=bool)
        if first_unfit(events.X) >= 0:
            self._fit_x = np.all(np.abs(np.where(missing, np.inf, events.X)) <= LARGEST, axis=1)
        if job.classes is None:
            numbers = np.asarray(events.y, dtype=float)
            self.has_y = (~np.isnan(numbers)).tolist()
            self.y = numbers.tolist()
            known = numbers[~np.isnan(numbers)]
            self._fit_y = bool(np.all(np.abs(known) <= LARGEST)) and job.family.check_target(known) is None
        else:
            self.has_y = [text is not None for text in events.y]
            self.y = [float(job.place.get(text, -1)) for text in events.y]  # type: ignore[arg-type]

    def missing(self, i: int) -> str | None:
        if self.events.keys[i] is None:
            return "the key is missing"
        if self.events.ids[i] is None:
            return "the id is missing"
        return None if self.events.has_time[i] else "the time is missing"

    def wrong_x(self, i: int) -> str | None:
        if self._fit_x[i]:
            return None
        name, value = next(
            (name, value)
            for name, value in zip(self.job.features, self.events.X[i].tolist(), strict=True)
            if not abs(value) <= LARGEST
        )
        if value != value:
            return f"feature {name!r} is missing: fill it in, or use {ENCODER} in front"
        return f"feature {name!r} is {value:g}: values lie within +-{LARGEST:g}; rescale it"

    def wrong_y(self, i: int) -> str | None:
        y = self.y[i]
        if self.job.classes is not None:
            text = self.events.y[i]
            return None if y >= 0 else f"the target is {text!r}, not among the classes {self.job.text}"
        if self._fit_y:
            return None
        if not abs(y) <= LARGEST:
            return f"the target is {y:g}: values lie within +-{LARGEST:g}; rescale it"
        complaint = self.job.family.check_target(np.array([y]))
        return None if complaint is None else f"the target is {y:g}: {complaint}"


# --- rows that wait ---------------------------------------------------------------------------------------------------


def _hash(name: Name) -> int:
    return int.from_bytes(blake2b("\0".join(name).encode(), digest_size=8).digest(), "little")


def _first_timer(waiting: dict[Name, Waiting]) -> int:
    return min((row.expires for row in waiting.values()), default=0)


def _pack_waiting(waiting: dict[Name, Waiting]) -> str:
    return json.dumps([[*name, row.expires, list(row.eta), list(row.x)] for name, row in waiting.items()])  # type: ignore[arg-type]


def _unpack_waiting(text: str, job: Job) -> dict[Name, Waiting]:
    """What `_pack_waiting` gave, and nothing else: a state store may hold anything."""
    try:
        rows = [
            ((key, name), Waiting(np.array(x, dtype=float), expires, np.array(eta, dtype=float)))
            for key, name, expires, eta, x in json.loads(text)
        ]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"the rows that wait for their labels are damaged: {error}") from error
    shapes = (len(job.features),), (job.n_learners,)
    for (key, name), row in rows:
        texts = isinstance(key, str) and isinstance(name, str) and type(row.expires) is int
        numbers = np.concatenate([row.x.ravel(), row.eta.ravel()])  # type: ignore[union-attr]
        if not texts or (row.x.shape, row.eta.shape) != shapes or not np.isfinite(numbers).all():  # type: ignore[union-attr]
            raise ValueError("the rows that wait for their labels are damaged")
    if len(dict(rows)) < len(rows):
        raise ValueError("two rows that wait for their labels have the same name")
    return dict(rows)
