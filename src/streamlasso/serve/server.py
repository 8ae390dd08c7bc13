"""`streamlasso serve` from its options to its end."""

from __future__ import annotations

import ctypes
import gc
import ipaddress
import logging
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlasso._files import alone_with
from streamlasso.serve.cli import require_serve

if TYPE_CHECKING:
    from streamlasso.serve.http.access import Access
    from streamlasso.serve.service import Service


#: A parameter of glibc's mallopt.
M_MMAP_THRESHOLD = -3


@dataclass(frozen=True)
class ServeOptions:
    """What the service is, checked before anything is opened."""

    store: Path
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Path | None = None
    allow_host: tuple[str, ...] = ()
    proxy: tuple[str, ...] = ()
    webhook: str | None = None
    rate: float | None = None
    largest: int = 16_000_000

    def __post_init__(self) -> None:
        if not is_local(self.host) and self.tokens is None:
            raise ValueError(
                f"--host {self.host} is open to others, so everyone could read and teach the models: give --tokens, a "
                "file with lines such as 'admin TOKEN', or use --host 127.0.0.1"
            )
        if not 0 <= self.port <= 65535:
            raise ValueError(
                f"--port {self.port} is not a port: use a number from 1 to 65535, or 0 for any that is free"
            )
        if self.rate is not None and self.rate <= 0:
            raise ValueError(f"--rate {self.rate:g} is not a number of requests a second: use one above 0")
        if self.largest < 1:
            raise ValueError(f"--max-body {self.largest} is not a number of bytes: use one above 0")


def is_local(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve_until_stopped(options: ServeOptions) -> int:
    """Serve until a signal comes."""
    require_serve()
    options.store.mkdir(parents=True, exist_ok=True)
    with alone_with(options.store / "store"):
        return _serve(options)


def _serve(options: ServeOptions) -> int:
    import uvicorn

    from streamlasso.serve.http.connection import Connection

    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    app, service = application_of(options)
    if sys.platform == "linux":
        # Large blocks go back to the system. By itself glibc keeps larger and larger ones, the more of them come.
        with suppress(AttributeError):
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1_000_000)
    # What is there now stays: the garbage collector need not look at it again.
    gc.freeze()
    # A thread that computes gives way to the loop after this long, not after 5 ms.
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        app,
        host=options.host,
        port=options.port,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
        proxy_headers=bool(options.proxy),
        forwarded_allow_ips=list(options.proxy),
    )

    class Server(uvicorn.Server):
        """Ends listeners before it waits for connections to end."""

        async def shutdown(self, sockets: Any = None) -> None:
            service.events.stop()
            await super().shutdown(sockets)

    # uvicorn sends itself the signal again when it has stopped; by then it is no news.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server = Server(config)
    server.run()
    return 0 if server.started else 2


def application_of(options: ServeOptions) -> tuple[Access, Service]:
    """The application behind its checks, and the service with its models."""
    from streamlasso.serve.http.access import Access
    from streamlasso.serve.http.app import application, page_files
    from streamlasso.serve.http.tokens import Tokens, tokens_in
    from streamlasso.serve.service import Service
    from streamlasso.serve.webhook import Webhook

    known = {} if options.tokens is None else tokens_in(options.tokens)
    hook = None if options.webhook is None else Webhook(options.webhook)
    service = Service(options.store)
    if hook is not None:
        service.events.hooks.append(hook)
    service.restore()
    page, tokens = page_files(), Tokens(known, service.database.secret)
    access = Access(
        application(service, page, tokens, options.largest),
        tokens,
        hosts=(options.host, *options.allow_host),
        pages=page,
        largest=options.largest,
        rate=options.rate,
        count=service.count,
    )
    return access, service
