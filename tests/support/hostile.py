"""Bodies that mean harm: some by hand, with the status that each must get, and as many as one likes by mutation."""

import http.client
import json
import random

from support.service import Service

DEEP = b'{"row": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b'}, "y": 1}'
BODIES = [
    ("learn", b"", 400),
    ("learn", b"{", 400),
    ("learn", b"\xff\xfe", 400),
    ("learn", b'{"row": {"x": NaN}, "y": 1}', 400),
    ("learn", b'{"row": {"x": 1}, "y": Infinity}', 400),
    ("learn", b'{"row": {"x": 1e999}, "y": 1}', 422),
    ("learn", b'{"row": {"x": 1}, "y": 1e999}', 422),
    ("learn", b'{"row": {"x": 1e300}, "y": 1}', 422),
    ("learn", b'{"row": {"x": 1}, "y": -1e300}', 422),
    ("learn", b'{"row": {"x": %s}, "y": 1}' % (b"9" * 5000), 422),
    ("learn", b'{"row": {"x": "\\ud800"}, "y": 1}', 400),
    ("learn", DEEP, 422),
    ("learn", b"[" * 100_000, 422),
    ("learn", b'{"row": {"x": [1]}, "y": 1}', 422),
    ("learn", b'{"row": {"x": {"y": 1}}, "y": 1}', 422),
    ("learn", b'{"row": [1], "y": 1}', 422),
    ("learn", b'{"row": {"x": 1}, "y": null}', 422),
    ("learn", b'{"row": {"x": 1}}', 422),
    ("learn", b'{"y": 1}', 422),
    ("learn", b'{"row": {"x": 1}, "y": 1, "more": 1}', 422),
    ("learn", b'{"row": {"x": 1}, "y": "text where numbers were"}', 422),
    ("learn", b'{"row": {"x": "text where numbers were"}, "y": 1}', 422),
    ("learn", b'{"row": {"x": 1}, "y": 1, "id": ""}', 422),
    ("learn", b'{"row": {"x": 1}, "y": 1, "id": 7}', 422),
    ("learn", b'{"rows": [{"x": 1}], "y": [1, 2]}', 422),
    ("learn", b'{"rows": [], "y": []}', 422),
    ("learn", json.dumps({"row": {f"n{j}": 1 for j in range(1001)}, "y": 1}).encode(), 422),
    ("learn", json.dumps({"rows": [{}] * 10_001, "y": [1] * 10_001}).encode(), 422),
    ("learn", json.dumps({"row": {"n" * 1001: 1}, "y": 1}).encode(), 422),
    ("learn", json.dumps({"row": {"c": "v" * 10_001}, "y": 1}).encode(), 422),
    ("predict", b"null", 422),
    ("predict", b"{}", 422),
    ("predict", b'{"row": {"x": "text where numbers were"}}', 422),
    ("predict", b'{"row": {"x": 1e300}}', 422),
    ("predict", b'{"rows": [{"x": 1}], "id": "a"}', 422),
    ("predict", b'{"row": {"x": 1}, "ids": ["a"]}', 422),
]
#: What mutations put in.
PIECES = [b"NaN", b"1e999", b"\x00", b"\xff", b'"', b"{", b"}", b"[", b"]", b",", b"-", b"\\u0000", b"\\ud800", b"null"]
PIECES += [b"true", b"9" * 400, b"\xe2\x80\xae", b'"x"', b"[" * 500, b"__proto__", b"'; DROP TABLE models; --", b"\r\n"]
GOOD = [
    b'{"row": {"x": 1.5, "c": "u"}, "y": "no number"}',
    b'{"rows": [{"x": 1}, {"x": "no number"}], "y": [1, 2]}',
    b'{"rows": [{"x": 1.5}, {"x": 2e300}], "y": [1, 2.5]}',
    b'{"id": "nobody", "y": 3}',
    b'{"row": {"x": 1, "c": null}, "y": 2, "more": 1}',
]


def mutated(rng):
    body = bytearray(rng.choice(GOOD))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(body) + 1)
        kind = rng.random()
        if kind < 0.5:
            body[at:at] = rng.choice(PIECES)
        elif kind < 0.75:
            del body[at : at + rng.randint(1, 8)]
        elif at < len(body):
            body[at] = rng.randrange(256)
    return bytes(body)


def fuzzed(store, n, seed=0, told=lambda k: None):
    """Bodies that are no good, sent to a model; those that turn out good are counted, and are none of the states that
    must not change."""
    rng, service = random.Random(seed), Service(store)
    found = {"bodies": n, "refused": 0, "taken": 0, "server errors": 0, "crashes": 0, "changed states": 0}
    rows = [{"x": float(i), "c": "uv"[i % 2]} for i in range(130)]
    service.request("PUT", "/models/m", {})
    service.request("POST", "/models/m/learn", {"rows": rows, "y": [i / 2 for i in range(130)]})
    before = state(service)
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    for k in range(n):
        path = "/models/m/" + rng.choice(["learn", "learn", "predict", "stream"])
        kind = "application/x-ndjson" if path.endswith("stream") else "application/json"
        try:
            connection.request("POST", path, mutated(rng), {"Content-Type": kind})
            answer = connection.getresponse()
            status, _ = answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            found["crashes"] += service.process.poll() is not None
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
            continue
        found["server errors"] += status >= 500
        found["refused"] += 400 <= status < 500
        if status < 300:
            found["taken"] += 1
            if not path.endswith("predict"):
                before = state(service)
        elif k % 50 == 0:
            found["changed states"] += state(service) != before
        if k % 1000 == 0:
            told(k)
    found["changed states"] += state(service) != before
    service.stop()
    return found


def state(service):
    told = service.request("GET", "/models/m")[1]
    return json.dumps([told[name] for name in ("n_rows", "features", "models", "loss", "n_waiting")])
