"""A client of `streamlasso serve` that tries again, without learning anything twice; the standard library is enough."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

#: Statuses after which the same request may succeed.
TRY_AGAIN = (429, 502, 503, 504, 507)


class ServiceError(Exception):
    """What the service refused: `status`, `detail`, and the whole `problem`."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = dict(problem)
        self.status, self.detail = problem.get("status"), problem.get("detail", "")
        super().__init__(f"{self.status}: {self.detail}")


class Client:
    """Talks to a service.

    A request that gets no answer, or is told to come again, is sent again after a pause that doubles. Rows to learn
    carry an id of their own, or of the request, so that the service learns them once, however often they are sent.

    Parameters
    ----------
    address : str
        Where the service is, such as http://127.0.0.1:8000.
    token : str, default=None
        A bearer token, where the service asks for one.
    patience : float, default=30.0
        Seconds after which a request is given up.

    Examples
    --------
    >>> from streamlasso.client import Client
    >>> client = Client("http://127.0.0.1:8000")
    >>> client.create("demand", target="load")  # doctest: +SKIP
    True
    >>> client.learn("demand", {"heat": 21.5, "day": "Mon"}, 310.0)  # doctest: +SKIP
    {'id': '...', 'prediction': 305.1, 'loss': 12.0, 'n_rows': 812}
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8000", token: str | None = None, patience: float = 30.0
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"address={address!r} is not the address of a service: use one like http://127.0.0.1:8000")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._root, self._token, self.patience = parts.path.rstrip("/"), token, patience
        self._kept = threading.local()

    # --- models -------------------------------------------------------------------------------------------------------

    def create(self, name: str, **settings: Any) -> bool:
        """Make a model; False if it was there with the same settings."""
        return bool(self._json("PUT", f"/models/{_quoted(name)}", settings)["new"])

    def delete(self, name: str) -> None:
        """Delete a model."""
        self._json("DELETE", f"/models/{_quoted(name)}")

    def models(self) -> list[dict[str, Any]]:
        """All models, a few numbers of each."""
        return self._json("GET", "/models")["models"]

    def model(self, name: str) -> dict[str, Any]:
        """What a model has learnt."""
        return self._json("GET", f"/models/{_quoted(name)}")

    def history(self, name: str, points: int = 1000) -> dict[str, Any]:
        """The last rows, as points."""
        return self._json("GET", f"/models/{_quoted(name)}/history?points={points}")

    # --- rows ---------------------------------------------------------------------------------------------------------

    def predict(self, name: str, row: Mapping[str, Any], id: str | None = None) -> dict[str, Any]:
        """The prediction of a row; with an id the row waits for its label."""
        body = {"row": dict(row), **({} if id is None else {"id": id})}
        return self._json("POST", f"/models/{_quoted(name)}/predict", body)

    def predict_many(self, name: str, rows: Sequence[Mapping[str, Any]], ids: Sequence[str] | None = None) -> list[Any]:
        """The predictions of rows."""
        body = {"rows": list(map(dict, rows)), **({} if ids is None else {"ids": list(ids)})}
        return self._json("POST", f"/models/{_quoted(name)}/predict", body)["predictions"]

    def learn(self, name: str, row: Mapping[str, Any], y: Any, id: str | None = None) -> dict[str, Any]:
        """Learn a row; when this returns, it is on the disk of the service."""
        body = {"row": dict(row), "y": y, "id": uuid.uuid4().hex if id is None else id}
        return self._json("POST", f"/models/{_quoted(name)}/learn", body)

    def label(self, name: str, id: str, y: Any) -> dict[str, Any]:
        """Learn the label of a row that was predicted with this id."""
        return self._json("POST", f"/models/{_quoted(name)}/learn", {"id": id, "y": y})

    def learn_many(self, name: str, rows: Sequence[Mapping[str, Any]], y: Sequence[Any]) -> list[dict[str, Any]]:
        """Learn rows in order, all of them or none."""
        body, key = {"rows": list(map(dict, rows)), "y": list(y)}, {"Idempotency-Key": uuid.uuid4().hex}
        return self._json("POST", f"/models/{_quoted(name)}/learn", body, key)["results"]

    def explain(self, name: str, id: str) -> dict[str, Any]:
        """Why a waiting row is predicted as it is."""
        return self._json("GET", f"/models/{_quoted(name)}/explain/{_quoted(id)}")

    # --- requests -----------------------------------------------------------------------------------------------------

    def _json(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        sent = None if body is None else json.dumps(body, allow_nan=False).encode()
        given = {**(headers or {}), **({} if body is None else {"Content-Type": "application/json"})}
        if self._token is not None:
            given["Authorization"] = f"Bearer {self._token}"
        error: Exception | None = None
        for pause in _pauses(self.patience):
            time.sleep(pause)
            try:
                status, data = self._once(method, self._root + path, sent, given)
            except (OSError, http.client.HTTPException) as failure:
                self._forget()
                error = failure
                continue
            if status < 400:
                return json.loads(data) if data else None
            error = ServiceError(_problem(status, data))
            if status not in TRY_AGAIN:
                break
        assert error is not None
        raise error

    def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = getattr(self._kept, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._kept.connection = kind(self._host, self._port, timeout=self.patience)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _forget(self) -> None:
        """The connection of this thread is of no use."""
        connection = getattr(self._kept, "connection", None)
        if connection is not None:
            connection.close()
            self._kept.connection = None


def _pauses(patience: float) -> Iterator[float]:
    """Seconds before each attempt, until patience ends."""
    begun, pause = time.monotonic(), 0.05
    yield 0.0
    while time.monotonic() - begun < patience:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(2 * pause, 5.0)


def _problem(status: int, data: bytes) -> dict[str, Any]:
    try:
        return {"status": status, **json.loads(data)}
    except ValueError:
        return {"status": status, "detail": data[:200].decode(errors="replace")}


def _quoted(name: str) -> str:
    return quote(name, safe="")
