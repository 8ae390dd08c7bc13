"""The compiled parts; everything else about the package is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = Path("src")
#: What all modules have in common, compiled once: it is most of what there is to compile.
SHARED = "streamlasso.core._shared"


def compiled() -> list[Path]:
    """Every module with a .pxd beside it."""
    declared = [path.with_suffix(".py") for path in sorted(SOURCE.rglob("*.pxd"))]
    return [path for path in declared if path.exists()]


def extension(path: Path) -> Extension:
    name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    return Extension(name, [str(path)], extra_compile_args=["-O3", "-g0", "-fno-math-errno"])


setup(
    ext_modules=cythonize(
        [*(extension(path) for path in compiled()), Extension(SHARED, [str(SOURCE / SHARED.replace(".", "/")) + ".c"])],
        nthreads=os.cpu_count() or 1,
        include_path=[str(SOURCE)],
        shared_utility_qualified_name=SHARED,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
