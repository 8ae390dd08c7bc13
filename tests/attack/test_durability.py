"""Every crash of a small run: whatever is on the disk then, the same command ends as if nothing had happened."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from attack.disk import KINDS, crashes, recorded
from streamlasso.cli import main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder reads /proc")

RUNS = {
    "CSV": ["--every", "8"],
    "Parquet": ["--every", "8", "--predictions", "OUT/predictions.parquet"],
    "the checkpoint is the model": ["--every", "12", "--checkpoint", "OUT/model.safetensors"],
}


def write_rows(path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{'ab'[int(b > 0)]},{a + b:.3f}" for a, b in rng.normal(size=(24, 2))]
    path.write_text("\n".join(["x,level,y", *rows]) + "\n")


def files_in(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def _undrawn(monkeypatch):
    monkeypatch.setattr("streamlasso.run.results.plot_summary", lambda summary: None)
    monkeypatch.setattr("streamlasso.run.results.drawn", lambda figure, form: b"a picture")
    monkeypatch.setattr("streamlasso.report.run.history.drawn", lambda figure, form: b"a picture")


def recovered(kind, tmp_path, every=1):
    """The number of crashes, and those after which the command did not end as it should."""
    world, data = tmp_path / "world", tmp_path / "data.csv"
    write_rows(data)
    world.mkdir()
    out = world / "out"
    more = [word.replace("OUT", str(out)) for word in RUNS[kind]]
    checkpoint = [] if "--checkpoint" in more else ["--checkpoint", str(world / "ckpt")]
    command = ["run", str(data), "--target", "y", "--out", str(out), "--tuner", "logrms", "--quiet", *more, *checkpoint]
    with recorded(world) as log:
        assert main(command) == 0
    whole = files_in(world)
    attempts, failures = 0, []
    for i, (name, files) in enumerate(crashes(log)):
        if i % every:
            continue
        attempts += 1
        shutil.rmtree(world)
        out.mkdir(parents=True)
        for path, content in files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        status = main(command)
        if status or files_in(world) != whole:
            found = files_in(world)
            wrong = [Path(path).name for path in found.keys() | whole if found.get(path) != whole.get(path)]
            failures.append(f"{name}: status {status}, {wrong}; there were {[Path(path).name for path in files]}")
    return attempts, failures


@pytest.mark.usefixtures("_undrawn")
@pytest.mark.parametrize("kind", RUNS)
def test_after_any_crash_the_same_command_ends_the_same(kind, tmp_path):
    attempts, failures = recovered(kind, tmp_path, every=1 if kind == "CSV" else 2)
    assert attempts > 20
    assert not failures, failures[:5]


def test_the_disk_forgets_what_was_not_synced(tmp_path):
    """The model itself: a file that is written without care is lost in every way that it can be."""
    with recorded(tmp_path) as log, open(tmp_path / "a", "wb") as file:
        file.write(b"12")
    found = {name.split()[0]: files for name, files in crashes(log)}
    assert found["torn"] == {str(tmp_path / "a"): b"1"}
    assert list(found["killed"].values()) == [b"12"]
    states = [files for _, files in crashes(log)]
    assert {} in states and {str(tmp_path / "a"): b""} in states and len(KINDS) == 4
