"""The files of the page, read when the service starts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("page")
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
}


class PageFile(NamedTuple):
    content: bytes
    media_type: str


def page_files(folder: Path = FOLDER) -> dict[str, PageFile]:
    """By path; the index is at the root too."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix in MEDIA_TYPES and path.is_file():
            found[f"/{path.name}"] = PageFile(path.read_bytes(), MEDIA_TYPES[path.suffix])
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found
