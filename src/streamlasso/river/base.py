"""What both estimators share: learners as wide as the names seen so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from html import escape
from typing import Any, Self

import numpy as np

from streamlasso import checkpoint, compact
from streamlasso._html import learnt_html
from streamlasso.core.base.selected import Selected
from streamlasso.core.dict_rows import DictRows, number
from streamlasso.core.model import Engine
from streamlasso.estimators.changes import FindsChanges
from streamlasso.estimators.coefficients import Coefficients
from streamlasso.estimators.explanation import Explanation, explained
from streamlasso.estimators.parameters import Parameters
from streamlasso.estimators.turns import (
    CopiedWhole,
    behind_the_gate_of,
    between_rows,
)
from streamlasso.river.frames import penalty_factors
from streamlasso.settings import build_learner

#: What features are, for both estimators.
NAMES = """Features have names. A new name is a feature that was 0 until now; a name absent from a row is 0 there. A row
    with a value that is not a finite number is refused, and changes nothing."""


class RAP(CopiedWhole, FindsChanges, Parameters):
    """What both estimators share: learners as wide as the columns that the names have."""

    columns_: DictRows
    learners_: list[Engine]

    def _start(self, settings: dict[str, Any]) -> None:
        """A learner that has seen no row: the features with a factor of their own, and one column without a name."""
        factors = penalty_factors(settings["penalty_factor"])
        self.columns_ = DictRows(factors, len(factors) + 1)
        settings = {**settings, "penalty_factor": [*factors.values(), 1.0]}
        self.learners_ = [build_learner(self.columns_.width, settings)]

    def save(self, path: Any) -> None:
        """Write the model to `path` (safetensors); the file appears whole or not at all.

        While another thread learns, it is the model between two rows.
        """
        checkpoint.save(copy(self), path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """The model that `save` wrote. Loading runs no code of the file's, and refuses a file that is not whole."""
        return checkpoint.load(cls, path)

    @between_rows
    def to_bytes(self) -> bytes:
        """The model as bytes, for a database or a message; `save` writes the same."""
        return compact.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The model that `to_bytes` gave. No code of theirs is run, and bytes that are not whole are refused."""
        return checkpoint.from_bytes(cls, data)

    @property
    @between_rows
    def n_seen_(self) -> int:
        """Rows learnt."""
        return self.learners_[0].n_seen

    @property
    @between_rows
    def effective_size_(self) -> float:
        """The weight omega of the rows in memory."""
        return self.learners_[0].effective_size

    def _whole(self) -> bool:
        """Do the labels belong to the learners? A checkpoint asks before it hands out a model."""
        return self.columns_.width == self.learners_[0].n_features and len(self.learners_) == 1

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
        parameters = f"<pre>{escape(repr(self))}</pre>"
        if not self.n_seen_:
            return parameters
        return learnt_html(type(self).__name__, self.learners_, self._sparse_models(), self._names) + parameters

    @between_rows
    def _sparse_models(self) -> dict[Any, Selected]:
        """One model per class, or one by the name None; of a mixture the selected one."""
        return {None: self.learners_[0].single()}

    @property
    def _names(self) -> list[str]:
        """Of the features."""
        return list(map(str, self.columns_.names))

    def _named(self, coefficients: np.ndarray) -> dict[Hashable, float]:
        return dict(zip(self.columns_.names, coefficients.tolist(), strict=False))

    def _each(self, of: Callable[[Engine], Any]) -> Any:
        """What is asked of the model; of several, by class."""
        return of(self.learners_[0])

    @property
    @between_rows
    def inclusion_(self) -> Any:
        """Of each feature, the probability that it matters, from 0 to 1; for classes by class."""
        return self._each(lambda learner: self._named(learner.inclusion()))

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

        return self._each(of)

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
