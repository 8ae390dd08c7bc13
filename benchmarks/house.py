"""The size and shape of the source: what a maintainer has to read, counted.

    python benchmarks/house.py [TREE]

`tests/test_house.py` holds the limits that a change must not exceed.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Words of prose that have a plainer one (left: what stands here; right: what to write).
PLAIN = {
    "of late": "recent",
    "afresh": "anew, or: restart",
    "verdict": "prediction",
    "mend": "fix",
    "nobody": "no one, or name who",
    "whoever": "the caller, or name who",
    "affair": "(name it)",
    "witness": "(name it)",
    "spoken of": "described",
}


class House:
    """A tree of sources."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.package = root / "src" / "streamlasso"
        self.modules = {module_name(path.relative_to(root / "src")): path for path in self.package.rglob("*.py")}

    def files(self, *endings: str) -> Iterator[Path]:
        for ending in endings:
            yield from sorted(self.package.rglob(f"*{ending}"))

    def lines(self, *endings: str) -> dict[str, int]:
        """Of each file."""
        return {str(path.relative_to(self.package)): count_lines(path) for path in self.files(*endings)}

    def folders(self) -> dict[str, int]:
        """Modules in each folder, its `__init__` not counted."""
        paths = (path for path in self.files(".py") if path.name != "__init__.py")
        return dict(Counter(str(path.parent.relative_to(self.package)) for path in paths))

    def constants(self) -> dict[str, list[str]]:
        """The modules that give each name in capitals to a number."""
        found: dict[str, list[str]] = {}
        for module, path in self.modules.items():
            for name in constants_of(path):
                found.setdefault(name, []).append(module)
        return found

    def imports(self, module: str) -> set[str]:
        """The modules of the package that one imports when it is imported, in Python or in Cython."""
        path = self.modules[module]
        pairs = set(imported(ast.parse(path.read_text(encoding="utf-8")).body))
        if path.with_suffix(".pxd").exists():
            text = path.with_suffix(".pxd").read_text(encoding="utf-8")
            pairs |= {(name, "") for name in re.findall(r"^from (\S+) cimport", text, re.MULTILINE)}
        named = {f"{a}.{b}" if f"{a}.{b}" in self.modules else a for a, b in pairs}
        return {name for name in named if name in self.modules and name != module}

    def longest_chain(self) -> list[str]:
        """The longest path of imports."""

        @cache
        def chain(module: str) -> tuple[str, ...]:
            return (module, *max(map(chain, sorted(self.imports(module))), key=len, default=()))

        return list(max(map(chain, sorted(self.modules)), key=len))

    def words(self) -> dict[str, int]:
        """How often sources and pages use a word that has a plainer one."""
        pages = [*self.files(".py", ".pxd"), *sorted((self.root / "docs").glob("*.md")), self.root / "README.md"]
        text = "\n".join(path.read_text(encoding="utf-8") for path in pages).lower()
        found = {word: len(re.findall(rf"\b{word}\b", text)) for word in PLAIN}
        return {word: n for word, n in found.items() if n}


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def constants_of(path: Path) -> Iterator[str]:
    """The names in capitals that a module gives to numbers."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign) or not any(map(is_number, ast.walk(node.value))):
            continue
        for target in node.targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", each.id):
                    yield each.id


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)


def imported(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """(module, name) of what statements at the top of a module import; what is for type checkers alone is not."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").replace("cython.cimports.", "")
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Try):
            yield from imported(node.body)


def main() -> None:
    house = House(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    lines = house.lines(".py", ".pxd", ".pyi")
    folders = house.folders()
    constants = house.constants()
    chain = house.longest_chain()
    rooms = Counter({})
    for name, n in lines.items():
        rooms["/".join(Path(name).parts[:-1][:2]) or "(top)"] += n
    for room, n in sorted(rooms.items()):
        print(f"{room:24} {n:6,}")
    print(f"{'src, py + pxd + pyi':24} {sum(lines.values()):6,}")
    print(f"{'src, C':24} {sum(house.lines('.h').values()):6,}")
    print(f"{'tests':24} {sum(count_lines(path) for path in (house.root / 'tests').rglob('*.py')):6,}")
    print("largest files:", *(f"{name} {n}" for name, n in Counter(lines).most_common(5)), sep="\n  ")
    print("largest folders:", *(f"{name} {n}" for name, n in Counter(folders).most_common(5)), sep="\n  ")
    print(f"constants: {sum(map(len, constants.values()))}; names that several modules define:")
    for name, modules in sorted(constants.items(), key=lambda item: -len(item[1])):
        if len(modules) > 2:
            print(f"  {name} {len(modules)}")
    print(f"longest import chain: {len(chain)}", *chain, sep="\n  ")
    print("words that have a plainer one:", *(f"{word} {n}" for word, n in house.words().items()), sep="\n  ")


if __name__ == "__main__":
    main()
