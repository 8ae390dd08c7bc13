"""What attacks have found once: each is refused with a sentence, and nothing is learnt from it."""

import asyncio
import contextlib
import io
import json
import math
import os
import signal
import socket
import sqlite3
import threading
import time
from datetime import timedelta
from decimal import Decimal

import psutil
import pyarrow
import pytest

from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.service import Service as InProcess
from streamlasso.serve.settings import ModelSettings
from streamlasso.serve.store.log import Entry

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def arrow(table, **options):
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def n_rows(service, name):
    return service.request("GET", f"/models/{name}")[1]["n_rows"]


def teach(service, name, n, start=0):
    rows = [{"x": float(i), "z": float(i % 7)} for i in range(start, start + n)]
    body = {"rows": rows, "y": [2.5 * row["x"] - row["z"] for row in rows]}
    return service.request("POST", f"/models/{name}/learn", body)


# --- Arrow ------------------------------------------------------------------------------------------------------------

HOSTILE_COLUMNS = {
    "duration": pyarrow.array([timedelta(seconds=k) for k in range(3)]),
    "binary": pyarrow.array([b"a", b"\xff", b"c"]),
    "uuid": pyarrow.array([bytes(16)] * 3, pyarrow.binary(16)).cast(pyarrow.binary(16)),
    "list": pyarrow.array([[1], [2], [3]]),
    "struct": pyarrow.array([{"a": 1}] * 3),
    "view": pyarrow.array(["a", "b", "c"], pyarrow.string_view()),
    "infinite": pyarrow.array([1.0, math.inf, 2.0]),
    "huge": pyarrow.array([1.0, 1e61, 2.0]),
    "unsigned": pyarrow.array([1, 2**64 - 1, 2], pyarrow.uint64()),
    "extension": pyarrow.ExtensionArray.from_storage(
        pyarrow.uuid(), pyarrow.array([bytes(16)] * 3, pyarrow.binary(16))
    ),
}


@pytest.mark.parametrize("place", ["x", "y"])
@pytest.mark.parametrize("kind", HOSTILE_COLUMNS)
@pytest.mark.parametrize("n_before", [0, 150])
def test_arrow_columns_of_odd_types_are_refused_and_nothing_is_learnt(shared, kind, place, n_before):
    name = f"odd-{kind}-{place}-{n_before}"
    shared.request("PUT", f"/models/{name}", {})
    if n_before:
        assert teach(shared, name, n_before)[0] == 200
    table = pyarrow.table({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0], place: HOSTILE_COLUMNS[kind]})
    status, answer = shared.request("POST", f"/models/{name}/stream", raw=arrow(table), headers=ARROW)
    assert status == 422, answer
    assert n_rows(shared, name) == n_before
    assert teach(shared, name, 10, 200)[0] == 200


def test_after_hostile_arrow_every_model_starts_again_and_is_saved(started):
    service = started()
    for name in ("durations", "nan", "later"):
        service.request("PUT", f"/models/{name}", {})
    durations = pyarrow.table({"x": [1.0, 2.0, 3.0], "y": HOSTILE_COLUMNS["duration"]})
    assert service.request("POST", "/models/durations/stream", raw=arrow(durations), headers=ARROW)[0] == 422
    nan = pyarrow.table({"x": [1.0, math.nan, 3.0, 4.0], "y": [1.0, 2.0, math.nan, 4.0]})
    assert service.request("POST", "/models/nan/stream", raw=arrow(nan), headers=ARROW)[0] == 200
    plain = pyarrow.table({"x": [Decimal("1.5"), Decimal("2.5")], "y": [1.0, 2.0], "flag": [True, None]})
    assert service.request("POST", "/models/later/stream", raw=arrow(plain), headers=ARROW)[0] == 200
    service.kill()
    service.start()
    assert [n_rows(service, name) for name in ("durations", "nan", "later")] == [0, 4, 2]
    assert service.stop() == 0
    db = sqlite3.connect(service.store / "store.sqlite")
    assert db.execute("SELECT count(*) FROM checkpoints").fetchone() == (2,)
    db.close()
    service.start()
    assert [n_rows(service, name) for name in ("durations", "nan", "later")] == [0, 4, 2]


