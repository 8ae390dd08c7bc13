"""The two requests that come most, without the framework, which costs as much as a prediction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from streamlasso.serve.guard import Receive, Scope, Send, refuse, respond
from streamlasso.serve.jobs import logger
from streamlasso.serve.messages import LONGEST_ID, PredictBody, decoded, learnt_in
from streamlasso.serve.problems import Problem
from streamlasso.serve.service import Service
from streamlasso.serve.tokens import allows

PREDICT = msgspec.json.Decoder(PredictBody)
#: From the service, the name of a model, the right of the sender, the key of the request and its body to the answer.
Call = Callable[[Service, str, str | None, str | None, bytes], Awaitable[bytes]]


async def predict(service: Service, name: str, right: str | None, key: str | None, body: bytes) -> bytes:
    """`POST /models/{name}/predict`."""
    data = decoded(PREDICT, body)
    rows, ids = data.taken()
    if ids is not None and not allows(right, "learn"):
        raise Problem(403, "the right learn is needed for rows that wait for their labels")
    answers = await service.predict(name, rows, ids)
    if data.row is not None:
        return msgspec.json.encode(answers[0])
    return msgspec.json.encode({"predictions": answers, "n_rows": answers[0]["n_rows"]})


async def learn(service: Service, name: str, right: str | None, key: str | None, body: bytes) -> bytes:
    """`POST /models/{name}/learn`."""
    if key is not None and not 0 < len(key) <= LONGEST_ID:
        raise Problem(422, f"Idempotency-Key must have 1 to {LONGEST_ID} characters")
    entries, each = learnt_in(body, None if key is None else f"request:{key}")
    answers = await service.learn(name, entries)
    if not each:
        return answers[0]
    n_rows = msgspec.json.decode(answers[-1])["n_rows"]
    return b'{"results":[' + b",".join(answers) + b'],"n_rows":%d}' % n_rows


class Direct:
    """An ASGI application before the framework's, which has the same addresses for the OpenAPI page."""

    CALLS: dict[str, Call] = {"predict": predict, "learn": learn}  # noqa: RUF012

    def __init__(self, app: Any, service: Service, largest: int) -> None:
        self.app, self.service, self.largest = app, service, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, call = self._call(scope)
        if call is None:
            await self.app(scope, receive, send)
            return
        try:
            body = await self._body(receive)
            keys = [value.decode("latin-1") for header, value in scope["headers"] if header == b"idempotency-key"]
            answer = await call(self.service, name, scope["right"], keys[0] if keys else None, body)
        except Problem as problem:
            await refuse(problem, send)
        except ConnectionError:
            pass
        except Exception as error:
            logger.error("%s failed: %s", scope["path"], type(error).__name__, exc_info=error)
            await refuse(Problem(500, "the service failed: nothing was acknowledged; its log says why"), send)
        else:
            await respond(200, answer, send)

    def _call(self, scope: Scope) -> tuple[str, Call | None]:
        """The name of the model and what to do; None for what is left to the framework."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith("/models/"):
            return "", None
        name, _, what = scope["path"][len("/models/") :].partition("/")
        return name, self.CALLS.get(what)

    async def _body(self, receive: Receive) -> bytes:
        message = await receive()
        body = message.get("body", b"")
        while message["type"] == "http.request" and message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.largest:
                raise Problem(413, f"the body has more than {self.largest:,} bytes: send fewer rows at a time")
        if message["type"] == "http.disconnect":
            raise ConnectionError
        return body
