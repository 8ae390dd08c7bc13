"""Before a request reaches the service: where it comes from, who sends it, how large it is and how often.

Everything here is about headers; a body is read only by what a request is allowed to do.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Awaitable, Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from math import ceil
from typing import Any

import msgspec

from streamlasso.serve.problems import MEDIA_TYPE, Problem
from streamlasso.serve.tokens import COOKIE, SESSION, Tokens, allows

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
#: Failed tokens of an address in a minute, after which it waits.
MOST_FAILURES = 20
#: Clients whose pace is remembered.
MOST_CLIENTS = 10_000
#: The media types that a path takes.
JSON_ONLY = (b"application/json",)
STREAMED = (b"application/x-ndjson", b"application/jsonl", b"application/vnd.apache.arrow.stream")


class Guard:
    """An ASGI application around another. `open` are paths that everyone may GET.

    hosts : names by which the service may be addressed, so that a page of somebody else cannot rebind its own name
    rate : requests a second of a client, by token or address; None for no limit
    """

    def __init__(
        self,
        app: Any,
        tokens: Tokens,
        *,
        hosts: Iterable[str],
        open: Iterable[str],
        largest: int,
        rate: float | None,
        counted: Callable[[str, int], None],
    ) -> None:
        self.app, self.tokens, self.largest, self.rate, self.counted = app, tokens, largest, rate, counted
        self.hosts = {host.lower() for host in (*LOCAL, *hosts)}
        self.open = frozenset(open) | {"/healthz", "/session", "/openapi.json"}
        self.any_host = "*" in self.hosts
        self._failures: dict[str, list[float]] = {}
        self._paces: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]

        async def with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                self.counted(path, message["status"])
            await send(message)

        try:
            headers = dict(scope["headers"])
            scope["right"] = self.checked(scope, headers)
            if path == "/session":
                await self._session(scope, headers, with_headers)
                return
        except Problem as problem:
            await refuse(problem, with_headers)
            return
        await self.app(scope, receive, with_headers)

    # --- checks -------------------------------------------------------------------------------------------------------

    def checked(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
        """The right of the sender, if the request may go on."""
        self._check_place(headers)
        self._check_body(scope, headers)
        method, path = scope["method"], scope["path"]
        if not len(self.tokens):
            self._check_pace(_address(scope))
            return "admin"
        token = _bearer(headers)
        right = self._right(scope, headers, token, method)
        self._check_pace(_address(scope) if token is None else token)
        needed = needed_right(method, path)
        if (method in ("GET", "HEAD") and path in self.open) or path == "/session":
            return right
        if right is None:
            raise Problem(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        if not allows(right, needed):
            raise Problem(403, f"the right {needed} is needed, and the token has {right}")
        return right

    def _check_place(self, headers: dict[bytes, bytes]) -> None:
        host = _name(headers.get(b"host", b"").decode("latin-1"))
        if not self.any_host and host not in self.hosts and not _is_loopback(host):
            raise Problem(421, "the service is not known by this Host: name it with --allow-host")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").partition("://")[2] != headers.get(b"host", b"").decode(
            "latin-1"
        ):
            raise Problem(403, "requests from pages of another origin are refused")

    def _check_body(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        if scope["method"] not in ("POST", "PUT") or scope["path"] == "/session":
            return
        streams = scope["path"].endswith("/stream")
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind not in (STREAMED if streams else JSON_ONLY):
            wanted = b", ".join(STREAMED if streams else JSON_ONLY).decode()
            raise Problem(415, f"the body must be {wanted}: say so with Content-Type")
        length = headers.get(b"content-length", b"0")
        if not streams and length.isdigit() and int(length) > self.largest:
            raise self.too_large()

    def too_large(self) -> Problem:
        return Problem(413, f"the body has more than {self.largest:,} bytes: send fewer rows at a time")

    def _right(self, scope: Scope, headers: dict[bytes, bytes], token: str | None, method: str) -> str | None:
        """By the token; for what only reads, also by the cookie of a session."""
        if token is None:
            return self._right_of_cookie(headers) if method in ("GET", "HEAD") else None
        address, now = _address(scope), time.monotonic()
        failures = [at for at in self._failures.get(address, ()) if at > now - 60]
        if len(failures) >= MOST_FAILURES:
            raise Problem(429, "too many wrong tokens from this address: wait a minute", retry_after=60)
        right = self.tokens.right(token)
        if right is None:
            if len(self._failures) > MOST_CLIENTS:
                self._failures.clear()
            self._failures[address] = [*failures, now]
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

    # --- sessions of the page -----------------------------------------------------------------------------------------

    async def _session(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        method, token = scope["method"], _bearer(headers)
        if method == "GET":
            body = msgspec.json.encode({"tokens": len(self.tokens) > 0, "right": scope["right"]})
            await respond(200, body, send)
            return
        if method not in ("POST", "DELETE"):
            raise Problem(405, "use GET, POST or DELETE")
        if method == "POST" and len(self.tokens) and token is None:
            raise Problem(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        value, age = ("", 0) if method == "DELETE" or token is None else (self.tokens.session(token), SESSION)
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}"
        await respond(204, b"", send, [(b"set-cookie", cookie.encode())])


def needed_right(method: str, path: str) -> str:
    """What a request needs; more where a row is to wait, which the handler checks.

    >>> needed_right("GET", "/models"), needed_right("POST", "/models/a/learn"), needed_right("DELETE", "/models/a")
    ('read', 'learn', 'admin')
    """
    if method in ("GET", "HEAD") or (method == "POST" and path.endswith("/predict")):
        return "read"
    return "learn" if method == "POST" else "admin"


async def refuse(problem: Problem, send: Send) -> None:
    status, body, more, media_type = refusal(problem)
    await respond(status, body, send, more, media_type)


def refusal(problem: Problem) -> tuple[int, bytes, list[tuple[bytes, bytes]], bytes]:
    """Status, body, headers and media type."""
    more = [(b"retry-after", str(problem.more["retry_after"]).encode())] if "retry_after" in problem.more else []
    more += [(b"www-authenticate", b"Bearer")] if problem.status == 401 else []
    return problem.status, msgspec.json.encode(problem.body()), more, MEDIA_TYPE.encode()


async def respond(
    status: int,
    body: bytes,
    send: Send,
    more: Iterable[tuple[bytes, bytes]] = (),
    media_type: bytes = b"application/json",
) -> None:
    headers = [*more, (b"content-length", str(len(body)).encode())]
    if body:
        headers.append((b"content-type", media_type))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _bearer(headers: dict[bytes, bytes]) -> str | None:
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
