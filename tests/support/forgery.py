"""Forged checkpoints: files with other contents, under a checksum that holds."""

import json

import numpy as np
from hypothesis import strategies as st

from streamlasso import RAPRegressor, checkpoint

FLOATS = (
    st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e308, -1e308, 5e-324, 1e-300, 2.0**200, 1e100])
    | st.floats()
)
INTEGERS = st.integers(-2, 20) | st.sampled_from([63, 64, 65, 2**31, 2**62, 2**63 - 1, -(2**63)])


def forged(data, edit):
    """The file with something else in it, and a checksum that holds."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    record = json.loads(header["__metadata__"]["streamlasso"])
    tensors = {name: array.copy() for name, array in checkpoint.tensors_of(data).items()}
    edit(record, tensors)
    record["sha256"] = checkpoint.BLANK.decode()
    blank = checkpoint.bytes_of(tensors, {"streamlasso": json.dumps(record)})
    return blank.replace(checkpoint.BLANK, checkpoint._checksum(blank), 1)


def set_at(name, value, *where):
    def edit(record, tensors):
        tensors[name][where or ...] = value

    return edit


def reshape(name, shape, dtype=np.float64):
    def edit(record, tensors):
        tensors[name] = np.zeros(shape, dtype=dtype)

    return edit


# --- at random ------------------------------------------------------------------------------------------------------


def loaded(data, files, edit):
    """The model of one of these files, edited; None if it was refused."""
    try:
        return checkpoint._from_bytes(RAPRegressor, forged(data.draw(st.sampled_from(files)), edit))
    except checkpoint.Refusal:
        return None


def numbers(data):
    """Other numbers in one to three of the arrays."""

    def edit(record, tensors):
        for _ in range(data.draw(st.integers(1, 3))):
            name = data.draw(st.sampled_from([name for name, array in sorted(tensors.items()) if array.size]))
            flat = tensors[name].reshape(-1)
            value = data.draw(FLOATS if flat.dtype.kind == "f" else INTEGERS)
            flat[data.draw(st.integers(0, flat.size - 1)) if data.draw(st.booleans()) else ...] = value

    return edit


def words(data, keys, start=lambda record: record):
    """Something else, of any type, at some place of the record; objects in it have some of these keys."""
    anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    nested = st.recursive(anything, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(keys), x))

    def edit(record, tensors):
        place = start(record)
        while True:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
                break
            place = place[key]
        place[key] = data.draw(nested)

    return edit
