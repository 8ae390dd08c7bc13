"""The models of all keys as one file: a header, JSON, the pooled model, then one model after the other.

magic, version, CRC-32 of all that follows | lengths of JSON, keys, pooled model and models | all of these
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any
from zlib import crc32

import numpy as np

from streamlasso import compact
from streamlasso._files import whole_file
from streamlasso.compact import DAMAGED, START, Refusal
from streamlasso.core.base.state import NoRoom
from streamlasso.keyed.models import Models

MAGIC = b"\x89SLKEYS\n"
VERSION = 2
LENGTHS = struct.Struct("<QQQQ")


def save(keyed: Any, path: Any) -> None:
    with whole_file(path) as file, keyed._still():
        file.write(bytes(START.size))
        checksum = _write(keyed, file.write)
        file.seek(0)
        file.write(START.pack(MAGIC, VERSION, checksum))


def to_bytes(keyed: Any) -> bytes:
    pieces: list[bytes] = []
    checksum = _write(keyed, pieces.append)
    return b"".join([START.pack(MAGIC, VERSION, checksum), *pieces])


def load(cls: Any, path: Any) -> Any:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise ValueError(f"{os.fspath(path)!r}: {DAMAGED}")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _read(cls, data)
            except Refusal as refusal:
                raise ValueError(f"{os.fspath(path)!r}: {refusal}") from refusal.__cause__


def from_bytes(cls: Any, data: bytes) -> Any:
    try:
        return _read(cls, data)
    except Refusal as refusal:
        raise ValueError(str(refusal)) from refusal.__cause__


def refill(keyed: Any, data: bytes | None) -> None:
    """The models in these bytes, or none, instead of those of `keyed`, whose settings they share: its engines stay."""
    models = keyed._models
    for key in list(models.places):
        models.evict(key)
    if data is None:
        return
    try:
        with memoryview(data) as view:
            _, names, pooled, numbers = _sections(view)
        if pooled == _pooled(keyed):
            filled(models, names, numbers)
        else:
            other = _read(type(keyed), data)
            for key in other:
                models.put(key, other._models.packed(key))
    except Refusal as refusal:
        raise ValueError(str(refusal)) from refusal.__cause__


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(keyed: Any, write: Callable[[bytes], Any]) -> int:
    """All that follows the start; returns its checksum."""
    checksum = 0
    for piece in _pieces(keyed):
        checksum = crc32(piece, checksum)
        write(piece)
    return checksum


def _pieces(keyed: Any) -> Iterator[bytes]:
    models = keyed._models
    settings = {"max_keys": keyed.max_keys, "pooled": keyed.pools}
    kind = compact.class_name(type(keyed))
    words = json.dumps({"class": kind, "settings": settings, "rows": keyed._n_rows}).encode()
    names, sizes = names_of(models), sizes_of(models)
    pooled = _pooled(keyed)
    yield LENGTHS.pack(len(words), len(names), len(pooled), sizes.nbytes + int(sizes.sum()))
    yield words
    yield names
    yield pooled
    yield from numbers_of(models, sizes)


def names_of(models: Models) -> bytes:
    """The keys."""
    return json.dumps([compact._as_json("keys", key) for key in models.places], allow_nan=False).encode()


def sizes_of(models: Models) -> np.ndarray:
    """The bytes of each model."""
    return np.array([size for key in models.places for size in models.sizes(key)], dtype=np.int64)


def numbers_of(models: Models, sizes: np.ndarray) -> Iterator[bytes]:
    """The models of all keys: their sizes, then one after the other."""
    yield sizes.tobytes()
    for key in models.places:
        yield from models.packed(key)


def _pooled(keyed: Any) -> bytes:
    """The pooled model. One that learns nothing is packed once."""
    if keyed.pools:
        return compact.to_bytes(keyed.pooled)
    if keyed._settings_bytes is None:
        keyed._settings_bytes = compact.to_bytes(keyed.pooled)
    return keyed._settings_bytes


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(cls: Any, data: Any) -> Any:
    view = memoryview(data)
    try:
        pieces = _sections(view)
        return _keyed(cls, *pieces)
    except NoRoom:
        raise
    except compact.ERRORS as error:
        raise Refusal(f"{DAMAGED} (Its checksum holds, but its contents do not: {compact.reason(error)})") from error
    finally:
        view.release()


def _sections(view: memoryview) -> list[bytes]:
    with compact.opened(view, MAGIC, VERSION) as rest:
        if len(rest) < LENGTHS.size:
            raise Refusal(DAMAGED)
        lengths = LENGTHS.unpack_from(rest)
        edges = LENGTHS.size + np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)]).astype(np.int64)
        if edges[-1] != len(rest) or np.any(np.diff(edges) < 0):
            raise Refusal(DAMAGED)
        return [bytes(rest[a:b]) for a, b in pairwise(edges)]


def _keyed(cls: Any, words: bytes, names: bytes, pooled: bytes, numbers: bytes) -> Any:
    record = json.loads(words)
    if record["class"] != compact.class_name(cls):
        raise Refusal(f"it holds a {record['class']}, not a {compact.class_name(cls)}.")
    model = compact.from_bytes([cls.kind], pooled)
    keyed = cls(model, **record["settings"])
    keyed.pooled = model
    keyed._n_rows = int(record["rows"])
    learners = model.learners_
    keyed._models = filled(Models(learners[0], len(learners), keyed.max_keys), names, numbers)
    return keyed


def filled(models: Models, names: bytes, numbers: bytes) -> Models:
    """With what `names_of` and `numbers_of` gave, which may come from a file."""
    keys, n_learners = [compact._from_json(key) for key in json.loads(names)], len(models.stores)
    n = len(keys) * n_learners
    sizes = np.frombuffer(numbers, np.int64, n)
    edges = 8 * n + np.concatenate([[0], np.cumsum(sizes)])
    if np.any(sizes < 0) or edges[-1] != len(numbers) or len(set(keys)) != len(keys):
        raise ValueError("keys and models do not belong together")
    each = pairwise(edges.tolist())
    for key in keys:
        models.put(key, [numbers[a:b] for a, b in islice(each, n_learners)])
    return models
