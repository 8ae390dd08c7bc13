"""What both estimators share: learners as wide as the names seen so far."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from streamlasso.core.base.selected import Selected
from streamlasso.core.dict_rows import DictRows, number
from streamlasso.core.model import Engine
from streamlasso.estimators.coefficients import Coefficients, with_names
from streamlasso.estimators.explanation import Explanation, explained
from streamlasso.estimators.face import Best, Face, Number, Vector
from streamlasso.estimators.parameters import Parameters
from streamlasso.estimators.turns import behind_the_gate_of, between_rows
from streamlasso.river.frames import penalty_factors
from streamlasso.settings import build_learner

#: What features are, for both estimators.
NAMES = """Features have names. A new name is a feature that was 0 until now; a name absent from a row is 0 there. A row
    with a value that is not a finite number is refused, and changes nothing."""


class RAP(Face[Number, Vector, Best], Parameters):
    """What both estimators share: learners as wide as the columns that the names have."""

    columns_: DictRows

    def _start(self, settings: dict[str, Any]) -> None:
        """A learner that has seen no row: the features with a factor of their own, and one column without a name."""
        factors = penalty_factors(settings["penalty_factor"])
        self.columns_ = DictRows(factors, len(factors) + 1)
        settings = {**settings, "penalty_factor": [*factors.values(), 1.0]}
        self.learners_ = [build_learner(self.columns_.width, settings)]

    def _fits(self, n_features: int) -> bool:
        return self.columns_.width == n_features

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of weight `w`."""
        if self.on_change is not None:
            with self._telling():
                self._learn_one(x, y, w)
            return
        self._learn_one(x, y, w)

    def _learn_one(self, x: dict[Any, Any], y: Any, w: float) -> None:
        raise NotImplementedError

    def _room_for(self, names: Iterable[Hashable]) -> tuple[DictRows, list[Engine]]:
        """Columns and learners that have these names too. Nothing is theirs until the rows are learnt."""
        # Where features tie, the first column wins: so it must not matter in which order a row names them.
        new = sorted((name for name in names if name not in self.columns_), key=str)
        if not new:
            return self.columns_, self.learners_
        n = len(self.columns_.names) + len(new)
        columns = DictRows([*self.columns_.names, *new], max(n, self.columns_.width))
        if n <= self.columns_.width:
            return columns, self.learners_
        if self.n_seen_ > 0:
            # Growing copies p^2 numbers. Names that come one by one find columns ready, all 0 until then.
            columns = DictRows(columns.names, n + n // 4)
        return columns, behind_the_gate_of(self, [learner.grown(columns.width) for learner in self.learners_])

    @between_rows
    def _repr_html_(self) -> str:
        """In a notebook: what it has learnt, and below it the parameters."""
        return f"{self._learnt_html()}<pre>{escape(repr(self))}</pre>"

    @property
    def _names(self) -> list[str]:
        """Of the features."""
        return list(map(str, self.columns_.names))

    def _by_feature(self, values: np.ndarray) -> dict[Hashable, float]:
        return dict(zip(self.columns_.names, values.tolist(), strict=False))

    def _named_model(self, model: Selected) -> Selected:
        return with_names(model, self.columns_.names)

    @between_rows
    def explain_one(self, x: dict[Any, Any]) -> Any:
        """Why a row is predicted as it is: an `Explanation`, whose sum is the prediction; for classes by class."""
        row = np.zeros(self.columns_.width)
        for name, value in x.items():
            if name in self.columns_:
                row[self.columns_.place(name)] = number(repr(name), value)
        names = self.columns_.names

        def of(learner: Engine) -> Explanation:
            found = explained(learner, row, range(self.columns_.width))
            return found._replace(contributions=Coefficients(np.array(found.contributions)[: len(names)], names))

        return self._by_model([of(learner) for learner in self.learners_])

    def debug_one(self, x: dict[Any, Any], decimals: int = 5) -> str:
        """A table of what each feature adds to the prediction of a row, the largest first, as river's models print."""
        found = self.explain_one(x)
        if not isinstance(found, dict):
            return _table_of(found, x, decimals)
        return "\n\n".join(f"{label}\n{_table_of(each, x, decimals)}" for label, each in found.items())


def _table_of(why: Explanation, x: Mapping[Any, Any], decimals: int) -> str:
    """One line per feature, and the sum."""
    parts = dict(zip(why.contributions.names or [], why.contributions.tolist(), strict=False))
    shown = sorted((name for name in parts if parts[name] != 0), key=lambda name: -abs(parts[name]))
    lines = [("Name", "Value", "Contribution"), ("(baseline)", "", f"{why.baseline:,.{decimals}f}")]
    lines += [(str(name), f"{float(x.get(name, 0.0)):,.{decimals}f}", f"{parts[name]:,.{decimals}f}") for name in shown]
    lines.append(("(sum)", "", f"{why.eta:,.{decimals}f}"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("   ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
