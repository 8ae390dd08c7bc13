"""Files beside an image in a BIDS dataset: where they are, and how their tables are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

#: How BIDS writes a missing value.
MISSING = ("n/a", "")
#: Parts of an image's name that its events and sidecar need not share.
OWN_ENTITIES = ("space", "desc", "res", "echo", "part")


def entities(path: Path) -> dict[str, str]:
    """The key-value pairs in a BIDS file name.

    >>> entities(Path("sub-01_task-emotion_run-2_desc-preproc_bold.nii.gz"))
    {'sub': '01', 'task': 'emotion', 'run': '2', 'desc': 'preproc'}
    """
    parts = path.name.split(".")[0].split("_")
    return dict(part.split("-", 1) for part in parts if "-" in part)


def name_suffix(path: Path) -> str:
    """The last part of a BIDS file name.

    >>> name_suffix(Path("sub-01_task-rest_bold.nii.gz"))
    'bold'
    """
    return path.name.split(".")[0].split("_")[-1]


def find_events(image: Path) -> Path | None:
    """The `events.tsv` of the same subject, session, task and run, by BIDS' inheritance principle."""
    return _applicable(image, "events", ".tsv")


def find_confounds(image: Path) -> Path | None:
    """fMRIPrep's `desc-confounds_timeseries.tsv` (formerly `regressors`) of the same run."""
    return _applicable(image, "timeseries", ".tsv") or _applicable(image, "regressors", ".tsv")


def repetition_time(image: Path) -> float | None:
    """The RepetitionTime in the image's JSON sidecar."""
    sidecar = _applicable(image, "bold", ".json")
    if sidecar is None:
        return None
    try:
        found = json.loads(sidecar.read_text(encoding="utf-8")).get("RepetitionTime")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{sidecar} is not a JSON object ({error}): fix it, or remove it") from error
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _applicable(image: Path, suffix: str, extension: str) -> Path | None:
    """The closest file with this suffix whose entities all match the image's: beside it first, then above."""
    mine = entities(image)
    if "sub" not in mine:
        return None
    for folder in _upwards(image.absolute().parent):
        found = [
            path
            for path in sorted(folder.glob(f"*{suffix}{extension}"))
            if name_suffix(path) == suffix
            and all(mine.get(key) == value for key, value in entities(path).items() if key not in OWN_ENTITIES)
        ]
        if found:
            return max(found, key=lambda path: len(entities(path)))
    return None


def _upwards(folder: Path) -> Iterator[Path]:
    """The folder and its parents up to the dataset's root; for derivatives also the matching raw folder."""
    for level in [folder, *list(folder.parents)[:6]]:
        yield level
        if level.name == "derivatives":
            _, *below_pipeline = folder.relative_to(level).parts or ("",)
            yield level.parent.joinpath(*below_pipeline)
        if (level / "dataset_description.json").exists() and "derivatives" not in level.parts:
            return


def read_tsv(path: Path) -> dict[str, list[str]]:
    """The columns of a tab-separated table, as text; a table without tabs may use commas."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            lines = file.read().splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not UTF-8 text ({error.reason})") from error
    delimiter = "\t" if lines and "\t" in lines[0] else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    if not rows:
        raise ValueError(f"{path} is empty: its first line must hold the column names")
    header = [name.strip() for name in rows[0]]
    _check_widths(path, header, rows[1:])
    return {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(header)}


def _check_widths(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(
                f"{path}, line {number}: {len(row)} fields, but the first line has {len(header)}: "
                "separate the columns of a TSV file with tabs"
            )
