"""What is told: events, alarms, metrics; and the client."""

import http.client
import http.server
import json
import re
import threading
import time

import numpy as np
import pytest

from streamlasso.client import Client, ServiceError
from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.settings import ModelSettings
from support.service import SLOW


class Listener(threading.Thread):
    """Keeps the events of /events."""

    def __init__(self, service, query="", headers=None):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=SLOW)
        self.connection.request("GET", f"/events{query}", headers=headers or {})
        self.answer = self.connection.getresponse()
        self.answer.readline()
        self.events = []
        self.start()

    def run(self):
        event = {}
        while line := self.answer.readline():
            name, _, value = line.decode().strip().partition(": ")
            if name:
                event[name] = value
            elif event:
                self.events.append(event)
                event = {}

    def first(self, event_kind, **fields):
        """The data of the first event of a kind with these fields."""
        deadline = time.monotonic() + SLOW
        while time.monotonic() < deadline:
            for event in list(self.events):
                data = json.loads(event.get("data", "{}"))
                if event.get("event") == event_kind and fields.items() <= data.items():
                    return data
            time.sleep(0.02)
        raise TimeoutError(event_kind)


def test_rows_and_refusals_are_told_as_they_come(shared, model):
    listener = Listener(shared, f"?model={model}")
    shared.request("POST", f"/models/{model}/learn", {"rows": [{"x": i / 3} for i in range(200)], "y": [1.5] * 200})
    rows = listener.first("rows", n_rows=200)
    assert rows["columns"]["row"][-1] == 199
    assert len(rows["columns"]["row"]) <= 50
    shared.learn(model, {"x": "text"}, 1.0)
    assert listener.first("refused")["status"] == 422
    assert not [
        event for event in listener.events if json.loads(event.get("data", "{}")).get("model") not in (None, model)
    ]


def test_a_listener_that_was_away_is_told_what_it_missed(shared):
    shared.request("PUT", "/models/missed", {})
    listener = Listener(shared)
    shared.request("DELETE", "/models/missed")
    listener.first("model", model="missed", what="deleted")
    id = next(event["id"] for event in listener.events if "deleted" in event.get("data", ""))
    again = Listener(shared, headers={"Last-Event-ID": str(int(id) - 1)})
    assert again.first("model", model="missed")["what"] == "deleted"


@pytest.fixture(scope="module")
def posted():
    """A server that keeps what is posted to it, and refuses the first time."""
    kept = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            kept.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(503 if len(kept) == 1 else 204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield kept, f"http://127.0.0.1:{server.server_port}/secret-path"
    server.shutdown()


def test_alarms_are_told_to_listeners_metrics_and_a_webhook(started, posted):
    kept, address = posted
    service = started("--webhook", address)
    service.request("PUT", "/models/m", {"label_timeout": 0.2})
    listener = Listener(service)
    rng = np.random.default_rng(0)
    learn = lambda rows: service.request("POST", "/models/m/learn", {"rows": rows, "y": [r["a"] or 0.0 for r in rows]})  # noqa: E731
    rows = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(300, 2))]
    assert learn([*rows[:290], *({**row, "b": None} for row in rows[290:])])[0] == 200
    assert learn([{**row, "b": None} for row in rows[:60]])[0] == 200
    assert "'b'" in listener.first("alarm", kind="missing", firing=True)["detail"]
    assert learn([{"a": 1000.0, "b": 0.0}])[0] == 200
    assert "'a' is 1,000" in listener.first("alarm", kind="range", firing=True)["detail"]
    assert listener.first("alarm", kind="missing", firing=False)
    time.sleep(0.3)
    service.predict("m", {"a": 1.0})
    assert listener.first("alarm", kind="labels", firing=True)
    assert service.request("GET", "/models")[1]["models"][0]["alarms"] == ["labels", "range"]
    text = service.request("GET", "/metrics")[1].decode()
    assert 'streamlasso_alarm{model="m",kind="labels"} 1' in text
    assert 'streamlasso_learnt_rows_total{model="m"} 361' in text
    marks = service.request("GET", "/models/m/history")[1]["marks"]
    assert next(mark["kind"] for mark in marks if mark["kind"] != "change") == "missing"
    deadline = time.monotonic() + SLOW
    while not any(told["kind"] == "labels" for told in kept) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert kept[0] == kept[1], "the first one was not taken, and is sent again"
    assert all(told["event"] == "alarm" for told in kept)
    assert next(told["kind"] for told in kept if told["kind"] != "change") == "missing"
    assert b"secret-path" not in service.printed()


def test_the_loss_above_the_baseline_is_an_alarm_until_it_is_not():
    """The response turns round and round: no linear model follows, and the mean does."""
    model = LiveModel(ModelSettings(tuner="logrms", memory=5, lags={}))
    rng = np.random.default_rng(1)
    a = rng.normal(size=600).tolist()
    y = [value * (1 if i // 7 % 2 else -1) for i, value in enumerate(a)]
    alarms = model.learn(Rows([{"a": value} for value in a], y), 0.0).alarms
    alarms += model.learn(Rows([{"a": value} for value in a], a), 0.0).alarms
    alarms += model.learn(Rows([{"a": value} for value in a], a), 0.0).alarms
    assert [alarm.firing for alarm in alarms if alarm.kind == "loss"] == [True, False]


def test_metrics_are_what_prometheus_reads(shared, model):
    shared.learn(model, {"x": 1.0}, 2.0)
    text = shared.request("GET", "/metrics")[1].decode()
    sample = re.compile(r'^[a-z_:]+(\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\})? -?[0-9.e+-]+$')
    lines = text.splitlines()
    assert all(line.startswith("# ") or sample.match(line) for line in lines)
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(typed) == len(set(typed))
    buckets = [int(line.split()[1]) for line in lines if line.startswith("streamlasso_commit_seconds_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] > 0


# --- the client -------------------------------------------------------------------------------------------------------


def test_the_client_learns_once_while_the_service_restarts(started):
    service = started()
    address = f"http://127.0.0.1:{service.port}"
    client = Client(address)
    assert client.create("m", target="load") and not client.create("m", target="load")
    for i in range(10):
        client.learn("m", {"x": i}, 1.5 * i)
    client.predict("m", {"x": 10}, id="w")
    service.kill()
    found = []
    thread = threading.Thread(target=lambda: found.append(client.label("m", "w", 15.0)))
    thread.start()
    service.start()
    thread.join(SLOW)
    assert found[0]["n_rows"] == 11
    assert client.model("m")["n_rows"] == 11
    assert len(client.learn_many("m", [{"x": 1}, {"x": 2}], [1.5, 3.0])) == 2
    assert client.history("m")["n_rows"] == 13
    with pytest.raises(ServiceError, match="404"):
        client.label("m", "nobody", 1.0)
    client.delete("m")
    assert client.models() == []


def test_a_client_gives_up_in_the_end(tmp_path):
    client = Client("http://127.0.0.1:9", patience=0.2)
    with pytest.raises(OSError):
        client.models()
    with pytest.raises(ValueError, match="not the address"):
        Client("127.0.0.1:9")
