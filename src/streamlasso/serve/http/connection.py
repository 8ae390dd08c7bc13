"""A connection of uvicorn that bounds what comes before a body."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streamlasso.serve.limits import MOST_HEAD_BYTES
from streamlasso.serve.problems import MEDIA_TYPE, Problem

TOO_LARGE = Problem(431, f"the address and the headers have more than {MOST_HEAD_BYTES:,} bytes")
HEAD = "\r\n".join(f"{name}: {value}" for name, value in TOO_LARGE.headers().items())
REFUSAL = (
    f"HTTP/1.1 431 Request Header Fields Too Large\r\n{HEAD}\r\ncontent-type: {MEDIA_TYPE}\r\nconnection: close\r\n\r\n"
).encode() + TOO_LARGE.body()


class Connection(HttpToolsProtocol):
    """httptools keeps a head until it is complete, however large it grows; here it may have MOST_HEAD_BYTES.

    unfinished : bytes since a head, a part of a body, or a request was complete
    """

    unfinished = 0
    is_in_body = False

    def data_received(self, data: bytes) -> None:
        self.unfinished += len(data)
        super().data_received(data)
        if self.unfinished > MOST_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(REFUSAL)
            self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes after a body in chunks is of no use to anyone.
        if not self.is_in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.unfinished, self.is_in_body = 0, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.unfinished, self.is_in_body = 0, False
        super().on_message_complete()
