"""Checkpoints: a stream goes on to the bit, a file is written whole or not at all, and no file can do harm."""

import errno
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError

import streamlasso
from streamlasso import RAPClassifier, RAPRegressor, checkpoint, compact, families, memories, penalties, river, tuners
from streamlasso.families import Gaussian
from streamlasso.memories import Window
from streamlasso.penalties import ElasticNet, Ridge
from streamlasso.tuners import SGD, Fixed, LogRMS, Tuner
from support.forgery import forged_file, loaded, numbers, reshape, set_at, words

N, P = 60, 4
CUTS = (1, 2, 9, 30, 47)


def rows(n=N, p=P, seed=0):
    """One column is a copy, one wakes up late: the factor is rebuilt, and features wait outside."""
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[:, 3] = X[:, 1]
    X[: n // 3, 2] = 0.0
    return X


def responses(family, X, seed=1):
    return np.maximum(family.sample(np.random.default_rng(seed), 0.3 + X[:, 0] - 0.7 * X[:, 1]), 1e-9)


def labels(X, classes):
    return np.array(classes)[
        np.argmax(X[:, : len(classes)] + np.random.default_rng(2).gumbel(size=(len(X), len(classes))), 1)
    ]


def bits(model):
    """All that the next row depends on."""
    states = [learner.state() for learner in model.learners_]
    return [{name: array.tobytes() for name, array in state.items()} for state in states]


def through(path, model):
    model.save(path)
    return type(model).load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


# --- the stream goes on ---------------------------------------------------------------------------------------------


def goes_on(path, model, learn, n=N):
    """Learnt in one go, and with a detour through a file at every cut."""
    whole, interrupted = model, pickle.loads(pickle.dumps(model))
    for start, stop in zip((0, *CUTS), (*CUTS, n), strict=True):
        learn(whole, start, stop)
        learn(interrupted, start, stop)
        interrupted = through(path, interrupted)
        assert bits(interrupted) == bits(whole)
    return interrupted


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("family", families.EXAMPLES, ids=str)
def test_a_regressor_goes_on_to_the_bit(path, family, memory):
    X = rows()
    y = responses(family, X)
    model = RAPRegressor(family=family, memory=memory, tuner=LogRMS(), history=10)
    loaded = goes_on(path, model, lambda m, i, j: m.partial_fit(X[i:j], y[i:j]))
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()


SETTINGS = [
    *({"penalty": penalty} for penalty in penalties.EXAMPLES),
    *({"tuner": tuner} for tuner in tuners.EXAMPLES),
    {"penalty_factor": [0.0, 1.0, 2.5, 1.0]},
    {"gradient": "diagonal", "curvature": "previous", "batch_size": 7},
    {"fit_intercept": False, "standardize": False, "lambda_init": 0.1},
]


@pytest.mark.parametrize("given_settings", SETTINGS, ids=str)
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("memory", [0.9, Window(12)], ids=str)
def test_every_setting_goes_on_to_the_bit(path, family, memory, given_settings):
    X = rows()
    y = responses(families.Binomial(), X)
    model = RAPRegressor(family=family, memory=memory, history=10, **{"tuner": LogRMS(), **given_settings})
    goes_on(path, model, lambda m, i, j: m.partial_fit(X[i:j], y[i:j]))


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
@pytest.mark.parametrize("classes", [["no", "yes"], [1, 2, 5], [False, True], [1.0, 2.0, 3.0, 4.0]], ids=str)
def test_a_classifier_goes_on_to_the_bit(path, classes, memory):
    X = rows()
    y = labels(X, classes)
    model = RAPClassifier(memory=memory, tuner=LogRMS(), history=10)
    loaded = goes_on(path, model, lambda m, i, j: m.partial_fit(X[i:j], y[i:j], classes=classes))
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("memory", memories.EXAMPLES, ids=str)
def test_a_river_regressor_goes_on_to_the_bit(path, memory):
    X = rows()
    y = responses(Gaussian(), X)
    names = ["a", ("b", 1), 3, "d"]

    def learn(model, start, stop):
        for t in range(start, stop):
            model.learn_one(dict(zip(names[: 2 + t // 10], X[t].tolist(), strict=False)), y[t])

    model = river.RAPRegressor(memory=memory, tuner=LogRMS(), penalty_factor={3: 0.5})
    loaded = goes_on(path, model, learn)
    assert loaded.coef_ == model.coef_
    assert loaded.columns_.names == model.columns_.names
    assert loaded._get_params() == model._get_params()


@pytest.mark.parametrize("classes", [["x"], ["x", "y"], ["x", 2, ("z", False)]], ids=str)
def test_a_river_classifier_goes_on_to_the_bit(path, classes):
    X = rows()

    def learn(model, start, stop):
        for t in range(start, stop):
            model.learn_one(
                dict(zip("abcd", X[t].tolist(), strict=True)), classes[min(t // 15 + t % 2, len(classes) - 1)]
            )

    model = river.RAPClassifier(tuner=LogRMS(), history=10)
    loaded = goes_on(path, model, learn)
    assert loaded.classes_ == model.classes_ == classes
    assert loaded.predict_proba_one({"a": 1.0}) == model.predict_proba_one({"a": 1.0})


def test_a_river_model_that_has_seen_nothing(path):
    assert through(path, river.RAPRegressor(family="poisson")).predict_one({"a": 1}) == 1.0
    assert through(path, river.RAPClassifier()).predict_proba_one({"a": 1}) == {}


def test_before_there_is_anything_to_fit(path):
    model = RAPRegressor().partial_fit([[1.0, 2.0]], [3.0])
    np.testing.assert_equal(through(path, model).lambda_, model.lambda_)


@given(
    st.floats(1e-6, 1.0),
    st.floats(0.0, 1e9),
    st.lists(st.floats(0.0, 1e9), min_size=2, max_size=2).filter(any),
)
def test_settings_come_back_exactly(tmp_path_factory, r, lam, factor):
    path = tmp_path_factory.mktemp("exact") / "model"
    model = RAPRegressor(memory=r, tuner=Fixed(lam), penalty_factor=factor).partial_fit(rows()[:3, :2], [1, 2, 3])
    assert through(path, model).get_params() == model.get_params()


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"family": families.Poisson(), "memory": memories.Forgetting(0.1 + 0.2), "penalty": ElasticNet(1 / 3)},
        {"memory": np.float32(0.9), "history": np.int64(5), "fit_intercept": np.bool_(False)},
        {"memory": Window(7), "penalty": Ridge(), "tuner": SGD(1e-300), "penalty_factor": (0, 1, 2, 3)},
    ],
    ids=str,
)
def test_settings_come_back_as_they_were(path, given_settings):
    X = rows()
    model = RAPRegressor(**given_settings).fit(X, responses(families.Poisson(), X))
    assert through(path, model).get_params() == model.get_params()


@pytest.mark.parametrize(
    "factor", [np.array([0.0, 1, 2, 3]), pd.Series([0.5, 1, 2, 3])], ids=lambda x: type(x).__name__
)
def test_penalty_factors_of_any_kind_come_back_as_numbers(path, factor):
    X = rows()
    loaded = through(path, RAPRegressor(penalty_factor=factor).fit(X, responses(Gaussian(), X)))
    assert np.asarray(loaded.penalty_factor).tolist() == factor.tolist()
    loaded.fit(X, responses(Gaussian(), X))


def test_feature_names_come_back(path):
    X = pd.DataFrame(rows(), columns=["a", "b", "ü", "𝟛"])
    loaded = through(path, RAPRegressor().fit(X, responses(Gaussian(), X.to_numpy())))
    assert loaded.feature_names_in_.tolist() == ["a", "b", "ü", "𝟛"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[["b", "a", "ü", "𝟛"]])


@pytest.mark.parametrize(
    "classes",
    [np.array(["n", "yes"], dtype="<U9"), np.array(["n", "y"], dtype=object), np.array([3, 7], dtype=np.uint8)],
)
def test_classes_come_back_with_their_type(path, classes):
    X = rows()
    y = classes[(X[:, 0] > 0).astype(int)]
    loaded = through(path, RAPClassifier().fit(X, y))
    assert loaded.classes_.dtype == classes.dtype
    assert loaded.predict(X).dtype == classes.dtype


def test_settings_changed_after_the_fit_do_not_change_the_learners(path):
    X = rows()
    y = responses(Gaussian(), X)
    model = RAPRegressor(memory=0.9).fit(X[:30], y[:30]).set_params(memory=0.5)
    loaded = through(path, model)
    assert loaded.memory == 0.5
    assert bits(loaded.partial_fit(X[30:], y[30:])) == bits(model.partial_fit(X[30:], y[30:]))


# --- the file -------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(path):
    X = rows()
    RAPRegressor(memory=0.95, tuner=LogRMS()).fit(X, responses(Gaussian(), X)).save(path)
    return path


def record_of(path):
    with safe_open(path, framework="np") as file:
        return json.loads(file.metadata()["streamlasso"])


def test_anyone_can_read_it(saved):
    record = record_of(saved)
    assert record["class"] == "streamlasso.RAPRegressor"
    assert record["streamlasso"] == streamlasso.__version__
    with safe_open(saved, framework="np") as file:
        model = file.get_tensor("model").tobytes()
    assert model[:8] == b"\x89SLASSO\n"
    n_features, n_words, n_numbers = struct.unpack_from("<QQQ", model, 24)
    words = json.loads(model[48 : 48 + n_words])
    assert n_features == P and len(model) == 48 + n_words + n_numbers
    assert words["engine"]["memory"] == {"type": "Forgetting", "r": 0.95}
    assert words["settings"]["memory"] == 0.95


def test_the_same_model_is_the_same_file(path, tmp_path):
    X = rows()
    model = RAPRegressor().fit(X, responses(Gaussian(), X))
    model.save(path)
    RAPRegressor.load(path).save(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def refusal(cls, path, data=None):
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ValueError) as error:
        cls.load(path)
    assert repr(str(path)) in str(error.value)
    return str(error.value)


def test_every_altered_byte_is_found(saved):
    data = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)
    for at in range(len(data)):
        kept = data[at]
        data[at] ^= int(rng.integers(1, 256))
        assert "Upgrade" in (message := refusal(RAPRegressor, saved, data)) or "save the model again" in message
        data[at] = kept
    saved.write_bytes(data)
    RAPRegressor.load(saved)


def test_a_file_cut_short_anywhere_is_refused(saved):
    data = saved.read_bytes()
    for length in (*range(200), *range(200, len(data), 61), len(data) - 1):
        assert "cut short" in refusal(RAPRegressor, saved, data[:length])
    assert "altered" in refusal(RAPRegressor, saved, data + b"\0")


def foreign(path):
    save_file({"weight": np.ones(3)}, path)
    yield path.read_bytes()
    save_file({"weight": np.ones(3)}, path, metadata={"format": "pt"})
    yield path.read_bytes()
    save_file({"weight": np.ones(3)}, path, metadata={"streamlasso": "[]"})
    yield path.read_bytes()
    save_file({"weight": np.ones(3)}, path, metadata={"streamlasso": "[" * 100_000})
    yield path.read_bytes()
    yield pickle.dumps(RAPRegressor().fit(rows(), rows()[:, 0]))
    yield b""
    yield b"\xff" * 8
    yield (2).to_bytes(8, "little") + b"{}"
    yield (200_000).to_bytes(8, "little") + b"[" * 200_000
    yield from (np.random.default_rng(i).bytes(3**i) for i in range(10))


def test_foreign_files_are_refused(path):
    for data in list(foreign(path)):
        assert "not a streamlasso checkpoint" in refusal(RAPRegressor, path, data)


FACES = [RAPRegressor, RAPClassifier, river.RAPRegressor, river.RAPClassifier]


@pytest.mark.parametrize("saved_as", FACES, ids=lambda cls: f"{cls.__module__}-{cls.__name__}")
def test_a_file_of_another_class_is_refused(path, saved_as):
    model = saved_as()
    if hasattr(model, "fit"):
        model.fit(rows(), rows()[:, 0] > 0)
    model.save(path)
    room = "streamlasso.river" if saved_as.__module__.startswith("streamlasso.river") else "streamlasso"
    for other in set(FACES) - {saved_as}:
        assert f"Load it with {room}.{saved_as.__name__}.load(path)" in refusal(other, path)


def test_a_missing_file(path):
    with pytest.raises(FileNotFoundError):
        RAPRegressor.load(path)


def test_a_model_that_has_seen_nothing_is_not_saved(path):
    with pytest.raises(NotFittedError):
        RAPRegressor().save(path)
    assert not path.exists()


class Mine(Gaussian):
    pass


class Steady(Tuner):
    def update(self, lam, slope, norm, lam_max, state):
        return 0.1 * lam_max


@pytest.mark.parametrize("face", [RAPRegressor, river.RAPRegressor])
@pytest.mark.parametrize("part", [{"tuner": Steady()}, {"family": Mine()}], ids=str)
def test_parts_of_ones_own_are_for_pickle(path, face, part):
    model = face(**part)
    if hasattr(model, "fit"):
        model.fit(rows(), rows()[:, 0])
    with pytest.raises(ValueError, match=rf"{next(iter(part))}=.* cannot be saved: .* Use pickle"):
        model.save(path)
    assert not path.exists()
    assert bits(pickle.loads(pickle.dumps(model))) == bits(model)


def test_labels_that_json_cannot_hold_are_for_pickle(path):
    model = river.RAPClassifier()
    model.learn_one({"a": 1.0}, frozenset("x"))
    with pytest.raises(ValueError, match=r"classes_=frozenset.* cannot be saved"):
        model.save(path)


# --- written whole or not at all ------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["fsync", "replace", "chmod"])
def test_an_error_while_writing_leaves_the_old_file(saved, monkeypatch, broken):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, broken, full)
    with pytest.raises(OSError, match="No space left"):
        RAPRegressor().fit(rows(), rows()[:, 1]).save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


FULL = """
import resource, signal, sys
import numpy as np
from streamlasso import RAPRegressor
from streamlasso.tuners import LogRMS
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model = RAPRegressor(tuner=LogRMS()).fit(np.eye(30), np.arange(30.0))
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    model.save(sys.argv[1])
except OSError as error:
    print("refused", error)
"""

BUSY = """
import sys
import numpy as np
from streamlasso import RAPRegressor
from streamlasso.tuners import LogRMS
model = RAPRegressor(tuner=LogRMS()).fit(np.eye(200), np.arange(200.0))
model.save(sys.argv[1])
print("saved", flush=True)
while True:
    model.save(sys.argv[1])
"""


@pytest.mark.posix
def test_a_full_disk_leaves_the_old_file(saved):
    before = saved.read_bytes()
    done = subprocess.run([sys.executable, "-c", FULL, saved], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("refused"), done.stderr
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.posix
def test_a_process_killed_while_it_saves_leaves_a_whole_file(path):
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", BUSY, path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "saved\n"
            process.send_signal(signal.SIGKILL)
        assert RAPRegressor.load(path).n_seen_ == 200


@pytest.mark.posix
def test_a_file_keeps_its_mode_and_a_link_its_target(path, tmp_path):
    model = RAPRegressor().fit(rows(), rows()[:, 0])
    model.save(path)
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert RAPRegressor.load(link).n_seen_ == N


def test_a_path_may_be_text_and_needs_its_folder(tmp_path, monkeypatch):
    model = RAPRegressor().fit(rows(), rows()[:, 0])
    monkeypatch.chdir(tmp_path)
    model.save("here")
    assert RAPRegressor.load("here").n_seen_ == N
    with pytest.raises(FileNotFoundError):
        model.save(Path("nowhere") / "model")
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path)
    assert os.listdir(tmp_path) == ["here"]


# --- forged files --------------------------------------------------------------------------------------------------


def drop(name):
    def edit(record, tensors):
        del tensors[name]

    return edit


def put(*keys_and_value):
    def edit(record, tensors):
        *keys, last, value = keys_and_value
        for key in keys:
            record = record[key]
        record[last] = value

    return edit


FORGERIES = {
    "part of Python": put("settings", "tuner", {"type": "eval", "source": "1"}),
    "half a part": put("settings", "tuner", {"type": "Fixed"}),
    "bad part": put("engine", "memory", {"type": "Forgetting", "r": 2.0}),
    "base class": put("engine", "tuner", {"type": "Tuner"}),
    "unknown setting": put("settings", "shell", "rm"),
    "unknown label": put("labels", "predict", 1),
    "no labels": put("labels", {}),
    "labels of another width": put("labels", "n_features_in_", 3),
    "names of another width": put("labels", "feature_names_in_", {"type": "array", "dtype": "O", "items": ["a"]}),
    "records for labels": put("labels", "feature_names_in_", {"type": "array", "dtype": "i4,i4", "items": [1]}),
    "endless labels": put("labels", "feature_names_in_", {"type": "array", "dtype": "<U999999999", "items": ["a"] * 4}),
    "no learners": put("states", []),
    "many learners": put("states", [8, 8, 8]),
    "a learner of less than nothing": put("states", [10**6, -(10**6)]),
    "uncountable learners": put("states", 10**18),
    "labels that are a bomb": put(
        "labels", "feature_names_in_", {"type": "array", "dtype": "<U262144", "items": [""] * 3000}
    ),
    "another family": put("engine", "family", {"type": "Poisson"}),
    "another memory": put("engine", "memory", {"type": "Window", "n": 10}),
    "endless memory": put("engine", "memory", {"type": "Window", "n": 10**17}),
    "no history": put("engine", "history", 0),
    "wide": reshape("penalty_factor", 10**6),
    "flat": reshape("penalty_factor", ()),
    "empty": reshape("penalty_factor", 0),
    "negative factor": set_at("penalty_factor", -1.0, 0),
    "another array": reshape("0/more", 3),
    "array of no learner": reshape("7/lam", 2),
    "array without owner": reshape("lam", 2),
    "no sums": drop("0/moments.S"),
    "square": reshape("0/moments.S", (3, 3)),
    "row": reshape("0/moments.S", (1, P)),
    "single precision": reshape("0/moments.S", (P, P), np.float32),
    "sums that are no number": set_at("0/moments.S", np.nan, 0, 0),
    "too many pending": lambda r, t: t.update({f"0/moments.{name}": np.zeros((9, P)) for name in ("rows", "signed")}),
    "pending without sign": reshape("0/moments.signed", (1, P)),
    "rows that a Gaussian forgets": lambda r, t: t.update(
        {"0/ring.x": np.zeros((64, P)), "0/ring.rest": np.zeros((64, 4))}
    ),
    "member that is not there": set_at("0/active.members", P, 0),
    "member before the first": set_at("0/active.members", -1, 0),
    "member twice": set_at("0/active.members", 0),
    "members without coefficients": reshape("0/active.solution", (0, 2)),
    "sign other than 1 and -1": set_at("0/active.solution", 0.5, 0, 1),
    "factor of zero": set_at("0/active.factor", 0.0),
    "whole rows": set_at("0/counts", 1, 1),
    "fewer than no rows": set_at("0/counts", -1, 1),
    "removed rows": set_at("0/counts", 1, 2),
    "fewer than no rows taken in": set_at("0/counts", -1, 0),
    "unknown status": set_at("0/seen", 4, 1),
    "status before the first": set_at("0/seen", -1, 1),
    "fewer than no rows seen": set_at("0/seen", -1, 0),
    "too many rows seen": set_at("0/seen", 2**63 - 1, 0),
    "infinite unit": set_at("0/unit", np.inf, 0),
    "no unit": set_at("0/unit", 0.0, 0),
    "unit that never comes back": set_at("0/unit", 1e300, 0),
    "negative lam": set_at("0/lam", -1.0, 0),
    "negative weight": set_at("0/scaler.sums", -1.0, 0),
    "two memories of a tuner": reshape("0/tuner", 3),
    "penalty that is no number": set_at("0/units.v", np.nan, 0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_refused(saved, name):
    refusal(RAPRegressor, saved, forged_file(saved.read_bytes(), FORGERIES[name]))


@pytest.mark.parametrize(
    "version,advice", [(1, "Save the model again"), (checkpoint.VERSION + 1, "pip install --upgrade streamlasso")]
)
def test_a_file_of_another_format_says_what_to_do(saved, monkeypatch, version, advice):
    model = checkpoint._tensors(saved.read_bytes())["model"].tobytes()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "VERSION", version)
        data = checkpoint.as_file(model, "streamlasso.RAPRegressor")
    message = refusal(RAPRegressor, saved, data)
    assert f"format {version}, written by streamlasso {streamlasso.__version__}" in message
    assert advice in message


@pytest.mark.parametrize("edit", [{"format": "x"}, {"version": "one"}, {"notes": 3}], ids=str)
def test_a_file_with_another_record_is_refused(saved, monkeypatch, edit):
    model = checkpoint._tensors(saved.read_bytes())["model"].tobytes()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.json, "dumps", lambda record, **_: json.JSONEncoder().encode({**record, **edit}))
        data = checkpoint.as_file(model, "streamlasso.RAPRegressor")
    assert "not a streamlasso checkpoint" in refusal(RAPRegressor, saved, data)


# --- bytes ---------------------------------------------------------------------------------------------------------


def every_face():
    X = rows()
    yield RAPRegressor().fit(X, X[:, 0])
    yield RAPClassifier(tuner=LogRMS()).fit(X, labels(X, ["a", "b", "c"]))
    for face, y in ((river.RAPRegressor(), 1.5), (river.RAPClassifier(), "yes")):
        for x in X.tolist():
            face.learn_one(dict(zip("abcd", x, strict=True)), y)
        yield face


@pytest.mark.parametrize(
    "model", list(every_face()), ids=lambda model: f"{type(model).__module__}-{type(model).__name__}"
)
def test_a_file_holds_the_bytes_of_the_model(path, model):
    data = model.to_bytes()
    model.save(path)
    assert data in path.read_bytes()
    again = type(model).from_bytes(data)
    assert again.to_bytes() == data
    assert bits(again) == bits(model)


def test_every_altered_or_missing_byte_is_found_in_bytes_too(saved):
    data = bytearray(RAPRegressor.load(saved).to_bytes())
    for at in range(len(data)):
        data[at] ^= 1
        with pytest.raises(ValueError, match=r"Upgrade|Save the model again|cut short or altered"):
            RAPRegressor.from_bytes(bytes(data))
        data[at] ^= 1
        with pytest.raises(ValueError, match="cut short or altered"):
            RAPRegressor.from_bytes(bytes(data[:at]))
    with pytest.raises(ValueError, match=r"not a streamlasso\.RAPClassifier"):
        RAPClassifier.from_bytes(bytes(data))


def test_bytes_of_a_model_that_has_seen_nothing():
    with pytest.raises(NotFittedError):
        RAPRegressor().to_bytes()
    assert river.RAPRegressor.from_bytes(river.RAPRegressor().to_bytes()).predict_one({"a": 1.0}) == 0.0


@pytest.mark.parametrize(
    "edit",
    [
        put("labels", "columns_", {"type": "columns", "names": ["a", "a"], "width": 4}),
        put("labels", "columns_", {"type": "columns", "names": ["a"], "width": 400}),
        put("labels", "columns_", {"type": "columns", "names": [["a"]], "width": 4}),
        put("labels", "columns_", {"type": "columns", "names": ["a"], "width": 2**62}),
        put("labels", "columns_", 3),
        put("labels", "classes_", ["x", "y", "z"]),
        put("labels", "classes_", ["x", "x"]),
        put("labels", "classes_", 3),
        lambda record, tensors: record["labels"].pop("columns_"),
    ],
)
def test_forged_names_and_classes_are_refused(path, edit):
    model = river.RAPClassifier()
    for x in rows(12).tolist():
        model.learn_one(dict(zip("abcd", x, strict=True)), x[0] > 0)
    model.save(path)
    refusal(river.RAPClassifier, path, forged_file(path.read_bytes(), edit))


def fuzzed():
    """Models of all shapes, as bytes."""
    X = rows()
    for family in families.EXAMPLES:
        y = responses(family, X)
        for memory, factor in [(0.9, None), (Window(10), None), (0.9, [0, 1, 1, 1]), (Window(10), [0, 1, 1, 1])]:
            model = RAPRegressor(family, memory, ElasticNet(0.9), LogRMS(), penalty_factor=factor, history=6)
            yield compact.to_bytes(model.fit(X, y))


FUZZED = list(fuzzed())


@settings(max_examples=400)
@given(st.data())
def test_no_number_in_a_file_can_crash_the_process(data):
    """A ValueError, or a model that learns and predicts something."""
    model = loaded(data, FUZZED, numbers(data))
    if model is None:
        return
    X = rows(5)
    with np.errstate(all="ignore"):
        assert model.partial_fit(X, np.ones(5)).predict(X).shape == (5,)


@settings(max_examples=200)
@given(st.data())
def test_no_word_in_a_file_can_crash_the_process(data):
    model = loaded(data, FUZZED, words(data, ["type", "items", "r", "n"]))
    assert model is None or model.predict(rows(5)).shape == (5,)


@pytest.mark.parametrize("penalty", [None, ElasticNet(0.5)], ids=str)
def test_a_diagonal_derivative_with_free_features_resumes_to_the_bit(penalty):
    """The factor that a first feature joins is not in the file; it is made anew, not read from unused memory."""
    settings = dict(family="poisson", penalty=penalty, tuner=LogRMS(), memory=0.97, gradient="diagonal")
    settings |= dict(lambda_init=1e3, penalty_factor=[0, 0, 1, 1, 1, 1, 1, 1])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 8))
        y = rng.poisson(np.exp(X[:, :3] @ [0.4, -0.4, 0.25]))
        model, resumed = RAPRegressor(**settings), RAPRegressor(**settings)
        for t in range(60):
            model.partial_fit(X[t : t + 1], y[t : t + 1])
            resumed = pickle.loads(pickle.dumps(resumed)).partial_fit(X[t : t + 1], y[t : t + 1])
            assert resumed.lambda_ == model.lambda_, f"seed {seed}, row {t}"
