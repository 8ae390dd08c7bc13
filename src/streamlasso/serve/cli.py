"""The command `serve`: options -> calls. Heavy modules are imported when it runs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamlasso.run.options import Options
    from streamlasso.run.run import Watcher


#: The packages of the extra `serve`.
NEEDED = ("litestar", "msgspec", "uvicorn")


def require_serve() -> None:
    """An ImportError that names the extra, if one of its packages is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ImportError(f'serve needs {", ".join(missing)}: pip install "streamlasso[serve]"')


def serve(
    *,
    store: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    allow_host: tuple[str, ...] | None = None,
    proxy: tuple[str, ...] | None = None,
    webhook: str | None = None,
    rate: float | None = None,
    max_body: int = 16_000_000,
) -> int:
    """Serve models that learn over HTTP, with a page that shows them.

    Rows and labels come as JSON, predictions go back. What was acknowledged is on disk: after a crash the service
    continues where it was. Needs the extra serve: pip install "streamlasso[serve]".

    Example: streamlasso serve --store models

    Example: streamlasso serve --store models --host 0.0.0.0 --tokens tokens.txt --allow-host models.example.org

    Parameters
    ----------
    store
        The directory with all that is kept; it is made if it is not there. One service at a time has it.
    host
        The address to listen on. Others than this machine's need --tokens.
    port
        The port; 0 is any that is free.
    tokens
        A file of bearer tokens, readable by its owner only: lines of a right (read, learn or admin), a token of 16
        characters or more (or sha256: and its hash), and a name if you like.
    allow_host
        A name by which the service is addressed, besides that of --host; * allows all.
    proxy
        The address of a proxy in front of the service: what it says about a client, in X-Forwarded-For, is believed.
    webhook
        An address to which alarms are posted as JSON.
    rate
        Requests a second of one client, by token or address; no limit without it.
    max_body
        The largest body of a request, in bytes.
    """
    from streamlasso.serve.server import ServeOptions, serve_until_stopped

    options = ServeOptions(store, host, port, tokens, allow_host or (), proxy or (), webhook, rate, max_body)
    return serve_until_stopped(options)


def open_page(options: Options, port: int) -> AbstractContextManager[Watcher]:
    """The page of `streamlasso run --live`."""
    require_serve()
    from streamlasso.serve.live_run.run_page import run_page

    return run_page(options, port)
