"""Models as bytes: a header, JSON for what has a name, and the numbers as the engines pack them; no pickle anywhere.

    magic, version, CRC-32 of all that follows | hash of the settings, number of features, lengths | JSON | numbers

The JSON holds what an estimator is made of: its settings as the user gave them, its labels (names of features,
classes), and the settings of its engine. The checksum finds accidents. Bytes forged under a valid one can hold any
numbers, but cannot run code, nor lead the engine outside its arrays: they name parts of streamlasso and nothing else,
and an engine refuses numbers that its settings could not have made (`core/base/state.py`).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import Any
from zlib import crc32

import numpy as np

from streamlasso import families, memories, penalties, tuners
from streamlasso.core.base.state import NoRoom
from streamlasso.core.dict_rows import DictRows
from streamlasso.core.mixture.groups.parts import competing
from streamlasso.settings import build_learner, has_mixture

#: No text begins like this, and a transfer as text would change its end.
MAGIC = b"\x89SLASSO\n"
VERSION = 2
#: The beginning, which the checksum does not cover, and the rest of the header.
START, HEADER = struct.Struct("<8sII"), struct.Struct("<8sQQQ")
#: Rooms whose classes users import from elsewhere.
PUBLIC = {
    "streamlasso.estimators": "streamlasso",
    "streamlasso.network": "streamlasso.network",
    "streamlasso.river": "streamlasso.river",
}

#: The parts that bytes may name.
PARTS = {name: getattr(room, name) for room in (families, memories, penalties, tuners) for name in room.__all__}
#: What an estimator keeps beside its settings and its learners.
LABELS = ("n_features_in_", "feature_names_in_", "classes_", "columns_")
#: The same, as arrays; and the setting that is one.
ARRAYS, FACTOR = ("_recent_rows",), "penalty_factor"
#: The arrays that labels come in, numbers, strings and objects that are either, and the most bytes that they may take
#: for each byte that they come in.
KINDS, MOST_ROOM = "biufUO", 2**10

#: From a number of features and the settings of an engine to the engine.
Build = Callable[[int, dict[str, Any]], Any]

#: What forged words and numbers can raise.
ERRORS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
DAMAGED = (
    "not a streamlasso checkpoint, or one that was cut short or altered. Load an intact copy, or save the model again."
)


class Refusal(Exception):
    """Why bytes or a file were not loaded, and what to do."""


def to_bytes(estimator: Any) -> bytes:
    """A fitted estimator as bytes."""
    settings = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else estimator._get_params()
    engine = dict(estimator.learners_[0].settings)
    arrays = {FACTOR: np.asarray(engine.pop(FACTOR))}
    arrays.update({name: getattr(estimator, name) for name in ARRAYS if hasattr(estimator, name)})
    states = [learner.pack() for learner in estimator.learners_]
    made_of = _text({"class": class_name(type(estimator)), "engine": _all_as_json(engine)})
    record = {
        # The package imports this module, so it has a version only later.
        "streamlasso": import_module("streamlasso").__version__,
        **json.loads(made_of),
        "settings": _all_as_json(settings),
        "labels": _all_as_json({name: getattr(estimator, name) for name in LABELS if hasattr(estimator, name)}),
        "arrays": {name: list(np.shape(array)) for name, array in arrays.items()},
        "states": [len(state) for state in states],
    }
    words = _text(record)
    words += b" " * (-len(words) % 8)
    numbers = b"".join([*(np.ascontiguousarray(array, dtype=float).tobytes() for array in arrays.values()), *states])
    n_features = estimator.learners_[0].n_features
    rest = HEADER.pack(settings_hash(made_of), n_features, len(words), len(numbers)) + words + numbers
    return START.pack(MAGIC, VERSION, crc32(rest)) + rest


def from_bytes(classes: Sequence[Any], data: bytes) -> Any:
    """The estimator, of one of these classes, that `to_bytes` was given; a Refusal where these bytes are not one."""
    words, numbers = _parts(data)
    try:
        record = json.loads(words)
        name = record["class"]
        names = {class_name(cls): cls for cls in classes}
        if name in names:
            return _estimator(names[name], record, numbers)
    except NoRoom:
        raise
    except ERRORS as error:
        raise Refusal(f"{DAMAGED} (Its checksum holds, but its contents do not: {reason(error)})") from error
    raise Refusal(f"it holds a {name}, not a {' or '.join(names)}. Load it with {name}.load(path).")


def reason(error: BaseException) -> str:
    """What was wrong; an error about memory says nothing by itself."""
    return str(error) or ("there is too little memory for them" if isinstance(error, MemoryError) else "")


def settings_hash(made_of: bytes) -> bytes:
    """Eight bytes that differ between models of other classes or settings."""
    return hashlib.blake2b(made_of, digest_size=8).digest()


def class_name(cls: type) -> str:
    """The name by which users import it."""
    for room, public in PUBLIC.items():
        if cls.__module__.startswith(room):
            return f"{public}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


def _text(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


# --- writing --------------------------------------------------------------------------------------------------------


def _all_as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _as_json(name, value) for name, value in values.items()}


def _as_json(name: str, value: Any) -> Any:
    """A setting or label as JSON; what JSON does not have is an object with its type."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and np.isfinite(float(value)):
        return float(value)
    if isinstance(value, list):
        return [_as_json(name, item) for item in value]
    if isinstance(value, tuple):
        return {"type": "tuple", "items": _as_json(name, list(value))}
    if isinstance(value, Mapping):
        return {"type": "dict", "items": [[_as_json(name, key), _as_json(name, item)] for key, item in value.items()]}
    if isinstance(value, DictRows):
        return {"type": "columns", "names": _as_json(name, value.names), "width": value.width}
    if type(value) is PARTS.get(type(value).__name__):
        return {"type": type(value).__name__, **_all_as_json(value.settings())}
    if hasattr(value, "__array__") and np.ndim(value) == 1 and np.asarray(value).dtype.kind in KINDS:
        array = np.asarray(value)
        return {"type": "array", "dtype": array.dtype.str, "items": _as_json(name, array.tolist())}
    raise ValueError(
        f"{name}={value!r} cannot be saved: a checkpoint holds streamlasso's own families, memories, penalties and "
        "tuners, and labels that are strings, finite numbers or tuples of them. Use pickle for anything else."
    )


