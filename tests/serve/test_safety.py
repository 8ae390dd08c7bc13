"""Who may do what, and what a hostile request gets: a precise status, and nothing changed."""

import json
import os
import socket
import time

import pytest

from streamlasso.serve.http.tokens import Tokens, hashed, tokens_in
from streamlasso.serve.server import ServeOptions
from support.hostile import BODIES, fuzzed
from support.service import Service

READ, LEARN, ADMIN = (f"{right}-token-of-this-test" for right in ("read", "learn", "admin"))


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A service with tokens and a model; requests of its own have the admin token."""
    folder = tmp_path_factory.mktemp("closed")
    tokens = folder / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"read {READ} page\nlearn sha256:{hashed(LEARN)}\n# a comment\nadmin {ADMIN}\n")
    service = Service(folder / "store", "--tokens", str(tokens), token=ADMIN)
    service.request("PUT", "/models/m", {})
    for i in range(5):
        service.learn("m", {"x": float(i)}, 2.0 * i)
    yield service
    service.stop()


def as_(token):
    return {"Authorization": f"Bearer {token}"}


WAYS = [
    ("GET", "/models", None, "read"),
    ("GET", "/models/m", None, "read"),
    ("GET", "/models/m/history", None, "read"),
    ("GET", "/metrics", None, "read"),
    ("POST", "/models/m/predict", {"row": {"x": 1.0}}, "read"),
    ("POST", "/models/m/predict", {"row": {"x": 1.0}, "id": "w"}, "learn"),
    ("POST", "/models/m/learn", {"row": {"x": 1.0}, "y": 2.0, "id": "same"}, "learn"),
    ("PUT", "/models/m", {}, "admin"),
    ("DELETE", "/models/none", None, "admin"),
]


@pytest.mark.parametrize(("method", "path", "body", "needed"), WAYS)
def test_each_right_opens_what_it_says_and_nothing_else(closed, method, path, body, needed):
    order = ("read", "learn", "admin")
    for right, token in zip(order, (READ, LEARN, ADMIN), strict=True):
        status = closed.request(method, path, body, as_(token))[0]
        assert (status not in (401, 403)) == (order.index(right) >= order.index(needed)), (right, status)
    assert closed.request(method, path, body, {"Authorization": ""})[0] == 401
    assert closed.request(method, path, body, as_("wrong-token-of-somebody"))[0] == 401


def test_without_a_token_nothing_is_learnt(closed):
    before = closed.request("GET", "/models/m")[1]["n_rows"]
    for k in range(10):
        answer = closed.request(
            "POST", "/models/m/learn", {"row": {"x": 1.0}, "y": 1.0}, {"Authorization": f"Basic {k}"}
        )
        assert answer[0] == 401
    assert closed.request("GET", "/models/m")[1]["n_rows"] == before


def test_a_session_of_the_page_reads_and_does_nothing_else(closed):
    status, headers, _ = closed.whole("POST", "/session", headers=as_(ADMIN))
    cookie = headers["Set-Cookie"]
    assert status == 204
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and ADMIN not in cookie
    with_cookie = {"Authorization": "", "Cookie": cookie.partition(";")[0]}
    assert closed.request("GET", "/models", headers=with_cookie)[0] == 200
    assert closed.request("POST", "/models/m/learn", {"row": {"x": 1.0}, "y": 1.0}, with_cookie)[0] == 401
    session = with_cookie["Cookie"]
    forged = {**with_cookie, "Cookie": session[:-1] + ("1" if session[-1] == "0" else "0")}
    assert closed.request("GET", "/models", headers=forged)[0] == 401
    assert closed.request("GET", "/session", headers={"Authorization": ""})[1] == {"tokens": True, "right": None}


def test_guessing_tokens_is_slowed_down(closed):
    statuses = [closed.request("GET", "/models", headers=as_(f"a-wrong-token-{k:05}"))[0] for k in range(40)]
    assert statuses[-1] == 429
    assert closed.request("GET", "/healthz", headers={"Authorization": ""})[0] == 200


def test_no_token_is_in_the_log_or_the_store(closed):
    kept = closed.printed() + b"".join(path.read_bytes() for path in closed.store.iterdir())
    for token in (READ, LEARN, ADMIN):
        assert token.encode() not in kept


def test_the_store_is_for_its_owner_only(closed):
    assert {path.stat().st_mode & 0o077 for path in [closed.store, closed.store / "store.sqlite"]} == {0}


def test_a_public_address_needs_tokens(tmp_path):
    with pytest.raises(ValueError, match="give --tokens"):
        ServeOptions(tmp_path, host="0.0.0.0")


def test_a_file_of_tokens_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"read {READ}\n")
    os.chmod(path, 0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        tokens_in(path)
    os.chmod(path, 0o600)
    path.write_text("read short\n")
    with pytest.raises(ValueError, match="fewer than 16"):
        tokens_in(path)


def test_a_session_ends(monkeypatch):
    tokens = Tokens({hashed(READ): ("page", "read")}, b"key")
    session = tokens.session(READ)
    assert tokens.right_of_session(session) == "read"
    assert Tokens({hashed(READ): ("page", "read")}, b"another").right_of_session(session) is None
    monkeypatch.setattr("streamlasso.serve.http.tokens.time.time", lambda: 1e11)
    assert tokens.right_of_session(session) is None


# --- from somewhere else ----------------------------------------------------------------------------------------------


def test_pages_of_others_cannot_use_a_service_on_this_machine(shared, model):
    body = {"row": {"x": 1.0}, "y": 1.0}
    learn = f"/models/{model}/learn"
    assert shared.request("POST", learn, body, {"Origin": "https://evil.example"})[0] == 403
    assert shared.request("POST", learn, body, {"Host": "evil.example"})[0] == 421
    assert shared.request("POST", learn, body, {"Content-Type": "text/plain"})[0] == 415
    assert shared.request("POST", learn, body, {"Origin": f"http://127.0.0.1:{shared.port}"})[0] == 200
    assert shared.request("GET", f"/models/{model}")[1]["n_rows"] == 1


def test_every_answer_has_the_security_headers(shared):
    for path in ("/", "/models", "/healthz", "/nothing", "/models/none", "/openapi.json"):
        _, headers, _ = shared.whole("GET", path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert "server" not in {name.lower() for name in headers}


def test_no_file_outside_the_page_is_served(shared):
    for path in ("/../serve/app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/page/../../app.py", "//etc/passwd", "/app.py"):
        assert shared.request("GET", path)[0] in (400, 404, 405)


# --- hostile bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "raw", "expected"), BODIES)
def test_hostile_bodies_get_a_precise_status(shared, path, raw, expected):
    shared.request("PUT", "/models/hostile", {})
    if shared.request("GET", "/models/hostile")[1]["n_rows"] < 130:
        rows = [{"x": float(i), "c": "uv"[i % 2]} for i in range(130)]
        shared.request("POST", "/models/hostile/learn", {"rows": rows, "y": [i / 2 for i in range(130)]})
    before = shared.request("GET", "/models/hostile")[1]
    status, headers, answer = shared.whole("POST", f"/models/hostile/{path}", raw=raw)
    assert status == expected, answer
    assert headers["Content-Type"] == "application/problem+json"
    assert answer["status"] == status and answer["detail"] and len(answer["detail"]) < 2000
    after = shared.request("GET", "/models/hostile")[1]
    assert [after[name] for name in ("n_rows", "models", "features")] == [
        before[name] for name in ("n_rows", "models", "features")
    ]


def test_a_fuzz_of_bodies_crashes_and_changes_nothing(tmp_path):
    found = fuzzed(tmp_path / "store", 1500)
    assert found["server errors"] == found["crashes"] == found["changed states"] == 0
    assert found["refused"] > 1000


def test_a_body_that_is_cut_short_changes_nothing(shared, model):
    with socket.create_connection(("127.0.0.1", shared.port)) as connection:
        head = f"POST /models/{model}/learn HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        connection.sendall(head.encode() + b'Content-Length: 1000\r\n\r\n{"row": {"x": 1.0}, "y": 1')
    assert shared.request("GET", f"/models/{model}")[1]["n_rows"] == 0


def test_a_body_that_is_too_large_is_refused(shared, model):
    assert shared.request("POST", f"/models/{model}/learn", raw=b" " * 16_000_001)[0] == 413


def test_ids_and_labels_that_contradict(shared, model):
    path = f"/models/{model}/learn"
    shared.learn(model, {"x": 1.0}, 2.0, id="a")
    assert shared.request("POST", path, {"id": "a", "y": 3.0})[0] == 409
    assert shared.request("POST", path, {"id": "a", "y": 2.0})[0] == 200
    assert shared.request("POST", path, {"id": "unknown", "y": 2.0})[0] == 404
    assert shared.predict(model, {"x": 1.0}, id="b")[0] == 200
    assert shared.predict(model, {"x": 2.0}, id="b")[0] == 409
    assert shared.learn(model, {"x": 2.0}, 1.0, id="b")[0] == 409
    assert shared.predict(model, {"x": 1.0}, id="a")[0] == 409
    assert shared.request("POST", path, {"rows": [{}, {}], "y": [1.0, 2.0], "ids": ["c", "c"]})[0] == 422
    assert shared.request("GET", f"/models/{model}")[1]["n_rows"] == 1


def test_a_refused_row_of_a_batch_refuses_all_of_it(shared, model):
    rows = [{"x": float(i)} for i in range(150)]
    shared.request("POST", f"/models/{model}/learn", {"rows": rows, "y": [1.0 * i for i in range(150)]})
    status, answer = shared.request(
        "POST", f"/models/{model}/learn", {"rows": [{"x": 1.0}, {"x": "no"}], "y": [1.0, 2.0]}
    )
    assert (status, answer["row"]) == (422, 1)
    assert "'x' holds 'no'" in answer["detail"]
    told = shared.request("GET", f"/models/{model}")[1]
    assert (told["n_rows"], told["errors"][-1]["status"]) == (150, 422)


def test_a_rate_is_kept(started):
    service = started("--rate", "20")
    statuses = [service.request("GET", "/healthz")[0] for _ in range(60)]
    assert statuses[0] == 200 and 429 in statuses


def test_who_sends_too_often_is_refused_and_nobody_else(started, tmp_path):
    """One request in two seconds of each client; those of others are their first."""
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(
        "".join(f"{right} {right}-token-of-this-test-{i}\n" for i in (1, 2) for right in ("admin", "learn"))
    )
    service = started("--rate", "0.5", "--tokens", str(tokens))
    busy = as_("learn-token-of-this-test-1")
    assert service.request("PUT", "/models/m", {}, as_("admin-token-of-this-test-1"))[0] == 201
    answers = [
        service.whole("POST", "/models/m/learn", {"row": {"x": float(i)}, "y": 2.0 * i, "id": f"r{i}"}, busy)
        for i in range(12)
    ]
    other = service.request("POST", "/models/m/predict", {"row": {"x": 1.0}}, as_("learn-token-of-this-test-2"))
    refused = [(headers, body) for status, headers, body in answers if status == 429]
    assert answers[0][0] == 200 and refused
    assert {status for status, _, _ in answers} == {200, 429}
    for headers, body in refused:
        assert headers["Content-Type"] == "application/problem+json"
        assert headers["Retry-After"] in ("1", "2") and body["retry_after"] == int(headers["Retry-After"])
        assert (body["status"], body["detail"]) == (429, "more than 0.5 requests a second: slow down")
    assert other[0] == 200
    told = service.request("GET", "/models/m", None, as_("admin-token-of-this-test-2"))[1]
    assert told["n_rows"] == len(answers) - len(refused)
    time.sleep(int(refused[-1][0]["Retry-After"]))
    id = next(f"r{i}" for i, (status, _, _) in enumerate(answers) if status == 429)
    again = service.request("POST", "/models/m/learn", {"row": {"x": 7.0}, "y": 14.0, "id": id}, busy)
    assert (again[0], again[1]["n_rows"]) == (200, told["n_rows"] + 1)


def test_the_openapi_page_names_every_address(shared):
    schema = shared.request("GET", "/openapi.json")[1]
    assert {"/models", "/models/{name}", "/models/{name}/learn", "/models/{name}/predict", "/events"} <= set(
        schema["paths"]
    )
    assert "http://" not in json.dumps(schema).replace("http://127.0.0.1", "")


def test_a_wrong_label_leaves_the_row_waiting(shared, model):
    rows = [{"x": float(i)} for i in range(150)]
    shared.request("POST", f"/models/{model}/learn", {"rows": rows, "y": [1.5 * i for i in range(150)]})
    shared.predict(model, {"x": 7.0}, id="w")
    assert shared.request("POST", f"/models/{model}/learn", {"id": "w", "y": "a word"})[0] == 422
    assert shared.request("GET", f"/models/{model}")[1]["n_waiting"] == 1
    assert shared.request("POST", f"/models/{model}/learn", {"id": "w", "y": 10.5})[1]["n_rows"] == 151
    assert shared.request("GET", f"/models/{model}")[1]["n_waiting"] == 0
