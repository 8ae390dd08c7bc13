"""Ctrl-C and SIGTERM: the current rows are finished first, then the run ends as after its last row."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Within it, the first signal only sets `came`, or interrupts the wait for rows; a second one interrupts at once.

    signal : the signal, or 0
    waiting : whether the run waits for rows
    """

    def __init__(self) -> None:
        self.signal = 0
        self.waiting = False
        self._before: dict[int, Any] = {}

    @property
    def came(self) -> bool:
        return self.signal != 0

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self.signal = self.came, number
        if again or self.waiting:
            raise KeyboardInterrupt
