"""Several compiled modules as one: three fifths of what Cython writes for a module is there once per module.

The parts of Python and of Cython that modules here use are joined as text, with the same bits as a result: a name that
two of them define is given the name of its module, the directives of a module's first line become decorators, classes
keep the names of their modules, and tracebacks the files and lines. Each module is then replaced by a few lines that
take its names from where they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CIMPORTS = "cython.cimports."
#: Before the name of a module, where C asks which it is part of.
HAVE = "#define __PYX_HAVE__"
IMPORT_IN_PXD = re.compile(r"^from (\S+) cimport (\([^)]*\)|[^\n]*)\n", re.MULTILINE)
#: What the top of a .pxd declares: functions, types, and the members of enums.
IN_PXD = re.compile(
    r"^(?:cdef|cpdef) (?!class|struct|enum|extern|packed)[^\n(]*?(\w+)(?: \"\w+\" ?)?\("
    r"|^cdef (?:class|struct|packed struct) (\w+)"
    r"|^    ([A-Z_0-9]+)(?: = [^\n]*)?$",
    re.MULTILINE,
)
NO_PYTHON = re.compile(r"^cdef (?!class|struct|enum|extern|packed)[^\n(]*?(\w+)(?: \"\w+\" ?)?\(", re.MULTILINE)


class Module:
    """The source of a module, and the names at its top.

    listed : the statements with which it lists its public names
    own : those that it defines; of imports, with what they import
    taken : name -> the module of the same joint that it is taken from, and the name there
    """

    def __init__(self, name: str, path: Path, group: set[str]) -> None:
        self.name, self.path, self.group = name, path, group
        self.text, self.pxd = path.read_text(encoding="utf-8"), path.with_suffix(".pxd").read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.listed = [node for node in self.tree.body if "__all__" in stored(node)]
        self.tree.body = [node for node in self.tree.body if node not in self.listed]
        self.own: dict[str, str] = {}
        self.taken: dict[str, tuple[str, str]] = {}
        for node in self.tree.body:
            self._note(node)
        for found in IN_PXD.finditer(self.pxd):
            self.own[next(filter(None, found.groups()))] = name
        for module, names in IMPORT_IN_PXD.findall(self.pxd):
            if module in group:
                for each in names.strip("()").replace("\n", " ").split(","):
                    self.taken[each.strip()] = (module, each.strip())

    def _note(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ImportFrom) and self.joined_import(node):
            for alias in node.names:
                self.taken[alias.asname or alias.name] = (self.joined_import(node), alias.name)
        elif isinstance(node, ast.ImportFrom) and (found := self.passed_on(node)):
            self.taken |= found
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                origin = f"{getattr(node, 'module', '')}.{alias.name}"
                self.own[alias.asname or alias.name] = origin
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.own[node.name] = self.name
        else:
            self.own |= dict.fromkeys(stored(node), self.name)

    def joined_import(self, node: ast.ImportFrom) -> str:
        """The module of the joint that is imported from, or nothing."""
        module = (node.module or "").removeprefix(CIMPORTS)
        return module if module in self.group else ""

    def passed_on(self, node: ast.ImportFrom) -> dict[str, tuple[str, str]]:
        """The same for a package that takes all these names from modules of the joint; else nothing."""
        root = self.path.parents[len(self.name.split(".")) - 1]
        package = root.joinpath(*(node.module or "").split("."), "__init__.py")
        origins = {}
        for each in ast.parse(package.read_text(encoding="utf-8")).body if package.exists() else []:
            if isinstance(each, ast.ImportFrom) and each.module in self.group:
                origins |= {alias.asname or alias.name: (each.module, alias.name) for alias in each.names}
        if not all(alias.name in origins for alias in node.names):
            return {}
        return {alias.asname or alias.name: origins[alias.name] for alias in node.names}

    @property
    def directives(self) -> list[str]:
        """Decorators that say what the first line says."""
        first = self.text.partition("\n")[0].removeprefix("# cython: ")
        pairs = [pair.strip().split("=") for pair in first.split(",")]
        return [f"@cython.{name}({value})" for name, value in pairs if name != "language_level"]

    @property
    def seen_by_python(self) -> list[str]:
        """The names that others can import."""
        hidden = set(NO_PYTHON.findall(self.pxd))
        names = []
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                words = {ast.unparse(decorator) for decorator in node.decorator_list}
                names += [] if "cython.cfunc" in words else [node.name]
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and "cython.declare(" not in ast.unparse(node):
                names += stored(node)
            elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("cython"):
                names += [alias.asname or alias.name for alias in node.names]
        return [name for name in dict.fromkeys(names) if name not in hidden and name != "annotations"]


def stored(node: ast.AST) -> list[str]:
    """The names that a statement gives a value."""
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]


class Joined:
    """The modules of `sources` (by their names) as one of the name `name`."""

    def __init__(self, name: str, sources: dict[str, Path]) -> None:
        self.name = name
        self.modules = {each: Module(each, path, set(sources)) for each, path in sources.items()}
        self.order = list(self._in_order())
        defined: dict[str, set[str]] = {}
        for module in self.modules.values():
            for own, origin in module.own.items():
                defined.setdefault(own, set()).add(origin)
        self.twice = {own for own, origins in defined.items() if len(origins) > 1}
        # Cython takes a method for a function of the same name that a .pxd declares.
        methods = {
            node.name
            for module in self.order
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef) and node not in module.tree.body
        }
        self.twice |= methods & {each for module in self.order for each in NO_PYTHON.findall(module.pxd)}
        self.lines: list[tuple[str, int]] = []

    def _in_order(self) -> Iterator[Module]:
        """Each after those that it imports, be it through modules that are not compiled."""
        done: set[str] = set()

        def after_imports(path: Path, name: str) -> Iterator[Module]:
            if name in done:
                return
            done.add(name)
            text = path.read_text(encoding="utf-8")
            text += path.with_suffix(".pxd").read_text(encoding="utf-8") if name in self.modules else ""
            root = path.parents[len(name.split(".")) - (path.name != "__init__.py")]
            for imported in re.findall(rf"^from (?:{re.escape(CIMPORTS)})?(\S+) c?import", text, re.MULTILINE):
                place = root.joinpath(*imported.split("."))
                for found in (place.with_suffix(".py"), place / "__init__.py"):
                    if found.exists():
                        yield from after_imports(found, imported)
            if name in self.modules:
                yield self.modules[name]

        for module in self.modules.values():
            yield from after_imports(module.path, module.name)

    def name_of(self, module: str, name: str) -> str:
        """What a name at the top of a module is here."""
        where = self.modules[module]
        if name not in where.own and name in where.taken:
            return self.name_of(*where.taken[name])
        return f"{name}_of_{'_'.join(module.split('.')[1:])}" if name in self.twice else name

    # --- as text --------------------------------------------------------------------------------------------------

    def source(self) -> str:
        lines = ["# cython: language_level=3", "import cython"]
        self.lines = [(self.name, 1)] * len(lines)
        for module in self.order:
            for text, number in self._body(module):
                lines.append(text)
                self.lines.append((module.path.as_posix(), number))
        return "\n".join(lines) + "\n"

    def declarations(self) -> str:
        return "# cython: language_level=3\n" + "\n".join(map(self._declared, self.order)) + "\n"

    @property
    def first(self) -> str:
        """What its package begins with: modules between those that are joined then find these in place."""
        return f"import {self.name}\n"

    def stand_in(self, module: str) -> str:
        """What takes the place of a module."""
        where = self.modules[module]
        room, _, tail = self.name.rpartition(".")
        names = [(each, self.name_of(module, each)) for each in where.seen_by_python]
        taken = "".join(f"    {new} as {old},\n" if new != old else f"    {old},\n" for old, new in names)
        functions = {each: self.name_of(module, each) for each in NO_PYTHON.findall(where.pxd)}
        return (
            f"{ast.get_docstring(where.tree, clean=False)!r}\n\nfrom {room} import {tail} as _joined\n"
            + (f"from {self.name} import (  # noqa: F401\n{taken})\n" if taken else "")
            + "".join(f"{ast.unparse(node)}\n" for node in where.listed)
            + f"\n__pyx_capi__ = {{old: _joined.__pyx_capi__[new] for old, new in {functions!r}.items()\n"
            + "                if new in _joined.__pyx_capi__}\n"
        )

    def _body(self, module: Module) -> Iterator[tuple[str, int]]:
        lines = self._renamed(module)
        for node in module.tree.body:
            start = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for text in self._imported(module, node):
                    yield text, start
                continue
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                for decorator in module.directives:
                    yield decorator, start
            for number in range(start, node.end_lineno + 1):
                yield lines[number - 1], number

    def _imported(self, module: Module, node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.ImportFrom) and (
            module.joined_import(node) or module.passed_on(node) or node.module == "__future__"
        ):
            return []
        aliases = []
        for alias in node.names:
            local = alias.asname or alias.name
            new = self.name_of(module.name, local)
            aliases.append(ast.alias(alias.name, new if new != alias.name else None))
        changed = ast.Import(aliases) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, aliases, 0)
        return [ast.unparse(changed)]

    def _renames(self, module: Module) -> dict[str, str]:
        names = {each: self.name_of(module.name, each) for each in module.own}
        names |= {local: self.name_of(*origin) for local, origin in module.taken.items()}
        return {old: new for old, new in names.items() if old != new}

    def _renamed(self, module: Module) -> list[str]:
        """The lines of a module, with names as they are here."""
        renames = self._renames(module)
        lines = [line.encode() for line in module.text.split("\n")]
        for node in sorted(uses(module.tree, set(renames)), key=lambda node: (-node.lineno, -node.col_offset)):
            line, start = lines[node.lineno - 1], node.col_offset
            old = node.id if isinstance(node, ast.Name) else node.name
            start = line.index(old.encode(), start)
            lines[node.lineno - 1] = line[:start] + renames[old].encode() + line[start + len(old.encode()) :]
        return [line.decode() for line in lines]

    def _declared(self, module: Module) -> str:
        text = re.sub(r'\A(?:# cython:[^\n]*\n)?\s*(?:"""[\s\S]*?""")?', "", module.pxd)
        text = IMPORT_IN_PXD.sub(lambda found: "" if found[1] in self.modules else found[0], text)
        for old, new in self._renames(module).items():
            text = re.sub(rf"(?<![\w.]){old}\b(?!\(self)", new, text)
        return text

    # --- as C -----------------------------------------------------------------------------------------------------

    def finish(self, text: str) -> str:
        """The C that Cython wrote, with the names of classes, and the files and lines of errors, as they were."""
        first, _, text = text.partition("\n")  # By which Cython knows its own files.
        if text.startswith(HAVE):
            return f"{first}\n{text}"
        for module in self.order:
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef):
                    new = self.name_of(module.name, node.name)
                    text = text.replace(f'"{self.name}.""{new}"', f'"{module.name}.""{node.name}"')
        table = re.search(r"^static const char\* const __pyx_f\[\] = \{\n(?:  \"[^\n]*\n)*", text, re.MULTILINE)
        assert table is not None
        n_files = table[0].count("\n") - 1
        files = {path: n_files + i for i, path in enumerate(dict.fromkeys(path for path, _ in self.lines))}

        def place(found: re.Match[str]) -> str:
            path, number = self.lines[int(found[1]) - 1]
            return f"__PYX_ERR({files[path]}, {number},"

        added = "".join(f'  "{path}",\n' for path in files)
        have = "".join(f"{HAVE}{module.name.replace('.', '__')}\n" for module in self.order)
        text = text[: table.end()] + added + text[table.end() :]
        return f"{first}\n{have}" + re.sub(r"__PYX_ERR\(0, (\d+),", place, text)


def uses(tree: ast.Module, names: set[str]) -> Iterator[ast.Name | ast.FunctionDef | ast.ClassDef]:
    """The nodes that name one of the names at the top of a module: not where a function has one of its own."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            yield node
        yield from _within(node, names, names)


def _within(node: ast.AST, names: set[str], of_functions: set[str]) -> Iterator[ast.Name]:
    """`of_functions` are the names that functions in it see: these do not see those of a class around them."""
    if isinstance(node, ast.Name) and node.id in names:
        yield node
    body: list[ast.stmt] = []
    inside, below = names, of_functions
    if isinstance(node, ast.FunctionDef):
        every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        inside = below = of_functions - {argument.arg for argument in every} - set(stored(node))
        body = node.body
    elif isinstance(node, ast.ClassDef):
        own = [each for each in node.body if isinstance(each, (ast.Assign, ast.AnnAssign))]
        inside = names - {name for each in own for name in stored(each)}
        body = node.body
    for child in ast.iter_child_nodes(node):
        if child not in body:
            yield from _within(child, names, of_functions)
    for child in body:
        yield from _within(child, inside, below)