# --- reading --------------------------------------------------------------------------------------------------------


def opened(data: Any, magic: bytes, version: int) -> memoryview:
    """What follows the beginning of a file of ours, if its checksum holds. To be released."""
    if len(data) < START.size:
        raise Refusal(DAMAGED)
    found, number, checksum = START.unpack_from(data)
    if found != magic:
        raise Refusal(DAMAGED)
    if number != version:
        raise Refusal(f"it is of format {number}; this one reads {version}. {other_format(number, version)}")
    rest = memoryview(data)[START.size :]
    if crc32(rest) != checksum:
        rest.release()
        raise Refusal(DAMAGED)
    return rest


def _parts(data: bytes) -> tuple[bytes, memoryview]:
    """The JSON and the numbers."""
    rest = opened(data, MAGIC, VERSION)
    if len(rest) < HEADER.size:
        raise Refusal(DAMAGED)
    _, _, n_words, n_numbers = HEADER.unpack_from(rest)
    if HEADER.size + n_words + n_numbers != len(rest):
        raise Refusal(DAMAGED)
    return bytes(rest[HEADER.size : HEADER.size + n_words]), rest[HEADER.size + n_words :]


def other_format(version: int, ours: int) -> str:
    """What to do."""
    if version > ours:
        return "Upgrade it: pip install --upgrade streamlasso"
    return "Save the model again with this version."


def _estimator(cls: Any, record: dict[str, Any], numbers: memoryview) -> Any:
    estimator = cls(**_all_from_json(record["settings"]))
    for name, value in _all_from_json(record["labels"]).items():
        if name not in LABELS:
            raise ValueError(f"{name} is not a label")
        setattr(estimator, name, value)
    pieces = _pieces(numbers, [8 * _n_numbers(shape) for shape in record["arrays"].values()] + record["states"])
    arrays = {name: np.frombuffer(next(pieces)).reshape(shape).copy() for name, shape in record["arrays"].items()}
    engine = {**_all_from_json(record["engine"]), FACTOR: arrays.pop(FACTOR)}
    for name, array in arrays.items():
        if name not in ARRAYS:
            raise ValueError(f"{name} is not an array of a model")
        setattr(estimator, name, array)
    build = getattr(cls, "_build", build_learner)
    estimator.learners_ = [_learner(build, engine, bytes(state)) for state in pieces]
    if not estimator.learners_ or not estimator._whole():
        raise ValueError("labels and learners do not belong together")
    return estimator


def _n_numbers(shape: list[int]) -> int:
    n = 1
    for length in shape:
        if not isinstance(length, int) or length < 0:
            raise ValueError(f"{length} is not the length of an array")
        n *= length
    return n


def _pieces(numbers: memoryview, lengths: list[int]) -> Iterator[memoryview]:
    """One after the other, and all of them."""
    if any(length < 0 for length in lengths) or sum(lengths) != len(numbers):
        raise ValueError(f"{len(numbers)} bytes of numbers, but {sum(lengths)} are spoken of")
    at = 0
    for length in lengths:
        yield numbers[at : at + length]
        at += length


def _all_from_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _from_json(value) for name, value in values.items()}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.pop("type")
    if kind == "tuple":
        return tuple(_from_json(value["items"]))
    if kind == "dict":
        return dict(_from_json(value["items"]))
    if kind == "columns":
        return DictRows(_from_json(value["names"]), value["width"])
    if kind == "array":
        return array_of(value["dtype"], _from_json(value["items"]))
    return PARTS[kind](**_all_from_json(value))


def array_of(name: str, items: list[Any]) -> np.ndarray:
    """Labels of this type. One long label among many short ones may take room, but not without end."""
    dtype = np.dtype(str(name))
    if dtype.kind not in KINDS or dtype.itemsize * len(items) > MOST_ROOM * (len(items) + len(str(items))):
        raise ValueError(f"labels of type {name}")
    array = np.empty(len(items), dtype=dtype)
    array[:] = items
    return array


def _learner(build: Build, engine: dict[str, Any], state: bytes) -> Any:
    """A learner with this state, which it looks at before compiled code trusts it."""
    n_features, n_models = len(engine[FACTOR]), _n_models(engine)
    if 8 * n_models * n_features**2 > len(state):
        raise ValueError(f"{n_models} models of {n_features} features need more numbers than there are")
    learner = build(n_features, engine)
    learner.unpack(state)
    return learner


def _n_models(engine: dict[str, Any]) -> int:
    if not has_mixture(engine):
        return 1
    memory, tuner = engine["memory"], engine["tuner"]
    return len(competing(memory, tuner)) + (tuner.runs // 2 if memory is None else 0)
