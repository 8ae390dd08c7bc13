"""What the OpenAPI page says about bodies, which handlers read themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema

from streamlasso.serve.guard import STREAMED


def operation(body: type[msgspec.Struct]) -> type[Operation]:
    """For handlers that take such a body."""
    return _with(RequestBody({"application/json": OpenAPIMediaType(Inlined(body))}, required=True))


def _with(request: RequestBody) -> type[Operation]:
    @dataclass
    class WithBody(Operation):
        def __post_init__(self) -> None:
            self.request_body = request

    return WithBody


@dataclass
class Inlined(Schema):
    """The JSON schema of a struct, as msgspec gives it, without references."""

    struct: Any = field(default=None)

    def __init__(self, struct: type[msgspec.Struct]) -> None:
        super().__init__()
        self.struct = struct

    def to_schema(self) -> dict[str, Any]:
        (schema,), components = msgspec.json.schema_components([self.struct], ref_template="{name}")
        return components[schema["$ref"]]


STREAM = _with(
    RequestBody({kind.decode(): OpenAPIMediaType(Schema(description="Rows, with the target")) for kind in STREAMED})
)