def test_a_model_that_cannot_be_restored_is_set_aside_and_the_others_start(started):
    service = started()
    for name in ("well", "damaged", "unreadable"):
        service.request("PUT", f"/models/{name}", {})
        assert teach(service, name, 20)[0] == 200
    service.kill()
    db = sqlite3.connect(service.store / "store.sqlite")
    number = "(SELECT id FROM models WHERE name = ?)"
    db.execute(f"UPDATE log SET rows = x'00ff' WHERE model = {number}", ("damaged",))
    values = f"({number}, 1, 0, '{{}}', NULL)"
    db.execute(f"INSERT INTO checkpoints VALUES {values}", ("unreadable",))
    db.commit()
    db.close()
    service.start()
    assert n_rows(service, "well") == 20 and teach(service, "well", 5)[0] == 200
    broken = service.request("GET", "/models")[1]["broken"]
    assert [each["name"] for each in broken] == ["damaged", "unreadable"]
    for method, path, body in (
        ("POST", "/models/damaged/predict", {"row": {"x": 1.0}}),
        ("POST", "/models/damaged/learn", {"row": {"x": 1.0}, "y": 1.0}),
        ("GET", "/models/unreadable", None),
        ("PUT", "/models/damaged", {}),
    ):
        status, answer = service.request(method, path, body)
        assert status == 503 and "could not be restored" in answer["detail"]
    assert "streamlasso_broken_models 2" in service.request("GET", "/metrics")[1].decode()
    for name in ("damaged", "unreadable"):
        assert service.request("DELETE", f"/models/{name}")[0] == 204
        assert service.request("PUT", f"/models/{name}", {})[0] == 201
        assert teach(service, name, 5)[0] == 200


# --- all or nothing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_before", [0, 1, 20, 150])
def test_a_refused_batch_leaves_no_row(shared, n_before):
    name = f"whole-{n_before}"
    shared.request("PUT", f"/models/{name}", {})
    if n_before:
        teach(shared, name, n_before)
    before = shared.request("GET", f"/models/{name}")[1]
    rows = [{"x": float(i)} for i in range(50)]
    for label in (10**400, 10**30, 1e61, "text"):
        body = {"rows": rows, "y": [*(float(i) for i in range(49)), label]}
        status, answer = shared.request("POST", f"/models/{name}/learn", body)
        assert status == 422, answer
    rows[-1] = {"x": "1e61"}
    assert shared.request("POST", f"/models/{name}/learn", {"rows": rows, "y": [1.5 * i for i in range(50)]})[0] == 422
    after = shared.request("GET", f"/models/{name}")[1]
    assert [after[key] for key in ("n_rows", "models", "loss")] == [before[key] for key in ("n_rows", "models", "loss")]


