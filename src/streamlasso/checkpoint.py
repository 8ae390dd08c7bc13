"""Models as files: safetensors for the numbers, JSON in its header for everything else; no pickle anywhere.

A file holds what an estimator is made of: its settings as the user gave them, its labels (names of features,
classes), and its learners, settings and state. Every byte is under a SHA-256 checksum, which finds accidents. A file
forged with a valid checksum can hold any numbers, but cannot run code, nor lead the engine outside its arrays: it names
parts of streamlasso and nothing else, and a learner refuses a state that its settings could not have made
(`core/state.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from streamlasso import families, memories, penalties, tuners
from streamlasso._files import write_whole
from streamlasso.core.dict_rows import DictRows
from streamlasso.core.mixture import competing
from streamlasso.settings import build_learner, has_mixture

FORMAT = "streamlasso checkpoint"
VERSION = 1
#: Rooms whose classes users import from elsewhere.
PUBLIC = {"streamlasso.estimators": "streamlasso", "streamlasso.network": "streamlasso.network"}
#: Before the names of arrays that are not the model's.
NOTED = "notes/"
#: Stands for the checksum while it is computed.
BLANK = b"0" * 64

#: The parts that a file may name.
PARTS = {name: getattr(room, name) for room in (families, memories, penalties, tuners) for name in room.__all__}
#: What an estimator keeps beside its settings and its learners.
LABELS = ("n_features_in_", "feature_names_in_", "classes_", "columns_")
#: The same, as arrays.
ARRAYS = ("_recent_rows",)
#: The arrays that labels come in, numbers, strings and objects that are either, and the longest string of them in
#: bytes.
KINDS, LONGEST = "biufUO", 2**20

#: From a number of features and the settings of an engine to the engine.
Build = Callable[[int, dict[str, Any]], Any]

DAMAGED = (
    "not a streamlasso checkpoint, or one that was cut short or altered. Load an intact copy, or save the model again."
)


class Refusal(Exception):
    """Why a file was not loaded, and what to do."""


def save(
    estimator: Any, path: Any, notes: dict[str, Any] | None = None, arrays: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write a fitted estimator to `path`. The file appears whole or not at all; until then an older one stays.

    `notes` (plain JSON) and `arrays` travel with it for `load_with_notes`; `load` ignores them.
    """
    write_whole(path, _as_bytes(estimator, notes, arrays))


def load(cls: Any, path: Any) -> Any:
    """The estimator that `save` wrote: the next row does to it what it would have done to the one that was saved."""
    return load_with_notes([cls], path)[0]


