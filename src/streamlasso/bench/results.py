"""The results as a file that grows by one line per result, and can be continued after an interruption."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pyarrow

from streamlasso._files import sync_file, write_whole
from streamlasso.bench.task import Task


@dataclass(frozen=True)
class Result:
    """One line of the table: a method with one setting on one task.

    rows, features : of the task
    loss, relative : the mean loss, and the same divided by that of the running mean; NaN if the method failed
    microseconds : of CPU time, per row
    scored : the number of rows that the loss is over
    status : "ok", "too slow" (over the time limit), or "failed: ..."
    version : of the package
    data : the fingerprint of the task
    blocks : the mean losses of blocks of rows (`losses.block_losses`), which are the same rows for all methods
    """

    task: str
    family: str
    rows: int
    features: int
    method: str
    setting: str
    loss: float
    relative: float
    microseconds: float
    scored: int
    status: str
    version: str
    data: str
    blocks: str = ""


COLUMNS = tuple(field.name for field in fields(Result))
_KINDS = {"str": (str, pyarrow.string()), "int": (int, pyarrow.int64()), "float": (float, pyarrow.float64())}
SCHEMA = pyarrow.schema([(field.name, _KINDS[str(field.type)][1]) for field in fields(Result)])
#: Task, method and setting of a result.
Key = tuple[str, str, str]


class ResultsFile:
    """leaderboard.csv: each result is appended as a whole line; a line cut short by a kill is dropped.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ResultsFile(Path(folder) / "leaderboard.csv").table().num_rows
    0
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        header, *lines = csv.reader(io.StringIO(text[: text.rfind("\n") + 1])) if text else [COLUMNS]
        if tuple(header) != COLUMNS:
            raise ValueError(f"{path} is not a leaderboard of this version: name another directory with --out")
        kinds = [_KINDS[str(field.type)][0] for field in fields(Result)]
        self.results = [Result(*(kind(value) for kind, value in zip(kinds, line, strict=True))) for line in lines]
        whole = io.StringIO(newline="")
        csv.writer(whole).writerows([COLUMNS, *(asdict(result).values() for result in self.results)])
        write_whole(path, whole.getvalue().encode())

    @property
    def done(self) -> set[Key]:
        return {(result.task, result.method, result.setting) for result in self.results}

    def append(self, result: Result) -> None:
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(asdict(result).values())
            sync_file(file)  # type: ignore[arg-type]
        self.results.append(result)

    def refuse_other_data(self, task: Task) -> None:
        """An error if the file has results of a task of this name on other data."""
        for result in self.results:
            if result.task == task.name and result.data != task.fingerprint:
                raise ValueError(
                    f"{self.path} has results of {task.name} on other data ({result.rows} rows x {result.features} "
                    f"features, now {len(task.y)} x {task.X.shape[1]}): name another directory with --out"
                )

    def table(self) -> pyarrow.Table:
        return pyarrow.Table.from_pylist([asdict(result) for result in self.results], SCHEMA)
