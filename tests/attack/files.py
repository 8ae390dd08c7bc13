"""Files of every kind, taken apart, changed, and sealed again so that their checksums hold."""

import json
import os
import resource
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

from streamlasso import RAPClassifier, RAPRegressor, checkpoint, compact, river
from streamlasso.data.encoding import StreamEncoder
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.keyed import files as keyed_files
from streamlasso.memories import AdaptiveForgetting, Window
from streamlasso.network import StreamingNetwork
from streamlasso.penalties import ElasticNet
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture
from streamlasso.wide import WideClassifier, WideRegressor, packed

NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 0.5, 1.0, 1e308, -1e308, 5e-324, 1e-300, 2.0**200, 1e38, 1e-45]
COUNTS = [-(2**63), -1, 0, 1, 2, 3, 16, 63, 64, 65, 2**20, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1]
#: JSON that no file of ours holds at most of its places; DEEP stands for lists in lists.
DEEP = "lists in lists"
VALUES = [
    *(None, True, False, -1, 0, 1, 7, 2**31, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, -1e308, np.nan, np.inf),
    *("", "x", "0", "\0", "\ud800", "gaussian", "poisson", "logrms", "[/b]", "\x1b[2J", DEEP),
    *([], {}, [[]], [0, 0], {"type": "tuple", "items": []}, {"type": "x"}, {"type": "Window", "size": 2**40}),
    {"type": "array", "dtype": "<U262144", "items": [""] * 50},
    {"type": "Mixture", "runs": 10**6},
]
#: The most memory, in KiB, that one file may take beyond what files took before.
MOST_MEMORY = 100 * 1024


@dataclass(frozen=True)
class Kind:
    """A file as parts, bytes or JSON; `sealed` makes it of them, `load` reads it and `use` works with what was read."""

    name: str
    parts: list[Any]
    sealed: Callable[[list[Any]], bytes]
    load: Callable[[bytes], Any]
    use: Callable[[Any], Any]


def kinds(folder) -> list[Kind]:
    """Every class that can be bytes or a file; small, so that many can be tried."""
    return [*_models(), *_wide(), *_keyed(), *_saved(folder), *_encoders(folder), *_pages()]


# --- the kinds --------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(30, 3))
CLASSES = np.arange(30) % 3
SMALL = Mixture(powers=(0.5, 1.0), factors=(0.9,), runs=4)


def _models():
    positive = np.exp(X[:, 0])
    models = [
        RAPRegressor().fit(X, X[:, 0]),
        RAPRegressor(tuner=SMALL).fit(X, X[:, 0]),
        RAPRegressor(tuner=SMALL, memory=Window(10)).fit(X, X[:, 0]),
        RAPRegressor(tuner=LogRMS(), memory=Window(10)).fit(X, X[:, 0]),
        RAPRegressor(tuner=LogRMS(), memory=AdaptiveForgetting()).fit(X, X[:, 0]),
        RAPRegressor("poisson", tuner=LogRMS()).fit(X, np.arange(30.0)),
        RAPRegressor("poisson", tuner=SMALL).fit(X, np.arange(30.0)),
        RAPRegressor("gamma", tuner=SMALL, memory=0.9).fit(X, positive),
        RAPRegressor("gamma", tuner=SGD(0.1)).fit(X, positive),
        RAPRegressor(tuner=LARS(0.1), penalty=ElasticNet(0.5)).fit(X, X[:, 0]),
        RAPRegressor(tuner=Fixed(0.1), batch_size=4).fit(X, X[:, 0]),
        RAPClassifier(tuner=LogRMS()).fit(X, CLASSES),
        RAPClassifier(tuner=SMALL).fit(X, np.array(["a", "b", "c"])[CLASSES]),
        RAPClassifier(tuner=SMALL).fit(X, CLASSES > 0),
        river.RAPRegressor(tuner="logrms"),
        river.RAPClassifier(tuner="logrms"),
        StreamingNetwork(memory=0.9).partial_fit(X),
    ]
    for row, label in zip(X.tolist(), CLASSES.tolist(), strict=True):
        models[-3].learn_one(dict(zip("abc", row, strict=True)), row[0])
        models[-2].learn_one(dict(zip("abc", row, strict=True)), label)
    return [_model(model) for model in models]


