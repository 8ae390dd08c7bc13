"""What a stranger meets first agrees with itself: versions, addresses, promises."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from streamlasso import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_list_of_python_versions():
    classifiers = " ".join(PROJECT["project"]["classifiers"])
    claimed = re.findall(r"Python :: (3\.\d+)", classifiers)
    tested = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", text(".github/workflows/ci.yml")).group(1))
    built = [f"3.{name[3:].removesuffix('-*')}" for name in PROJECT["tool"]["cibuildwheel"]["build"]]
    assert claimed == tested == built
    assert PROJECT["project"]["requires-python"] == f">={claimed[0]}"
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{claimed[0].replace('.', '')}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_single_versions_are_the_oldest_and_actions_are_pinned(path):
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert set(re.findall(r'python-version: "(.*)"', path.read_text())) <= {oldest}
    for used in re.findall(r"uses: (.*)", path.read_text()):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", used)


def test_an_action_has_one_version():
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text())}
    assert len({line.partition("@")[0] for line in used}) == len(used)


def test_one_address():
    source = PROJECT["project"]["urls"]["Source"]
    owner, name = source.removeprefix("https://github.com/").split("/")
    assert f"repository-code: {source}\n" in text("CITATION.cff")
    for path in ("SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"):
        assert f"{source}/security/advisories/new" in text(path)
    for address in PROJECT["project"]["urls"].values():
        assert address.startswith((source, f"https://{owner}.github.io/{name}/"))


def test_the_citation_has_the_version():
    assert f"\nversion: {__version__}\n" in text("CITATION.cff")


def test_every_promise_names_a_test_that_is_there():
    promises = re.findall(r"^- .+\.\n  `([\w/]+\.py)::(\w+)`$", text("SECURITY.md"), re.MULTILINE)
    assert len(promises) == text("SECURITY.md").count("`tests/") > 10
    for path, name in promises:
        assert f"\ndef {name}(" in text(path), f"{path}::{name}"


def opens_text(call):
    """Does this call open a file as text without saying in which encoding?"""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in ("read_text", "write_text") and not (isinstance(call.func, ast.Name) and name == "open"):
        return False
    mode = call.args[1].value if name == "open" and len(call.args) > 1 else ""
    return "b" not in mode and all(word.arg != "encoding" for word in call.keywords)


def test_text_is_utf_8_on_every_system():
    """On Windows Python has another default."""
    for path in (ROOT / "src").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(call, ast.Call) and opens_text(call)), f"{path}:{call.lineno}"
