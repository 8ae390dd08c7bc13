"""Several threads and one estimator: one call learns, others read a whole model; what is refused has touched nothing.

A call that learns has the estimator to itself (`learning`). It works on arrays and learners that nobody else sees, or
on the estimator's learners, row by row behind their gate (`core/base/lock.py`); then everything new becomes the
estimator's at once (`publish`). Whoever reads waits for the end of a row (`between_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import copy
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from streamlasso.core.base.lock import MARK, Claimed, Gate, Learning

#: The estimator for a call alone; and the same for one that has learners from the start.
learning = Learning
claimed = Claimed
#: What changes in place while rows are learnt.
IN_PLACE = ("learners_", "_recent")

Estimator = TypeVar("Estimator", bound="CopiedWhole")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class counting:  # noqa: N801
    """A counter of the rows learnt, for `learn_together`; what ends the block early has it as `rows_learnt`."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.learnt = np.zeros(1, dtype=np.int64)

    def __enter__(self) -> np.ndarray:
        return self.learnt

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            return
        done = int(self.learnt[0])
        error.rows_learnt = done  # type: ignore[attr-defined]
        if isinstance(error, KeyboardInterrupt) and not error.args:
            rest = "; the model is whole, and the rows after them can follow" if done < self.n_rows else ""
            error.args = (f"{done:,} of {self.n_rows:,} rows were learnt{rest}",)


def gate_of(estimator: Any) -> Gate:
    """`with gate_of(estimator):` the model does not change. It has one gate for as long as it lives."""
    return estimator.learners_[0].gate


def between_rows(
    read: Callable[Concatenate[Estimator, Arguments], Result],
) -> Callable[Concatenate[Estimator, Arguments], Result]:
    """For methods that read the model: another thread that learns stays between two rows meanwhile."""

    @wraps(read)
    def reading(self: Estimator, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with self._still():
            return read(self, *args, **kwargs)

    return reading  # type: ignore[return-value]


def publish(estimator: Any, learners: list[Any], labels: Mapping[str, Any], gone: tuple[str, ...] = ()) -> None:
    """Learners and labels become the estimator's, all at once for everyone who reads."""
    new = {**labels, "learners_": learners}
    if "learners_" not in vars(estimator):
        vars(estimator).update(new)
        return
    with gate_of(estimator):
        for name in gone:
            vars(estimator).pop(name, None)
        vars(estimator).update(new)


def behind_the_gate_of(estimator: Any, learners: list[Any]) -> list[Any]:
    """New learners of an estimator that may have learners already."""
    if hasattr(estimator, "learners_"):
        learners[0].gate = gate_of(estimator)
    return learners


class CopiedWhole:
    """An estimator that is read, copied and pickled between two rows."""

    def _still(self) -> Any:
        """`with self._still():` the model does not change, if there is one."""
        return gate_of(self) if hasattr(self, "learners_") else nullcontext()

    @between_rows
    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        # Whom to tell of changes is the business of this process.
        for name in (MARK, "on_change"):
            state.pop(name, None)
        return {name: _copied(value) if name in IN_PLACE else value for name, value in state.items()}


def _copied(value: Any) -> Any:
    return [copy(each) for each in value] if isinstance(value, list) else copy(value)