def _model(model):
    words, numbers = compact._parts(model.to_bytes())
    parts = [json.loads(words), bytes(numbers)]
    return Kind(f"{type(model).__module__} {model}", parts, compact_bytes, type(model).from_bytes, use_model)


def compact_bytes(parts) -> bytes:
    return sealed(as_text(parts[0]), parts[1])


def sealed(words: bytes, numbers: bytes) -> bytes:
    """A model whose lengths and checksum hold, so that what is in it is looked at."""
    rest = compact.HEADER.pack(b"settings", 0, len(words), len(numbers)) + words + numbers
    return compact.START.pack(compact.MAGIC, compact.VERSION, crc32(rest)) + rest


def use_model(model):
    if isinstance(model, StreamingNetwork):
        p = model.n_features_in_
        model.partial_fit(X[:2, :1] * np.ones(p))
        return model.edges_
    if hasattr(model, "learn_one"):
        row = {"a": 1.0, "b": 2, "new": 3.0}
        model.learn_one(row, model.classes_[0] if hasattr(model, "classes_") else 1.0)
        return model.predict_one(row)
    rows = np.ones((3, model.n_features_in_))
    predicted = model.predict(rows)
    model.partial_fit(rows, predicted if isinstance(model, RAPClassifier) else np.ones(3))
    return predicted


def _wide():
    dense = sparse.csr_array(np.where(np.abs(X) > 0.4, X, 0.0))
    models = [
        WideRegressor().partial_fit(dense, X[:, 0]),
        WideRegressor("poisson", experts=8, memory="second_sight").partial_fit(dense, np.arange(30.0)),
        WideClassifier(memory="sparse", max_features=2).partial_fit(dense, CLASSES, classes=[0, 1, 2]),
        river.WideRegressor(keep_names=True, max_features=2),
        river.WideClassifier(experts=8, memory="sparse"),
    ]
    for row, label in zip(X.tolist(), CLASSES.tolist(), strict=True):
        models[-2].learn_one(dict(zip("abc", row, strict=True)), row[0])
        models[-1].learn_one(dict(zip("abc", row, strict=True)), "abc"[label])
    return [_wide_model(model) for model in models]


def _wide_model(model):
    header, arrays = packed.unpack(model.to_bytes())
    parts = [{"model": header}, b"".join(array.tobytes() for array in arrays.values())]
    like = {name: (array.dtype, array.shape, array.nbytes) for name, array in arrays.items()}
    return Kind(f"{type(model).__module__} {model}", parts, partial(wide_bytes, like), type(model).from_bytes, use_wide)


def wide_bytes(like, parts) -> bytes:
    """Arrays of the same shapes, as far as the numbers go."""
    header, numbers = parts
    arrays = {}
    for name, (dtype, shape, n_bytes) in like.items():
        own, numbers = numbers[:n_bytes], numbers[n_bytes:]
        whole = len(own) == n_bytes
        arrays[name] = np.frombuffer(own, dtype).reshape(shape) if whole else np.frombuffer(own, np.uint8)
    try:
        header = header["model"]
        return checkpoint.as_file(b"", str(header["class"]), header, arrays)
    except (LookupError, TypeError, ValueError):
        return checkpoint.as_file(numbers, "x", {}, arrays)


def use_wide(model):
    if hasattr(model, "learn_one"):
        row = {"a": 1.0, "b": 2, "new": 3.0}
        model.learn_one(row, model.classes_[0] if getattr(model, "classes_", None) else 1.0)
        return model.predict_one(row), model.keep_names and model.coef_
    rows = sparse.csr_array(([1.0, 1.0], [0, model.n_features_in_ - 1], [0, 1, 2]), shape=(2, model.n_features_in_))
    predicted = model.predict(rows)
    model.partial_fit(rows, predicted if isinstance(model, WideClassifier) else np.ones(2))
    return predicted, model.coef_


def _keyed():
    keys = np.arange(30) % 4
    regressor = RAPRegressor(tuner="logrms")
    models = [
        KeyedRegressor(regressor).partial_fit(X, X[:, 0], keys),
        KeyedRegressor(RAPRegressor(tuner=SMALL), pooled=False).partial_fit(X, X[:, 0], keys),
        KeyedRegressor(regressor, max_keys=2).partial_fit(X, X[:, 0], np.array(list("abcd"))[keys]),
        KeyedClassifier(RAPClassifier(tuner="logrms")).partial_fit(X, CLASSES, keys, classes=[0, 1, 2]),
    ]
    return [_keyed_model(model) for model in models]