def load_with_notes(classes: Sequence[Any], path: Any) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """The estimator, of one of these classes, and the notes and arrays that `save` was given with it."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _with_notes(classes, data)
    except Refusal as refusal:
        raise ValueError(f"{os.fspath(path)!r}: {refusal}") from refusal.__cause__


def _class_name(cls: type) -> str:
    """The name by which users import it."""
    for room, public in PUBLIC.items():
        if cls.__module__.startswith(room):
            return f"{public}.{cls.__qualname__}"
    return f"{cls.__module__}.{cls.__qualname__}"


# --- writing --------------------------------------------------------------------------------------------------------


def _as_bytes(
    estimator: Any, notes: dict[str, Any] | None = None, arrays: Mapping[str, np.ndarray] | None = None
) -> bytes:
    settings = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else estimator._get_params()
    labels = {name: getattr(estimator, name) for name in LABELS if hasattr(estimator, name)}
    engine = dict(estimator.learners_[0].settings)
    tensors = {"penalty_factor": engine.pop("penalty_factor")}
    tensors.update({name: getattr(estimator, name) for name in ARRAYS if hasattr(estimator, name)})
    for i, learner in enumerate(estimator.learners_):
        tensors.update({f"{i}/{name}": np.ascontiguousarray(array) for name, array in learner.state().items()})
    tensors.update({NOTED + name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()})
    record = {
        "sha256": BLANK.decode(),
        "format": FORMAT,
        "version": VERSION,
        # The package imports this module, so it has a version only later.
        "streamlasso": import_module("streamlasso").__version__,
        "class": _class_name(type(estimator)),
        "settings": _all_as_json(settings),
        "labels": _all_as_json(labels),
        "learners": len(estimator.learners_),
        "engine": _all_as_json(engine),
        "notes": notes or {},
    }
    blank = bytes_of(tensors, {"streamlasso": json.dumps(record, allow_nan=False)})
    return blank.replace(BLANK, _checksum(blank), 1)


def _checksum(blank: bytes) -> bytes:
    return hashlib.sha256(blank).hexdigest().encode()


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


def _from_bytes(cls: Any, data: bytes) -> Any:
    return _with_notes([cls], data)[0]


def _with_notes(classes: Sequence[Any], data: bytes) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    record = _record(data)
    names = {_class_name(cls): cls for cls in classes}
    if record["class"] not in names:
        raise Refusal(
            f"it holds a {record['class']}, not a {' or '.join(names)}. Load it with {record['class']}.load(path)."
        )
    try:
        tensors = tensors_of(data)
        arrays = {name: tensors.pop(name) for name in sorted(tensors) if name.startswith(NOTED)}
        arrays = {name.removeprefix(NOTED): array for name, array in arrays.items()}
        return _estimator(names[record["class"]], record, tensors), dict(record.get("notes", {})), arrays
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:
        raise Refusal(f"{DAMAGED} (Its checksum holds, but its contents do not: {error})") from error


def _record(data: bytes) -> dict[str, Any]:
    """The header's record, if its checksum holds."""
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        record = json.loads(header["__metadata__"]["streamlasso"])
        checksum, version = record["sha256"].encode(), int(record["version"])
        if record["format"] != FORMAT or not isinstance(record["class"], str):
            raise Refusal(DAMAGED)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise Refusal(DAMAGED) from error
    if version > VERSION:
        raise Refusal(
            f"it is of format {version}, written by streamlasso {record.get('streamlasso')}; this one reads formats up "
            f"to {VERSION}. Upgrade it: pip install --upgrade streamlasso"
        )
    if len(checksum) != len(BLANK) or _checksum(data.replace(checksum, BLANK, 1)) != checksum:
        raise Refusal(DAMAGED)
    return record


def _estimator(cls: Any, record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    estimator = cls(**_all_from_json(record["settings"]))
    for name, value in _all_from_json(record["labels"]).items():
        if name not in LABELS:
            raise ValueError(f"{name} is not a label")
        setattr(estimator, name, value)
    for name in ARRAYS:
        if name in tensors:
            setattr(estimator, name, tensors.pop(name))
    engine = {**_all_from_json(record["engine"]), "penalty_factor": tensors.pop("penalty_factor")}
    states = _states(record["learners"], tensors)
    build = getattr(cls, "_build", build_learner)
    estimator.learners_ = [_learner(build, engine, state) for state in states]
    if not estimator._whole():
        raise ValueError("labels and learners do not belong together")
    return estimator


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
        return _array(value["dtype"], _from_json(value["items"]))
    return PARTS[kind](**_all_from_json(value))


def _array(name: str, items: list[Any]) -> np.ndarray:
    dtype = np.dtype(str(name))
    if dtype.kind not in KINDS or dtype.itemsize > LONGEST:
        raise ValueError(f"labels of type {name}")
    array = np.empty(len(items), dtype=dtype)
    array[:] = items
    return array


def _states(n: int, tensors: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """The tensors of each of the n learners, by the name that its state has for them."""
    states: dict[int, dict[str, np.ndarray]] = {}
    for name, array in tensors.items():
        i, _, key = name.partition("/")
        states.setdefault(int(i), {})[key] = array
    if n < 1 or len(states) != n or sorted(states) != list(range(n)):
        raise ValueError(f"learners={n}, but there are arrays of {len(states)}")
    return [states[i] for i in range(n)]


def _learner(build: Build, engine: dict[str, Any], state: dict[str, np.ndarray]) -> Any:
    """A learner with this state, which it looks at before compiled code trusts it."""
    n_features, n_bytes = len(engine["penalty_factor"]), sum(array.nbytes for array in state.values())
    n_models = _n_models(engine)
    if 8 * n_models * n_features**2 > n_bytes:
        raise ValueError(f"{n_models} models of {n_features} features need more numbers than there are")
    learner = build(n_features, engine)
    learner.restore(state)
    return learner


def _n_models(engine: dict[str, Any]) -> int:
    if not has_mixture(engine):
        return 1
    stay, starts = competing(engine["memory"], engine["tuner"])
    return len(stay) + starts
