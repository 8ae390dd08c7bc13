"""A run is predict-then-learn on the file's rows: the same numbers as by hand, in every format, however rows come."""

import gzip
import io
import json
import os
import queue
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import csv, parquet
from sklearn.metrics import log_loss

from streamlasso import RAPClassifier, RAPRegressor, progressive
from streamlasso.cli import main
from streamlasso.memories import Window
from streamlasso.report.fit import Fit
from streamlasso.report.run.results import caveats
from streamlasso.report.summarise import MOST_STRETCHES, SUMS, Snapshot, Summariser
from streamlasso.run.options import Options
from streamlasso.run.run import Run, Watcher
from streamlasso.tuners import LogRMS

NUMBERS = ("loss", "lam", "lam_max", "n_active", "effective_size", "slope")


def numbers_csv(path, n=700, p=5, seed=0, labels=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    eta = X[:, 0] * np.where(np.arange(n) < n // 2, 2, -2)
    y = eta + rng.normal(size=n) if labels is None else np.array(labels)[(eta + rng.logistic(size=n) > 0).astype(int)]
    names = [f"x{j}" for j in range(p)]
    rows = [",".join([*map(repr, x), str(v)]) for x, v in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join([",".join([*names, "y"]), *rows]) + "\n")
    return X, y


def test_numbers_are_predicted_and_learnt_as_progressive_does(tmp_path, go):
    X, y = numbers_csv(tmp_path / "data.csv")
    run, predicted, trace = go(tmp_path / "data.csv", lags={})
    model = RAPRegressor()
    expected = progressive(model, X, y)
    np.testing.assert_array_equal(predicted["prediction"].to_numpy(), expected.prediction)
    np.testing.assert_array_equal(predicted["y"].to_numpy(), y)
    np.testing.assert_array_equal(predicted["row"].to_numpy(), np.arange(700))
    for name in (*NUMBERS, "baseline"):
        np.testing.assert_array_equal(trace[name].to_numpy(), expected[name], err_msg=name)
    np.testing.assert_array_equal(trace["status"].to_numpy(zero_copy_only=False), expected.status)
    np.testing.assert_array_equal(run.model.estimator.coef_, model.coef_)
    np.testing.assert_array_equal(trace["persistence"].to_numpy()[1:], (np.diff(y)) ** 2 / 2)


@pytest.mark.parametrize("labels", [("down", "up"), (0, 1)])
def test_classes_are_predicted_and_learnt_as_progressive_does(labels, tmp_path, go):
    X, y = numbers_csv(tmp_path / "data.csv", labels=labels)
    run, predicted, trace = go(tmp_path / "data.csv")
    model = RAPClassifier()
    expected = progressive(model, X, y)
    assert predicted["prediction"].to_pylist() == expected.prediction.tolist()
    for name in NUMBERS:
        np.testing.assert_array_equal(trace[name].to_numpy(), expected[name], err_msg=name)
    np.testing.assert_allclose(trace["baseline"].to_numpy(), expected.baseline, rtol=1e-12)
    right = predicted["probability"].to_numpy()
    chosen = predicted["prediction"].to_numpy(zero_copy_only=False) == y
    assert log_loss(chosen, right) == pytest.approx(expected.loss.mean())
    np.testing.assert_array_equal(run.model.estimator.coef_, model.coef_)


def test_persistence_of_classes_is_how_often_each_followed_the_last(tmp_path, go):
    _, y = numbers_csv(tmp_path / "data.csv", n=80, labels=("a", "b"))
    _, _, trace = go(tmp_path / "data.csv")
    for t in range(1, 80):
        after = [y[i + 1] for i in range(t - 1) if y[i] == y[t - 1]]
        share = (after.count(y[t]) + 0.5) / (len(after) + 1)
        assert trace["persistence"][t].as_py() == pytest.approx(-np.log(share))


@pytest.mark.parametrize("options", [{"memory": "0.95"}, {"memory": "50"}, {"tuner": "logrms"}])
def test_memory_and_tuner_are_obeyed(options, tmp_path, go):
    X, y = numbers_csv(tmp_path / "data.csv", n=200)
    _, predicted, _ = go(tmp_path / "data.csv", lags={}, **options)
    memory = {"0.95": 0.95, "50": Window(50), None: None}[options.get("memory")]
    tuner = LogRMS() if options.get("tuner") == "logrms" else None
    expected = progressive(RAPRegressor(memory=memory, tuner=tuner), X, y)
    np.testing.assert_array_equal(predicted["prediction"].to_numpy(), expected.prediction)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "tsv", "csv.gz"])
