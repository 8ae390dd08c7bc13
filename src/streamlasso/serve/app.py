"""The HTTP face: addresses -> calls of the service."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Litestar, MediaType, Request, Response, delete, get, post, put
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.config import OpenAPIConfig
from litestar.params import FromPath, HeaderParameter, PathParameter, QueryParameter
from litestar.response import Stream

from streamlasso import __version__
from streamlasso.serve import telling
from streamlasso.serve.following import followed
from streamlasso.serve.messages import LearnBody, PredictBody, decoded
from streamlasso.serve.metrics import metrics_text
from streamlasso.serve.operations import STREAM, operation
from streamlasso.serve.page_files import PageFile
from streamlasso.serve.problems import MEDIA_TYPE, Problem
from streamlasso.serve.rows import Row
from streamlasso.serve.service import Service
from streamlasso.serve.settings import NAME, ModelSettings
from streamlasso.serve.streams import answered
from streamlasso.serve.tokens import allows

JSON = MediaType.JSON
SETTINGS, PREDICT, LEARN = map(msgspec.json.Decoder, (ModelSettings, PredictBody, LearnBody))
Name = Annotated[str, PathParameter(pattern=NAME)]
Key = Annotated[str | None, HeaderParameter(name="Idempotency-Key", min_length=1, max_length=200)]


def application(service: Service, page: dict[str, PageFile], largest: int) -> Litestar:
    """The application of a service; `page` are the files of the page by their paths."""

    @put("/models/{name:str}", operation_class=operation(ModelSettings))
    async def make(request: Request, name: Name) -> Response[bytes]:
        """Make a model. The same settings again change nothing."""
        is_new = await service.create(name, decoded(SETTINGS, await request.body()))
        return Response(
            msgspec.json.encode({"name": name, "new": is_new}), status_code=201 if is_new else 200, media_type=JSON
        )

    @delete("/models/{name:str}")
    async def drop(name: Name) -> None:
        """Delete a model and all that is kept of it."""
        await service.delete(name)

    @post("/models/{name:str}/predict", status_code=200, operation_class=operation(PredictBody))
    async def predict(request: Request, name: Name) -> Response[bytes]:
        """Predict a row or several. A row with an id waits for its label."""
        data = decoded(PREDICT, await request.body())
        rows, ids = data.taken()
        if ids is not None and not allows(request.scope.get("right"), "learn"):
            raise Problem(403, "the right learn is needed for rows that wait for their labels")
        answers = await service.predict(name, rows, ids)
        return _json(answers[0] if data.row is not None else {"predictions": answers, "n_rows": answers[0]["n_rows"]})

    @post("/models/{name:str}/learn", status_code=200, operation_class=operation(LearnBody))
    async def learn(request: Request, name: Name, key: Key = None) -> Response[bytes]:
        """Learn a row or several, after predicting each. When this answers, the rows are on disk."""
        body = await request.body()
        data = decoded(LEARN, body)
        entries = data.entries(None if key is None else f"request:{key}", body)
        answers = await service.learn(name, entries)
        if not isinstance(data.y, list) or entries[0].many:
            return Response(answers[0], media_type=JSON)
        n_rows = msgspec.json.decode(answers[-1])["n_rows"]
        return Response(b'{"results":[' + b",".join(answers) + b'],"n_rows":%d}' % n_rows, media_type=JSON)

    @post("/models/{name:str}/stream", status_code=200, request_max_body_size=None, operation_class=STREAM)
    async def stream(request: Request, name: Name, key: Key = None) -> Response[bytes]:
        """Predict, then learn, rows of a stream: JSON lines, or an Arrow stream. The answers are JSON lines."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        lines = await answered(service, name, request.stream(), kind.endswith("arrow.stream"), key, largest)
        return Response(lines, media_type="application/x-ndjson")

    @get("/models")
    async def models() -> Response[bytes]:
        """All models, a line for each."""
        lives = list(service.models.values())
        return _json({"models": await service.look(lambda: [telling.short(live) for live in lives])})

    @get("/models/{name:str}")
    async def model(name: Name) -> Response[bytes]:
        """What a model has learnt, and how well it predicts."""
        live = service.live(name)
        return _json(await service.look(lambda: telling.described(live)))

    @get("/models/{name:str}/history")
    async def history(
        name: Name,
        points: Annotated[int, QueryParameter(ge=2, le=5000)] = 1000,
        start: Annotated[int | None, QueryParameter(name="from", ge=0)] = None,
        stop: Annotated[int | None, QueryParameter(name="to", ge=0)] = None,
    ) -> Response[bytes]:
        """The last rows as points, each a stretch of rows."""
        live = service.live(name)
        return _json(await service.look(lambda: telling.history(live, points, start, stop)))

    @get("/models/{name:str}/explain/{row_id:str}")
    async def explain(name: Name, row_id: FromPath[str]) -> Response[bytes]:
        """Why a row that waits for its label is predicted as it is."""
        live = service.live(name)
        found = await service.waiting_row(live, row_id)
        if found is None:
            raise Problem(404, "no row with this id waits for its label")
        row, answer = msgspec.json.decode(found[0], type=Row), msgspec.json.decode(found[1])
        return _json(await service.look(lambda: telling.explained(live, row_id, row, answer)))

    @get("/events", media_type="text/event-stream")
    async def events(
        model: Annotated[list[Annotated[str, QueryParameter(pattern=NAME)]] | None, QueryParameter()] = None,
        last: Annotated[str | None, HeaderParameter(name="Last-Event-ID")] = None,
    ) -> Stream:
        """What happens, as server-sent events."""
        after = int(last) if last is not None and last.isascii() and last.isdigit() and len(last) < 18 else None
        queue = service.events.listen(frozenset(model or ()), after)
        if queue is None:
            raise Problem(503, "too many listen already: try again later", retry_after=10)
        return Stream(followed(service, queue, frozenset(model or ())), media_type="text/event-stream")

    @get("/metrics")
    async def metrics() -> Response[bytes]:
        """Numbers for Prometheus."""
        text = await service.look(lambda: metrics_text(service))
        return Response(text.encode(), media_type="text/plain; version=0.0.4")

    @get("/healthz")
    async def health() -> Response[bytes]:
        """Whether the service is well."""
        status = "full" if service.writer.is_full else "ok"
        return _json({"status": status, "version": __version__, "models": len(service.models)})

    @get("/openapi.json", include_in_schema=False)
    async def openapi(request: Request) -> Response[bytes]:
        return Response(msgspec.json.encode(request.app.openapi_schema.to_schema()), media_type=JSON)

    @get(["/", "/{file:str}"], include_in_schema=False)
    async def page_file(request: Request) -> Response[bytes]:
        found = page.get(request.scope["path"])
        if found is None:
            raise Problem(404, "there is nothing here: see /openapi.json")
        return Response(found.content, media_type=found.media_type)

    handlers = [make, drop, predict, learn, stream, models, model, history, explain, events, metrics, health, openapi]
    return Litestar(
        [*handlers, page_file],
        openapi_config=OpenAPIConfig(
            title="streamlasso",
            version=__version__,
            description="Models that learn over HTTP.",
            path="/schema",
            render_plugins=[],
        ),
        exception_handlers={Problem: _problem, HTTPException: _http_problem, Exception: _failure},
        request_max_body_size=largest,
        logging_config=None,
        on_startup=[service.start],
        on_shutdown=[service.stop],
    )


