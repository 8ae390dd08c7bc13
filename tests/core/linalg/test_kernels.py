"""The loops in C, compiled alone, with checks of addresses and of undefined behaviour, against naive ones."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import streamlasso

HEADERS = Path(streamlasso.__file__).parent / "core" / "linalg"
WARNINGS = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
FAST = ["-O2", "-ftree-vectorize", "-fno-math-errno"]
CHECKED = ["-O1", "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"]


def compile_and_run(options, out):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = Path(__file__).with_name("kernels.c")
    command = [compiler, *WARNINGS, *options, f"-I{HEADERS}", str(source), "-o", str(out), "-lm"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if options is CHECKED and "cannot find" in built.stderr:
        pytest.skip("the compiler comes without its sanitizers")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(out)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.posix
@pytest.mark.parametrize("options", [FAST, CHECKED], ids=["fast", "checked"])
def test_every_loop_equals_a_naive_one(options, tmp_path):
    compile_and_run(options, tmp_path / "kernels")
