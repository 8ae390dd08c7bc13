"""The code in README and docs runs, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from streamlasso.cli import main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(r"```python\n(.*?)```\s*(?:```\n(.*?)```)?", re.DOTALL)
WITH_EXAMPLES = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples" / "extend")
    names = {}
    for code, output in EXAMPLE.findall(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        assert printed.getvalue() == output


def test_the_command_prints_what_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"```\n(300 rows.*?)```", README.read_text(encoding="utf-8"), re.DOTALL).group(1)
    main(["demo"])
    capsys.readouterr()
    main(["run", "demo/stream.csv", "--target", "y"])
    printed = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(words) for line in printed) for words in shown.splitlines())


def test_the_readme_fits_two_screens():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 95


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name_of)
def test_lines_are_short(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if len(line) > 100]


def answers():
    """The table "Where is it" of CONTRIBUTING: a question, a file or folder, and names to look for there."""
    section = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where is it")[2].partition("\n## ")[0]
    )
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| question"):
            question, where, names = line.strip("| ").split(" | ")
            yield pytest.param(where.strip("`"), re.findall(r"`([\w.]+)`", names), id=question)


@pytest.mark.parametrize(("where", "names"), list(answers()))
def test_it_is_where_contributing_says(where, names):
    place = ROOT / "src" / "streamlasso" / where
    text = "\n".join(path.read_text(encoding="utf-8") for path in ([place] if place.is_file() else place.glob("*.py")))
    assert names
    for name in ".".join(names).split("."):
        assert re.search(rf"^\s*(?:(?:async def|def|class|void) )?{name}\b", text, re.MULTILINE), name
