"""A topic gives the rows that a file of JSON lines gives; every message has a place, from which a run can go on."""

import json
import sys

import pytest

from streamlasso.data.sources import BadRows, kafka_client, open_source
from support.kafka import Cluster

ROWS = [{"x": i / 7, "word": "äb"[i % 2], "place": {"city": i}, "y": None if i % 5 == 0 else i} for i in range(250)]


@pytest.fixture(scope="module")
def cluster():
    return Cluster()


def read(source, stop=None):
    rows = []
    for block in source.blocks():
        rows += block.rows.to_pylist()
        source.passed(block.origin)
        if stop is not None and len(rows) >= stop:
            break
    return rows


def test_a_topic_gives_the_rows_of_a_file_with_the_same_lines(cluster, tmp_path):
    cluster.put("same", ROWS)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    file = open_source(str(tmp_path / "rows.jsonl"), BadRows())
    topic = open_source(cluster.url("same", "?until=end"), BadRows())
    assert topic.columns == file.columns == ["x", "word", "place.city", "y"]
    assert read(topic) == [row for block in file.blocks() for row in block.rows.to_pylist()]


def test_of_several_partitions_every_message_comes_once_and_each_in_order(cluster):
    cluster.put("four", ROWS, partitions=4)
    topic = open_source(cluster.url("four", "?until=end"), BadRows())
    places = [place for block in topic.blocks() for place in block.origin.to_pylist()]
    for partition in range(4):
        offsets = [place["offset"] for place in places if place["partition"] == partition]
        assert offsets == list(range(len(ROWS[partition::4])))


def test_it_goes_on_at_its_place(cluster):
    cluster.put("halves", ROWS, partitions=3)
    first = open_source(cluster.url("halves", "?until=end"), BadRows())
    some = read(first, stop=100)
    place = json.loads(json.dumps(first.place()))
    second = open_source(cluster.url("halves", "?until=end"), BadRows(), place)
    assert second.columns == first.columns
    cities = sorted(row["place.city"] for row in [*some, *read(second)])
    assert cities == list(range(len(ROWS)))


def test_from_latest_leaves_out_what_is_there(cluster):
    cluster.put("late", ROWS)
    assert open_source(cluster.url("late", "?from=latest&until=end"), BadRows()).columns == []


def test_bad_messages_have_a_place_and_are_counted_once(cluster):
    rows = [*ROWS[:120], b"{oops", None, b"[1]", *ROWS[120:], b"\xff"]
    cluster.put("bad", rows)
    with pytest.raises(ValueError, match="partition 0, offset 120: it is not valid JSON"):
        read(open_source(cluster.url("bad", "?until=end"), BadRows()))
    bad = BadRows("skip")
    source = open_source(cluster.url("bad", "?until=end"), bad)
    blocks = source.blocks()
    block = next(blocks)
    source.passed(block.origin.slice(0, 110))
    assert source.place()["bad"] == [0, []], "they come after the row that was learnt last"
    source.passed(block.origin.slice(110))
    for block in blocks:
        source.passed(block.origin)
    assert bad.n == 4
    n, examples = source.place()["bad"]
    assert n == 3, "the last one comes after the last row: a run that continues meets it again"
    assert examples[1:] == ["partition 0, offset 121: the message is empty", *bad.examples[2:3]]
    again = BadRows("skip")
    assert read(open_source(cluster.url("bad", "?until=end"), again, source.place())) == []
    assert again.n == 4


def test_what_kafka_has_deleted_is_missed(cluster, monkeypatch):
    cluster.put("old", ROWS)
    source = open_source(cluster.url("old", "?until=end"), BadRows())
    read(source, stop=100)
    place = source.place()
    with pytest.raises(ValueError, match="ends at offset 250, but the run that continues has come to 251"):
        open_source(cluster.url("old"), BadRows(), {**place, "next": {"0": 251}})
    with pytest.raises(ValueError, match="read topic young"):
        open_source(cluster.url("old"), BadRows(), {**place, "topic": "young"})
    place["next"]["0"] = -5  # no message can be deleted from the mock: here five that it never had
    with pytest.raises(ValueError, match="before offset 0 have been deleted"):
        open_source(cluster.url("old"), BadRows(), place)
    bad = BadRows("skip")
    assert len(read(open_source(cluster.url("old", "?until=end"), bad, place))) == 250
    assert bad.n == 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("kafka://broker", "names no broker and topic"),
        ("kafka:///topic", "names no broker and topic"),
        ("kafka://me:secret@broker/topic", "password does not belong"),
        ("kafka://broker/topic?form=latest", "option form is unknown: use config, from, group, until"),
        ("kafka://broker/topic?until=now", "until=now is invalid: use end"),
    ],
)
def test_addresses_that_are_none(address, words):
    with pytest.raises(ValueError, match=words):
        open_source(address, BadRows())


def test_settings_of_the_client_come_from_a_file(cluster, tmp_path):
    cluster.put("settings", ROWS)
    settings = tmp_path / "client.properties"
    settings.write_text("# of the team\nclient.id=me\n\nfetch.wait.max.ms = 50\n")
    assert open_source(cluster.url("settings", f"?until=end&config={settings}"), BadRows()).columns
    settings.write_text("sasl.pasword=secret\n")
    with pytest.raises(ValueError, match=r"refuses its settings.*sasl\.pasword") as caught:
        open_source(cluster.url("settings", f"?config={settings}"), BadRows())
    assert "secret" not in str(caught.value)
    settings.write_text("secret\n")
    with pytest.raises(ValueError, match="line 1: it is not name=value") as caught:
        open_source(cluster.url("settings", f"?config={settings}"), BadRows())
    assert "secret" not in str(caught.value).replace(str(tmp_path), "")


def test_no_broker_and_no_client(monkeypatch):
    monkeypatch.setattr(kafka_client, "ANSWER", 0.3)
    with pytest.raises(ValueError, match=r"no broker answers at 127\.0\.0\.1:1 "):
        open_source("kafka://127.0.0.1:1/topic", BadRows())
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=r"streamlasso\[kafka\]"):
        open_source("kafka://127.0.0.1:1/topic", BadRows())
