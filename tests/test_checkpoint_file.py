"""Checkpoints as files and bytes: anyone can read them, damage is found, and they are written whole or not at all."""

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
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError

import streamlasso
from streamlasso import RAPClassifier, RAPRegressor, river
from streamlasso.families import Gaussian
from streamlasso.tuners import LogRMS, Tuner
from support.checkpoints import N, P, bits, labels, refusal, responses, rows, small_model


@pytest.fixture
def saved(path):
    small_model().save(path)
    return path


# --- the file -------------------------------------------------------------------------------------------------------


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
