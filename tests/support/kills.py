"""A service that is killed again and again under load: what it has learnt is compared with what it acknowledged."""

import http.client
import json
import random
import sqlite3
import threading
import time

from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.settings import ModelSettings
from support.service import Service

GONE = (OSError, http.client.HTTPException, ValueError)


class Client(threading.Thread):
    """Sends rows, each with an id of its own, again until it is acknowledged; every third one is labelled late."""

    def __init__(self, service, k, learnt):
        super().__init__(daemon=True)
        self.service, self.k, self.learnt = service, k, learnt
        self.random = random.Random(k)
        self.ended = threading.Event()
        self.wrong = []

    def run(self):
        i = 0
        while not self.ended.is_set():
            id = f"{self.k}-{i}"
            row = {"a": self.random.gauss(0, 1), "b": self.random.gauss(0, 1), "c": self.random.choice("uvw")}
            y = 2 * row["a"] + (row["c"] == "u") + self.random.gauss(0, 0.1)
            if i % 3 == 0:
                self.until_answered("predict", {"row": row, "id": id})
                answer = self.until_answered("learn", {"id": id, "y": y})
            else:
                answer = self.until_answered("learn", {"row": row, "y": y, "id": id})
            self.learnt.append((answer["n_rows"], row, y, answer["prediction"]))
            i += 1

    def until_answered(self, what, body):
        while True:
            try:
                status, answer = self.service.request("POST", f"/models/killed/{what}", body)
            except GONE:
                time.sleep(0.01)
                continue
            if status == 200:
                return answer
            if what == "predict" and status == 409 and "learnt already" in answer["detail"]:
                return answer
            self.wrong.append((status, answer))
            raise AssertionError((status, answer))


def killed(store, n_kills, seed=0, n_clients=8, longest=1.0, told=lambda n, rows: None):
    """What went wrong: rows lost, rows doubled, answers and models that differ from a replay."""
    rng, learnt = random.Random(seed), []
    service = Service(store)
    service.request("PUT", "/models/killed", {})
    clients = [Client(service, k, learnt) for k in range(n_clients)]
    for client in clients:
        client.start()
    for n in range(n_kills):
        time.sleep(rng.uniform(0.0, longest))
        service.kill()
        service.start()
        told(n + 1, len(learnt))
    time.sleep(0.2)
    for client in clients:
        client.ended.set()
    for client in clients:
        client.join()
    assert not [wrong for client in clients for wrong in client.wrong]
    n_rows = service.request("GET", "/models/killed")[1]["n_rows"]
    assert service.stop() == 0
    numbers = [number for number, *_ in learnt]
    own = LiveModel(ModelSettings())
    differ = 0
    for _, row, y, prediction in sorted(learnt, key=lambda each: each[0]):
        differ += own.learn(Rows([row], [y]), 0.0).predictions != [prediction]
    return {
        "acknowledged": len(learnt),
        "lost": len(set(range(1, n_rows + 1)) - set(numbers)) + sum(number > n_rows for number in numbers),
        "doubled": len(numbers) - len(set(numbers)),
        "answers that differ from a replay": differ,
        "the model differs from a replay": saved(store) != own.state()[1],
    }


def saved(store):
    """The bytes of the model in the last checkpoint."""
    db = sqlite3.connect(store / "store.sqlite")
    ((notes, data),) = db.execute("SELECT notes, data FROM checkpoints").fetchall()
    assert json.loads(notes)["n_rows"]
    db.close()
    return data
