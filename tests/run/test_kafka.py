"""From a topic to a topic: the predictions of a file with the same rows, each once, whenever the run is killed."""

import collections
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import confluent_kafka
import numpy as np
import pytest

from streamlasso.cli import main
from streamlasso.run.options import Options
from streamlasso.run.run import Run
from support.kafka import Cluster

KILLER = Path(__file__).with_name("killer.py")
N = 900


@pytest.fixture(scope="module")
def cluster():
    return Cluster()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, N)).round(6)
    y = (np.where(np.arange(N) < N // 2, x, -x) + rng.normal(size=N)).round(6)
    return [{"x": a, "z": b, "y": c} for a, b, c in zip(x.tolist(), z.tolist(), y.tolist(), strict=True)]


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def by_file(file):
    """What a run on a file with these rows predicts."""
    out = file.with_name("out")
    run = Run(Options(str(file), "y", out, tuner="logrms", predictions=out / "predictions.jsonl"))
    assert run.go()
    return [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]


def arguments(data, predictions, out, *more):
    where = ["--out", str(out), "--checkpoint", f"{out}.ckpt", "--predictions", str(predictions)]
    return ["run", data, "--target", "y", "--tuner", "logrms", "--every", "70", "--quiet", *where, *more]


def in_order(found):
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


def same(found, expected):
    """Every row once, with the same prediction to the bit."""
    found = in_order(found)
    assert [row["offset"] for row in found] == list(range(len(expected)))
    assert [row["prediction"] for row in found] == [row["prediction"] for row in expected]
    assert [row["y"] for row in found] == [row["y"] for row in expected]


def killed(seed, kills, longest, command):
    """How many of the kills hit, of a command that comes to its end at last."""
    more = [sys.executable, str(KILLER), str(seed), str(kills), str(longest)]
    done = subprocess.run([*more, *command], capture_output=True, text=True, check=True)
    hits, status = map(int, done.stdout.split())
    assert status == 0, done.stderr
    return hits


@pytest.mark.posix
def test_killed_many_times_every_row_is_predicted_once_and_the_same(cluster, rows, by_file, tmp_path):
    cluster.put("kill.in", rows)
    cluster.make("kill.out")
    command = arguments(cluster.url("kill.in", "?until=end"), cluster.url("kill.out"), tmp_path / "out")
    assert killed(1, 9, 0.5, command) >= 6
    same(cluster.rows("kill.out"), by_file)


@pytest.mark.posix
def test_killed_on_several_partitions_every_row_is_predicted_once(cluster, rows, tmp_path):
    cluster.put("parts.in", rows, partitions=4)
    cluster.make("parts.out")
    command = arguments(cluster.url("parts.in", "?until=end"), cluster.url("parts.out"), tmp_path / "out")
    assert killed(2, 6, 0.5, command) >= 4
    found = collections.Counter((row["partition"], row["offset"]) for row in cluster.rows("parts.out"))
    assert found == {(i % 4, i // 4): 1 for i in range(N)}


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_row_is_there_once_after_a_kill_in_the_worst_place(stage, cluster, rows, by_file, tmp_path, monkeypatch):
    """Between what was written and the checkpoint, and after the checkpoint."""
    source, target = f"worst.{stage}", f"worst.{stage}.out"
    cluster.put(source, rows)
    cluster.make(target)
    options = Options(
        cluster.url(source, "?until=end"),
        "y",
        tmp_path / "out",
        tuner="logrms",
        predictions=cluster.url(target),
        checkpoint=tmp_path / "ckpt",
        every=70,
    )

    class Killed(BaseException):
        pass

    from streamlasso import checkpoint as module

    for last in (1, 2, 4):
        calls = []

        def save(*arguments, calls=calls, last=last, save=module.save):
            calls.append(1)
            if len(calls) == last and stage == "before":
                raise Killed
            save(*arguments)
            if len(calls) == last:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(module, "save", save)
            with pytest.raises(Killed):
                Run(options).go()
    run = Run(options)
    assert run.resumed
    assert run.go()
    run.predictions.sync()
    same(cluster.rows(target), by_file)


def test_a_topic_to_a_file_and_a_file_to_a_topic(cluster, rows, file, by_file, tmp_path, undrawn):
    cluster.put("mix.in", rows)
    cluster.make("mix.out")
    out = tmp_path / "out"
    assert main(arguments(cluster.url("mix.in", "?until=end"), out / "p.jsonl", out)) == 0
    same([json.loads(line) for line in (out / "p.jsonl").read_text().splitlines()], by_file)
    assert main(arguments(str(file), cluster.url("mix.out"), tmp_path / "two")) == 0
    assert sorted(cluster.rows("mix.out"), key=lambda row: row["row"]) == by_file
    message = cluster.messages("mix.out")[0]
    assert message.key() == str(json.loads(message.value())["row"]).encode()


def test_a_topic_that_has_grown_is_learnt_from_where_the_last_run_ended(cluster, rows, by_file, tmp_path, undrawn):
    cluster.make("grown.out")
    command = arguments(cluster.url("grown.in", "?until=end"), cluster.url("grown.out"), tmp_path / "out")
    for part in (rows[:333], rows[333:], []):
        cluster.put("grown.in", part)
        assert main(command) == 0
    same(cluster.rows("grown.out"), by_file)


@pytest.mark.posix
def test_ctrl_c_while_a_topic_is_waited_for(cluster, rows, by_file, tmp_path, undrawn):
    """The predictions are there before the next row is; the group has the offsets; the same command continues."""
    cluster.put("live.in", rows[:400])
    cluster.make("live.out")
    out = tmp_path / "out"
    command = arguments(cluster.url("live.in", "?group=watched"), cluster.url("live.out"), out)
    code = "import sys; from streamlasso.cli import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code, *command], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(cluster.messages("live.out")) < 400:
        time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert (out / "report.html").exists()
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.address, "group.id": "watched", "log_level": 0})
    (place,) = consumer.committed([confluent_kafka.TopicPartition("live.in", 0)], timeout=10)
    assert place.offset == 400
    cluster.put("live.in", rows[400:])
    assert main(arguments(cluster.url("live.in", "?until=end"), cluster.url("live.out"), out)) == 0
    same(cluster.rows("live.out"), by_file)


def test_rows_that_cannot_be_read_are_counted_once(cluster, rows, tmp_path, undrawn, capsys):
    cluster.put("oops.in", [*rows[:150], b"oops", {"x": "oops", "z": 1, "y": 1}, *rows[150:300]])
    command = arguments(cluster.url("oops.in", "?until=end"), tmp_path / "p.csv", tmp_path / "out")
    assert main(command) == 2
    assert "oops.in?until=end: partition 0, offset 150: it is not valid JSON" in capsys.readouterr().err
    command = [*(word for word in command if word != "--quiet"), "--on-error", "skip"]
    for more in ([], rows[300:310]):
        cluster.put("oops.in", more)
        assert main(command) == 0
        assert "2 unreadable rows left out" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_be_is_refused(cluster, rows, tmp_path, undrawn, capsys):
    cluster.put("no.in", rows[:200])
    same_topic = cluster.url("no.in", "?until=end")
    assert main(arguments(same_topic, cluster.url("no.in"), tmp_path / "out")) == 2
    assert "is the topic of the data, and would be learnt" in capsys.readouterr().err
    assert main(arguments(same_topic, tmp_path / "p.csv", tmp_path / "out")) == 0
    cluster.put("other.in", rows[:200])
    assert main(arguments(cluster.url("other.in"), tmp_path / "p.csv", tmp_path / "out")) == 2
    assert "read topic no.in" in capsys.readouterr().err
    assert main(arguments(str(tmp_path / "none.csv"), "kafka://127.0.0.1:1", tmp_path / "out2")) == 2
