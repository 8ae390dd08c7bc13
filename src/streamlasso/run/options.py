"""What a run was asked for, checked before anything is read or written."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from streamlasso.families import FAMILIES
from streamlasso.settings import as_tuner, parse_memory

#: What a run leaves when it has come to an end, beside its predictions; and the trace while it grows.
MODEL = "model.safetensors"
FINAL = ("trace.parquet", "coefficients.parquet", "figure.png", "figure.svg", "report.html", MODEL)
TRACE = ".trace.arrows"
#: Those with nothing to choose.
TUNERS = ("mixture", "logrms")


@dataclass(frozen=True)
class Options:
    """A run. `data` is a path, or "-" for standard input; `predictions` may be "-" for standard output.

    What bears on what is learnt (`learning`) has to stay the same when a run continues.
    """

    data: str
    target: str
    out: Path = Path("run")
    family: str = "auto"
    memory: str | None = None
    tuner: str = "mixture"
    predictions: Path | None = None
    checkpoint: Path | None = None
    every: int = 10_000
    time: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    lags: dict[str, list[int]] = field(default_factory=dict)
    on_error: str = "stop"

    def __post_init__(self) -> None:
        families = ("auto", *FAMILIES)
        if self.family not in families:
            raise ValueError(f"--family {self.family} is unknown: use one of {', '.join(families)}")
        if self.tuner not in TUNERS:
            raise ValueError(f"--tuner {self.tuner} is unknown: use one of {', '.join(TUNERS)}")
        if self.on_error not in ("stop", "skip"):
            raise ValueError(f"--on-error {self.on_error}: stop or skip")
        if self.every < 1:
            raise ValueError(f"--every {self.every}: a number of rows, 1 or more")
        if self.checkpoint is not None and self.to_standard_output:
            raise ValueError("--checkpoint needs --predictions in a file: what was printed cannot be taken back")
        self.settings()
        self._refuse_collisions()
        self._refuse_nowhere()

    def _refuse_nowhere(self) -> None:
        """A checkpoint that cannot be written should not be found out after hours."""
        folder = None if self.checkpoint is None else self.checkpoint.resolve().parent
        if folder is not None and not folder.is_dir() and folder != self.out.resolve():
            raise ValueError(f"--checkpoint {self.checkpoint}: there is no such directory; make it, or name another")

    def _refuse_collisions(self) -> None:
        """No output may be written over the data, or over another output."""
        named = [path for path in (self.predictions_path, self.checkpoint) if path is not None]
        written = [*named, *(self.out / name for name in (*FINAL, TRACE))]
        for path in written:
            refuse_same_file("the data", self.data, path)
        for one, other in combinations(written, 2):
            # A checkpoint may be the model, which is saved last.
            if same_file(one, other) and not (one == self.checkpoint and other.name == MODEL):
                raise ValueError(f"{one}: the run writes two things there; name another file")

    @property
    def to_standard_output(self) -> bool:
        return str(self.predictions) == "-"

    @property
    def predictions_path(self) -> Path | None:
        if self.to_standard_output:
            return None
        return self.predictions or self.out / "predictions.csv"

    def is_checkpoint(self, path: Path) -> bool:
        """The checkpoint may also be the model in `out`, under whatever name."""
        return self.checkpoint is not None and same_file(path, self.checkpoint)

    def settings(self) -> dict[str, Any]:
        """For the estimator."""
        return {"memory": parse_memory(self.memory), "tuner": as_tuner(self.tuner)}

    def learning(self) -> dict[str, Any]:
        """What has to be the same for a run to continue, by option."""
        names = ("target", "family", "memory", "tuner", "time", "keep", "drop", "lags")
        found = {name: value for name, value in asdict(self).items() if name in names}
        return {**found, "keep": list(self.keep), "drop": list(self.drop)}


def same_file(one: Path, other: Path) -> bool:
    """Also by another name; neither need be there."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def refuse_same_file(what: str, read: str, out: Path | None) -> None:
    """What is read must not be written over."""
    if read != "-" and out is not None and same_file(Path(read), out):
        raise ValueError(f"{out}: it is {what}, and would be overwritten; name another place for what is written")


def parse_lags(written: list[str]) -> dict[str, list[int]]:
    """From "y:1,24" to {"y": [1, 24]}."""
    lags: dict[str, list[int]] = {}
    for item in written:
        name, _, numbers = item.rpartition(":")
        try:
            found = sorted({int(number) for number in numbers.split(",")})
            if not name or found[0] < 1 or found[-1] > 100_000:
                raise ValueError
        except ValueError:
            raise ValueError(f"--lags {item}: a column and how many rows back, say y:1,24") from None
        lags[name] = sorted({*lags.get(name, []), *found})
    return lags
