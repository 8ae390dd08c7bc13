"""Forged checkpoints: files with other contents, under a checksum that holds."""

import json
from zlib import crc32

import numpy as np
from hypothesis import strategies as st

from streamlasso import RAPClassifier, RAPRegressor, checkpoint, compact, river
from streamlasso.core.base.state import under

CLASSES = [RAPRegressor, RAPClassifier, river.RAPRegressor, river.RAPClassifier]
FLOATS = (
    st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e308, -1e308, 5e-324, 1e-300, 2.0**200, 1e100])
    | st.floats()
)
INTEGERS = st.integers(-2, 20) | st.sampled_from([63, 64, 65, 2**31, 2**62, 2**63 - 1, -(2**63)])


def forged(data, edit):
    """The bytes of a model with something else in them, and a checksum that holds."""
    words, packed = compact._parts(data)
    record = json.loads(words)
    model = compact.from_bytes(CLASSES, data)
    arrays = _arrays(record, bytes(packed))
    for i, learner in enumerate(model.learners_):
        arrays.update({f"{i}/{name}": array for name, array in learner.state().items()})
    lengths = list(record["states"])
    edit(record, arrays)
    states = [_joined(learner, under(f"{i}/", arrays)) for i, learner in enumerate(model.learners_)]
    states += [array.tobytes() for name, array in arrays.items() if name[0].isdigit() and int(name[0]) >= len(states)]
    own = {name: array for name, array in arrays.items() if "/" not in name}
    if record["states"] == lengths:
        record["states"] = [len(state) for state in states]
    record["arrays"] = {name: list(array.shape) for name, array in own.items()}
    numbers = b"".join([*(array.tobytes() for array in own.values()), *states])
    words = json.dumps(record).encode()
    rest = compact.HEADER.pack(b"settings", 0, len(words), len(numbers)) + words + numbers
    return compact.START.pack(compact.MAGIC, compact.VERSION, crc32(rest)) + rest


def forged_file(data, edit):
    """The same of a file."""
    name = checkpoint._record(data)["class"]
    return checkpoint.as_file(forged(checkpoint._tensors(data)["model"].tobytes(), edit), name)


def _arrays(record, packed):
    found, at = {}, 0
    for name, shape in record["arrays"].items():
        n = int(np.prod(shape))
        found[name] = np.frombuffer(packed, np.float64, n, at).reshape(shape).copy()
        at += 8 * n
    return found


def _joined(part, state):
    """The bytes of a state, whatever is in it; what its owner does not know comes last."""
    pieces, known = [], set(part.names())
    if part._has_rows():
        first = next(array.name for array in part.STATE if array.axes[0] == "rows")
        pieces.append(np.int64(len(state.get(first, ()))).tobytes())
    for array in part.STATE:
        if array.name in state:
            value = state[array.name]
            pieces.append((array.columns_first(value) if value.ndim == len(array.axes) else value).tobytes())
    for prefix, inner in part.parts().items():
        own = {f"{prefix}{name}" for name in inner.names()}
        pieces.append(_joined(inner, under(prefix, {name: state[name] for name in own & set(state)})))
    return b"".join(pieces + [state[name].tobytes() for name in sorted(set(state) - known)])


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
        return compact.from_bytes([RAPRegressor], forged(data.draw(st.sampled_from(files)), edit))
    except compact.Refusal:
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
