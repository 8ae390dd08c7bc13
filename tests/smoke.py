"""Does an installed package work? `python tests/smoke.py`, with the dependencies of the package and nothing else."""

import shutil
import subprocess
import sysconfig
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

import streamlasso
from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.core.lasso import learner


def check_files() -> None:
    """The package is the installed one, is compiled, and has what users need of it beside the modules."""
    package = Path(streamlasso.__file__).parent
    assert "site-packages" in package.parts, f"{package} is not an installed package"
    assert learner.__file__.endswith(tuple(EXTENSION_SUFFIXES)), f"{learner.__file__} is not compiled"
    for name in ("py.typed", "core/model.pxd", "core/linalg/fours.h", "families/base.pyi", "report/network/page.js"):
        assert (package / name).is_file(), f"{name} is missing from {package}"
    assert not [*package.rglob("*.c")], "the generated C is in the package"


def check_python(folder: Path) -> None:
    """A model learns, is saved, and is the same model once loaded."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = 3 * X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=300)
    model = RAPRegressor().partial_fit(X[:200], y[:200])
    assert np.mean((model.predict(X[200:]) - y[200:]) ** 2) < 0.1
    model.save(folder / "model.safetensors")
    again = RAPRegressor.load(folder / "model.safetensors")
    for part in (model, again):
        part.partial_fit(X[200:], y[200:])
    assert np.array_equal(model.coef_, again.coef_)
    classifier = RAPClassifier().partial_fit(X[:200], y[:200] > 0, classes=[False, True])
    assert np.mean(classifier.predict(X[200:]) == (y[200:] > 0)) > 0.8


def check_command(folder: Path) -> None:
    """The command is installed and learns a file."""
    rng = np.random.default_rng(0)
    rows = [f"{a:.4f},{b:.4f},{a - b:.4f}" for a, b in rng.normal(size=(200, 2))]
    data = folder / "data.csv"
    data.write_text("\n".join(["a,b,y", *rows, ""]))
    assert streamlasso.__version__ in ran("--version")
    ran("run", str(data), "--target", "y", "--out", str(folder / "out"))
    assert len((folder / "out" / "predictions.csv").read_text().splitlines()) == 201
    assert "</html>" in (folder / "out" / "report.html").read_text(encoding="utf-8")


def ran(*arguments: str) -> str:
    """What the command prints."""
    command = shutil.which("streamlasso", path=sysconfig.get_path("scripts"))
    assert command, "the command streamlasso is not installed"
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    check_files()
    with tempfile.TemporaryDirectory() as name:
        check_python(Path(name))
        check_command(Path(name))
    print(f"streamlasso {streamlasso.__version__} works: {Path(streamlasso.__file__).parent}")
