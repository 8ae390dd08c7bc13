"""A short run of every long attack, with a seed of its own: see `long.py`."""

import copy
import subprocess
import sys
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from attack import files, long, rows
from streamlasso import RAPRegressor, WideRegressor
from streamlasso.data.sources import BadRows, delimited, open_source
from streamlasso.memories import Window
from streamlasso.wide import packed
from support.forgery import forged


@pytest.mark.posix
@pytest.mark.parametrize("name", ["forged_files", "hostile_rows", "bodies", "disk_full", "signals", "streams"])
def test_every_attack_is_withstood_for_a_second(name, monkeypatch):
    for place in ("run.results.plot_summary", "run.results.drawn", "report.run.history.drawn"):
        monkeypatch.setattr(f"streamlasso.{place}", lambda *_: b"a picture")
    monkeypatch.setattr(long, "quietly_drawn", lambda: None)
    monkeypatch.setattr(long.resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr("attack.rows.WAYS", [(min(n, 500), options) for n, options in rows.WAYS])
    attempts, failures = long.attacked(name, seconds=1, seed=7)
    assert attempts and not failures


BOMB = """
import sys
from streamlasso import RAPRegressor
def peak():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
data = open(sys.argv[1], "rb").read()
before = peak()
try:
    RAPRegressor.from_bytes(data)
except ValueError:
    pass
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
@pytest.mark.parametrize("where", ["labels", "settings"])
def test_a_label_bomb_takes_little_memory(where, tmp_path):
    """21 KB of labels took 3.1 GB; the same in penalty_factor was accepted."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    data = RAPRegressor().fit(X, X[:, 0]).to_bytes()

    def edit(record, tensors):
        bomb = {"type": "array", "dtype": "<U262144", "items": [""] * 3000}
        record[where]["feature_names_in_" if where == "labels" else "penalty_factor"] = bomb

    (tmp_path / "bomb").write_bytes(forged(data, edit))
    found = subprocess.run([sys.executable, "-c", BOMB, tmp_path / "bomb"], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 200


# --- what the long run found ------------------------------------------------------------------------------------------


def kind_of(tmp_path, name):
    return next(kind for kind in files.kinds(tmp_path) if name in kind.name)


def put(parts, value, first, *path):
    """The parts of a file with something else in the first or second of them."""
    parts = copy.deepcopy(parts)
    place = parts[first]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return parts


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("WideRegressor()", ("model", "models"), 2**31),
        ("WideRegressor()", ("model",), [0]),
        ("WideRegressor()", ("model", "labels", "n_features_in_"), 0.5),
        ("WideRegressor()", ("model", "labels", "n_features_in_"), 1),
        ("WideRegressor()", ("model", "names"), [1, 2, 3]),
        ("WideRegressor()", ("model", "settings"), files.DEEP),
        ("WideClassifier(max", ("model", "classes"), None),
        ("WideClassifier(max", ("model", "classes"), ["<U262144", ["a", "b", "c"]]),
        ("WideClassifier(max", ("model", "classes"), ["<i8", [0, 0, 1]]),
        ("named WideClassifier", ("model", "names"), [None] * 100_000),
        ("named WideClassifier", ("model", "classes"), ["a", "b", {}]),
        ("named WideRegressor", ("model", "names"), [None]),
        ("named WideRegressor", ("model", "names", 0), []),
        ("StreamEncoder", ("n_features_in",), 2**31),
        ("StreamEncoder", ("feature_names_in", 0), {}),
        ("StreamEncoder", ("encoder", "columns", 1, "name"), 0.5),
        ("StreamEncoder", ("encoder", "notes"), files.DEEP),
        ("StreamEncoder", ("encoder", "time_column", "format"), 7),
        ("StreamEncoder", ("encoder", "time_column", "format"), "%Y-%m-%d %z"),
        ("page", ("format",), "1"),
        ("page", ("hash",), None),
    ],
)
def test_words_that_were_taken_or_raised_something_else(tmp_path, name, path, value):
    kind = kind_of(tmp_path, name)
    data = kind.sealed(put(kind.parts, value, 0, *path))
    if name == "page" and value is not None:
        with pytest.raises(ValueError, match="something else"):
            kind.use(kind.load(data))
    assert files.withstood(kind, data)
    if name != "page":
        with pytest.raises(ValueError, match=r"hold|altered|StreamEncoder"):
            kind.load(data)


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("0/counts", 0, 2**63 - 1),
        ("0/sums", 0, np.inf),
        ("0/units", 0, np.inf),
        ("0/units", 2, -1.0),
        ("0/blend", 0, -1.0),
        ("0/blend", 40, np.inf),
        ("0/blend", -1, -1.0),
    ],
)
def test_numbers_of_a_wide_model_that_no_row_makes(name, place, number):
    model = WideRegressor().partial_fit(np.eye(20), np.arange(20.0))
    header, arrays = packed.unpack(model.to_bytes())
    arrays[name].flat[place] = number
    with pytest.raises(ValueError, match="do not hold a WideRegressor"):
        WideRegressor.from_bytes(packed.pack(header, arrays))


def test_a_state_takes_no_room_for_rows_that_it_only_claims():
    """It made an array of the claimed shape, to see how it lies: 25 GB for 2^31 rows."""
    model = RAPRegressor(tuner="logrms", memory=Window(10)).fit(np.eye(12), np.arange(12.0))
    learner = model.learners_[0]
    tape = bytearray(learner.pack())
    tracemalloc.start()
    for at in range(0, len(tape), 8):
        forged_tape = tape[:at] + (2**31).to_bytes(8, "little") + tape[at + 8 :]
        with suppress(ValueError):
            copy.copy(learner).unpack(bytes(forged_tape))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20


def test_a_classifier_of_one_class_is_refused(tmp_path):
    kind = kind_of(tmp_path, "RAPClassifier(tuner=LogRMS")
    classes = {"type": "array", "dtype": "<i8", "items": [0]}
    parts = put(put(kind.parts, classes, 0, "labels", "classes_"), kind.parts[0]["states"][:1], 0, "states")
    parts[1] = parts[1][: len(parts[1]) - sum(kind.parts[0]["states"][1:])]
    with pytest.raises(ValueError, match="belong together"):
        kind.load(kind.sealed(parts))


def test_bad_rows_are_named_in_one_pass(tmp_path, monkeypatch):
    """Each bad row looked for its line from the start of the block: 3,000 in 10,000 took half a minute."""
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{'1e400' if i % 3 else 1},{i}\n" for i in range(300)))
    passes = []
    lines = delimited.Delimited._lines
    monkeypatch.setattr(delimited.Delimited, "_lines", lambda self, *args: passes.append(1) or lines(self, *args))
    block = next(iter(open_source(str(tmp_path / "data.csv"), BadRows("skip")).blocks()))
    assert [block.where(i) for i in range(300)] == [f"line {i + 2:,}" for i in range(300)]
    assert len(passes) == 1