def test_the_format_of_the_data_does_not_matter(form, mixed, tmp_path, go):
    table = mixed()
    csv.write_csv(table, tmp_path / "data.csv")
    path = tmp_path / f"data.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif form == "parquet":
        parquet.write_table(table, path)
    elif form == "tsv":
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t"))
    else:
        path.write_bytes(gzip.compress((tmp_path / "data.csv").read_bytes()))
    _, expected, _ = go(tmp_path / "data.csv", out="one", lags={"y": [1, 5]})
    _, predicted, _ = go(path, out="other", lags={"y": [1, 5]})
    assert predicted.equals(expected)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "tsv"])
def test_the_format_of_the_predictions_does_not_matter(form, mixed_csv, tmp_path, go):
    _, expected, _ = go(mixed_csv, out="one")
    _, predicted, _ = go(mixed_csv, out="other", predictions=tmp_path / f"predicted.{form}")
    assert predicted["prediction"].to_pylist() == expected["prediction"].to_pylist()
    assert list(map(str, predicted["time"].to_pylist())) == list(map(str, expected["time"].to_pylist()))


def test_how_rows_come_through_a_pipe_does_not_matter(mixed_csv, tmp_path, go, monkeypatch):
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 100)
    _, expected, whole = go(mixed_csv, out="file", lags={"y": [1]})
    data = mixed_csv.read_bytes()
    cuts = np.sort(np.random.default_rng(0).integers(len(data), size=150))

    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if b > a]

    class Dribble(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            piece = pieces.pop(0) if pieces else b""
            buffer[: len(piece)] = piece
            return len(piece)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Dribble(), 1 << 16)))
    _, predicted, trace = go("-", out="pipe", lags={"y": [1]})
    assert predicted.equals(expected)
    assert trace.equals(whole)


def test_predictions_can_be_followed_while_the_pipe_is_open(tmp_path, monkeypatch):
    numbers_csv(tmp_path / "data.csv", n=130)
    lines = (tmp_path / "data.csv").read_bytes().splitlines(keepends=True)
    source, sink = os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(source, "rb")))
    os.write(sink, b"".join(lines[:120]))
    learnt: queue.Queue[int] = queue.Queue()

    class Tells(Watcher):
        def learnt(self, run, rows, outcomes):
            learnt.put(run.n_rows)

    run = Run(Options("-", "y", tmp_path / "out"), watcher=Tells())
    worker = threading.Thread(target=run.go)
    worker.start()
    path = tmp_path / "out" / "predictions.csv"
    for n in (119, 122):
        while learnt.get(timeout=60) < n:
            pass
        assert path.read_text().count("\n") == n + 1, "a row that has come is predicted before the next comes"
        os.write(sink, b"".join(lines[120:123])) if n == 119 else None
    os.close(sink)
    worker.join(20)
    assert not worker.is_alive()


def test_late_features_are_as_if_they_had_been_0_all_along(mixed_csv, mixed, go):
    run, predicted, _ = go(mixed_csv, drop=("when",), lags={})
    table = mixed()
    z = table["z"].to_pylist()
    filled = [next(v for v in reversed(z[: i + 1]) if v is not None) for i in range(len(z))]
    city = np.array(table["city"].to_pylist())
    columns = {"x": table["x"].to_numpy(), "z": filled, "z missing": [float(v is None) for v in z]}
    columns |= {f"city = {name}": (city == name).astype(float) for name in ("Rome", "Oslo", "Lima", "Pisa")}
    X = np.column_stack([columns[name] for name in run.model.encoder.features])
    expected = progressive(RAPRegressor(), X, table["y"].to_numpy())
    np.testing.assert_allclose(predicted["prediction"].to_numpy(), expected.prediction, atol=1e-7)