def test_honest_clients_beside_a_hostile_one_are_learnt_once_each(shared, model):
    statuses, done = [], threading.Event()

    def honest(k):
        for i in range(30):
            statuses.append(shared.learn(model, {"x": float(i), "k": float(k)}, 2.0 * i, id=f"{k}-{i}")[0])

    def hostile():
        while not done.is_set():
            for y in ("text", 10**400):
                assert shared.request("POST", f"/models/{model}/learn", {"row": {"x": 1.0}, "y": y})[0] == 422

    assert shared.learn(model, {"x": 0.0}, 1.0)[0] == 200
    bad = threading.Thread(target=hostile)
    bad.start()
    clients = [threading.Thread(target=honest, args=(k,)) for k in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    done.set()
    bad.join()
    assert statuses == [200] * 240
    assert n_rows(shared, model) == 241


def test_a_failure_that_nobody_foresaw_is_undone(tmp_path, monkeypatch):
    """The model fails after it has learnt: it is what it was, the others of the same transaction are learnt, and a
    restart agrees."""
    learn = LiveModel.learn

    def learn_then_fail(self, rows, time):
        learnt = learn(self, rows, time)
        if any("fails" in row for row in rows.rows):
            raise RuntimeError("after learning")
        return learnt

    monkeypatch.setattr(LiveModel, "learn", learn_then_fail)
    good = [({"x": float(i)}, 2.0 * i) for i in range(40)]

    async def run():
        service = InProcess(tmp_path)
        await service.start()
        await service.create("m", ModelSettings())
        bad = [{"x": 1.0, "fails": 1.0}]
        asked = [service.learn("m", [Entry(f"r{i}", [y], [row])]) for i, (row, y) in enumerate(good)]
        asked.insert(20, service.learn("m", [Entry("bad", [1.0], bad)]))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [getattr(each, "status", 200) for each in answers] == [*[200] * 20, 500, *[200] * 20]
        state = service.model("m").model.state()[1]
        await service.stop()
        return state

    state = asyncio.run(run())
    own = LiveModel(ModelSettings())
    for row, y in good:
        learn(own, Rows([row], [y]), 0.0)
    assert own.state()[1] == state
    again = InProcess(tmp_path)
    again.restore()
    assert again.model("m").model.state()[1] == state
    again.database.close()


# --- the first rows ---------------------------------------------------------------------------------------------------

BAD_FIRST = [
    ({}, {"x": 1e61}, 1.0),
    ({}, {"x": "1e61"}, 1.0),
    ({}, {"x": 1.0}, 1e61),
    ({"family": "poisson"}, {"x": 1.0}, -1),
    ({"family": "gamma"}, {"x": 1.0}, 0.0),
    ({"family": "gaussian"}, {"x": 1.0}, "abc"),
]


@pytest.mark.parametrize(("settings", "row", "y"), BAD_FIRST)
@pytest.mark.parametrize("n_before", [0, 3])
def test_a_bad_first_row_is_refused_and_the_model_goes_on(shared, settings, row, y, n_before, request):
    name = f"first-{BAD_FIRST.index((settings, row, y))}-{n_before}"
    shared.request("PUT", f"/models/{name}", settings)
    for i in range(n_before):
        assert shared.learn(name, {"x": float(i)}, i + 1)[0] == 200
    status, answer = shared.learn(name, row, y)
    assert status == 422, answer
    for i in range(n_before, 140):
        status, answer = shared.learn(name, {"x": float(i)}, i + 1)
        assert (status, answer.get("n_rows")) == (200, i + 1), answer


@pytest.mark.parametrize(("first", "other", "kind"), [(310, "abc", "numbers"), ("abc", 310, "text")])
def test_the_first_label_settles_the_kind_of_all(shared, first, other, kind):
    name = f"kind-{kind}"
    shared.request("PUT", f"/models/{name}", {})
    assert shared.learn(name, {"x": 1.0}, first)[0] == 200
    status, answer = shared.learn(name, {"x": 2.0}, other)
    assert status == 422 and "make the model with family=binomial" in answer["detail"]
    found = shared.request("GET", f"/models/{name}")[1]
    assert (found["n_rows"], found["labels"]) == (1, kind)
    # It is corrected by another model of the same name.
    assert shared.request("DELETE", f"/models/{name}")[0] == 204
    assert shared.request("PUT", f"/models/{name}", {"family": "binomial"})[0] == 201
    assert [shared.learn(name, {"x": 1.0}, label)[0] for label in ("abc", "def")] == [200, 200]


def test_more_classes_than_there_may_be_are_refused_from_the_first_row(shared, model):
    rows, labels = [{"x": float(i)} for i in range(30)], [f"name {i}" for i in range(30)]
    assert shared.request("POST", f"/models/{model}/learn", {"rows": rows, "y": labels})[0] == 422
    assert teach(shared, model, 140)[0] == 200


@pytest.mark.parametrize("settings", [{"memory": 1e8}, {"family": "normal"}, {"tuner": "nosuch"}, {"tuner": "fixed"}])
def test_settings_that_no_model_could_have_are_refused(shared, settings):
    status, answer = shared.request("PUT", "/models/never", settings)
    assert status == 422, answer
    assert shared.request("GET", "/models/never")[0] == 404


# --- memory -----------------------------------------------------------------------------------------------------------

LINE = b"POST /models/m/learn HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HEADS = {
    "one endless header": lambda: [LINE, b"X: ", *[b"a" * 65536] * 200],
    "endless headers": lambda: [LINE, *[b"".join(b"X%d: %b\r\n" % (k, b"a" * 60) for k in range(1000))] * 200],
    "an endless address": lambda: [b"GET /", *[b"a" * 65536] * 200],
    "a long head that ends": lambda: [LINE, b"X: " + b"a" * 80_000 + b"\r\n\r\n"],
    "a long query": lambda: [b"GET /models?a=" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"],
    "endless trailers": lambda: [
        LINE + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        b"X: ",
        *[b"a" * 65536] * 200,
    ],
}


@pytest.fixture(scope="module")
def bounded(tmp_path_factory):
    from support.service import Service

    service = Service(tmp_path_factory.mktemp("bounded") / "store")
    service.request("PUT", "/models/m", {})
    teach(service, "m", 200)
    yield service
    service.stop()


def resident(service):
    return psutil.Process(service.process.pid).memory_info().rss / 1e6


@pytest.mark.posix
@pytest.mark.parametrize("kind", HEADS)
def test_heads_are_bounded(bounded, kind):
    before, answer = resident(bounded), b""
    with socket.create_connection(("127.0.0.1", bounded.port), timeout=30) as connection:
        with contextlib.suppress(OSError):
            for part in HEADS[kind]():
                connection.sendall(part)
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                answer += part
                if b"431 Request" in answer:
                    break
    if answer:
        assert b" 431 Request" in answer or kind == "endless trailers", answer[:200]
    assert resident(bounded) < before + 20
    assert bounded.request("GET", "/healthz")[1]["status"] == "ok"


def long_dictionary():
    value = pyarrow.array(["v" * 9_000_000])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 1000, pyarrow.int8()), value)
    return arrow(pyarrow.table({"x": column, "y": [1.0] * 1000}))


