"""Refusals: each is an HTTP status and a sentence that says what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

#: The media type of refusals (RFC 9457).
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A request that is refused; nothing was changed by it.

    >>> Problem(404, "there is no model 'a'").body()["title"]
    'Not Found'
    """

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more

    def body(self) -> dict[str, Any]:
        title = HTTPStatus(self.status).phrase
        return {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail, **self.more}


class Full(Exception):
    """The disk takes nothing more."""
