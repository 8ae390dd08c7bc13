"""A run with any number of features, for the page: it has no penalty, memory or inclusion to show."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamlasso.data.encoding.cells import Encoded
from streamlasso.report.summarise import Snapshot
from streamlasso.serve.learning.alarms import Alarm
from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.learning.monitor import Monitor
from streamlasso.serve.learning.selected import shares_of
from streamlasso.serve.settings import ModelSettings


class LossMonitor(Monitor):
    """Looks at losses alone: there is no end of features."""

    def look(self, model: LiveModel, rows: Encoded, n_rows: int, time: float) -> list[Alarm]:
        return self.watch.losses(self.scores, n_rows, time)

    def add_spread(self, rows: Encoded) -> None: ...


class WideRun(LiveModel):
    """Its strongest coefficients are shown as the run looked at them last: to look again is to go through all features,
    and would count as a look of the run."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        self.monitor = LossMonitor()
        self.snapshot: Snapshot | None = None

    @property
    def features(self) -> list[str]:
        """Those that were among the strongest."""
        return [] if self.learning is None else list(self.learning.features or ())

    @property
    def n_features(self) -> int:
        return 0 if self.snapshot is None else self.snapshot.n_features or 0

    def selected(self) -> list[dict[str, Any]]:
        if self.snapshot is None or self.learning is None:
            return []
        n = len(self.snapshot.coef)
        labels: list[Any] = list(map(str, self.learning.labels)) if n > 1 else [None]
        return [self._selected(k, label) for k, label in zip(range(n), labels, strict=True)]

    def _selected(self, k: int, label: Any) -> dict[str, Any]:
        assert self.snapshot is not None and self.snapshot.spread is not None
        coef = self.snapshot.coef[k]
        shares = shares_of(np.abs(coef) * self.snapshot.spread)
        strongest = [j for j in np.argsort(-shares, kind="stable").tolist() if coef[j] != 0]
        return {
            "class": label,
            **dict.fromkeys(("lam", "lam_max", "memory", "since", "intercept")),
            "n_active": int(self.snapshot.n_active[k]),
            "coefficients": [
                {"feature": self.features[j], "coef": float(coef[j]), "inclusion": None, "importance": float(shares[j])}
                for j in strongest
            ],
        }