def packed(codec):
    options = pyarrow.ipc.IpcWriteOptions(compression=codec)
    return arrow(pyarrow.table({"x": [0.0] * 10_000_000, "y": [1.0] * 10_000_000}), options=options)


def growing_dictionary():
    schema = pyarrow.schema([("x", pyarrow.dictionary(pyarrow.int32(), pyarrow.string())), ("y", pyarrow.float64())])
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, schema, options=pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as out:
        words = ["w" * 100_000]
        for k in range(50):
            words.append(f"{k}")
            column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([k], pyarrow.int32()), pyarrow.array(words))
            out.write_batch(pyarrow.record_batch([column, pyarrow.array([1.0])], schema=schema))
    return sink.getvalue()


def columns_of_nothing():
    return arrow(pyarrow.table({"x": pyarrow.nulls(10**9), "y": pyarrow.nulls(10**9)}))


ARROW_BOMBS = {
    "a dictionary of one long value": (long_dictionary, 413),
    "zstd": (lambda: packed("zstd"), 422),
    "lz4": (lambda: packed("lz4"), 422),
    "a dictionary that grows": (growing_dictionary, 422),
    "columns of nothing": (columns_of_nothing, 413),
    "many columns": (lambda: arrow(pyarrow.table({f"x{k}": [1.0] for k in range(3000)})), 422),
    "no columns": (lambda: arrow(pyarrow.table({})), 422),
}


@pytest.mark.posix
@pytest.mark.parametrize("kind", ARROW_BOMBS)
def test_arrow_is_bounded_by_what_it_unpacks_to(bounded, kind):
    make, expected = ARROW_BOMBS[kind]
    body, before = make(), resident(bounded)
    status, answer = bounded.request("POST", "/models/m/stream", raw=body, headers=ARROW)
    assert status == expected, answer
    assert resident(bounded) < before + 48
    assert n_rows(bounded, "m") == 200


