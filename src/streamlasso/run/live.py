"""A small view of a run in the terminal, on standard error."""

from __future__ import annotations

import time
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

#: Seconds between two pictures.
PACE = 0.25


class View(Protocol):
    """Told what happens: `say` is for sentences, `show` for numbers that change."""

    def say(self, words: str) -> None: ...
    def show(self, rows: int, numbers: dict[str, str]) -> None: ...
    def close(self) -> None: ...


class Silence:
    """For pipes: says nothing."""

    def say(self, words: str) -> None: ...

    def show(self, rows: int, numbers: dict[str, str]) -> None: ...

    def close(self) -> None: ...


class Terminal:
    """Sentences on standard error, and, where that is a terminal, a line of numbers that moves."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self.live: Live | None = None
        self.begun = self.drawn = time.monotonic()
        self.first: int | None = None

    def say(self, words: str) -> None:
        self.console.print(words, soft_wrap=True, markup=False)

    def show(self, rows: int, numbers: dict[str, str]) -> None:
        now = time.monotonic()
        if self.first is None:
            self.begun, self.first = now, rows
        if not self.console.is_terminal or now - self.drawn < PACE:
            return
        self.drawn = now
        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)
            self.live.start()
        pace = (rows - self.first) / max(now - self.begun, 1e-9)
        self.live.update(_picture({"rows": f"{rows:,}", "rows a second": f"{pace:,.0f}", **numbers}), refresh=True)

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
    return Group(table, Text("Ctrl-C ends the run with a report of what there is.", style="dim"))
