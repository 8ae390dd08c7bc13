"""Bytes by number, on disk: what comes back is what a dict would have."""

import numpy as np
import pytest

from streamlasso.keyed import spill
from streamlasso.keyed.spill import Spill


@pytest.mark.parametrize("most_unused", [0, 1000, 2**26])
def test_a_spill_is_a_dict(monkeypatch, most_unused):
    monkeypatch.setattr(spill, "MOST_UNUSED", most_unused)
    rng = np.random.default_rng(0)
    found, expected = Spill(), {}
    for _ in range(300):
        numbers = rng.choice(40, size=rng.integers(0, 9), replace=False).tolist()
        if rng.random() < 0.3:
            found.drop(numbers)
            expected = {number: data for number, data in expected.items() if number not in numbers}
        else:
            items = {number: rng.bytes(rng.integers(0, 200)) for number in numbers}
            found.put(items.items())
            expected |= items
        assert dict(found.get(list(range(50)))) == expected


def test_bytes_that_nobody_needs_are_given_back(monkeypatch):
    monkeypatch.setattr(spill, "MOST_UNUSED", 1000)
    found = Spill()
    for i in range(100):
        found.put([(0, bytes(100)), (1, bytes([i]) * 100)])
    assert sum(file.seek(0, 2) for file in found._files) <= 2 * 200 + 1000 + 200
    assert dict(found.get([1])) == {1: bytes([99]) * 100}


def test_where_the_disk_is_full_nothing_has_changed(monkeypatch):
    found = Spill()
    found.put([(0, b"a"), (1, b"b")])
    write = spill._write

    def full(file, start, data):
        if data == b"d":
            raise OSError(28, "No space left on device")
        write(file, start, data)

    monkeypatch.setattr(spill, "_write", full)
    with pytest.raises(OSError, match="No space"):
        found.put([(0, b"c"), (1, b"d")])
    assert dict(found.get([0, 1])) == {0: b"a", 1: b"b"}
    found.put([(1, b"e")])
    assert dict(found.get([0, 1])) == {0: b"a", 1: b"e"}