JSON_BOMBS = {
    "many values": {"rows": [{f"a{j}": 0 for j in range(900)}] * 2000, "y": [1.0] * 2000},
    "many names": {"rows": [{f"n{i}": 1.0} for i in range(9000)], "y": [1.0] * 9000},
    "wide rows": {"rows": [*({"x": 1.0} for _ in range(9000)), {f"n{j}": 1.0 for j in range(990)}], "y": [1.0] * 9001},
}


@pytest.mark.posix
@pytest.mark.parametrize("kind", JSON_BOMBS)
def test_json_is_bounded_by_its_values(bounded, kind):
    body, before = json.dumps(JSON_BOMBS[kind], separators=(",", ":")).encode(), resident(bounded)
    status, answer = bounded.request("POST", "/models/m/learn", raw=body)
    assert status in (413, 422), answer
    assert resident(bounded) < before + 48
    assert n_rows(bounded, "m") == 200


@pytest.mark.posix
def test_bodies_that_never_end_are_bounded_together(bounded):
    before, held = resident(bounded), []
    try:
        for _ in range(8):
            connection = socket.create_connection(("127.0.0.1", bounded.port), timeout=30)
            held.append(connection)
            head = LINE + b"Content-Type: application/json\r\nContent-Length: 16000000\r\n\r\n"
            with contextlib.suppress(OSError):
                connection.sendall(head + b" " * 15_000_000)
        assert resident(bounded) < before + 6 * 16 + 40
    finally:
        for connection in held:
            connection.close()
    assert bounded.request("GET", "/healthz")[0] == 200
    status = 503
    deadline = time.monotonic() + 30
    while status == 503 and time.monotonic() < deadline:
        status = bounded.request("POST", "/models/m/predict", {"row": {"x": 1.0}})[0]
    assert status == 200


# --- the store --------------------------------------------------------------------------------------------------------


def test_a_locked_store_holds_up_learns_and_checkpoints_only_while_it_is_locked(started):
    service = started()
    service.request("PUT", "/models/m", {"tuner": "logrms"})
    teach(service, "m", 9_990)
    service.predict("m", {"x": 1.0}, id="w")
    db = sqlite3.connect(service.store / "store.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    status, answer = teach(service, "m", 20, 10_000)
    assert status == 503 and "does not answer" in answer["detail"]
    assert service.predict("m", {"x": 1.0})[0] == 200
    assert service.predict("m", {"x": 1.0}, id="v")[0] == 503
    assert service.request("GET", "/models/m/explain/w")[0] == 200
    assert service.request("GET", "/healthz")[1]["status"] != "ok"
    db.execute("ROLLBACK")
    db.close()
    assert teach(service, "m", 20, 10_000)[1]["n_rows"] == 10_010
    assert service.request("GET", "/healthz")[1]["status"] == "ok"
    service.kill()
    db = sqlite3.connect(service.store / "store.sqlite")
    assert db.execute("SELECT count(*) FROM checkpoints").fetchone() == (1,)
    db.close()
    service.start()
    assert n_rows(service, "m") == 10_010


def test_explain_answers_when_the_store_fails(tmp_path):
    async def run():
        service = InProcess(tmp_path)
        await service.start()
        await service.create("m", ModelSettings())
        await service.learn("m", [Entry(None, [1.0], [{"x": 1.0}])])
        await service.predict("m", [{"x": 2.0}], ["w"])
        service.database.db.execute("DROP TABLE waiting")
        with pytest.raises(Exception, match="does not answer") as refused:
            await asyncio.wait_for(service.explain("m", "w"), 10)
        assert refused.value.status == 503

    asyncio.run(run())


def test_an_explanation_is_of_the_moment_of_the_prediction(shared, model):
    """Its parts add up to what was predicted, also when the model has learnt since."""
    assert teach(shared, model, 60)[0] == 200
    predicted = shared.predict(model, {"x": 61.0, "z": 2.0}, id="w")[1]["prediction"]
    before = shared.request("GET", f"/models/{model}/explain/w")[1]
    for i in range(50):
        shared.learn(model, {"x": float(i), "z": 1.0}, -3.0 * i)
    after = shared.request("GET", f"/models/{model}/explain/w")[1]
    assert after == before and after["prediction"] == predicted
    (part,) = after["parts"]
    total = part["baseline"] + sum(each["contribution"] for each in part["contributions"])
    assert total == pytest.approx(predicted, rel=1e-9) and part["eta"] == pytest.approx(predicted, rel=1e-9)
    assert shared.predict(model, {"x": 61.0, "z": 2.0})[1]["prediction"] != pytest.approx(predicted)


def test_an_id_or_key_that_comes_with_other_rows_is_refused(shared, model):
    path = f"/models/{model}/learn"
    assert shared.learn(model, {"x": 1.0}, 2.0, id="a")[0] == 200
    assert shared.learn(model, {"x": 9.0}, 2.0, id="a")[0] == 409
    assert shared.learn(model, {"x": 1.0}, 2.0, id="a")[0] == 200
    key = {"Idempotency-Key": "k"}
    batch = {"rows": [{"x": 1.0}, {"x": 2.0}], "y": [1.0, 2.0]}
    first = shared.request("POST", path, batch, key)
    assert shared.request("POST", path, {**batch, "rows": [{"x": 1.0}, {"x": 3.0}]}, key)[0] == 409
    assert shared.request("POST", path, {**batch, "y": [1.0, 3.0]}, key)[0] == 409
    assert shared.request("POST", path, batch, key) == first
    lines = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "s"}
    stream = [b'{"x": 1.0, "y": 2.0}\n{"x": 3.0, "y": 4.0}', b'{"x": 1.5, "y": 2.0}\n{"x": 3.0, "y": 4.0}']
    found = [shared.request("POST", f"/models/{model}/stream", raw=raw, headers=lines)[0] for raw in stream]
    assert found == [200, 409]
    assert n_rows(shared, model) == 5


