"""What lies beside an image in a BIDS folder: events, confounds, the seconds from volume to volume."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamlasso.network.imaging.series import named

#: What BIDS writes where there is no value.
NOTHING = ("n/a", "")
#: The column that says what was shown: BIDS' name for it, then what others call it.
KINDS = ("trial_type", "condition")
#: Confounds that are taken out if none are named: six of motion, two of tissue, and slow drifts; where they are there.
MOTION = ("trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z")
USUAL = (*MOTION, "white_matter", "csf", "cosine*")


@dataclass(frozen=True)
class Event:
    """Something that was shown: seconds from the start of the first volume, how long, and what kind."""

    onset: float
    duration: float
    condition: str

    @property
    def end(self) -> float:
        return self.onset + self.duration


def read_events(path: Path) -> list[Event]:
    """The events of a BIDS `events.tsv`, in the order of time. Without a column of kinds all are of one kind, "event".

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "events.tsv")
    ...     _ = path.write_text("onset\\tduration\\ttrial_type\\n10.5\\t18\\tfear\\n1\\tn/a\\tcue\\n")
    ...     read_events(path)
    [Event(onset=1.0, duration=0.0, condition='cue'), Event(onset=10.5, duration=18.0, condition='fear')]
    """
    columns = {name.lower(): cells for name, cells in read_tsv(path).items()}
    lacking = [name for name in ("onset", "duration") if name not in columns]
    if lacking:
        raise ValueError(
            f"{path}: no column {' and '.join(lacking)}; BIDS events have onset, duration, trial_type, "
            "with tabs or commas between them"
        )
    conditions = next((columns[kind] for kind in KINDS if kind in columns), ["event"] * len(columns["onset"]))
    events = []
    for row, (onset, duration, condition) in enumerate(
        zip(columns["onset"], columns["duration"], conditions, strict=True), 2
    ):
        start = _seconds(path, row, "onset", onset)
        length = 0.0 if duration in NOTHING else _seconds(path, row, "duration", duration)
        if length < 0:
            raise ValueError(f"{path}, line {row}: the duration is {duration}; it is 0 or more")
        if condition not in NOTHING:
            events.append(Event(start, length, condition))
    return sorted(events, key=lambda event: event.onset)


def doubts_about(path: Path, events: Sequence[Event]) -> list[str]:
    """What someone who wrote these events may not have meant, in words."""
    if not events:
        return [f"{path}: there are no events in it"]
    columns = read_tsv(path)
    if any(name.lower() in KINDS for name in columns):
        return []
    others = [name for name in columns if name.lower() not in ("onset", "duration")]
    hint = f"; if one of {named(others)} tells them apart, call it so" if others else ""
    return [f"{path}: no column trial_type, so all events are of one kind{hint}"]


def never_seen(events: Sequence[Event], seconds: np.ndarray, delay: float, tr: float) -> list[str]:
    """Conditions, in words, of which no time point can be told: their events are too short, or have no duration."""
    seen = set(conditions_of(seconds, events, delay))
    unseen = [name for name in dict.fromkeys(event.condition for event in events) if name not in seen]
    if not unseen:
        return []
    longest = max(event.duration for event in events if event.condition in unseen)
    return [
        f"{named(unseen)}: no time point falls into such events, {delay:g} s later (the longest lasts {longest:g} s, "
        f"volumes are {tr:g} s apart); no mean over them"
    ]


def within(events: Sequence[Event], start: float, stop: float) -> tuple[list[Event], str]:
    """The events of a scan that lasted so long, cut where it ends; what had to be left out, in words."""
    inside = [event for event in events if event.onset < stop and (event.end > start or event.onset >= start)]
    beyond = [event for event in events if event not in inside]
    cut = [
        Event(event.onset, min(event.end, stop) - event.onset, event.condition) if event.end > stop else event
        for event in inside
    ]
    words = []
    if beyond:
        when = ", ".join(f"{event.condition} at {event.onset:g} s" for event in beyond[:5])
        more = f" and {len(beyond) - 5} more" if len(beyond) > 5 else ""
        words.append(f"events outside of the scan ({start:g} to {stop:g} s) left out: {when}{more}")
        if not inside:
            words.append("none is left; onsets, --tr and --start are in seconds")
    shortened = [event for event, new in zip(inside, cut, strict=True) if event != new]
    if shortened:
        words.append(
            f"{named([f'{event.condition} at {event.onset:g} s' for event in shortened], 5)}: "
            f"cut where the scan ends, at {stop:g} s"
        )
    return cut, "; ".join(words)


def conditions_of(seconds: np.ndarray, events: Sequence[Event], delay: float) -> np.ndarray:
    """What was shown `delay` seconds before each time point; "" for nothing.

    >>> import numpy as np
    >>> conditions_of(np.arange(5.0), [Event(0.0, 2.0, "fear"), Event(2.0, 1.0, "neutral")], delay=1.0).tolist()
    ['', 'fear', 'fear', 'neutral', '']
    """
    found = np.full(len(seconds), "", dtype=object)
    for event in events:
        found[(seconds - delay >= event.onset) & (seconds - delay < event.end)] = event.condition
    return found


# --- confounds --------------------------------------------------------------------------------------------------------


def read_confounds(path: Path, columns: Sequence[str] = ()) -> tuple[np.ndarray, list[str]]:
    """Columns of a BIDS confounds file; a star stands for any end, and none named are the `USUAL` ones.

    A value that is not there (the first of a derivative) is the mean of its column; a column without values is none.
    """
    table = read_tsv(path)
    chosen = _chosen(path, list(table), columns)
    values = np.array(
        [[np.nan if text in NOTHING else _finite(path, name, text) for text in table[name]] for name in chosen]
    )
    there = ~np.isnan(values).all(axis=1)
    values, chosen = values[there], [name for name, some in zip(chosen, there, strict=True) if some]
    means = np.nanmean(values, axis=1, keepdims=True)
    return np.where(np.isnan(values), means, values).T, chosen


def _chosen(path: Path, there: list[str], asked: Sequence[str]) -> list[str]:
    chosen: list[str] = []
    lacking = []
    for pattern in asked or USUAL:
        found = [name for name in there if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))]
        chosen += [name for name in found if name not in chosen]
        lacking += [] if found else [pattern]
    if (asked and lacking) or not chosen:
        raise ValueError(
            f"{path}: no column {named(lacking)}; name some of its columns with --confound-columns: {named(there, 20)}"
        )
    return chosen


def without_confounds(values: np.ndarray, confounds: np.ndarray) -> np.ndarray:
    """What is left of each series once the confounds are fitted to it; its mean stays.

    >>> import numpy as np
    >>> t = np.arange(5.0)
    >>> without_confounds(np.array([[3.0, 5.0, 7.0, 9.0, 11.0]]).T, t[:, None]).ravel().round(6)
    array([7., 7., 7., 7., 7.])
    """
    spread = confounds.std(axis=0)
    Z = (confounds - confounds.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    mean = values.mean(axis=0)
    fitted, *_ = np.linalg.lstsq(Z, values - mean, rcond=None)
    return values - Z @ fitted


# --- where things lie -------------------------------------------------------------------------------------------------


def entities(path: Path) -> dict[str, str]:
    """What a BIDS name says.

    >>> entities(Path("sub-01_task-emotion_run-2_desc-preproc_bold.nii.gz"))
    {'sub': '01', 'task': 'emotion', 'run': '2', 'desc': 'preproc'}
    """
    parts = path.name.split(".")[0].split("_")
    return dict(part.split("-", 1) for part in parts if "-" in part)


def find_events(image: Path) -> Path | None:
    """The `events.tsv` of the same subject, session, task and run: beside the image, or above it as BIDS inherits."""
    return _applying(image, "events", ".tsv", ignored=("space", "desc", "res", "echo", "part"))


def find_confounds(image: Path) -> Path | None:
    """fMRIPrep's `desc-confounds_timeseries.tsv` (once called `regressors`) of the same run."""
    ignored = ("space", "res", "echo", "part", "desc")
    return _applying(image, "timeseries", ".tsv", ignored) or _applying(image, "regressors", ".tsv", ignored)


