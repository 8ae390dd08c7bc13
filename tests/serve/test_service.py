"""Rows in, predictions out, over HTTP."""

import io
import json

import numpy as np
import pyarrow
import pytest

from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.settings import ModelSettings


def stream(n, seed=0, classes=False):
    """Rows of numbers, text, dates and holes, and labels."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for i in range(n):
        a, b = rng.normal(size=2).round(6).tolist()
        city = ["Rome", "Oslo", "Bern"][rng.integers(3)]
        day = f"2024-{1 + i // 28 % 12:02d}-{1 + i % 28:02d}"
        rows.append({"a": a, "b": b if rng.random() < 0.9 else None, "city": city, "day": day})
        y = round(2 * a + 3 * (city == "Rome") + 0.1 * float(rng.normal()), 6)
        labels.append(("high" if y > 1 else "low") if classes else y)
    return rows, labels


@pytest.mark.parametrize("classes", [False, True])
def test_what_it_predicts_is_what_a_model_in_process_predicts(shared, model, classes):
    rows, labels = stream(200, classes=classes)
    own = LiveModel(ModelSettings())
    for start, stop in ((0, 1), (1, 7), (7, 200)):
        body = {"rows": rows[start:stop], "y": labels[start:stop]}
        status, answer = shared.request("POST", f"/models/{model}/learn", body)
        expected = own.learn(Rows(rows[start:stop], labels[start:stop]), 0.0)
        assert (status, answer["n_rows"]) == (200, stop)
        assert [result["prediction"] for result in answer["results"]] == expected.predictions
    new, _ = stream(5, seed=1)
    status, answer = shared.request("POST", f"/models/{model}/predict", {"rows": new})
    assert status == 200
    assert [each["prediction"] for each in answer["predictions"]] == [each["prediction"] for each in own.predict(new)]


def test_rows_one_by_one_and_in_batches_are_the_same_model(shared, model):
    rows, labels = stream(150)
    own = LiveModel(ModelSettings())
    own.learn(Rows(rows, labels), 0.0)
    for row, label in zip(rows, labels, strict=True):
        assert shared.learn(model, row, label)[0] == 200
    told = shared.request("GET", f"/models/{model}")[1]
    assert told["models"][0]["intercept"] == own.learning.learners[0].single().intercept
    assert told["loss"]["n"] == 149


def test_a_label_that_comes_later(shared, model):
    rows, labels = stream(40)
    for i, row in enumerate(rows[:30]):
        shared.learn(model, row, labels[i])
    status, predicted = shared.predict(model, rows[30], id="late")
    assert status == 200
    assert shared.request("GET", f"/models/{model}")[1]["n_waiting"] == 1
    assert shared.request("GET", f"/models/{model}/explain/late")[1]["prediction"] == predicted["prediction"]
    status, learnt = shared.request("POST", f"/models/{model}/learn", {"id": "late", "y": labels[30]})
    assert (status, learnt["n_rows"], learnt["prediction"]) == (200, 31, predicted["prediction"])
    told = shared.request("GET", f"/models/{model}")[1]
    assert (told["n_waiting"], told["n_rows"]) == (0, 31)


def test_a_retry_gets_the_same_answer_and_nothing_is_learnt_twice(shared, model):
    rows, labels = stream(10)
    first = [
        shared.learn(model, row, label, id=f"r{i}") for i, (row, label) in enumerate(zip(rows, labels, strict=True))
    ]
    again = [
        shared.learn(model, row, label, id=f"r{i}") for i, (row, label) in enumerate(zip(rows, labels, strict=True))
    ]
    assert first == again
    batch, key = {"rows": rows, "y": labels}, {"Idempotency-Key": "all of them"}
    once = shared.request("POST", f"/models/{model}/learn", batch, key)
    assert shared.request("POST", f"/models/{model}/learn", batch, key) == once
    assert shared.request("GET", f"/models/{model}")[1]["n_rows"] == 20
    twice = shared.predict(model, rows[0], id="w"), shared.predict(model, rows[0], id="w")
    assert twice[0] == twice[1]


def test_ids_of_several_rows(shared, model):
    rows, labels = stream(6)
    ids = [f"i{k}" for k in range(6)]
    status, answer = shared.request("POST", f"/models/{model}/predict", {"rows": rows[:3], "ids": ids[:3]})
    assert (status, [each["id"] for each in answer["predictions"]]) == (200, ids[:3])
    body = {"rows": rows, "ids": ids, "y": labels}
    status, answer = shared.request("POST", f"/models/{model}/learn", body)
    assert (status, answer["n_rows"], [each["id"] for each in answer["results"]]) == (200, 6, ids)
    assert shared.request("POST", f"/models/{model}/learn", {"ids": ids, "y": labels}) == (status, answer)


@pytest.mark.parametrize("arrow", [False, True])
def test_a_stream_is_predicted_then_learnt(shared, model, arrow):
    rows, labels = stream(1203)
    flat = [{**row, "y": label} for row, label in zip(rows, labels, strict=True)]
    if arrow:
        table, sink = pyarrow.Table.from_pylist(flat), io.BytesIO()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        body, kind = sink.getvalue(), "application/vnd.apache.arrow.stream"
    else:
        body, kind = "\n".join(map(json.dumps, flat)).encode(), "application/x-ndjson"
    headers = {"Content-Type": kind, "Idempotency-Key": "s"}
    status, found = shared.request("POST", f"/models/{model}/stream", raw=body, headers=headers)
    answers = [json.loads(line) for line in found.splitlines()]
    own = LiveModel(ModelSettings()).learn(Rows(rows, labels), 0.0)
    assert (status, len(answers)) == (200, 1203)
    assert [answer["prediction"] for answer in answers] == own.predictions
    assert shared.request("POST", f"/models/{model}/stream", raw=body, headers=headers) == (200, found)
    assert shared.request("GET", f"/models/{model}")[1]["n_rows"] == 1203


def test_what_is_told_of_a_model(shared, model):
    rows, labels = stream(300)
    shared.request("POST", f"/models/{model}/learn", {"rows": rows, "y": labels})
    told = shared.request("GET", f"/models/{model}")[1]
    coefficients = {each["feature"]: each for each in told["models"][0]["coefficients"]}
    assert coefficients["a"]["coef"] == pytest.approx(2, abs=0.3)
    others = [each["coef"] for name, each in coefficients.items() if name.startswith("city") and "Rome" not in name]
    assert coefficients["city = Rome"]["coef"] - np.mean(others) == pytest.approx(3, abs=1)
    assert sum(each["importance"] for each in coefficients.values()) == pytest.approx(1)
    assert told["loss"]["model"] < told["loss"]["baseline"]
    listed = shared.request("GET", "/models")[1]["models"]
    assert told["loss"]["model"] == next(each["loss"] for each in listed if each["name"] == model)


def test_history_is_means_of_stretches(shared, model):
    rows, labels = stream(1000)
    answer = shared.request("POST", f"/models/{model}/learn", {"rows": rows, "y": labels})[1]
    found = shared.request("GET", f"/models/{model}/history?points=100")[1]
    columns = found["columns"]
    assert (found["stretch"], found["n_rows"], columns["row"][-1]) == (10, 1000, 999)
    assert {len(values) for values in columns.values()} == {100}
    assert columns["y"] == pytest.approx(np.reshape(labels, (100, 10)).mean(axis=1))
    assert columns["y_high"] == pytest.approx(np.reshape(labels, (100, 10)).max(axis=1))
    losses = [result["loss"] for result in answer["results"][500:510]]
    assert columns["loss"][50] == pytest.approx(np.mean(losses))
    few = shared.request("GET", f"/models/{model}/history?points=5000&from=990&to=995")[1]["columns"]
    assert (few["row"], few["y"]) == (list(range(990, 995)), labels[990:995])


def test_settings_once_made_stay(shared):
    put = lambda settings: shared.request("PUT", "/models/settings", settings)[0]  # noqa: E731
    assert [put({"memory": 500}), put({"memory": 500}), put({}), put({"memory": -3}), put({"nosuch": 1})] == [
        201, 200, 409, 422, 422,
    ]  # fmt: skip
    assert shared.request("DELETE", "/models/settings")[0] == 204
    assert shared.request("GET", "/models/settings")[0] == 404
    assert put({}) == 201
