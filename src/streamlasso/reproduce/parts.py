"""Studies in parts: each part is computed once, in any process, and saved whole; an interrupted study continues."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
from pyarrow import parquet

from streamlasso import __version__
from streamlasso._csv import write_row
from streamlasso._files import write_whole
from streamlasso._jobs import completed, job_bar, refuse_processes

#: Draws that are computed and saved together.
BLOCK = 10

Tables = dict[str, pyarrow.Table]


@dataclass(frozen=True)
class Job:
    """Computes one part, some draws: it can be sent to another process, and its result depends on nothing else.

    kinds : the names of its tables
    """

    seed: int
    start: int
    stop: int

    kinds: ClassVar[tuple[str, ...]] = ("draws",)

    @property
    def stem(self) -> str:
        """The name of the part, unique in the study."""
        about = [str(value) for name, value in asdict(self).items() if name not in ("seed", "start", "stop")]
        return "-".join([*about, f"{self.start:05d}", f"{self.stop:05d}"])

    def run(self) -> Tables:
        """A table of each kind."""
        raise NotImplementedError


#: A job and the directory of its study.
Planned = tuple[Path, Job]


def blocks(n: int) -> Iterator[tuple[int, int]]:
    """The draws 0 to n-1, `BLOCK` at a time.

    >>> list(blocks(25))
    [(0, 10), (10, 20), (20, 25)]
    """
    return ((start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def refuse_numbers(n: int, jobs: int) -> None:
    """An error if there are too few draws or processes."""
    if n < 2:
        raise ValueError(f"n={n} is too few: a standard error needs two draws or more")
    refuse_processes(jobs)


def claim(folder: Path, **study: Any) -> None:
    """Make the directory of a study, or refuse one that holds other settings or another version's parts."""
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    path, study = folder / "study.json", {**study, "streamlasso": __version__}
    saved = _read_json(path) if path.exists() else study
    for name in study.keys() | saved.keys():
        if saved.get(name) != study.get(name):
            raise ValueError(
                f"{folder} holds a study with {name}={saved.get(name)}, not {study.get(name)}: "
                "name another directory, or remove this one"
            )
    write_whole(path, (json.dumps(study) + "\n").encode())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        saved = None
    if not isinstance(saved, dict):
        raise ValueError(f"{path} is not a study of streamlasso: name another directory")
    return saved


def run_jobs(planned: Sequence[Planned], jobs: int, progress: bool | None = None, title: str = "") -> None:
    """Compute and save what is not saved yet, `jobs` processes at a time, with a progress bar (None: on a terminal)."""
    left = [(folder, job) for folder, job in planned if not _is_saved(folder, job)]
    with job_bar(title, len(planned), len(planned) - len(left), progress) as advance:
        for (folder, job), tables in completed(_run, left, jobs):
            for kind in job.kinds:
                write_table(_part(folder, job, kind), tables[kind])
            advance(title)


def _run(planned: Planned) -> Tables:
    _, job = planned
    return job.run()


def gathered(folder: Path, jobs: Sequence[Job], kind: str) -> pyarrow.Table:
    """The tables of one kind of all parts, as one."""
    return pyarrow.concat_tables([_read_part(_part(folder, job, kind)) for job in jobs])


def write_table(path: Path, table: pyarrow.Table) -> None:
    """As Parquet, whole or not at all."""
    written = io.BytesIO()
    parquet.write_table(table, written)
    write_whole(path, written.getvalue())


def write_summary(folder: Path, records: Sequence[Any], text: str) -> None:
    """summary.csv with all records, summary.md with the text."""
    write_whole(folder / "summary.csv", as_csv(records).encode())
    write_whole(folder / "summary.md", text.encode())


def as_csv(records: Sequence[Any]) -> str:
    """Dataclasses of one kind in full precision, under the names of their fields.

    >>> from dataclasses import make_dataclass
    >>> as_csv([make_dataclass("Point", ["x", "y"])(1, 0.5)])
    'x,y\\r\\n1,0.5\\r\\n'
    """
    text = io.StringIO(newline="")
    write_row(text, [field.name for field in fields(records[0])])
    for record in records:
        write_row(text, asdict(record).values())
    return text.getvalue()


def _part(folder: Path, job: Job, kind: str) -> Path:
    return folder / "parts" / f"{job.stem}.{kind}.parquet"


def _is_saved(folder: Path, job: Job) -> bool:
    return all(_part(folder, job, kind).exists() for kind in job.kinds)


def _read_part(path: Path) -> pyarrow.Table:
    try:
        return parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is damaged: remove it, and give the same command again") from error
