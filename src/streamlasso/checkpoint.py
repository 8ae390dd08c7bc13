"""Models as files: their bytes (`compact.py`) as safetensors, with what a program wants to keep beside them.

Every byte of a file is under a SHA-256 checksum, which finds accidents.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from streamlasso import compact
from streamlasso._files import write_whole
from streamlasso.compact import DAMAGED, Refusal, other_format

FORMAT = "streamlasso checkpoint"
VERSION = 2
#: The name of the model's bytes, and what stands before the names of arrays that are not the model's.
MODEL, NOTED = "model", "notes/"
#: Stands for the checksum while it is computed.
BLANK = b"0" * 64


def save(
    estimator: Any, path: Any, notes: dict[str, Any] | None = None, arrays: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write a fitted estimator to `path`. The file appears whole or not at all; until then an older one stays.

    `notes` (plain JSON) and `arrays` travel with it for `load_with_notes`; `load` ignores them.
    """
    write_whole(path, as_file(estimator.to_bytes(), compact.class_name(type(estimator)), notes, arrays))


def load(cls: Any, path: Any) -> Any:
    """The estimator that `save` wrote: the next row does to it what it would have done to the one that was saved."""
    return load_with_notes([cls], path)[0]


def load_with_notes(classes: Sequence[Any], path: Any) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """The estimator, of one of these classes, and the notes and arrays that `save` was given with it."""
    _, model, notes, arrays = read(path)
    try:
        return compact.from_bytes(classes, model), notes, arrays
    except Refusal as refusal:
        raise ValueError(f"{os.fspath(path)!r}: {refusal}") from refusal.__cause__


def read(path: Any) -> tuple[str, bytes, dict[str, Any], dict[str, np.ndarray]]:
    """What a file holds: the name of a class, the bytes of a model of it, notes and arrays."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return parts_of(data)
    except Refusal as refusal:
        raise ValueError(f"{os.fspath(path)!r}: {refusal}") from refusal.__cause__


def parts_of(data: bytes) -> tuple[str, bytes, dict[str, Any], dict[str, np.ndarray]]:
    """The same of the bytes of a file; a Refusal where they are none."""
    record, tensors = _record(data), _tensors(data)
    model = tensors.pop(MODEL).tobytes()
    arrays = {name.removeprefix(NOTED): array for name, array in sorted(tensors.items())}
    return str(record.get("class")), model, record["notes"], arrays


def to_bytes(estimator: Any) -> bytes:
    """What stands in its file as well."""
    return compact.to_bytes(estimator)


def from_bytes(cls: Any, data: bytes) -> Any:
    """The estimator that `to_bytes` gave."""
    try:
        return compact.from_bytes([cls], data)
    except Refusal as refusal:
        raise ValueError(str(refusal)) from refusal.__cause__


def as_file(
    model: bytes, name: str, notes: dict[str, Any] | None = None, arrays: Mapping[str, np.ndarray] | None = None
) -> bytes:
    """What `save` writes, of the bytes of a model of a class of this name."""
    tensors = {MODEL: np.frombuffer(model, dtype=np.uint8)}
    tensors.update({NOTED + name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()})
    record = {
        "sha256": BLANK.decode(),
        "format": FORMAT,
        "version": VERSION,
        # The package imports this module, so it has a version only later.
        "streamlasso": import_module("streamlasso").__version__,
        "class": name,
        "notes": notes or {},
    }
    blank = bytes_of(tensors, {"streamlasso": json.dumps(record, allow_nan=False)})
    return blank.replace(BLANK, _checksum(blank), 1)


def _checksum(blank: bytes) -> bytes:
    return hashlib.sha256(blank).hexdigest().encode()


def _record(data: bytes) -> dict[str, Any]:
    """The header's record, if its checksum holds."""
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        record = json.loads(header["__metadata__"]["streamlasso"])
        checksum, version = record["sha256"].encode(), int(record["version"])
        if record["format"] != FORMAT or not isinstance(record.setdefault("notes", {}), dict):
            raise Refusal(DAMAGED)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refusal(DAMAGED) from error
    if version != VERSION:
        raise Refusal(
            f"it is of format {version}, written by streamlasso {record.get('streamlasso')}; this one reads {VERSION}. "
            f"{other_format(version, VERSION)}"
        )
    if len(checksum) != len(BLANK) or _checksum(data.replace(checksum, BLANK, 1)) != checksum:
        raise Refusal(DAMAGED)
    return record


def _tensors(data: bytes) -> dict[str, np.ndarray]:
    try:
        tensors = tensors_of(data)
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise Refusal(DAMAGED) from error
    if MODEL not in tensors or any(name != MODEL and not name.startswith(NOTED) for name in tensors):
        raise Refusal(DAMAGED)
    return tensors