def _keyed_model(model):
    parts = keyed_parts(model.to_bytes())
    return Kind(f"{type(model).__name__} {model.pooled}", parts, keyed_bytes, type(model).from_bytes, use_keyed)


def keyed_parts(data):
    words, names, pooled, numbers = keyed_files._sections(memoryview(data))
    inner, inner_numbers = compact._parts(pooled)
    return [json.loads(words), json.loads(names), json.loads(inner), bytes(inner_numbers), numbers]


def keyed_bytes(parts) -> bytes:
    pieces = [as_text(parts[0]), as_text(parts[1]), compact_bytes(parts[2:4]), parts[4]]
    rest = keyed_files.LENGTHS.pack(*map(len, pieces)) + b"".join(pieces)
    return keyed_files.START.pack(keyed_files.MAGIC, keyed_files.VERSION, crc32(rest)) + rest


def use_keyed(model):
    rows, keys = np.ones((3, model.pooled.n_features_in_)), [*model.keys()[:2], "new"][:3]
    rows = rows[: len(keys)]
    predicted = model.predict(rows, keys)
    model.partial_fit(rows, predicted if isinstance(model, KeyedClassifier) else np.ones(len(keys)), keys)
    for key in model.keys()[:2]:
        model.weight(key)
    return predicted


def _saved(folder):
    """Files of `save`, with notes."""
    path = folder / "saved.safetensors"
    for model in (RAPRegressor(tuner=LogRMS()).fit(X, X[:, 0]), StreamingNetwork(memory=0.9).partial_fit(X)):
        words, numbers = compact._parts(model.to_bytes())
        kind = type(model)
        name = compact.class_name(kind)

        def load(data, kind=kind):
            path.write_bytes(data)
            return kind.load(path)

        parts = [json.loads(words), bytes(numbers), {"name": name, "notes": {"rows": [1, 2]}}]
        yield Kind(f"file of {model}", parts, saved_bytes, load, use_model)


def saved_bytes(parts) -> bytes:
    record = parts[2] if isinstance(parts[2], dict) else {}
    notes = record.get("notes")
    try:
        return checkpoint.as_file(compact_bytes(parts[:2]), record.get("name"), notes)
    except ValueError:
        return checkpoint.as_file(compact_bytes(parts[:2]), "x")


def _encoders(folder):
    import pandas as pd

    days = pd.date_range("2026-01-01", periods=30, freq="D").astype(str)
    frame = pd.DataFrame({"city": np.array(["Rome", "Oslo", None])[CLASSES], "price": X[:, 0], "day": days})
    path = folder / "encoder.json"
    for rows in (frame, frame.to_numpy(dtype=object)):
        StreamEncoder().fit(rows).save(path)
        parts = [json.loads(path.read_bytes())]

        def load(data):
            path.write_bytes(data)
            return StreamEncoder.load(path)

        def use(encoder, rows=rows):
            encoder.transform(rows[:3])
            encoder.partial_fit(rows[:3])
            return encoder.get_feature_names_out()

        yield Kind("StreamEncoder", parts, lambda parts: as_text(parts[0]), load, use)


def _pages():
    """The state of a page of keys, as Spark's state store has it."""
    try:
        from streamlasso.spark.job import Job
        from streamlasso.spark.page import Events, Pages, State
    except ImportError:
        return
    job = Job(RAPRegressor(tuner="logrms"), ("a", "b", "c"), wait_ms=1000)
    names = [str(i) for i in range(30)]
    y = np.where(np.arange(30) % 5 == 0, np.nan, X[:, 0])
    pages = Pages(job)

    def events(first, n):
        keys, times = [f"k{i % 3}" for i in range(n)], list(range(n))
        return Events(keys, names[first : first + n], times, times, [True] * n, X[:n], y[:n])

    state, _ = pages.learn(None, events(0, 20))

    def joined(parts) -> bytes:
        pieces = [as_text(parts[0]), keyed_bytes(parts[1:6]), *parts[6:8], as_text(parts[8])]
        return b"".join(struct.pack("<Q", len(piece)) + piece for piece in pieces)

    def load(data):
        pieces, at = [], 0
        while at < len(data):
            n = int.from_bytes(data[at : at + 8], "little")
            pieces.append(data[at + 8 : at + 8 + n])
            at += 8 + n
        if len(pieces) != 5:
            raise ValueError("not five pieces")
        return State(pieces[0].decode(), *pieces[1:4], pieces[4].decode(), 0)

    def use(state):
        pages.learn(state, events(20, 5))
        pages.expire(state, 10**6)

    parts = [json.loads(state.settings), *keyed_parts(state.models), state.marks, state.ids, json.loads(state.waiting)]
    yield Kind("page", parts, joined, load, use)


