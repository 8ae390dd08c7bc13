"""The packages of the extra `serve`; the error names it."""

from __future__ import annotations

from importlib.util import find_spec

NEEDED = ("litestar", "msgspec", "uvicorn")


def require_serve() -> None:
    """An ImportError that names the extra, if one of its packages is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f'serve needs {", ".join(missing)}: pip install "streamlasso[serve]"')
