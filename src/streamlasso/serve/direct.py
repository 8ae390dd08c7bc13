"""The two requests that come most, from their bodies to their answers; with the framework and without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from streamlasso.serve.jobs import Awaited, Promise
from streamlasso.serve.messages import LONGEST_ID, PredictBody, decoded, learnt_in
from streamlasso.serve.problems import Problem
from streamlasso.serve.service import Service
from streamlasso.serve.tokens import allows

PREDICT = msgspec.json.Decoder(PredictBody)
#: Makes the body of an answer of what the service has found.
Form = Callable[[Any], bytes]
#: Starts a request: of the service, the name of a model, the right of the sender, the key and body of the request, and
#: who waits for the answer.
Call = Callable[[Service, str, str | None, str | None, bytes, Awaited], Form]


def predict(service: Service, name: str, right: str | None, key: str | None, body: bytes, awaited: Awaited) -> Form:
    """`POST /models/{name}/predict`."""
    data = decoded(PREDICT, body)
    rows, ids = data.taken()
    if ids is not None and not allows(right, "learn"):
        raise Problem(403, "the right learn is needed for rows that wait for their labels")
    service.start_predicting(name, rows, ids, awaited)
    return _prediction if data.row is not None else _predictions


def learn(service: Service, name: str, right: str | None, key: str | None, body: bytes, awaited: Awaited) -> Form:
    """`POST /models/{name}/learn`."""
    if key is not None and not 0 < len(key) <= LONGEST_ID:
        raise Problem(422, f"Idempotency-Key must have 1 to {LONGEST_ID} characters")
    entries, each = learnt_in(body, None if key is None else f"request:{key}")
    service.start_learning(name, entries, awaited)
    return _results if each else _result


CALLS: dict[str, Call] = {"predict": predict, "learn": learn}


async def answered(call: Call, service: Service, name: str, right: str | None, key: str | None, body: bytes) -> bytes:
    """The answer to a request, for a coroutine."""
    promise = Promise()
    form = call(service, name, right, key, body, promise)
    return form(await promise.future)


def _prediction(answers: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode(answers[0])


def _predictions(answers: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"predictions": answers, "n_rows": answers[0]["n_rows"]})


def _result(answers: list[bytes]) -> bytes:
    return answers[0]


def _results(answers: list[bytes]) -> bytes:
    n_rows = msgspec.json.decode(answers[-1])["n_rows"]
    return b'{"results":[' + b",".join(answers) + b'],"n_rows":%d}' % n_rows
