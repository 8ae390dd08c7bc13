"""Connections as uvicorn has them, where learns and predictions go straight to the service.

The framework, and the tasks, events and messages between it and uvicorn, cost more than a prediction. The framework has
the same addresses, for the OpenAPI page, and takes those requests that are not plain: see `Connection._is_plain`.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streamlasso.serve.direct import CALLS, Form
from streamlasso.serve.guard import HEADERS, Guard, refusal
from streamlasso.serve.jobs import Awaited, logger
from streamlasso.serve.problems import Problem
from streamlasso.serve.service import Service
from streamlasso.serve.settings import NAME

ADDRESS = re.compile(rf"/models/({NAME.strip('^$')})/({'|'.join(CALLS)})".encode())
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
ALWAYS = b"".join(b"%b: %b\r\n" % header for header in HEADERS)


class Connection(HttpToolsProtocol):
    """Of one client."""

    def __init__(self, *arguments: Any, service: Service, guard: Guard, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.service, self.guard = service, guard

    def on_headers_complete(self) -> None:
        self._unset_keepalive_if_required()
        found = ADDRESS.fullmatch(self.url)
        headers = dict(self.headers)
        if found is None or not self._is_plain(headers):
            super().on_headers_complete()
            return
        self.scope["method"], self.scope["path"] = "POST", self.url.decode()
        exchange = Exchange(self, found[1].decode(), found[2].decode(), headers)
        self.cycle = exchange  # type: ignore[assignment]
        exchange.admit(headers)

    def _is_plain(self, headers: dict[bytes, bytes]) -> bool:
        """Whether nothing is unusual, here or before it on this connection, that uvicorn takes care of."""
        return (
            self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and not (self.parser.should_upgrade() or self.expect_100_continue or self.flow.write_paused)
            and (self.cycle is None or self.cycle.response_complete)
            and b"x-forwarded-for" not in headers
        )

    def on_body(self, body: bytes) -> None:
        if isinstance(self.cycle, Exchange):
            self.cycle.add(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if isinstance(self.cycle, Exchange):
            self.cycle.begin()
        else:
            super().on_message_complete()


class Exchange(Awaited):
    """A request and its answer. The attributes after `form` are those that uvicorn looks at."""

    message_event: ClassVar = asyncio.Event()

    def __init__(self, connection: Connection, name: str, call: str, headers: dict[bytes, bytes]) -> None:
        self.connection, self.name, self.call = connection, name, CALLS[call]
        self.loop, self.result = connection.loop, None
        self.path = connection.scope["path"]
        key = headers.get(b"idempotency-key")
        self.key = None if key is None else key.decode("latin-1")
        self.right: str | None = None
        self.chunks: list[bytes] = []
        self.room = connection.guard.largest
        self.form: Form = bytes
        self.keep_alive = connection.parser.should_keep_alive()
        self.response_complete = self.disconnected = False

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Ask the guard, before the body is read."""
        try:
            self.right = self.connection.guard.checked(self.connection.scope, headers)  # type: ignore[arg-type]
        except Problem as problem:
            self._refuse(problem)

    def add(self, body: bytes) -> None:
        """A part of the body."""
        if self.response_complete:
            return
        self.chunks.append(body)
        self.room -= len(body)
        if self.room < 0:
            self._refuse(self.connection.guard.too_large())

    def begin(self) -> None:
        """The body is complete."""
        if self.response_complete:
            return
        service, body = self.connection.service, b"".join(self.chunks)
        try:
            self.form = self.call(service, self.name, self.right, self.key, body, self)
        except Problem as problem:
            self._refuse(problem)
        except Exception as error:
            self._fail(error)

    def keep(self) -> None:
        """The service has an answer."""
        try:
            if isinstance(self.result, BaseException):
                raise self.result
            self._respond(200, self.form(self.result))
        except Problem as problem:
            self._refuse(problem)
        except Exception as error:
            self._fail(error)

    def _refuse(self, problem: Problem) -> None:
        self._respond(*refusal(problem))

    def _fail(self, error: Exception) -> None:
        logger.error("%s failed: %s", self.path, type(error).__name__, exc_info=error)
        self._refuse(Problem(500, "the service failed: nothing was acknowledged; its log says why"))

    def _respond(
        self,
        status: int,
        body: bytes,
        more: list[tuple[bytes, bytes]] | tuple[()] = (),
        media_type: bytes = b"application/json",
    ) -> None:
        """In one write: a second one would be another call of the system, and wake the client once more."""
        connection, transport = self.connection, self.connection.transport
        self.response_complete = True
        connection.guard.counted(self.path, status)
        if transport.is_closing():
            return
        headers = [*connection.server_state.default_headers, *more]
        headers += [] if self.keep_alive else [(b"connection", b"close")]
        named = b"".join(b"%b: %b\r\n" % header for header in headers)
        sizes = b"content-type: %b\r\ncontent-length: %d\r\n\r\n" % (media_type, len(body))
        transport.write(b"".join((STATUS_LINES[status], named, ALWAYS, sizes, body)))
        if not self.keep_alive:
            transport.close()
        connection.on_response_complete()
