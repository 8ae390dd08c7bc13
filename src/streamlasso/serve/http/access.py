"""Before a request reaches a handler: where it comes from, who sends it, how often, and how large it is."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from math import ceil
from typing import Any

from streamlasso.serve.http.tokens import COOKIE, Tokens, allows
from streamlasso.serve.limits import MOST_BODIES, MOST_CLIENTS, MOST_HEAD_BYTES, MOST_VALUES, MOST_WRONG_TOKENS
from streamlasso.serve.problems import MEDIA_TYPE, Problem

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]
#: Names of this machine, which a browser resolves itself.
LOCAL = ("localhost", "127.0.0.1", "::1")
#: The media types of bodies, and those of streams, of which the last has to be there as a whole.
ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"
JSON, STREAMED = ("application/json",), ("application/x-ndjson", "application/jsonl", CSV, ARROW)
#: Bytes that a value of JSON takes once it is decoded, and seconds that a body waits for those of others.
VALUE_BYTES, LONGEST_WAIT = 80, 2.0
#: What everyone may GET, besides the page.
OPEN = {"/healthz", "/session", "/openapi.json"}


class Access:
    """An ASGI application around another. `pages` are paths that everyone may GET.

    hosts : names by which the service may be addressed, so that a page of somebody else cannot rebind its own name
    largest : bytes of a body
    rate : requests a second of a client, by token or address; None for no limit
    held : memory that bodies take which are being received, or wait, about
    """

    def __init__(
        self,
        app: Any,
        tokens: Tokens,
        *,
        hosts: Iterable[str],
        pages: Iterable[str],
        largest: int,
        rate: float | None = None,
        count: Callable[[str, int], None] = lambda path, status: None,
    ) -> None:
        self.app, self.tokens, self.largest, self.rate, self.count = app, tokens, largest, rate, count
        self.hosts = {host.lower() for host in (*LOCAL, *hosts)}
        self.open = OPEN | set(pages)
        self.held = 0
        self._wrong: dict[str, list[float]] = {}
        self._paces: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        body = Body(self, receive, media_type(headers))

        async def with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                self.count(scope["path"], message["status"])
            await send(message)

        try:
            scope["right"] = self.checked(scope, headers)
            await self.app(scope, body if scope["method"] in ("POST", "PUT") else receive, with_headers)
        except Problem as problem:
            await refuse(problem, with_headers)
        finally:
            self.held -= body.held

    def checked(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
        """The right of the sender, if the request may go on."""
        if (
            sum(len(name) + len(value) for name, value in scope["headers"])
            + len(scope["raw_path"])
            + len(scope["query_string"])
            > MOST_HEAD_BYTES
        ):
            raise Problem(431, f"the address and the headers have more than {MOST_HEAD_BYTES:,} bytes")
        self._check_place(headers)
        method, path = scope["method"], scope["path"]
        if method in ("POST", "PUT") and path != "/session":
            self._check_body(path, headers)
        if not len(self.tokens):
            self._check_pace(_address(scope))
            return "admin"
        token = bearer(headers)
        right = self._right(scope, headers, token, method)
        self._check_pace(_address(scope) if token is None else token)
        if (method in ("GET", "HEAD") and path in self.open) or path == "/session":
            return right
        if right is None:
            raise Problem(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        needed = needed_right(method, path)
        if not allows(right, needed):
            raise Problem(403, f"the right {needed} is needed, and the token has {right}")
        return right

    def _check_place(self, headers: dict[bytes, bytes]) -> None:
        given = headers.get(b"host", b"").decode("latin-1")
        host = _name(given)
        if host not in self.hosts and "*" not in self.hosts and not _is_loopback(host):
            raise Problem(421, "the service is not known by this Host: name it with --allow-host")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != given:
            raise Problem(403, "requests from pages of another origin are refused")

    def _check_body(self, path: str, headers: dict[bytes, bytes]) -> None:
        kind = media_type(headers)
        wanted = STREAMED if path.endswith("/stream") else JSON
        if kind not in wanted:
            raise Problem(415, f"the body must be {', '.join(wanted)}: say so with Content-Type")
        length = headers.get(b"content-length", b"0")
        if wanted is JSON and length.isdigit() and int(length) > self.largest:
            raise too_large(self.largest)

    def _right(self, scope: Scope, headers: dict[bytes, bytes], token: str | None, method: str) -> str | None:
        """By the token; for what only reads, also by the cookie of a session."""
        if token is None:
            return self._right_of_cookie(headers) if method in ("GET", "HEAD") else None
        address, now = _address(scope), time.monotonic()
        wrong = [at for at in self._wrong.get(address, ()) if at > now - 60]
        if len(wrong) >= MOST_WRONG_TOKENS:
            raise Problem(429, "too many wrong tokens from this address: wait a minute", retry_after=60)
        right = self.tokens.right(token)
        if right is None:
            if len(self._wrong) > MOST_CLIENTS:
                self._wrong.clear()
            self._wrong[address] = [*wrong, now]
            raise Problem(401, "the token is not known")
        return right

    def _right_of_cookie(self, headers: dict[bytes, bytes]) -> str | None:
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
            return None if cookie is None else self.tokens.right_of_session(cookie.value)
        except (CookieError, ValueError):
            return None

    def _check_pace(self, client: str) -> None:
        """A bucket of a second's requests, or of one, which fills at the rate."""
        if self.rate is None:
            return
        now, most = time.monotonic(), max(self.rate, 1.0)
        left, at = self._paces.get(client, (most, now))
        left = min(left + (now - at) * self.rate, most)
        if len(self._paces) > MOST_CLIENTS:
            self._paces.clear()
        if left < 1.0:
            self._paces[client] = (left, now)
            wait = ceil((1.0 - left) / self.rate)
            raise Problem(429, f"more than {self.rate:g} requests a second: slow down", retry_after=wait)
        self._paces[client] = (left - 1.0, now)


