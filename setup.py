"""The compiled parts; everything else about the package is in pyproject.toml."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent))
from joined import Joined

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
#: What is installed is one module instead of 54, which takes a third of the time to compile. In place, where one module
#: changes at a time, each is compiled for itself.
JOINED, JOINED_FOLDER = "streamlasso.core._joined", Path("build", "joined")
ROOMS = ("core", "families", "tuners")
#: Windows cannot wait for more than 61 processes.
WORKERS = min(os.cpu_count() or 1, 32)


class BuildExtensions(build_ext):
    """Options for every compiler but MSVC, which has /O2 from setuptools."""

    def finalize_options(self) -> None:
        self.distribution.ext_modules = modules(self.inplace or self.editable_mode)
        super().finalize_options()

    def build_extensions(self) -> None:
        if self.compiler.compiler_type != "msvc":
            gcc = is_gcc(self.compiler.compiler_so)
            for module in self.extensions:
                module.extra_compile_args = list(OPTIONS if works_on_numbers(module) else NO_NUMBERS)
                if gcc:
                    module.extra_compile_args.append(f"-DCYTHON_SMALL_CODE={NONE}")
                    rewrite(Path(module.sources[0]), optimise_less)
                # No symbol tables; with -g0 Apple's linker, which knows no -s, leaves few.
                module.extra_link_args = [] if sys.platform == "darwin" else ["-Wl,-s"]
                # Without it the loader takes the oldest exp and log that there are, which set errno.
                module.libraries = ["m"]
        super().build_extensions()


class BuildPython(build_py):
    """With a stand-in for every module that is compiled as part of a larger one."""

    def build_module(self, module: str, module_file: str, package: str) -> Any:
        built = super().build_module(module, module_file, package)
        name, path = f"{package}.{module}", Path(built[0])
        if name in joined().modules and not self.editable_mode:
            path.write_text(joined().stand_in(name), encoding="utf-8")
        if name == f"{JOINED.rpartition('.')[0]}.__init__" and not self.editable_mode:
            path.write_text(joined().first + Path(module_file).read_text(encoding="utf-8"), encoding="utf-8")
        return built


def is_gcc(compiler: list[str]) -> bool:
    told = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in told


def optimise_less(text: str) -> str:
    """What is about Python objects in a file that Cython wrote."""
    return OF_PYTHON.sub(f"static {LITTLE} ", text)


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    """A file that stays the same keeps its time."""
    text = path.read_text(encoding="utf-8") if path.exists() else None
    changed = change(text or "")
    if changed != text:
        path.write_text(changed, encoding="utf-8")


def compiled() -> list[Path]:
    """Every module with a .pxd beside it."""
    declared = [path.with_suffix(".py") for path in sorted(SOURCE.rglob("*.pxd"))]
    return [path for path in declared if path.exists()]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


@cache
def joined() -> Joined:
    return Joined(JOINED, {name_of(path): path for path in compiled() if path.relative_to(SOURCE).parts[1] in ROOMS})


def write_joined() -> Path:
    """Where it is."""
    source = JOINED_FOLDER.joinpath(*JOINED.split(".")).with_suffix(".py")
    texts = {source: joined().source(), source.with_suffix(".pxd"): joined().declarations()}
    texts |= {parent / "__init__.py": "" for parent in list(source.parents)[: len(JOINED.split(".")) - 1]}
    source.parent.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        rewrite(path, lambda _, text=text: text)
    return source


def modules(separate: bool) -> list[Extension]:
    """Each for itself, or those of the rooms as one."""
    paths = {name_of(path): path for path in compiled()}
    if not separate:
        paths = {name: path for name, path in paths.items() if name not in joined().modules} | {JOINED: write_joined()}
    made = cythonize(
        [*(Extension(name, [str(path)]) for name, path in paths.items()), SHARED_MODULE],
        # A process of its own first needs a second to get ready.
        nthreads=WORKERS if separate else 0,
        include_path=[str(SOURCE), str(JOINED_FOLDER)],
        shared_utility_qualified_name=SHARED,
        compiler_directives=DIRECTIVES,
    )
    if not separate:
        rewrite(paths[JOINED].with_suffix(".c"), joined().finish)
    return made


def works_on_numbers(module: Extension) -> bool:
    """By the module's first line, which then has C's division."""
    path = SOURCE.joinpath(*module.name.split(".")).with_suffix(".py")
    return module.name == JOINED or (
        path.exists() and "cdivision=True" in path.read_text(encoding="utf-8").partition("\n")[0]
    )


SHARED_MODULE = Extension(SHARED, [str(SOURCE.joinpath(*SHARED.split(".")).with_suffix(".c"))])

# The processes that cythonize starts import this file, where they are not forked.
if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildExtensions, "build_py": BuildPython},
        ext_modules=[SHARED_MODULE],
        options={"build_ext": {"parallel": WORKERS}},
    )
