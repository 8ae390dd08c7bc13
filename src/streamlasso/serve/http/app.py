"""Addresses, and what each of them calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, delete, get, post, put
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.config import OpenAPIConfig
from litestar.params import FromPath, HeaderParameter, PathParameter, QueryParameter
from litestar.response import Stream

from streamlasso import __version__
from streamlasso.serve import describe
from streamlasso.serve.batches import logger
from streamlasso.serve.events import followed
from streamlasso.serve.http.access import bearer, media_type
from streamlasso.serve.http.bodies import LearnBody, PredictBody, decoded
from streamlasso.serve.http.metrics import metrics_text
from streamlasso.serve.http.openapi import takes
from streamlasso.serve.http.streams import learnt_stream
from streamlasso.serve.http.tokens import COOKIE, SESSION_SECONDS, Tokens, allows
from streamlasso.serve.limits import LONGEST_ID, NAME
from streamlasso.serve.problems import MEDIA_TYPE, Problem
from streamlasso.serve.service import Service
from streamlasso.serve.settings import ModelSettings

PAGE = Path(__file__).parents[1] / "page"
MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
Name = Annotated[str, PathParameter(pattern=NAME)]
Key = Annotated[str | None, HeaderParameter(name="Idempotency-Key", min_length=1, max_length=LONGEST_ID)]
Models = Annotated[list[Annotated[str, QueryParameter(pattern=NAME)]] | None, QueryParameter()]
SETTINGS, PREDICT, LEARN = map(msgspec.json.Decoder, (ModelSettings, PredictBody, LearnBody))
EventNumber = Annotated[str | None, HeaderParameter(name="Last-Event-ID")]


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by path, each with its media type; the index is at the root too."""
    files = sorted(path for path in PAGE.iterdir() if path.suffix in MEDIA_TYPES)
    found = {f"/{path.name}": (path.read_bytes(), MEDIA_TYPES[path.suffix]) for path in files}
    return {"/": found["/index.html"], **found}


