"""The options of `streamlasso network`, checked before anything is read or written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from streamlasso.families import FAMILIES
from streamlasso.network.estimator import StreamingNetwork
from streamlasso.network.imaging.nifti import MAX_TR
from streamlasso.settings import memory_of
from streamlasso.tuners import TUNERS, Tuner


@dataclass(frozen=True)
class Model:
    """The settings of a `StreamingNetwork`."""

    memory: float = 0.95
    tuner: str = "logrms"
    step_size: float | None = None
    rule: str = "and"
    family: str = "gaussian"

    def __post_init__(self) -> None:
        for option, given, known in (("--tuner", self.tuner, TUNERS), ("--family", self.family, FAMILIES)):
            if given not in known:
                raise ValueError(f"{option} {given} is unknown: use one of {', '.join(known)}")
        self._tuner()
        memory_of(self.memory, f"--memory {self.memory:g}")

    def build(self, n_jobs: int | None = None) -> StreamingNetwork:
        """An unfitted network."""
        return StreamingNetwork(
            family=self.family, memory=self.memory, tuner=self._tuner(), rule=self.rule, n_jobs=n_jobs
        )

    def _tuner(self) -> Tuner:
        step = {} if self.step_size is None else {"step_size": self.step_size}
        try:
            return TUNERS[self.tuner](**step)
        except TypeError as error:
            if step:
                complaint = f"--step-size {self.step_size:g}: --tuner {self.tuner} has no step; omit it"
            else:
                complaint = f"--tuner {self.tuner} needs a --step-size: try 0.01"
            raise ValueError(complaint) from error


@dataclass(frozen=True)
class Design:
    """When the conditions were shown.

    tr : seconds between time points; None if unknown
    start : time of the first time point on the clock of the events, in seconds; not 0 if volumes were dropped
    delay : haemodynamic delay in seconds
    """

    events: Path | None = None
    tr: float | None = None
    start: float = 0.0
    delay: float = 5.0

    def __post_init__(self) -> None:
        if self.tr is not None:
            check_tr(self.tr)
        if not math.isfinite(self.start):
            raise ValueError(f"--start {self.start:g} is not a time: use the seconds at the first time point")
        if not 0 <= self.delay < 60:
            raise ValueError(f"--delay {self.delay:g} is not a haemodynamic delay: use seconds from 0 to 60, usually 5")


def check_tr(tr: float) -> None:
    """Refuse an impossible repetition time; milliseconds are a common mistake."""
    if not 0 < tr < MAX_TR:
        example = f"{tr / 1000:g}" if MAX_TR <= tr < 1000 * MAX_TR else "0.72"
        raise ValueError(f"--tr {tr:g} is not a time between volumes: use seconds, such as {example}")


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
            raise ValueError("--confound-columns needs a file: add --confounds FILE, or --confounds auto")
        if self.labels is not None and self.atlas is None:
            raise ValueError("--labels names the regions of an atlas: add --atlas")


@dataclass(frozen=True)
class Watching:
    """When to stop watching a folder, and which files to read.

    volumes : stop after this many
    idle : stop after this many seconds without a volume
    patience : seconds to wait for a missing volume, or for a broken file to change
    """

    volumes: int | None = None
    idle: float | None = None
    patience: float = 5.0
    pattern: str = "*"

    def __post_init__(self) -> None:
        check_volumes(self.volumes)
        for name, value in (("--idle", self.idle), ("--patience", self.patience)):
            if value is not None and value <= 0:
                raise ValueError(f"{name} {value:g} is not a waiting time: use seconds above 0")


def check_volumes(volumes: int | None) -> None:
    if volumes is not None and volumes < 1:
        raise ValueError(f"--volumes {volumes} is too few: use 1 or more")
