"""The compiled parts; everything else about the package is in pyproject.toml."""

import os
import re
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
#: What all modules have in common, compiled once: it is most of what there is to compile.
SHARED = "streamlasso.core._shared"
#: Nobody steps through the C, and what is to be pickled says how.
DIRECTIVES = {"emit_code_comments": False, "auto_pickle": False}
#: For GCC and Clang. GCC's -O3 takes longer to compile, and is no faster. -O1 takes two thirds of the time: everywhere
#: it would make a row of the default 10 to 35 % slower, where no numbers are worked on it changes nothing.
OPTIONS, NO_NUMBERS = ["-O2", "-ftree-vectorize", "-fno-math-errno", "-g0"], ["-O1", "-fno-math-errno", "-g0"]
#: Nine tenths of what Cython writes is about Python objects: methods, their arguments, properties. GCC is asked for -O1
#: there and for -O0 where a module is set up: two thirds of the time of -O2 for all, at the same speed (1 to 3 % more
#: where each call learns one row). Asking for -O2 elsewhere by the same means would keep functions from being inlined.
OF_PYTHON = re.compile(
    r"^static (?=(?:PyObject \*|int |void )__pyx_(?:pw|pf|tp|getprop|setprop|gb|lambda)_)", re.MULTILINE
)
LITTLE, NONE = '__attribute__((optimize("O1")))', '__attribute__((cold, optimize("O0")))'
#: Windows cannot wait for more than 61 processes.
WORKERS = min(os.cpu_count() or 1, 32)


class BuildExtensions(build_ext):
    """Options for every compiler but MSVC, which has /O2 from setuptools."""

    def build_extensions(self) -> None:
        if self.compiler.compiler_type != "msvc":
            gcc = is_gcc(self.compiler.compiler_so)
            for module in self.extensions:
                module.extra_compile_args = list(OPTIONS if works_on_numbers(module) else NO_NUMBERS)
                if gcc:
                    module.extra_compile_args.append(f"-DCYTHON_SMALL_CODE={NONE}")
                    optimise_less(Path(module.sources[0]))
                # No symbol tables; with -g0 Apple's linker, which knows no -s, leaves few.
                module.extra_link_args = [] if sys.platform == "darwin" else ["-Wl,-s"]
                # Without it the loader takes the oldest exp and log that there are, which set errno.
                module.libraries = ["m"]
        super().build_extensions()


def is_gcc(compiler: list[str]) -> bool:
    told = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in told


def optimise_less(path: Path) -> None:
    """What is about Python objects in a file that Cython wrote."""
    text = path.read_text(encoding="utf-8")
    changed = OF_PYTHON.sub(f"static {LITTLE} ", text)
    if changed != text:
        path.write_text(changed, encoding="utf-8")


def compiled() -> list[Path]:
    """Every module with a .pxd beside it."""
    declared = [path.with_suffix(".py") for path in sorted(SOURCE.rglob("*.pxd"))]
    return [path for path in declared if path.exists()]


def extension(path: Path) -> Extension:
    return Extension(".".join(path.relative_to(SOURCE).with_suffix("").parts), [str(path)])


def works_on_numbers(module: Extension) -> bool:
    """By the module's first line, which then has C's division."""
    path = SOURCE.joinpath(*module.name.split(".")).with_suffix(".py")
    return path.exists() and "cdivision=True" in path.read_text(encoding="utf-8").partition("\n")[0]


# The processes that cythonize starts import this file, where they are not forked.
if __name__ == "__main__":
    shared = Extension(SHARED, [str(SOURCE.joinpath(*SHARED.split(".")).with_suffix(".c"))])
    setup(
        cmdclass={"build_ext": BuildExtensions},
        ext_modules=cythonize(
            [*map(extension, compiled()), shared],
            nthreads=WORKERS,
            include_path=[str(SOURCE)],
            shared_utility_qualified_name=SHARED,
            compiler_directives=DIRECTIVES,
        ),
        options={"build_ext": {"parallel": WORKERS}},
    )
