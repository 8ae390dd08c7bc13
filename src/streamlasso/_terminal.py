"""What is printed. Names and cells of the user are text: never markup, never commands to the terminal."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from streamlasso._text import plain


class PlainConsole(Console):
    """A console for which every string is text, as it is: also in tables, their heads and their titles."""

    def render_str(self, text: str, **options: Any) -> Text:
        plainly = {**options, "markup": False, "emoji": False, "highlight": False}
        return super().render_str(plain(text), **plainly)


def console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Where tables go; a quiet one prints nothing."""
    return PlainConsole(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)


def say(*texts: str, file: TextIO | None = None) -> None:
    """Print texts, one per line; on standard output unless another file is named."""
    print(*map(plain, texts), sep="\n", file=file or sys.stdout, flush=True)


def warn(*texts: str) -> None:
    """Print texts on standard error, one per line."""
    say(*texts, file=sys.stderr)