class Body:
    """The body of a request as it comes, counted; not lines of a stream, which are learnt as they come."""

    def __init__(self, access: Access, receive: Receive, kind: str) -> None:
        self.access, self.receive, self.kind = access, receive, kind
        self.held = self.n_bytes = self.n_values = 0

    async def __call__(self) -> dict[str, Any]:
        counts = self.kind in (*JSON, ARROW)
        if counts:
            await self._wait_for_room()
        message = await self.receive()
        if counts:
            self._hold(message.get("body", b""))
        return message

    async def _wait_for_room(self) -> None:
        until = time.monotonic() + LONGEST_WAIT
        while self.access.held > MOST_BODIES * self.access.largest:
            if time.monotonic() > until:
                raise Problem(503, "the bodies of other requests take all the room: try again", retry_after=1)
            await asyncio.sleep(0.02)

    def _hold(self, part: bytes) -> None:
        n_values = part.count(b",") if self.kind in JSON else 0
        self.n_bytes += len(part)
        self.n_values += n_values
        self.held += len(part) + n_values * VALUE_BYTES
        self.access.held += len(part) + n_values * VALUE_BYTES
        if self.n_bytes > self.access.largest:
            raise too_large(self.access.largest)
        if self.n_values > MOST_VALUES:
            raise Problem(413, f"the body has more than {MOST_VALUES:,} values: send fewer rows at a time")


def too_large(largest: int) -> Problem:
    return Problem(413, f"the body has more than {largest:,} bytes: send fewer rows at a time")


def needed_right(method: str, path: str) -> str:
    """What a request needs; more where a row is to wait, which the handler checks.

    >>> needed_right("GET", "/models"), needed_right("POST", "/models/a/learn"), needed_right("DELETE", "/models/a")
    ('read', 'learn', 'admin')
    """
    if method in ("GET", "HEAD") or (method == "POST" and path.endswith("/predict")):
        return "read"
    return "learn" if method == "POST" else "admin"


async def refuse(problem: Problem, send: Send) -> None:
    headers = [(name.encode(), value.encode()) for name, value in problem.headers().items()]
    headers.append((b"content-type", MEDIA_TYPE.encode()))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.body()})


def media_type(headers: dict[bytes, bytes]) -> str:
    """Of the body, without parameters."""
    return headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()


def bearer(headers: dict[bytes, bytes]) -> str | None:
    """The token of a request."""
    kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "?"


def _name(host: str) -> str:
    """Without the port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and ":" in host else host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