def test_rows_without_a_target_are_predicted_and_not_learnt(tmp_path, go):
    numbers_csv(tmp_path / "data.csv", n=300)
    lines = (tmp_path / "data.csv").read_text().splitlines()
    rng = np.random.default_rng(3)
    empty = np.sort(rng.choice(np.arange(1, 300), size=60, replace=False))
    for i in empty:
        lines[i + 1] = lines[i + 1].rpartition(",")[0] + ","
    (tmp_path / "holes.csv").write_text("\n".join(lines) + "\n")
    there = np.setdiff1d(np.arange(300), empty)
    (tmp_path / "rest.csv").write_text("\n".join([lines[0], *(lines[i + 1] for i in there)]) + "\n")
    _, predicted, trace = go(tmp_path / "holes.csv", out="holes")
    _, expected, whole = go(tmp_path / "rest.csv", out="rest")
    assert len(predicted) == 300
    assert predicted["y"].null_count == trace["loss"].null_count == 60
    assert predicted["prediction"].null_count == 0
    np.testing.assert_array_equal(predicted["prediction"].to_numpy()[there], expected["prediction"].to_numpy())
    np.testing.assert_array_equal(trace["baseline"].to_numpy()[there], whole["baseline"].to_numpy())
    np.testing.assert_array_equal(trace["persistence"].to_numpy()[there], whole["persistence"].to_numpy())


def test_rows_without_a_target_are_counted(tmp_path, capsys, undrawn):
    lines = [f"{i % 7},{i % 5 / 2 if i % 50 else ''}" for i in range(200)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    assert main(["run", str(tmp_path / "data.csv"), "--target", "y", "--out", str(tmp_path / "out")]) == 0
    words = "4 rows of 200 had no y: they were predicted, not learnt"
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in (tmp_path / "out" / "report.html").read_text()


def european(lines):
    """The same table as a program in Europe would write it."""
    cells = [
        [cell.replace(".", ",") if cell[:1] in "-0123456789" else cell for cell in line.split(",")] for line in lines
    ]
    return "\r\n".join(";".join([*row, "", ""]) for row in cells) + "\r\n"


def test_decimal_commas_do_not_matter(mixed_csv, tmp_path, go):
    (tmp_path / "europe.csv").write_text(european(mixed_csv.read_text().replace('"', "").splitlines()))
    _, expected, whole = go(mixed_csv, out="point", lags={"y": [1]})
    run, predicted, trace = go(tmp_path / "europe.csv", out="comma", lags={"y": [1]})
    assert predicted.equals(expected)
    assert trace.equals(whole)
    assert any(" is read as " in note and note.endswith("(columns x, z and y)") for note in run.model.encoder.notes)


def test_whole_numbers_are_classes_as_text_is(tmp_path, go, monkeypatch):
    """Also one that comes late, and to the bit."""
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] > 0) + 2 * ((X[:, 1] > 0.5) & (np.arange(600) >= 300))
    for name, labels in {"numbers": "0123", "words": "abcd"}.items():
        rows = [",".join([*map(repr, x), labels[k]]) for x, k in zip(X.tolist(), y, strict=True)]
        (tmp_path / f"{name}.csv").write_text("a,b,c,y\n" + "\n".join(rows) + "\n")
    run, predicted, trace = go(tmp_path / "numbers.csv", out="numbers", family="binomial")
    _, expected, whole = go(tmp_path / "words.csv", out="words")
    assert set(run.model.labels) == {0, 1, 2, 3}
    assert ["abcd"[k] for k in predicted["prediction"].to_pylist()] == expected["prediction"].to_pylist()
    assert predicted["probability"].equals(expected["probability"])
    assert trace["loss"].equals(whole["loss"])


