"""What is kept of the rows of a model, for people: losses, history, alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamlasso.data.encoding.cells import Encoded
from streamlasso.model.outcomes import Outcomes
from streamlasso.serve.learning.alarms import Alarm, Watch
from streamlasso.serve.learning.history import History
from streamlasso.serve.learning.scores import Scores, Spread

if TYPE_CHECKING:
    from streamlasso.serve.learning.model import LiveModel


class Monitor:
    """Sees the outcomes of all rows that a model learns."""

    def __init__(self, notes: dict[str, Any] | None = None, n_rows: int = 0) -> None:
        notes = notes or {}
        self.scores, self.spread = Scores(**notes.get("scores", {})), Spread(**notes.get("spread", {}))
        self.watch, self.history = Watch(notes.get("watch")), History(n_rows)

    def state(self) -> dict[str, Any]:
        """As JSON; the history is kept elsewhere."""
        return {"scores": self.scores.state(), "spread": self.spread.state(), "watch": self.watch.state()}

    def note(
        self, model: LiveModel, rows: Encoded, outcomes: list[Outcomes], time: float
    ) -> tuple[np.ndarray, list[Alarm]]:
        """Rows that were learnt: their losses, NaN where a row is not scored, and the alarms that came with them."""
        n_rows = model.n_rows + len(rows.target)
        alarms = self.look(model, rows, n_rows, time)
        losses = np.concatenate([self._note(model, piece, time) for piece in outcomes])
        self.add_spread(rows)
        return losses, alarms + self._changes(model, n_rows, time)

    def look(self, model: LiveModel, rows: Encoded, n_rows: int, time: float) -> list[Alarm]:
        assert model.encoder is not None
        return self.watch.look(model.encoder, rows.X, self.spread, self.scores, n_rows, time)

    def add_spread(self, rows: Encoded) -> None:
        self.spread.add(rows.X)

    def restart_spread(self, rows: Encoded) -> None:
        """The features are others now."""
        self.spread = Spread()
        self.spread.add(rows.X)

    def _changes(self, model: LiveModel, n_rows: int, time: float) -> list[Alarm]:
        """Changes in the stream that the estimator has found."""
        assert model.learning is not None
        changes = getattr(model.learning.estimator, "changes_", None)
        if changes is None or not len(changes):
            return []
        return self.watch.changes(len(changes), f"a change was found: {changes[-1]}", n_rows, time)

    def _note(self, model: LiveModel, outcomes: Outcomes, time: float) -> np.ndarray:
        assert model.learning is not None
        least = outcomes.least_loss if model.learning.family.deviance_name else 0.0
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
        self.history.add(
            np.column_stack([times, *pair, losses, after["lam"], after["effective_size"], after["n_active"]])
        )
        return losses[:, 0]

    def note_unpredicted(self, labels: list[Any], time: float) -> None:
        """Rows that came before there was a model."""
        nothing = np.full((len(labels), len(self.history.rows[0])), np.nan)
        nothing[:, 0] = time
        if all(isinstance(label, int | float) for label in labels):
            nothing[:, 1] = np.array(labels, float)
        self.history.add(nothing)