def _json(value: Any) -> Response[bytes]:
    return Response(msgspec.json.encode(value), media_type=JSON)


def _problem(_: Request, problem: Problem) -> Response[bytes]:
    headers = {"retry-after": str(problem.more["retry_after"])} if "retry_after" in problem.more else {}
    body = msgspec.json.encode(problem.body())
    return Response(body, status_code=problem.status, media_type=MEDIA_TYPE, headers=headers)


def _http_problem(request: Request, error: HTTPException) -> Response[bytes]:
    """What the framework refuses: 422 for a body or parameter of the wrong shape, 400 for what is no JSON."""
    extra = error.extra if isinstance(error.extra, list) else []
    told = "; ".join(f"{one.get('key', 'body')}: {one.get('message', '')}" for one in extra if isinstance(one, dict))
    status = 422 if isinstance(error, ValidationException) else error.status_code
    response = _problem(request, Problem(status, (told or error.detail)[:1000]))
    if status == 405 and error.headers:
        response.headers.update(error.headers)
    return response


def _failure(request: Request, error: Exception) -> Response[bytes]:
    from streamlasso.serve.jobs import logger

    logger.error("%s failed: %s", request.scope["path"], type(error).__name__, exc_info=error)
    return _problem(request, Problem(500, "the service failed: nothing was acknowledged; its log says why"))
