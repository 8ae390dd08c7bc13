"""Events of a scan, as in a BIDS `events.tsv`."""

import numpy as np
import pytest

from streamlasso.network.imaging.events import (
    Event,
    clip_events,
    read_events,
    suspicious_events,
    unobserved_conditions,
)
from support.scans import write_tsv


def test_events_are_sorted_by_onset(tmp_path):
    path = write_tsv(
        tmp_path / "events.tsv", "duration onset trial_type extra\n18 52.7 fear 1\nn/a 10 cue n/a\n2 -1 n/a 3\n"
    )
    assert read_events(path) == [Event(10, 0, "cue"), Event(52.7, 18, "fear")]


def test_events_without_conditions_are_one_condition(tmp_path):
    assert read_events(write_tsv(tmp_path / "e.tsv", "onset duration\n1 2\n")) == [Event(1, 2, "event")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("onset trial_type\n1 fear\n", "no column duration"),
        ("onset duration\nsoon 2\n", "line 2: the onset 'soon'"),
        ("onset duration\n1 2\n1 -2\n", "line 3: the duration -2 is negative"),
        ("onset duration\n1 2 3\n", "line 2: 3 fields"),
        ("onset;duration\n1;2\n", "no column onset and duration: .* separated by tabs or commas"),
        ("", "is empty"),
        ("onset duration\nnan 2\n", "the onset 'nan'"),
    ],
)
def test_bad_events_are_refused_with_the_reason(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_events(write_tsv(tmp_path / "events.tsv", text))


@pytest.mark.parametrize(
    "text",
    [
        "Onset Duration Trial_Type\n1 2 fear\n",
        "onset,duration,trial_type\n1,2,fear\n",
        "onset duration condition\n1 2 fear\n",
    ],
)
def test_variants_of_the_format_are_read(tmp_path, text):
    path = write_tsv(tmp_path / "e.tsv", text)
    assert read_events(path) == [Event(1, 2, "fear")]
    assert suspicious_events(path, read_events(path)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("onset duration trial_type\n", "holds no events"),
        ("onset duration trial_type\n1 2 n/a\n", "holds no events"),
        ("onset duration\n1 2\n", "no column trial_type, so all events are one condition"),
        (
            "onset duration stimulus rt\n1 2 face 3\n",
            "if one of stimulus and rt holds the condition, rename it to trial_type",
        ),
    ],
)
def test_suspicious_events_are_noted(tmp_path, text, message):
    path = write_tsv(tmp_path / "e.tsv", text)
    assert message in suspicious_events(path, read_events(path))[0]


def test_conditions_without_a_time_point_are_noted():
    events = [Event(1, 0, "cue"), Event(5, 6, "fear"), Event(3.1, 0.2, "blink")]
    (note,) = unobserved_conditions(events, np.arange(0.0, 30.0, 2.0), 1.0, 2.0)
    assert note.startswith("cue and blink: no time point falls into these events, 1 s later (the longest lasts 0.2 s")
    assert unobserved_conditions(events[1:2], np.arange(0.0, 30.0, 2.0), 1.0, 2.0) == []


def test_onsets_in_milliseconds_get_a_hint():
    assert clip_events([Event(10000, 18000, "fear")], 0.0, 100.0)[1].endswith(
        "no event is left: onsets, --tr and --start are in seconds"
    )


def test_events_outside_the_scan_are_dropped_and_the_last_is_cut():
    events = [Event(0, 10, "a"), Event(95, 20, "b"), Event(100, 5, "a"), Event(300, 5, "b")]
    kept, note = clip_events(events, 0.0, 100.0)
    assert kept == [Event(0, 10, "a"), Event(95, 5, "b")]
    assert "outside the scan (0 to 100 s) are dropped: a at 100 s and b at 300 s" in note
    assert "b at 95 s: cut where the scan ends, at 100 s" in note
    assert clip_events(events[:1], 0.0, 100.0) == (events[:1], "")


def test_events_before_the_first_volume_count_if_they_last():
    kept, _ = clip_events([Event(-20, 5, "gone"), Event(-2, 5, "on")], 0.0, 50.0)
    assert kept == [Event(-2, 5, "on")]
