"""The progress of a run in the terminal, on standard error."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamlasso._terminal import console

#: Seconds between two updates.
PACE = 0.25


class Terminal:
    """Sentences and, if standard error is a terminal, a line of numbers that is updated; nothing if it is quiet."""

    def __init__(self, to: Console | None = None, *, quiet: bool = False) -> None:
        self.console = to or console(stderr=True, quiet=quiet)
        self.live: Live | None = None
        self.started = self.drawn = time.monotonic()
        self.first: int | None = None

    def message(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def show(self, rows: int, numbers: dict[str, str]) -> None:
        now = time.monotonic()
        if self.first is None:
            self.started, self.first = now, rows
        if self.console.quiet or not self.console.is_terminal or now - self.drawn < PACE:
            return
        self.drawn = now
        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)
            self.live.start()
        pace = (rows - self.first) / max(now - self.started, 1e-9)
        self.live.update(_picture({"rows": f"{rows:,}", "rows per second": f"{pace:,.0f}", **numbers}), refresh=True)

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None


def _picture(numbers: dict[str, str]) -> Group:
    table = Table.grid(padding=(0, 2))
    for _ in numbers:
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(name, style="dim") for name in numbers))
    table.add_row(*(Text(value, style="bold") for value in numbers.values()))
    return Group(table, Text("Ctrl-C ends the run, with a report of the rows so far.", style="dim"))
