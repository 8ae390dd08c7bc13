"""Refusals: each is an HTTP status and a sentence that says what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

#: The media type of refusals (RFC 9457).
MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A request that is refused; nothing was changed by it.

    >>> Problem(404, "there is no model 'a'").body()
    b'{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no model \\'a\\'"}'
    """

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more

    def again(self) -> Problem:
        """The same without the frames in which it was raised: they hold the rows of the request."""
        return Problem(self.status, self.detail, **self.more)

    def body(self) -> bytes:
        title = HTTPStatus(self.status).phrase
        about = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return msgspec.json.encode(about | self.more)

    def headers(self) -> dict[str, str]:
        found = {"content-length": str(len(self.body()))}
        if "retry_after" in self.more:
            found["retry-after"] = str(self.more["retry_after"])
        if self.status == 401:
            found["www-authenticate"] = "Bearer"
        return found