# --- who it is --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--proxy", "127.0.0.1")])
def test_forwarded_addresses_are_believed_of_a_proxy_that_was_named(started, tmp_path, options):
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text("admin admin-token-of-this-test\n")
    service = started("--rate", "5", "--tokens", str(tokens), *options)
    paced = [service.request("GET", "/healthz", headers={"X-Forwarded-For": f"10.0.0.{k}"})[0] for k in range(30)]
    assert (429 in paced) == (not options)
    guessed = [
        service.request(
            "GET", "/models", headers={"X-Forwarded-For": f"10.1.0.{k}", "Authorization": f"Bearer wrong-token-{k:06}"}
        )[0]
        for k in range(40)
    ]
    assert (429 in guessed) == (not options)


def test_a_listener_that_does_not_read_does_not_hold_up_the_end(started):
    service = started()
    service.request("PUT", "/models/m", {"tuner": "logrms"})
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for k in range(20):
            teach(service, "m", 200, 200 * k)
        begun = time.monotonic()
        os.kill(service.process.pid, signal.SIGTERM)
        assert service.process.wait() == 0
        assert time.monotonic() - begun < 5.0


def test_lines_of_csv_are_learnt_as_those_of_json(shared):
    rows = [{"heat": i / 4, "city": ["Rome", "Oslo"][i % 2], "y": i / 2 + (i % 2)} for i in range(60)]
    lines = "heat,city,y\n" + "".join(f'{row["heat"]},"{row["city"]}",{row["y"]}\r\n' for row in rows)
    answers = []
    for name, body, kind in (
        ("csv", lines.encode(), "text/csv"),
        ("json", "\n".join(map(json.dumps, rows)).encode(), "application/x-ndjson"),
    ):
        shared.request("PUT", f"/models/{name}", {})
        answers.append(shared.request("POST", f"/models/{name}/stream", raw=body, headers={"Content-Type": kind}))
    assert answers[0] == answers[1] and answers[0][0] == 200
    bad = {"Content-Type": "text/csv"}
    for body, status in ((b"a,a\n1,2\n", 400), (b"a,y\n1\n", 400), (b'a,y\n"1,2\n', 400), (b"a,y\n\xff,1\n", 400)):
        assert shared.request("POST", "/models/csv/stream", raw=body, headers=bad)[0] == status
    assert n_rows(shared, "csv") == 60
