"""Types for users: the stubs of the compiled modules say what these are, and a typed script can rely on them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import streamlasso

pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="to mypy its np.ndarray is an array of Any, which all overlap"
)

PACKAGE = Path(streamlasso.__file__).parent
SCRIPT = Path(__file__).with_name("typed_user.py")
#: Names that Cython adds, functions that a family imports, two properties that all engines have but their base has
#: not, and what only compiled modules use of each other (where others do, mypy misses it).
EXPECTED = re.compile(
    r"""\.(__(reduce|setstate)_cython__|__test__|__pyx_capi__|logit|xlogy)\ is\ not\ present\ in\ stub
    |Engine\.(lam_max|effective_size)\ is\ not\ present\ at\ runtime
    |^streamlasso\.(core|network\.neighbourhoods|keyed\.pooling|model\.competition)\..*
        \ is\ not\ present\ in\ stub""",
    re.VERBOSE,
)


def checked(*command, cwd):
    """What a tool of mypy prints for the package that these tests run on."""
    found = {} if "site-packages" in PACKAGE.parts else {"MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, env={**os.environ, **found}, capture_output=True, text=True
    )
    assert not done.stderr, done.stderr
    return done.stdout


def module_of(path):
    return ".".join(("streamlasso", *path.relative_to(PACKAGE).with_suffix("").parts))


def test_stubs_say_what_the_modules_are(tmp_path):
    modules = [module_of(path) for path in PACKAGE.rglob("*.pyi")]
    assert len(modules) > 15
    printed = checked("mypy.stubtest", "--concise", "--ignore-disjoint-bases", *modules, cwd=tmp_path)
    assert [line for line in printed.splitlines() if not EXPECTED.search(line)] == []


def test_a_typed_script_has_no_errors(tmp_path):
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n[mypy-streamlasso.*]\nfollow_imports = silent\n")
    printed = checked("mypy", "--cache-dir", str(tmp_path), str(SCRIPT), cwd=tmp_path)
    assert printed.startswith("Success"), printed
