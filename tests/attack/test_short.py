"""A short run of every long attack, with a seed of its own: see `long.py`."""

import subprocess
import sys

import numpy as np
import pytest

from attack import long
from streamlasso import RAPRegressor
from support.forgery import forged


@pytest.mark.posix
@pytest.mark.parametrize("name", ["forged_files", "hostile_rows", "disk_full", "signals", "streams"])
def test_every_attack_is_withstood_for_a_second(name, monkeypatch):
    for place in ("run.finish.plot_summary", "run.finish.drawn", "report.history.drawn"):
        monkeypatch.setattr(f"streamlasso.{place}", lambda *_: b"a picture")
    monkeypatch.setattr(long, "quietly_drawn", lambda: None)
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
