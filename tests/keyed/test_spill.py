"""Bytes by number, on disk: what comes back is what a dict would have."""

import numpy as np

from streamlasso.keyed.spill import Spill


def test_a_spill_is_a_dict():
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
