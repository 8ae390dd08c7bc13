"""What SECURITY.md promises of checkpoints: data, never code."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from streamlasso import RAPRegressor
from support.forgery import forged_file


@pytest.fixture
def saved(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    path = tmp_path / "model.safetensors"
    RAPRegressor().fit(X, X[:, 0]).save(path)
    return path


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_refused_unopened(tmp_path):
    sprung, file = tmp_path / "sprung", tmp_path / "model.safetensors"
    file.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ValueError, match="not a streamlasso checkpoint"):
        RAPRegressor.load(file)
    assert not sprung.exists()
    pickle.loads(file.read_bytes())
    assert sprung.exists()


@pytest.mark.parametrize("name", ["os.system", "system", "Popen", "eval", "Trap", "__import__", "Part"])
@pytest.mark.parametrize("part", ["family", "memory", "penalty", "tuner"])
def test_a_checkpoint_cannot_name_other_classes(saved, part, name):
    def edit(record, tensors):
        record["engine"][part] = {"type": name, "command": "true"}

    saved.write_bytes(forged_file(saved.read_bytes(), edit))
    with pytest.raises(ValueError):
        RAPRegressor.load(saved)


#: Loads a file twice, the second time with an eye on what Python does; the first imports what has to be imported.
WATCHED = textwrap.dedent("""
    import sys
    from streamlasso import RAPRegressor

    RAPRegressor.load(sys.argv[1])
    CODE = ("compile", "exec", "import", "marshal.", "pickle.", "os.system", "os.exec", "os.posix_spawn", "subprocess.")
    sys.addaudithook(lambda event, _: event.startswith(CODE) and print(event))
    RAPRegressor.load(sys.argv[1])
    print("watched")
    eval("0")
""")


def test_loading_runs_no_code(saved):
    done = subprocess.run([sys.executable, "-c", WATCHED, saved], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["watched", "compile", "exec"]