# --- changes ----------------------------------------------------------------------------------------------------------


def forged(rng, kind: Kind) -> bytes:
    """A file of this kind with one to three changes; most under a checksum that holds."""
    if rng.random() < 0.1:
        return damaged(rng, kind.sealed(kind.parts))
    parts = list(kind.parts)
    for _ in range(rng.integers(1, 4)):
        k = int(rng.integers(len(parts)))
        parts[k] = other_numbers(rng, parts[k]) if isinstance(parts[k], bytes) else other_words(rng, parts[k])
    return kind.sealed(parts)


def damaged(rng, data: bytes) -> bytes:
    """Other bytes, or fewer."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        data[rng.integers(len(data))] = rng.integers(256)
    return bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.3 else data)


def other_numbers(rng, data: bytes) -> bytes:
    """Other numbers at places where there are numbers of the same sort, as far as one can see; or other bytes."""
    if not data:
        return bytes(rng.integers(1, 40))
    way, data = rng.random(), bytearray(data)
    if way < 0.05:
        return bytes(data[: rng.integers(len(data))])
    if way < 0.1:
        return bytes(data + data[: 8 * rng.integers(1, 4)])
    if way < 0.2:
        return damaged(rng, data)
    for _ in range(rng.integers(1, 3)):
        single = rng.random() < 0.2
        size, kinds = (4, "fi") if single else (8, "dq")
        if len(data) < size:
            return damaged(rng, data)
        at = size * int(rng.integers(len(data) // size))
        whole = abs(struct.unpack_from("<" + kinds[1], data, at)[0]) < 2**24
        if whole and rng.random() < 0.7:
            struct.pack_into("<Q", data, at, COUNTS[rng.integers(len(COUNTS))] % 2**64) if not single else (
                struct.pack_into("<I", data, at, COUNTS[rng.integers(len(COUNTS))] % 2**32)
            )
        else:
            value = NUMBERS[rng.integers(len(NUMBERS))]
            with np.errstate(over="ignore"):
                data[at : at + size] = np.array(value, f"<f{size}").tobytes()
    return bytes(data)


def other_words(rng, value: Any) -> Any:
    """JSON with something else somewhere in it."""
    value = json.loads(json.dumps(value))
    if not isinstance(value, dict | list) or not value:
        return VALUES[rng.integers(len(VALUES))]
    place = value
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[rng.integers(len(keys))]
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            break
        place = inner
    way = rng.random()
    if way < 0.7:
        place[key] = VALUES[rng.integers(len(VALUES))]
    elif way < 0.8:
        del place[key]
    elif way < 0.9 and isinstance(place, list):
        place.insert(key, place[rng.integers(len(place))])
    elif isinstance(inner, int | float) and not isinstance(inner, bool) and abs(inner) < 2**63:
        place[key] = inner + [1, -1, 0.5][rng.integers(3)]
    else:
        place[key] = place[keys[rng.integers(len(keys))]]
    return value


def as_text(value: Any) -> bytes:
    text = json.dumps(value).encode()
    return text.replace(b'"%s"' % DEEP.encode(), b"[" * 5000 + b"]" * 5000)


# --- what happens -----------------------------------------------------------------------------------------------------


def withstood(kind: Kind, data: bytes) -> bool:
    """Refused by a ValueError, or loaded and usable; and neither takes much memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with np.errstate(all="ignore"):
        try:
            model = kind.load(data)
        except ValueError:
            return _grown(before) < MOST_MEMORY
        with suppress(ValueError, RuntimeError):
            kind.use(model)
    return _grown(before) < MOST_MEMORY


def _grown(before: int) -> int:
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        # Its allocator keeps what was freed.
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
