"""A wide model as bytes: a header in JSON, then arrays as they lie; no pickle.

    8 bytes   MAGIC
    4 bytes   version       4 bytes   CRC-32 of all that follows
    8 bytes   length of the header
    header    what the model is, and name, type and shape of each array
    arrays    one after another, little-endian

The checksum finds accidents. A forged file can hold any numbers, but runs no code, and the engine refuses a state that
its settings cannot have made (`Wide.restore`).
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamlasso import checkpoint
from streamlasso._files import write_whole
from streamlasso.compact import ERRORS, other_format
from streamlasso.core.sparse.model import Wide

MAGIC = b"SLWIDE\r\n"
#: Earlier ones, of unreleased versions, weighed the experts in another way.
VERSION = 3
HEAD = struct.Struct("<8sIIQ")
#: The types that arrays may have.
TYPES = {"<f4", "<f8", "<i8", "<u8", "|u1"}
DAMAGED = "not a wide model of streamlasso, or one that was cut short or altered: use an intact copy"


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Header and arrays as one string of bytes.

    >>> import numpy as np
    >>> from streamlasso.wide.packed import pack, unpack
    >>> unpack(pack({"n": 1}, {"x": np.arange(2.0)}))
    ({'n': 1}, {'x': array([0., 1.])})
    """
    little = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in little.items()]
    text = json.dumps({"model": dict(header), "arrays": listed}, allow_nan=False).encode()
    body = b"".join([struct.pack("<Q", len(text)), text, *(array.tobytes() for array in little.values())])
    return struct.pack("<8sII", MAGIC, VERSION, zlib.crc32(body)) + body


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What was packed; anything else is refused by name."""
    data = bytes(data)
    if len(data) < HEAD.size or data[:8] != MAGIC:
        raise ValueError(f"{len(data):,} bytes: {DAMAGED}")
    _, version, checksum, length = HEAD.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"format {version}; this one reads {VERSION}. {other_format(version, VERSION)}")
    if zlib.crc32(memoryview(data)[16:]) != checksum:
        raise ValueError(f"{len(data):,} bytes with a wrong checksum: {DAMAGED}")
    try:
        record = json.loads(data[HEAD.size : HEAD.size + length])
        if not isinstance(record["model"], dict):
            raise ValueError("model")
        return record["model"], _arrays(record["arrays"], data, HEAD.size + length)
    except ERRORS as error:
        raise ValueError(f"{len(data):,} bytes: {DAMAGED}") from error


def _arrays(listed: list[Any], data: bytes, start: int) -> dict[str, np.ndarray]:
    arrays = {}
    for name, kind, shape in listed:
        if kind not in TYPES or not all(isinstance(n, int) and 0 <= n < 2**40 for n in shape):
            raise ValueError(name)
        count = int(np.prod(shape, dtype=object))
        dtype = np.dtype(kind)
        arrays[name] = np.frombuffer(data, dtype, count, start).reshape(shape).astype(dtype.newbyteorder("="))
        start += count * dtype.itemsize
    if start != len(data):
        raise ValueError("arrays")
    return arrays


# --- estimators: the format of `estimators/face.py` -------------------------------------------------------------------


def kind_of(cls: type) -> str:
    """The name of a class in the header: there are two by each name."""
    return f"river.{cls.__name__}" if cls.__module__.endswith("named") else cls.__name__


def to_bytes(estimator: Any) -> bytes:
    """The model with its live features only; estimators give header and arrays (`_parts`)."""
    header, arrays = estimator._parts()
    return pack({"class": kind_of(type(estimator)), **header}, arrays)


def from_bytes(cls: Any, data: bytes) -> Any:
    """The model that `to_bytes` gave; estimators make it of header and arrays (`_from`)."""
    header, arrays = unpack(data)
    if header.get("class") != kind_of(cls):
        raise ValueError(f"these bytes hold a {header.get('class')}: use its own from_bytes or load")
    try:
        return cls._from(header, arrays)
    except ERRORS as error:
        raise ValueError(f"these bytes do not hold a {cls.__name__}: {error}") from error


def save(estimator: Any, path: Any) -> None:
    write_whole(path, estimator.to_bytes())


def load(cls: Any, path: Any) -> Any:
    """From a file of `save`, or of `streamlasso run`."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return from_bytes(cls, data if data[:8] == MAGIC else _in_checkpoint(path, data))
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r}: {error}") from error


def _in_checkpoint(path: Any, data: bytes) -> bytes:
    """The bytes of the model in a file of `streamlasso run`; of any other file, all."""
    try:
        return checkpoint.read(path)[1]
    except ValueError:
        return data


# --- engines ----------------------------------------------------------------------------------------------------------


def states_of(models: Sequence[Wide]) -> dict[str, np.ndarray]:
    """The states of engines as arrays, by number and name."""
    return {f"{i}/{name}": array for i, model in enumerate(models) for name, array in model.state().items()}


def restored(make: Callable[[], Wide], n: int, arrays: Mapping[str, np.ndarray]) -> list[Wide]:
    """n new engines in these states. None has fewer numbers than a new one, so a file says how many there can be."""
    least, given = (sum(array.nbytes for array in each.values()) for each in (make().state(), arrays))
    if not 1 <= n * least <= given:
        raise ValueError(f"{n} models need {n * least:,} bytes of numbers, but there are {given:,}")
    models = [make() for _ in range(n)]
    for i, model in enumerate(models):
        model.restore({name.split("/")[1]: array for name, array in arrays.items() if name.startswith(f"{i}/")})
    return models


def plain_labels(labels: Sequence[Any]) -> list[Any]:
    """The classes as JSON has them."""
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        raise ValueError(f"classes {labels!r}: text, numbers and bools can be saved")
    return list(labels)