def test_a_class_may_appear_late(tmp_path, go, monkeypatch):
    """The third class comes at row 400 and is soon recognised; before, it is never named."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] > 0, "up", "down").astype(object)
    y[400:] = np.where(X[400:, 1] > 0.7, "third", y[400:])
    text = "\n".join(f"{a!r},{b!r},{c!r},{label}" for (a, b, c), label in zip(X.tolist(), y, strict=True))
    (tmp_path / "data.csv").write_text("a,b,c,y\n" + text + "\n")
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 100)
    run, predicted, trace = go(tmp_path / "data.csv")
    prediction = np.array(predicted["prediction"].to_pylist())
    assert run.model.labels == ["down", "up", "third"]
    first = int(np.flatnonzero(y == "third")[0])
    assert "third" not in prediction[:first]
    assert np.mean(prediction[600:] == y[600:]) > 0.85
    assert np.mean(prediction[600:][y[600:] == "third"] == "third") > 0.7
    assert np.isfinite(trace["loss"].to_numpy()).all()
    assert np.all((predicted["probability"].to_numpy() > 0) & (predicted["probability"].to_numpy() <= 1))
    frame = pd.DataFrame(X[:5], columns=["a", "b", "c"])
    assert run.model.estimator.predict_proba(frame).shape == (5, 3)


def test_the_past_of_the_target_alone_will_do(tmp_path, go):
    """A chain of three states in which each is mostly followed by the next; nothing but the state before is known."""
    rng = np.random.default_rng(0)
    states, now = [], 0
    for _ in range(400):
        now = (now + 1) % 3 if rng.random() < 0.9 else int(rng.integers(3))
        states.append("abc"[now])
    (tmp_path / "data.csv").write_text("n,y\n" + "".join(f"1,{state}\n" for state in states))
    run, predicted, _ = go(tmp_path / "data.csv", drop=("n",), lags={"y": [1]})
    assert run.model.encoder.features == ["y lag 1 = a", "y lag 1 = b", "y lag 1 = c"]
    right = np.array(predicted["prediction"].to_pylist()) == np.array(states)
    assert right[100:].mean() > 0.85


def test_the_first_class_may_come_alone_for_long(tmp_path, go, monkeypatch):
    X, y = numbers_csv(tmp_path / "data.csv", n=500, labels=("a", "b"))
    y[:150] = "a"
    rows = [",".join([*map(repr, x), label]) for x, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "data.csv").write_text("x0,x1,x2,x3,x4,y\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 100)
    _, predicted, trace = go(tmp_path / "data.csv")
    expected = progressive(RAPClassifier(), X, y)
    np.testing.assert_array_equal(trace["loss"].to_numpy(), expected.loss)
    assert predicted["prediction"].to_pylist() == expected.prediction.tolist()


# --- the summary ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 37, 64, 701])
def test_the_summary_is_what_the_trace_says(n, tmp_path, go, monkeypatch):
    """By brute force from the trace and from a model learnt row by row, with stretches of 1 to 64 rows."""
    monkeypatch.setattr("streamlasso.model.start.Summariser", lambda most: Summariser(most=16))
    X, y = numbers_csv(tmp_path / "data.csv", n=max(n, 2))
    run, _, trace = go(tmp_path / "data.csv")
    summary = run.summary()
    n = max(n, 2)
    assert len(summary.t) <= 16
    assert summary.rows.sum() == summary.n_rows == n
    assert summary.size & (summary.size - 1) == 0
    assert len(summary.t) > 7 or n < 16
    model, stop = RAPRegressor(), 0
    for k, rows in enumerate(summary.rows):
        start, stop = stop, stop + rows
        part = slice(max(start, 1), stop)
        for name in ("loss", "baseline", "persistence"):
            values = trace[name].to_numpy()[part]
            np.testing.assert_allclose(getattr(summary, name)[k], values.mean() if len(values) else np.nan, rtol=1e-12)
        lam = trace["lam"].to_numpy()[start:stop]
        np.testing.assert_array_equal(summary.lam_range[k, :, 0], [lam.min(), lam.max()])
        model.partial_fit(X[start:stop], y[start:stop])
        np.testing.assert_array_equal(summary.coef[k], model.selected_.coef)
        assert summary.t[k] == stop - 1
    loss = trace["loss"].to_numpy()
    np.testing.assert_allclose(summary.mean_loss, loss[1:].mean(), rtol=1e-12)
    worst = sorted(range(1, n), key=lambda i: -loss[i])[:5]
    assert [t for t, _ in summary.worst] == worst


def test_the_summary_is_bounded(tmp_path):
    summariser = Summariser()
    snapshot = Snapshot(np.ones(1), np.ones(1), np.ones((1, 2)), np.ones(1), 1.0)
    n = 0
    while n < 100_000:
        rows = min(summariser.room, 97)
        fit = Fit.of_numbers(np.ones(rows), np.ones(rows))
        summariser.add(np.ones((rows, len(SUMS))), fit, np.ones((rows, 1)), np.ones((rows, 2)), n, lambda: snapshot)
        n += rows
    assert len(summariser.stretches) <= MOST_STRETCHES
    assert sum(stretch.rows for stretch in summariser.stretches) + n % summariser.size == n
    assert summariser.total[0] == n


def test_spread_is_the_deviation_within_the_reach_of_the_memory(tmp_path, go):
    rng = np.random.default_rng(0)
    n = 3000
    trend = np.linspace(0, 1000, n)
    X = np.column_stack([trend + 2 * rng.normal(size=n), 5 * rng.normal(size=n), np.ones(n)])
    y = X[:, 1] + rng.normal(size=n)
    rows = [",".join(map(repr, [*x, v])) for x, v in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("trend,plain,still,y\n" + "\n".join(rows) + "\n")
    run, _, _ = go(tmp_path / "data.csv", memory="0.95")
    spread = run.summary().spread
    assert spread[1] == pytest.approx(5, rel=0.1)
    assert 2 < spread[0] < 10, "a trend hardly counts"
    assert spread[2] == 0


# --- what comes out ---------------------------------------------------------------------------------------------------


def test_time_is_written_beside_the_predictions(mixed_csv, go):
    _, predicted, trace = go(mixed_csv)
    assert predicted["time"][1].as_py().isoformat(sep=" ") == "2024-01-01 01:00:00"
    assert pyarrow.types.is_timestamp(trace.schema.field("time").type)
    _, predicted, _ = go(mixed_csv, out="by x", time="x")
    assert predicted["time"].to_pylist() == pytest.approx(csv.read_csv(mixed_csv)["x"].to_pylist())


def test_skipped_rows_are_counted_and_the_rest_is_as_without_them(mixed_csv, tmp_path, go, monkeypatch):
    lines = mixed_csv.read_text().splitlines()
    bad = list(lines)
    bad[100:100] = ["ragged,1"]
    bad[300:300] = ["2024-02-01,oops,1,Rome,2"]
    bad[500:500] = ["2024-02-01,1,1,Rome,not a number"]
    (tmp_path / "bad.csv").write_text("\n".join(bad) + "\n")
    monkeypatch.setattr("streamlasso.data.sources.delimited.FIRST_ROWS", 90)
    _, expected, _ = go(mixed_csv, out="good")
    run, predicted, _ = go(tmp_path / "bad.csv", out="bad", on_error="skip")
    assert predicted["prediction"].equals(expected["prediction"])
    assert predicted["row"].to_pylist() == [i for i in range(603) if i not in (99, 299, 499)], "their place in the data"
    assert run.data.n_bad == 3
    assert [words.split(": ")[-2].split()[-1] for words in run.data.bad_examples] == ["101", "301", "501"]


def test_a_model_that_loses_to_persistence_is_reported_with_advice(tmp_path, go):
    rng = np.random.default_rng(0)
    y, X = np.cumsum(rng.normal(size=300)), rng.normal(size=(300, 2))
    rows = [",".join(map(repr, [*x, v])) for x, v in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("a,b,y\n" + "\n".join(rows) + "\n")
    run, _, _ = go(tmp_path / "data.csv", out="without", lags={})
    assert "--lags" in caveats(run.summary())[0]
    run, _, _ = go(tmp_path / "data.csv", out="with", lags={"y": [1]})
    assert run.summary().mean_loss < 1.2 * run.summary().mean_persistence
