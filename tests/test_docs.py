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
WITH_EXAMPLES = [page for page in PAGES if "```python" in page.read_text()]


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples" / "extend")
    names = {}
    for code, output in EXAMPLE.findall(page.read_text()):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        assert printed.getvalue() == output


def test_the_command_prints_what_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shown = re.search(r"```\n(300 rows.*?)```", README.read_text(), re.DOTALL).group(1)
    main(["demo"])
    capsys.readouterr()
    main(["run", "demo/stream.csv", "--target", "y"])
    printed = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(words) for line in printed) for words in shown.splitlines())


def test_the_readme_fits_two_screens():
    assert len(README.read_text().splitlines()) <= 95
