"""`streamlasso serve` from its options to its end."""

from __future__ import annotations

import gc
import ipaddress
import logging
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from streamlasso._files import alone_with
from streamlasso.serve.extras import require_serve

if TYPE_CHECKING:
    from streamlasso.serve.guard import Guard
    from streamlasso.serve.service import Service


@dataclass(frozen=True)
class ServeOptions:
    """What the service is, checked before anything is opened."""

    store: Path
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Path | None = None
    allow_host: tuple[str, ...] = field(default=())
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

    guard, _ = guarded(options)
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    # What is there now stays: the garbage collector need not look at it again.
    gc.freeze()
    # A thread that computes gives way to the loop after this long, not after 5 ms.
    sys.setswitchinterval(0.0005)
    config = uvicorn.Config(
        guard,
        host=options.host,
        port=options.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        limit_concurrency=None,
    )
    # uvicorn sends itself the signal again when it has stopped; by then it is no news.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    server.run()
    return 0 if server.started else 2


def guarded(options: ServeOptions) -> tuple[Guard, Service]:
    """The application, with its guard; and the service."""
    from streamlasso.serve.app import application
    from streamlasso.serve.guard import Guard
    from streamlasso.serve.page_files import page_files
    from streamlasso.serve.service import Service
    from streamlasso.serve.tokens import Tokens, tokens_in
    from streamlasso.serve.webhook import Webhook

    known = {} if options.tokens is None else tokens_in(options.tokens)
    service = Service(options.store)
    if options.webhook is not None:
        hook = Webhook(options.webhook)
        hook.start()
        service.events.hooks.append(hook)
    service.replay()
    page = page_files()
    guard = Guard(
        application(service, page, options.largest),
        Tokens(known, service.store.secret),
        hosts=(options.host, *options.allow_host),
        open=page,
        largest=options.largest,
        rate=options.rate,
        counted=service.count,
    )
    return guard, service
