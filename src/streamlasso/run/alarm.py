"""What happens when a run finds a change: a line, and a command or the end of the run."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from streamlasso.core.monitor.attribution import DetectedChange
from streamlasso.estimators.changes import News
from streamlasso.run.terminal import Terminal

#: Words that are no commands: print a line only; or end the run, with the exit status CHANGED.
PRINT, EXIT = "print", "exit"
CHANGED = 3


class Alarm:
    """Watches the estimator of a run. `came`: a change was found, and the run is to end."""

    def __init__(self, command: str | None, estimator: Any, view: Terminal) -> None:
        self.command, self.view = command, view
        self.came = False
        watched = command is not None and hasattr(estimator, "changes_")
        self.news = News(estimator, self.tell) if watched else None

    def look(self) -> None:
        """After some rows."""
        if self.news is not None:
            self.news.tell()

    def tell(self, change: DetectedChange) -> None:
        """Of a change."""
        self.view.message(f"change: {change.printable()}")
        if self.command == EXIT:
            self.came = True
        elif self.command not in (None, PRINT):
            self._start(change)

    def _start(self, change: DetectedChange) -> None:
        """The command, which reads the change as JSON; the run waits for it, and goes on whatever it answers."""
        assert self.command is not None
        environment = {**os.environ, "STREAMLASSO_ROW": str(change.row), "STREAMLASSO_CHANGE": str(change)}
        done = subprocess.run(self.command, shell=True, env=environment, input=as_json(change), text=True, check=False)
        if done.returncode:
            self.view.message(f"--alarm {self.command} ended with {done.returncode}; the run goes on")


def as_json(change: DetectedChange) -> str:
    """One line."""
    features = {str(name): list(sizes) for name, sizes in change.features.items()}
    label = None if change.label is None else str(change.label)
    return json.dumps({**change._asdict(), "features": features, "label": label}) + "\n"
