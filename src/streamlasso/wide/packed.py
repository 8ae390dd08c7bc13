"""A wide model as bytes: a checkpoint whose notes say what it is, and whose arrays are the states of its engines.

The checksum finds accidents. A forged file can hold any numbers, but runs no code, and the engine refuses a state that
its settings cannot have made (`Wide.restore`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamlasso import checkpoint
from streamlasso._files import write_whole
from streamlasso.compact import ERRORS, Refusal
from streamlasso.core.sparse.model import Wide


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Header and arrays as one string of bytes.

    >>> import numpy as np
    >>> from streamlasso.wide.packed import pack, unpack
    >>> unpack(pack({"n": 1}, {"x": np.arange(2.0)}))
    ({'n': 1}, {'x': array([0., 1.])})
    """
    return checkpoint.as_file(b"", str(header.get("class")), dict(header), arrays)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What was packed, alone or within a file of `streamlasso run`."""
    try:
        _, model, header, arrays = checkpoint.parts_of(data)
        return checkpoint.parts_of(model)[2:] if model else (header, arrays)
    except Refusal as refusal:
        raise ValueError(str(refusal)) from refusal.__cause__


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
        return from_bytes(cls, data)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r}: {error}") from error


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
