"""What the OpenAPI page says about bodies, which the handlers decode themselves: typed, and strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema

from streamlasso.serve.http.access import JSON, STREAMED


@dataclass
class StructSchema(Schema):
    """The JSON schema of a struct, as msgspec gives it, without references."""

    struct: Any = None

    def to_schema(self) -> dict[str, Any]:
        (schema,), components = msgspec.json.schema_components([self.struct], ref_template="{name}")
        return components[schema["$ref"]]


def takes(body: type[msgspec.Struct] | None) -> type[Operation]:
    """For a handler that takes such a body as JSON; None: a stream of rows."""
    schema = Schema(description="Rows, with the target") if body is None else StructSchema(struct=body)
    content = {kind: OpenAPIMediaType(schema) for kind in (STREAMED if body is None else JSON)}

    @dataclass
    class WithBody(Operation):
        def __post_init__(self) -> None:
            self.request_body = RequestBody(content, required=True)

    return WithBody
