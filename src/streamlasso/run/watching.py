"""Whoever watches a run while it learns, say a page. This room does not know them: `streamlasso.cli` does."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from streamlasso.data.encoding.encoder import Encoded
    from streamlasso.run.learning import Outcomes
    from streamlasso.run.options import Options
    from streamlasso.run.run import Run


class Watcher(Protocol):
    """Is told of rows that were learnt, and looks at the model between them."""

    def turn(self) -> AbstractContextManager[None]:
        """Within it the run changes its model; a watcher looks at other times."""
        ...

    def learnt(self, run: Run, rows: Encoded, outcomes: list[Outcomes]) -> None:
        """These rows were learnt just now."""
        ...

    def begins(self, run: Run) -> list[str]:
        """What is printed at the start; a ValueError if the run cannot be watched."""
        ...

    def stay(self) -> None:
        """The run has come to its end: wait as long as somebody may want to look."""
        ...


class Nobody:
    """Watches nothing."""

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def learnt(self, run: Run, rows: Encoded, outcomes: list[Outcomes]) -> None: ...

    def begins(self, run: Run) -> list[str]:
        return []

    def stay(self) -> None: ...


class OpensPage(Protocol):
    """Opens a page that shows a run on a port of this machine."""

    def __call__(self, options: Options, port: int) -> AbstractContextManager[Watcher]: ...
