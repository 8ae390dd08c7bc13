"""The changes that were found in a stream, with the names of its features, and whom to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from streamlasso.core.model import Engine
from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.estimators.turns import CopiedWhole, between_rows


class FindsChanges(CopiedWhole):
    """An estimator whose learners look for changes."""

    #: Called with each change when it is found.
    on_change: Callable[[DetectedChange], Any] | None = None
    learners_: list[Engine]

    @property
    @between_rows
    def changes_(self) -> list[DetectedChange]:
        """The last 32 changes that were found in the stream, oldest first; of several classes, those of each model.

        Rows count from 0. What is known about the last one gets better for 64 rows after it was found.

        >>> import numpy as np
        >>> from streamlasso import RAPRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 3))
        >>> y = np.where(np.arange(600) < 400, 2.0, -1.0) * X[:, 1] + rng.normal(size=600)
        >>> model = RAPRegressor().fit(X, y)
        >>> [(change.row, list(change.features)) for change in model.changes_]
        [(400, ['x1'])]
        """
        if all(learner.changes is None for learner in self._fitted()):
            raise AttributeError("changes_: no changes were looked for; use false_alarms=1.0 from the first row on")
        found = []
        labels = self._model_labels() if len(self._fitted()) > 1 else [None]
        for learner, label in zip(self._fitted(), labels, strict=True):
            if learner.changes is not None:
                found += [change.named(self._names)._replace(label=label) for change in learner.changes.list()]
        return sorted(found, key=lambda change: (change.detected, change.row))

    @contextmanager
    def _telling(self, reset: bool = False) -> Iterator[None]:
        """`on_change` is told of the changes found in this block, after it; `reset`: it begins a new stream."""
        if self.on_change is None:
            yield
            return
        news = News(self, self.on_change)
        news.since = 0 if reset else news.since
        try:
            yield
        finally:
            news.tell()

    def _fitted(self) -> list[Engine]:
        """The engines."""
        raise NotImplementedError

    def _model_labels(self) -> Sequence[Any]:
        """The class of each engine."""
        raise NotImplementedError

    @property
    def _names(self) -> list[str]:
        """Of the features."""
        raise NotImplementedError


class News:
    """Changes of which somebody has not been told yet."""

    def __init__(self, estimator: FindsChanges, whom: Callable[[DetectedChange], Any] | None) -> None:
        self.estimator, self.whom = estimator, whom
        self.since = self._rows()

    def tell(self) -> None:
        """Of the changes that were found since: of all of them, also where `whom` raises an error for one."""
        if self.whom is None or not hasattr(self.estimator, "learners_"):
            return
        since, self.since = self.since, self._rows()
        errors = []
        for change in getattr(self.estimator, "changes_", ()):
            if since <= change.detected < self.since:
                try:
                    self.whom(change)
                except Exception as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def _rows(self) -> int:
        learners = getattr(self.estimator, "learners_", [])
        return learners[0].changes.n if learners and learners[0].changes is not None else 0