def repetition_time(image: Path) -> float | None:
    """The RepetitionTime of the sidecar that applies to the image."""
    sidecar = _applying(image, "bold", ".json", ignored=("space", "desc", "res", "echo", "part"))
    if sidecar is None:
        return None
    try:
        found = json.loads(sidecar.read_text()).get("RepetitionTime")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{sidecar}: no JSON object ({error}). Mend it, or move it away") from error
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _applying(image: Path, suffix: str, extension: str, ignored: Sequence[str]) -> Path | None:
    """The file of that kind whose entities the image has all, the closest one: beside it first, then above."""
    mine = entities(image)
    if "sub" not in mine:
        return None
    for folder in _upwards(image.absolute().parent):
        found = [
            path
            for path in sorted(folder.glob(f"*{suffix}{extension}"))
            if path.name.split(".")[0].split("_")[-1] == suffix
            and all(mine.get(key) == value for key, value in entities(path).items() if key not in ignored)
        ]
        if found:
            return max(found, key=lambda path: len(entities(path)))
    return None


def _upwards(folder: Path) -> Iterator[Path]:
    """The folder and those above it, up to the root of the dataset; events of derivatives may lie in the raw one."""
    for level in [folder, *list(folder.parents)[:6]]:
        yield level
        if level.name == "derivatives":
            _, *below_pipeline = folder.relative_to(level).parts or ("",)
            yield level.parent.joinpath(*below_pipeline)
        if (level / "dataset_description.json").exists() and "derivatives" not in level.parts:
            return


# --- tables -----------------------------------------------------------------------------------------------------------


def read_tsv(path: Path) -> dict[str, list[str]]:
    """The columns of a table with tabs, as text; one without tabs may have commas."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            lines = file.read().splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: the text is not UTF-8 ({error.reason})") from error
    delimiter = "\t" if lines and "\t" in lines[0] else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    if not rows:
        raise ValueError(f"{path}: there is nothing in it; a first line with the names of the columns is needed")
    head = [name.strip() for name in rows[0]]
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            raise ValueError(
                f"{path}, line {number}: {len(row)} fields, where the first line has {len(head)}; "
                "the columns of a TSV file are separated by tabs"
            )
    return {name: [row[i].strip() for row in rows[1:]] for i, name in enumerate(head)}


def _seconds(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"{path}, line {line}: the {column} {text!r} is no number of seconds. Mend it, or take the line out"
        )
    return value


def _finite(path: Path, column: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{path}: {column} holds {text!r}, which is no number") from None
