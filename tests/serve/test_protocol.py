"""Learns and predictions on a connection: whatever way a request comes, the answer is the framework's."""

import json
import socket

import pytest

HEAD = "POST /models/{model}/{what} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = json.dumps({"row": {"x": 1.0}, "y": 2.0}).encode()
LENGTH = len(BODY)


class Raw:
    """A connection without a client."""

    def __init__(self, service):
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=30)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, *parts):
        for part in parts:
            self.socket.sendall(part)

    def answer(self):
        """Status, headers and body of the next answer."""
        status = int(self.file.readline().split()[1])
        headers = dict(line.decode().strip().split(": ", 1) for line in iter(self.file.readline, b"\r\n"))
        return status, headers, json.loads(self.file.read(int(headers["content-length"])))

    def is_closed(self):
        return self.file.read(1) == b""


def head(model, more="", what="learn", n=LENGTH):
    return (HEAD.format(model=model, what=what) + more + (f"Content-Length: {n}\r\n\r\n" if n else "\r\n")).encode()


def chunk(part):
    return b"%x\r\n%b\r\n" % (len(part), part)


def test_the_answer_has_the_headers_of_the_framework(shared, model):
    """A proxied request goes through the framework."""
    with Raw(shared) as raw:
        raw.send(head(model), BODY)
        ours = raw.answer()
        raw.send(head(model, "X-Forwarded-For: 127.0.0.1\r\n"), BODY)
        framework = raw.answer()
    assert (ours[0], framework[0]) == (200, 200)
    assert (ours[2]["n_rows"], framework[2]["n_rows"]) == (1, 2)
    assert {name for name in ours[1] if name != "date"} == {name for name in framework[1] if name != "date"}
    for name in set(ours[1]) - {"date", "content-length"}:
        assert ours[1][name] == framework[1][name]


def test_refusals_are_those_of_the_framework(shared, model):
    bad = json.dumps({"row": {"x": 1.0}}).encode()
    with Raw(shared) as raw:
        found = []
        for more in ("", "X-Forwarded-For: 127.0.0.1\r\n"):
            raw.send(head(model, more, n=len(bad)), bad)
            found.append(raw.answer())
    assert found[0][0] == found[1][0] == 422
    assert found[0][2] == found[1][2]
    assert found[0][1]["content-type"] == found[1][1]["content-type"] == "application/problem+json"


def test_requests_before_the_answers_are_answered_in_order(shared, model):
    with Raw(shared) as raw:
        raw.send(b"".join(head(model) + BODY for _ in range(5)))
        assert [raw.answer()[2]["n_rows"] for _ in range(5)] == [1, 2, 3, 4, 5]
        raw.send(head(model, what="predict", n=19) + b'{"row": {"x": 1.0}}')
        assert raw.answer()[2]["n_rows"] == 5


@pytest.mark.parametrize("more", ["Expect: 100-continue\r\n", "Connection: close\r\n"], ids=["expect", "close"])
def test_expectations_and_closed_connections(shared, model, more):
    with Raw(shared) as raw:
        raw.send(head(model, more))
        if "Expect" in more:
            assert raw.file.readline() == b"HTTP/1.1 100 Continue\r\n" and raw.file.readline() == b"\r\n"
        raw.send(BODY)
        status, headers, answer = raw.answer()
        assert (status, answer["n_rows"]) == (200, 1)
        if "close" in more:
            assert headers["connection"] == "close" and raw.is_closed()


def test_bodies_in_chunks_and_in_pieces(shared, model):
    with Raw(shared) as raw:
        raw.send(head(model, "Transfer-Encoding: chunked\r\n", n=0), chunk(BODY[:7]), chunk(BODY[7:]), b"0\r\n\r\n")
        assert raw.answer()[2]["n_rows"] == 1
        raw.send(head(model)[:40], head(model)[40:], BODY[:5], BODY[5:])
        assert raw.answer()[2]["n_rows"] == 2


def test_a_body_that_grows_too_large_is_refused_before_its_end(started):
    service = started("--max-body", "1000")
    service.request("PUT", "/models/m", {})
    with Raw(service) as raw:
        raw.send(head("m", "Transfer-Encoding: chunked\r\n", n=0), chunk(b" " * 900), chunk(b" " * 900))
        status, headers, _ = raw.answer()
        assert (status, headers["content-type"]) == (413, "application/problem+json")
        raw.send(chunk(BODY), b"0\r\n\r\n", head("m"), BODY)
        status, _, answer = raw.answer()
        assert (status, answer["n_rows"]) == (200, 1)


def test_a_refused_head_leaves_the_connection_usable(shared, model):
    with Raw(shared) as raw:
        raw.send(head(model).replace(b"application/json", b"text/plain"), BODY)
        assert raw.answer()[0] == 415
        raw.send(head(model), BODY)
        assert raw.answer()[2]["n_rows"] == 1


def test_a_client_that_leaves_has_its_row_learnt_and_disturbs_nobody(shared, model):
    for _ in range(3):
        with Raw(shared) as raw:
            raw.send(head(model), BODY)
    status, answer = shared.learn(model, {"x": 3.0}, 6.0)
    assert status == 200 and 1 <= answer["n_rows"] <= 4
    assert b"failed" not in shared.printed()
