"""The progress of a run in the terminal, on standard error."""

from __future__ import annotations

import time
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamlasso._terminal import console

#: Seconds between two updates.
PACE = 0.25


class View(Protocol):
    """Shows a run: sentences, and numbers that change."""

    def message(self, text: str) -> None: ...
    def show(self, rows: int, numbers: dict[str, str]) -> None: ...
    def close(self) -> None: ...


class Quiet:
    """Shows nothing."""

    def message(self, text: str) -> None: ...

    def show(self, rows: int, numbers: dict[str, str]) -> None: ...

    def close(self) -> None: ...


class Terminal:
    """Sentences on standard error and, if that is a terminal, a line of numbers that is updated."""

    def __init__(self, to: Console | None = None) -> None:
        self.console = to or console(stderr=True)
        self.live: Live | None = None
        self.started = self.drawn = time.monotonic()
        self.first: int | None = None

    def message(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def show(self, rows: int, numbers: dict[str, str]) -> None:
        now = time.monotonic()
        if self.first is None:
            self.started, self.first = now, rows
        if not self.console.is_terminal or now - self.drawn < PACE:
            return
        self.drawn = now
        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)
            self.live.start()
        pace = (rows - self.first) / max(now - self.started, 1e-9)
        shown = {"rows": f"{rows:,}", "rows per second": f"{pace:,.0f}", **numbers}
        self.live.update(_picture(shown), refresh=True)

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None


def _picture(numbers: dict[str, Any]) -> Group:
    table = Table.grid(padding=(0, 2))
    for _ in numbers:
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(name, style="dim") for name in numbers))
    table.add_row(*(Text(str(value), style="bold") for value in numbers.values()))
    return Group(table, Text("Ctrl-C ends the run, with a report of the rows so far.", style="dim"))
