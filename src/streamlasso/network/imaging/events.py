"""The events of a scan (BIDS `events.tsv`): which condition was shown when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from streamlasso._text import listed
from streamlasso.network.imaging.bids import MISSING, read_tsv
from streamlasso.network.imaging.series import MAX_NAMES

#: Names of the column of conditions: BIDS' own first.
CONDITION_COLUMNS = ("trial_type", "condition")


@dataclass(frozen=True)
class Event:
    """A stimulus: `onset` in seconds from the start of the first volume, `duration` in seconds."""

    onset: float
    duration: float
    condition: str

    @property
    def end(self) -> float:
        return self.onset + self.duration

    def __str__(self) -> str:
        return f"{self.condition} at {self.onset:g} s"


def read_events(path: Path) -> list[Event]:
    """The events of an `events.tsv`, sorted by onset; all are "event" if there is no column of conditions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "events.tsv")
    ...     _ = path.write_text("onset\\tduration\\ttrial_type\\n10.5\\t18\\tfear\\n1\\tn/a\\tcue\\n")
    ...     read_events(path)
    [Event(onset=1.0, duration=0.0, condition='cue'), Event(onset=10.5, duration=18.0, condition='fear')]
    """
    columns = {name.lower(): cells for name, cells in read_tsv(path).items()}
    absent = [name for name in ("onset", "duration") if name not in columns]
    if absent:
        raise ValueError(
            f"{path} has no column {' and '.join(absent)}: BIDS events have the columns onset, duration and "
            "trial_type, separated by tabs or commas"
        )
    return sorted(_rows(path, columns), key=lambda event: event.onset)


def _rows(path: Path, columns: Mapping[str, Sequence[str]]) -> Iterator[Event]:
    onsets, durations = columns["onset"], columns["duration"]
    conditions = next((columns[name] for name in CONDITION_COLUMNS if name in columns), ["event"] * len(onsets))
    for line, (onset, duration, condition) in enumerate(zip(onsets, durations, conditions, strict=True), 2):
        start = _seconds(path, line, "onset", onset)
        length = 0.0 if duration in MISSING else _seconds(path, line, "duration", duration)
        if length < 0:
            raise ValueError(f"{path}, line {line}: the duration {duration} is negative: use 0 or more")
        if condition not in MISSING:
            yield Event(start, length, condition)


def _seconds(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"{path}, line {line}: the {column} {text!r} is not a number of seconds: fix it, or delete the line"
        )
    return value


def suspicious_events(path: Path, events: Sequence[Event]) -> list[str]:
    """Notes on a file of events that may not say what was intended: no events, or no column of conditions."""
    if not events:
        return [f"{path} holds no events"]
    columns = read_tsv(path)
    if any(name.lower() in CONDITION_COLUMNS for name in columns):
        return []
    others = [name for name in columns if name.lower() not in ("onset", "duration")]
    hint = f": if one of {listed(others, MAX_NAMES)} holds the condition, rename it to trial_type" if others else ""
    return [f"{path} has no column trial_type, so all events are one condition{hint}"]


def unobserved_conditions(events: Sequence[Event], seconds: np.ndarray, delay: float, tr: float) -> list[str]:
    """A note on the conditions that no time point falls into: their events are too short, or have no duration."""
    observed = set(conditions_of(seconds, events, delay))
    others = [name for name in dict.fromkeys(event.condition for event in events) if name not in observed]
    if not others:
        return []
    longest = max(event.duration for event in events if event.condition in others)
    return [
        f"{listed(others, MAX_NAMES)}: no time point falls into these events, {delay:g} s later (the longest lasts "
        f"{longest:g} s, volumes are {tr:g} s apart), so they have no mean network"
    ]


def clip_events(events: Sequence[Event], start: float, stop: float) -> tuple[list[Event], str]:
    """The events within a scan, the last one cut where the scan ends; and a note on those dropped or cut."""
    inside = [event for event in events if event.onset < stop and (event.end > start or event.onset >= start)]
    clipped = [
        replace(event, duration=min(event.end, stop) - event.onset) if event.end > stop else event for event in inside
    ]
    notes = []
    outside = [str(event) for event in events if event not in inside]
    if outside:
        notes.append(f"events outside the scan ({start:g} to {stop:g} s) are dropped: {listed(outside, 5)}")
        if not inside:
            notes.append("no event is left: onsets, --tr and --start are in seconds")
    shortened = [str(event) for event, new in zip(inside, clipped, strict=True) if event != new]
    if shortened:
        notes.append(f"{listed(shortened, 5)}: cut where the scan ends, at {stop:g} s")
    return clipped, "; ".join(notes)


def conditions_of(seconds: np.ndarray, events: Sequence[Event], delay: float) -> np.ndarray:
    """The condition shown `delay` seconds before each time point; "" if there was none.

    >>> import numpy as np
    >>> conditions_of(np.arange(5.0), [Event(0.0, 2.0, "fear"), Event(2.0, 1.0, "neutral")], delay=1.0).tolist()
    ['', 'fear', 'fear', 'neutral', '']
    """
    found = np.full(len(seconds), "", dtype=object)
    for event in events:
        found[(seconds - delay >= event.onset) & (seconds - delay < event.end)] = event.condition
    return found
