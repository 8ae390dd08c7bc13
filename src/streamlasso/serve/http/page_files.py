"""The files of the page, read when the service starts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "page"
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


class PageFile(NamedTuple):
    content: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """By path; the index is at the root too."""
    found = {
        f"/{path.name}": PageFile(path.read_bytes(), MEDIA_TYPES[path.suffix])
        for path in sorted(FOLDER.iterdir())
        if path.suffix in MEDIA_TYPES
    }
    return {"/": found["/index.html"], **found}
