"""What the command was asked for, checked before anything is read or written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlasso.memories import Forgetting, Window
from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.imaging.nifti import TOO_LONG
from streamlasso.tuners import LARS, SGD, LogRMS, Mixture

TUNERS = ("logrms", "lars", "sgd", "mixture")
FAMILIES = ("gaussian", "binomial")
#: Tuners whose step depends on the data, so that none is taken for granted; where to begin.
USUAL_STEPS = {"lars": 0.025, "sgd": 0.01}


@dataclass(frozen=True)
class Model:
    """The settings of a `StreamingNetwork`, in words."""

    memory: float = 0.95
    tuner: str = "logrms"
    step_size: float | None = None
    rule: str = "and"
    family: str = "gaussian"

    def __post_init__(self) -> None:
        for option, value, known in (
            ("--tuner", self.tuner, TUNERS),
            ("--rule", self.rule, ("and", "or")),
            ("--family", self.family, FAMILIES),
        ):
            if value not in known:
                raise ValueError(f"{option} {value}: one of {', '.join(known)}")
        if self.tuner == "mixture" and self.step_size is not None:
            raise ValueError("--step-size: a mixture has none; leave it out")
        if self.tuner in USUAL_STEPS and self.step_size is None:
            raise ValueError(f"--tuner {self.tuner}: it needs a --step-size, say {USUAL_STEPS[self.tuner]:g}")
        self.build()

    def build(self, n_jobs: int | None = None) -> StreamingNetwork:
        """A fresh network."""
        return StreamingNetwork(
            family=self.family, memory=_memory(self.memory), tuner=self._tuner(), rule=self.rule, n_jobs=n_jobs
        )

    def _tuner(self) -> Any:
        if self.tuner == "mixture":
            return Mixture()
        kind = {"logrms": LogRMS, "lars": LARS, "sgd": SGD}[self.tuner]
        return kind() if self.step_size is None else kind(step_size=self.step_size)


def _memory(number: float) -> Forgetting | Window:
    """A factor up to 1, or a number of time points."""
    if number > 1 and float(number).is_integer():
        return Window(int(number))
    try:
        return Forgetting(number)
    except ValueError as error:
        raise ValueError(
            f"--memory {number:g}: a forgetting factor in (0, 1], say 0.95, or a number of time points, say 60"
        ) from error


@dataclass(frozen=True)
class Design:
    """When what was shown, and which pictures are wanted.

    tr : seconds from time point to time point; None if not known
    start : seconds from the clock of the events to the first time point: volumes that were dropped
    delay : seconds from an event to the answer of the blood
    at : moments of which to draw the network (seconds, or time points without a tr); none: means of the conditions
    """

    events: Path | None = None
    tr: float | None = None
    start: float = 0.0
    delay: float = 5.0
    at: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.tr is not None:
            check_tr(self.tr)
        if not math.isfinite(self.start):
            raise ValueError(f"--start {self.start:g}: seconds from the clock of the events to the first time point")
        if not 0 <= self.delay < 60:
            raise ValueError(f"--delay {self.delay:g}: seconds, 0 or more; the blood answers after about 5")


def check_tr(tr: float) -> None:
    """Milliseconds are a common slip."""
    if not 0 < tr < TOO_LONG:
        instead = f"{tr / 1000:g}" if TOO_LONG <= tr < 1000 * TOO_LONG else "0.72"
        raise ValueError(f"--tr {tr:g}: seconds from volume to volume, say {instead}")


@dataclass(frozen=True)
class Images:
    """What turns images into region series."""

    atlas: Path | None = None
    labels: Path | None = None
    coords: Path | None = None
    confounds: str | None = None
    confound_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.confound_columns and self.confounds is None:
            raise ValueError(
                "--confound-columns: columns of which file? Name it: --confounds FILE, or --confounds auto"
            )
        if self.labels is not None and self.atlas is None:
            raise ValueError("--labels: the names of an atlas' regions, and there is no --atlas")
