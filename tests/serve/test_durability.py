"""What was acknowledged is there after a kill, once; a disk that is full loses nothing."""

import resource
import sqlite3
import time
from types import SimpleNamespace

import numpy as np
import pytest

from streamlasso.serve.learning.history import COLUMNS
from streamlasso.serve.store.database import Checkpoint, Database
from streamlasso.serve.store.log import Entry, Log
from support.kills import killed

pytestmark = pytest.mark.posix


def test_kills_under_load_lose_and_double_nothing(tmp_path):
    found = killed(tmp_path / "store", n_kills=3, longest=0.7)
    assert found.pop("acknowledged") > 50
    assert set(found.values()) == {0}


def test_waiting_rows_and_answers_survive(started):
    service = started()
    service.request("PUT", "/models/m", {})
    before = [service.learn("m", {"x": i}, 2.5 * i, id=f"l{i}") for i in range(20)]
    waiting = service.predict("m", {"x": 30}, id="w")
    told = service.request("GET", "/models/m")[1]
    service.kill()
    service.start()
    again = service.request("GET", "/models/m")[1]
    assert {**told, "n_predictions": 0, "rows_per_second": 0} == {**again, "n_predictions": 0, "rows_per_second": 0}
    assert service.predict("m", {"x": 30}, id="w") == waiting
    assert [service.learn("m", {"x": i}, 2.5 * i, id=f"l{i}") for i in range(20)] == before
    assert service.request("POST", "/models/m/learn", {"id": "w", "y": 75})[1]["n_rows"] == 21
    assert service.request("GET", "/models/m/history")[1]["n_rows"] == 21
    the_log_is_cut_at_checkpoints(service)


def the_log_is_cut_at_checkpoints(service):
    for k in range(11):
        body = {"rows": [{"x": float(i + k)} for i in range(1000)], "y": [i % 7 * 1.5 for i in range(1000)]}
        assert service.request("POST", "/models/m/learn", body)[0] == 200
    deadline = time.monotonic() + 60
    while logged(service) > 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert logged(service) <= 2
    before = service.request("GET", "/models/m/history?points=300")[1]
    service.kill()
    service.start()
    assert service.request("GET", "/models/m/history?points=300")[1] == before
    assert before["n_rows"] == 11_021


def logged(service):
    text = service.request("GET", "/metrics")[1].decode()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("streamlasso_log_rows ")))


def test_a_full_disk_refuses_learns_and_goes_on_predicting(started):
    service = started()
    service.request("PUT", "/models/m", {})
    for i in range(10):
        service.learn("m", {"x": i}, 2.5 * i, id=f"l{i}")
    told = service.request("GET", "/models/m")[1]
    size = max(path.stat().st_size for path in service.store.iterdir())
    everything = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, everything[1]))
    statuses = {service.learn("m", {"x": i, "pad": "p" * 5000}, 1.5, id=f"f{i}")[0] for i in range(5)}
    assert statuses == {507}
    assert service.predict("m", {"x": 3})[0] == 200
    assert service.predict("m", {"x": 3, "pad": "p" * 5000}, id="w")[0] == 507
    assert service.request("GET", "/healthz")[1]["status"] == "full"
    again = service.request("GET", "/models/m")[1]
    same = ("n_rows", "models", "features")
    assert [again[name] for name in same] == [told[name] for name in same]
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, everything)
    assert service.learn("m", {"x": 10}, 25.0, id="f0")[1]["n_rows"] == 11
    assert service.request("GET", "/healthz")[1]["status"] == "ok"
    service.kill()
    service.start()
    assert service.request("GET", "/models/m")[1]["n_rows"] == 11


def test_a_second_service_on_the_same_store_is_refused(started):
    service = started()
    with pytest.raises(RuntimeError, match="in use by another streamlasso"):
        started()
    assert service.request("GET", "/healthz")[0] == 200


def test_a_store_of_a_newer_version_is_refused_untouched(tmp_path):
    Database(tmp_path).close()
    db = sqlite3.connect(tmp_path / "store.sqlite")
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = (tmp_path / "store.sqlite").read_bytes()
    with pytest.raises(ValueError, match="upgrade it"):
        Database(tmp_path)
    assert (tmp_path / "store.sqlite").read_bytes() == before


def test_a_database_of_somebody_else_is_refused_untouched(tmp_path):
    db = sqlite3.connect(tmp_path / "store.sqlite")
    db.execute("CREATE TABLE mine (a)")
    db.close()
    with pytest.raises(ValueError, match="not a store"):
        Database(tmp_path)


def test_waiting_rows_expire_and_are_told(started):
    service = started()
    service.request("PUT", "/models/m", {"waiting_most": 3})
    service.request("PUT", "/models/old", {"waiting_age": 0.5})
    service.predict("old", {"x": 1.0}, id="o")
    for i in range(5):
        assert service.predict("m", {"x": float(i)}, id=f"w{i}")[0] == 200
    statuses = [service.request("POST", "/models/m/learn", {"id": f"w{i}", "y": 1.0})[0] for i in range(5)]
    assert statuses == [410, 410, 200, 200, 200]
    assert service.request("GET", "/models/m")[1]["n_expired"] == 2
    deadline = time.monotonic() + 30
    while service.request("GET", "/models/old")[1]["n_waiting"] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert service.request("POST", "/models/old/learn", {"id": "o", "y": 1.0})[0] == 410
    assert service.request("POST", "/models/old/learn", {"id": "never", "y": 1.0})[0] == 404


class Asked:
    """A request to learn a row."""

    def __init__(self, model):
        self.model, self.problem = model, None
        self.entries = [Entry(None, [1.0], [{"x": 1.0}])]


def test_the_log_loses_what_checkpoints_have_and_nothing_else(tmp_path):
    """Three models that are saved at times of their own: whatever is removed when, what a replay needs is there."""
    rng = np.random.default_rng(0)
    database = Database(tmp_path)
    log = Log(database)
    models = [SimpleNamespace(number=database.add_model(name, "{}").id, is_there=True) for name in "abc"]
    logged: dict[int, list[int]] = {model.number: [] for model in models}
    saved = dict.fromkeys(logged, 0)
    largest = 0
    for part in range(400):
        requests = [Asked(models[rng.choice(3, p=[0.7, 0.25, 0.05])]) for _ in range(rng.integers(1, 20))]
        assert log.append(requests, 0.0) == []
        for request in requests:
            logged[request.model.number].append(request.entries[0].seq)
        for number in logged:
            kept = [entry.seq for _, entries in log.parts(number, saved[number], 2**62) for entry in entries]
            assert kept == [seq for seq in logged[number] if seq > saved[number]]
        number = models[part % 3].number
        if part % 7 == 0 and logged[number]:
            saved[number] = logged[number][-1]
            nothing = np.empty((0, len(COLUMNS)))
            database.save(Checkpoint(number, saved[number], 0.0, "{}", None, 0, nothing))
            log.in_checkpoints[number] = saved[number]
        needed = sum(seq > saved[number] for number in logged for seq in logged[number])
        largest = max(largest, log.n_entries - needed)
    assert 0 < largest < 1000
    log.tidy()
    assert log.n_entries == needed == database.db.execute("SELECT count(*) FROM log").fetchone()[0]
    database.close()