def application(
    service: Service, page: dict[str, tuple[bytes, str]], tokens: Tokens, largest: int, shows_only: bool = False
) -> Litestar:
    """The application of a service; `shows_only`: what the page needs, and nothing else."""

    # --- models ---

    @put("/models/{name:str}", operation_class=takes(ModelSettings))
    async def make(request: Request, name: Name) -> Response[bytes]:
        """Make a model. The same settings again change nothing."""
        is_new = await service.create(name, decoded(SETTINGS, await _body(request)))
        return _json({"name": name, "new": is_new}, 201 if is_new else 200)

    @delete("/models/{name:str}")
    async def drop(name: Name) -> None:
        """Delete a model and all that is kept of it."""
        await service.delete(name)

    @get("/models")
    async def models() -> Response[bytes]:
        """All models, a line for each; and those that could not be restored, each with the reason."""
        served = list(service.models.values())
        found = {"models": await service.look(lambda: [describe.short(model) for model in served])}
        if service.broken:
            found["broken"] = [{"name": name, "reason": reason} for name, (_, reason) in service.broken.items()]
        return _json(found)

    @get("/models/{name:str}")
    async def model(name: Name) -> Response[bytes]:
        """What a model has learnt, and how well it predicts."""
        served = service.model(name)
        return _json(await service.look(lambda: describe.described(served)))

    @get("/models/{name:str}/history")
    async def history(
        name: Name,
        points: Annotated[int, QueryParameter(ge=2, le=5000)] = 1000,
        start: Annotated[int | None, QueryParameter(name="from", ge=0)] = None,
        stop: Annotated[int | None, QueryParameter(name="to", ge=0)] = None,
    ) -> Response[bytes]:
        """The last rows as points, each a stretch of rows."""
        served = service.model(name)
        return _json(await service.look(lambda: describe.history(served, points, start, stop)))

    # --- rows ---

    @post("/models/{name:str}/predict", status_code=200, operation_class=takes(PredictBody))
    async def predict(request: Request, name: Name) -> Response[bytes]:
        """Predict a row or several. A row with an id waits for its label."""
        data = decoded(PREDICT, await _body(request))
        rows, ids = data.given()
        if ids is not None and not allows(right_of(request), "learn"):
            raise Problem(403, "the right learn is needed for rows that wait for their labels")
        answers = await service.predict(name, rows, ids)
        return _json(answers[0] if data.row is not None else {"predictions": answers, "n_rows": answers[0]["n_rows"]})

    @post("/models/{name:str}/learn", status_code=200, operation_class=takes(LearnBody))
    async def learn(request: Request, name: Name, key: Key = None) -> Response[bytes]:
        """Learn a row or several, after predicting each. When this answers, the rows are on disk."""
        data = decoded(LEARN, await _body(request))
        entries = data.entries(None if key is None else f"request:{key}")
        answers = await service.learn(name, entries)
        if not isinstance(data.y, list) or entries[0].is_batch:
            return Response(answers[0], media_type=MediaType.JSON)
        results = [msgspec.Raw(answer) for answer in answers]
        return _json({"results": results, "n_rows": msgspec.json.decode(answers[-1])["n_rows"]})

    @post("/models/{name:str}/stream", status_code=200, operation_class=takes(None))
    async def stream(request: Request, name: Name, key: Key = None) -> Response[bytes]:
        """Predict, then learn, rows: lines of JSON or CSV, or an Arrow stream. The answers are JSON lines."""
        kind = media_type(dict(request.scope["headers"]))
        lines = await learnt_stream(service, name, request.stream(), kind, key, largest)
        return Response(lines, media_type="application/x-ndjson")

    @get("/models/{name:str}/explain/{row_id:str}")
    async def explain(name: Name, row_id: FromPath[str]) -> Response[bytes]:
        """Why a row that waits for its label was predicted as it was."""
        return Response(await service.explain(name, row_id), media_type=MediaType.JSON)

    # --- the service ---

    @get("/events", media_type="text/event-stream")
    async def events(model: Models = None, last: EventNumber = None) -> Stream:
        """What happens, as server-sent events."""
        after = int(last) if last is not None and last.isascii() and last.isdigit() and len(last) < 18 else None
        return Stream(followed(service, frozenset(model or ()), after), media_type="text/event-stream")

    @get("/metrics")
    async def metrics() -> Response[bytes]:
        """Numbers for Prometheus."""
        text = await service.look(lambda: metrics_text(service))
        return Response(text.encode(), media_type="text/plain; version=0.0.4")

    @get("/healthz")
    async def health() -> Response[bytes]:
        """Whether the service is well: ok, full, or what the store says."""
        status = service.database.trouble or "ok"
        return _json({"status": status, "version": __version__, "models": len(service.models)})

    # --- the page ---

    @get("/session", include_in_schema=False)
    async def session(request: Request) -> Response[bytes]:
        return _json({"tokens": len(tokens) > 0, "right": right_of(request)})

    @post("/session", status_code=204, include_in_schema=False)
    async def begin_session(request: Request) -> Response[None]:
        token = bearer(dict(request.scope["headers"]))
        if len(tokens) and token is None:
            raise Problem(401, "a bearer token is needed: Authorization: Bearer TOKEN")
        return _cookie(request, "" if token is None else tokens.session(token))

    @delete("/session", include_in_schema=False)
    async def end_session(request: Request) -> Response[None]:
        return _cookie(request, "")

    @get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response[bytes]:
        return _json(request.app.openapi_schema.to_schema())

    @get(["/", "/{file:str}"], include_in_schema=False)
    async def page_file(request: Request) -> Response[bytes]:
        if request.scope["path"] not in page:
            raise Problem(404, "there is nothing here: see /openapi.json")
        content, media_type = page[request.scope["path"]]
        return Response(content, media_type=media_type)

    handlers = [models, model, history, events, session, page_file]
    if not shows_only:
        handlers += [make, drop, predict, learn, stream, explain, metrics, health, begin_session, end_session, openapi]
    return Litestar(
        handlers,
        openapi_config=OpenAPIConfig(
            title="streamlasso",
            version=__version__,
            description="Models that learn over HTTP.",
            path="/schema",
            render_plugins=[],
        ),
        exception_handlers={
            Problem: _problem,
            HTTPException: _http_problem,
            Exception: _failure,
        },
        request_max_body_size=None,
        logging_config=None,
        on_startup=[service.start],
        on_shutdown=[service.stop],
    )


async def _body(request: Request) -> bytes:
    """Not kept once it is decoded, as that of the framework would be."""
    return b"".join([part async for part in request.stream()])


def right_of(request: Request) -> str | None:
    """As `Access` found it."""
    return request.scope.get("right")  # type: ignore[return-value]


def _json(value: Any, status: int = 200) -> Response[bytes]:
    return Response(msgspec.json.encode(value), status_code=status, media_type=MediaType.JSON)


def _cookie(request: Request, session: str) -> Response[None]:
    secure = "; Secure" if request.scope["scheme"] == "https" else ""
    age = SESSION_SECONDS if session else 0
    cookie = f"{COOKIE}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}"
    return Response(None, status_code=204, headers={"set-cookie": cookie})


def _problem(_: Request, problem: Problem) -> Response[bytes]:
    return Response(problem.body(), status_code=problem.status, media_type=MEDIA_TYPE, headers=problem.headers())


def _http_problem(request: Request, error: HTTPException) -> Response[bytes]:
    """What the framework refuses: parameters of the wrong shape, unknown addresses and methods."""
    extra = error.extra if isinstance(error.extra, list) else []
    detail = "; ".join(f"{one.get('key', '')}: {one.get('message', '')}" for one in extra if isinstance(one, dict))
    status = 422 if isinstance(error, ValidationException) else error.status_code
    response = _problem(request, Problem(status, (detail or error.detail)[:1000]))
    if status == 405 and error.headers:
        response.headers.update(error.headers)
    return response


def _failure(request: Request, error: Exception) -> Response[bytes]:
    logger.error("%s failed: %s", request.scope["path"], type(error).__name__, exc_info=error)
    return _problem(request, Problem(500, "the service failed: nothing was acknowledged; its log says why"))
