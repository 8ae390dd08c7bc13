"""schemathesis on the OpenAPI page: whatever is sent, no server error."""

import warnings

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error

from streamlasso.serve.http.app import application, page_files
from streamlasso.serve.http.tokens import Tokens
from streamlasso.serve.service import Service

#: They do not end, or take no JSON: other tests have them.
OTHERS = ("/events", "/models/{name}/stream")


def test_no_request_is_a_server_error(shared):
    shared.request("PUT", "/models/a", {})
    schema = schemathesis.openapi.from_dict(shared.request("GET", "/openapi.json")[1])
    n = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in OTHERS:
            continue

        @settings(
            max_examples=12,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send(case):
            answer = case.call(base_url=f"http://127.0.0.1:{shared.port}")
            case.validate_response(answer, checks=[not_a_server_error])

        send()
        n += 1
    assert n >= 10


def test_the_framework_warns_of_nothing(tmp_path):
    service = Service(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = application(service, page_files(), Tokens({}, b""), 1000).openapi_schema.to_schema()
    service.database.close()
    assert schema["info"]["title"] == "streamlasso"
