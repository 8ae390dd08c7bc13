"""The options of a run, checked before anything is read or written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from streamlasso._text import listed
from streamlasso.data.encoding.sparse.columns import SparseColumn, column_of, parse_ngrams
from streamlasso.data.sources.kafka_client import SCHEME
from streamlasso.data.sources.opening import address_of
from streamlasso.estimators.intervals import refuse_coverage
from streamlasso.families import FAMILIES
from streamlasso.run.outputs.files import growing
from streamlasso.settings import as_tuner, memory_of, refuse_false_alarms

#: The files of a complete run, besides its predictions; and the trace while it grows.
MODEL = "model.safetensors"
KEYS = "keys.csv"
CHANGES = "changes.csv"
TRACE = "trace.parquet"
FINAL = (TRACE, "coefficients.parquet", "figure.png", "figure.svg", "report.html", KEYS, CHANGES, MODEL)
#: The options that must stay the same when a run continues; the last are what is asked beside predictions.
ASKED = ("coverage", "false_alarms")
LASTING = [
    "target",
    "family",
    "memory",
    "tuner",
    "time",
    "keep",
    "drop",
    "lags",
    "key",
    "text",
    "ngrams",
    "coverage",
    "false_alarms",
]
#: Columns that a message names.
MOST_NAMED = 8


@dataclass(frozen=True)
class Options:
    """A run. `data` is a path, an address, or "-" for standard input; `predictions` may be "-" for standard output.

    `lags` None: earlier targets are features, and compete with the model. `key` is the column of the keys, each of
    which has a model. `text` are columns that are tokenised; `sparse` are all columns of many features, each with its
    kind (`encoding/sparse/columns.py`), once the source is known (`for_source`). Options that affect what is learnt
    (`learning`) must stay the same when a run continues.
    """

    data: str
    target: str
    out: Path = Path("run")
    family: str = "auto"
    memory: str | None = None
    tuner: str = "mixture"
    predictions: Path | str | None = None
    checkpoint: Path | None = None
    every: int = 10_000
    time: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    lags: dict[str, list[int]] | None = None
    on_error: str = "stop"
    key: str | None = None
    max_keys: int | None = None
    text: tuple[str, ...] = ()
    ngrams: str = "1-2"
    sparse: tuple[tuple[str, str], ...] = ()
    coverage: float | None = None
    alarm: str | None = None
    false_alarms: float = 1.0

    def __post_init__(self) -> None:
        families = ("auto", *FAMILIES)
        if self.family not in families:
            raise ValueError(f"--family {self.family} is unknown: use one of {', '.join(families)}")
        if self.on_error not in ("stop", "skip"):
            raise ValueError(f"--on-error {self.on_error} is unknown: use stop or skip")
        if self.alarm is not None and not self.alarm.strip():
            raise ValueError("--alarm is empty: use print, exit, or a command")
        refuse_false_alarms("--false-alarms", self.false_alarms)
        if self.every < 1:
            raise ValueError(f"--every {self.every} is not a number of rows: use 1 or more")
        if self.checkpoint is not None and self.to_standard_output:
            raise ValueError(
                "--checkpoint needs --predictions in a file: what was printed cannot be removed when a run continues"
            )
        if self.coverage is not None:
            refuse_coverage(self.coverage, "--coverage ")
        self.settings()
        self._refuse_key()
        self._refuse_text()
        self._refuse_collisions()
        self._refuse_nowhere()

    def _refuse_key(self) -> None:
        if self.max_keys is not None and self.key is None:
            raise ValueError(f"--max-keys {self.max_keys} needs --key, the column with the key of each row")
        if self.max_keys is not None and self.max_keys < 1:
            raise ValueError(f"--max-keys {self.max_keys} is not a number of keys: use 1 or more")
        used: dict[str, Collection[str | None]] = {
            "--target": [self.target],
            "--time": [self.time],
            "--keep": self.keep,
            "--lags": self.lags or {},
        }
        for option, names in used.items():
            if self.key is not None and self.key in names:
                raise ValueError(f"--key {self.key} is in {option} too, and the key is not a feature: use one of them")

    def _refuse_text(self) -> None:
        parse_ngrams(self.ngrams)
        if not self.text and not self.sparse:
            return
        which = f"--text {','.join(self.text)}" if self.text else "such a file"
        for option, given in (("--key", self.key), ("--memory", self.memory)):
            if given is not None:
                raise ValueError(f"{option} {given} and {which} do not go together: leave one of them out")
        if not as_tuner(self.tuner).competes:
            raise ValueError(f"--tuner {self.tuner} is for a few hundred features: leave it out with {which}")
        if self.target in self.text:
            raise ValueError(f"--text {self.target} is the target: use another column")

    def for_source(self, source: Any) -> Options:
        """With what the format of the data says: its columns of many features and, if none was named, its target."""
        sparse = {**dict.fromkeys(self.text, "words"), **getattr(source, "sparse", {})}
        target = self.target or getattr(source, "target", "")
        if not target:
            raise ValueError(f"--target is missing: use one of the columns, {listed(source.columns, MOST_NAMED)}")
        return replace(self, target=target, sparse=tuple(sparse.items()))

    @property
    def may_be_wide(self) -> bool:
        """Whether the learner for any number of features has all that the options ask for."""
        return as_tuner(self.tuner).competes and self.memory is None and self.key is None

    def sparse_columns(self) -> list[SparseColumn]:
        """Columns of many features."""
        return [
            column_of({"kind": kind, "name": name, **({"ngrams": self.ngrams} if name in self.text else {})})
            for name, kind in self.sparse
        ]

    def _refuse_nowhere(self) -> None:
        """That a checkpoint cannot be written should not come out after hours."""
        folder = None if self.checkpoint is None else self.checkpoint.resolve().parent
        if folder is not None and not folder.is_dir() and folder != self.out.resolve():
            raise ValueError(f"--checkpoint {self.checkpoint} is in a directory that does not exist: use another")

    def _refuse_collisions(self) -> None:
        """No output may be written over the data, or over another output."""
        written = self.outputs()
        topic = self.predictions_topic
        if topic is not None and topic.partition("?")[0] == self.data.partition("?")[0]:
            raise ValueError(f"--predictions {topic} is the topic of the data, and would be learnt: use another")
        for path in written:
            refuse_same_file("the data", self.data, path)
        for one, other in combinations(written, 2):
            # A checkpoint may be the model, which is saved last.
            if same_file(one, other) and not (one == self.checkpoint and other.name == MODEL):
                raise ValueError(f"{one} would be written twice by the run: use another file")

    def outputs(self) -> list[Path]:
        """All files that the run writes."""
        named = [path for path in (self.predictions_path, self.checkpoint) if path is not None]
        return [*named, *(self.out / name for name in (*FINAL, growing(Path(TRACE)).name))]

    @property
    def to_standard_output(self) -> bool:
        return str(self.predictions) == "-"

    @property
    def predictions_topic(self) -> str | None:
        """The address of a topic."""
        return str(self.predictions) if str(self.predictions).startswith(SCHEME) else None

    @property
    def predictions_path(self) -> Path | None:
        if self.to_standard_output or self.predictions_topic is not None:
            return None
        return Path(self.predictions or self.out / "predictions.csv")

    @property
    def run_name(self) -> str | None:
        """The same whenever the run continues; None if it cannot."""
        if self.checkpoint is None:
            return None
        return " ".join([self.data, str(self.predictions), str(self.checkpoint.resolve())])

    def is_checkpoint(self, path: Path) -> bool:
        """The checkpoint may also be the model in `out`, under whatever name."""
        return self.checkpoint is not None and same_file(path, self.checkpoint)

    def settings(self) -> dict[str, Any]:
        """For the estimator."""
        memory_of(self.memory, f"--memory {self.memory}")
        return {"memory": self.memory, "tuner": as_tuner(self.tuner), "false_alarms": self.false_alarms}

    def columns(self) -> dict[str, Any]:
        """For the encoder."""
        lags = "auto" if self.lags is None else self.lags
        return {"keep": self.keep, "drop": self.drop, "lags": lags, "time": self.time, "key": self.key}

    def learning(self) -> dict[str, Any]:
        """The options of LASTING, as JSON has them."""
        values = ((name, getattr(self, name)) for name in LASTING)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values}


def same_file(one: Path, other: Path) -> bool:
    """Also by another name; neither has to exist."""
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))


def refuse_same_file(what: str, read: str, out: Path | None) -> None:
    """An input must not be overwritten."""
    if read != "-" and address_of(read) is None and out is not None and same_file(Path(read), out):
        raise ValueError(f"{out} is {what}, and would be overwritten: use another file")
