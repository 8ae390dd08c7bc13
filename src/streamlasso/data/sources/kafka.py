"""A Kafka topic: one JSON object per message. The place of a run is the next offset of each partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow

from streamlasso.data.sources.base import FIRST_ROWS_OF_PIPE, MOST_EXAMPLES, BadRows, Block
from streamlasso.data.sources.json_lines import batch_of, object_in
from streamlasso.data.sources.kafka_client import ANSWER, SCHEME, Topic, library, made, reason

#: Messages that are read at a time, and seconds to wait for the first of them before looking for a signal.
MESSAGES, PATIENCE = 1000, 0.2
OPTIONS = {"from": ("earliest", "latest"), "until": ("end",), "group": ()}


class Read(NamedTuple):
    """Rows, with the partition and the offset of each."""

    partitions: list[int]
    offsets: list[int]
    rows: list[dict[str, Any]]


class Kafka:
    """The messages of all partitions: of one in order, of several as they come. It ends at `until=end`, or never.

    columns : the keys of the first rows, as of JSON lines
    """

    format = "Kafka"
    scheme: ClassVar[str] = SCHEME
    n_first = FIRST_ROWS_OF_PIPE

    def __init__(self, topic: Topic, bad_rows: BadRows, place: dict[str, Any] | None = None) -> None:
        self.topic, self.bad_rows = topic, bad_rows
        self._passed_bad: list[Any] = [0, []]
        self._ahead: list[tuple[int, int, str]] = []
        self._open()
        if place is not None:
            self._passed_bad = [place["bad"][0], list(place["bad"][1])]
            bad_rows.n, bad_rows.examples = place["bad"][0], list(place["bad"][1])
        self._next = self._start(place)
        self._read_to = dict(self._next)
        self._end = self._ends if topic.options.get("until") == "end" else None
        self._assign()
        self._reads = self._all_reads()
        self._seen = 0
        if place is None:
            first = self._first_reads()
            self.columns = list(dict.fromkeys(key for read in first for row in read.rows for key in row))
            self._reads = chain(first, self._reads)
        else:
            self.columns = list(place["columns"])

    @classmethod
    def at(cls, address: str, bad_rows: BadRows, place: dict[str, Any] | None) -> Self:
        return cls(Topic.parse(address, OPTIONS), bad_rows, place)

    # --- where it starts ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        settings = {
            "group.id": "streamlasso",
            **self.topic.settings(),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        if "group" in self.topic.options:
            settings["group.id"] = self.topic.options["group"]
        self.consumer = made("Consumer", settings)

    def _start(self, place: dict[str, Any] | None) -> dict[int, int]:
        """The next offset of each partition."""
        kafka, limits = library(), {}
        for partition in self.topic.partitions(self.consumer):
            where = kafka.TopicPartition(self.topic.name, partition)
            limits[partition] = self.consumer.get_watermark_offsets(where, timeout=ANSWER)
        self._ends = {partition: high for partition, (_, high) in limits.items()}
        if place is None:
            return (
                self._ends.copy()
                if self.topic.options.get("from") == "latest"
                else {p: low for p, (low, _) in limits.items()}
            )
        if place["topic"] != self.topic.name:
            raise ValueError(f"the run that continues read topic {place['topic']}: use it, or another --checkpoint")
        # A partition that was added since then is read from its first message.
        learnt = {partition: place["next"].get(str(partition), low) for partition, (low, _) in limits.items()}
        return {partition: self._still_there(partition, learnt[partition], *limits[partition]) for partition in learnt}

    def _still_there(self, partition: int, offset: int, low: int, high: int) -> int:
        if offset > high:
            raise ValueError(
                f"partition {partition} ends at offset {high:,}, but the run that continues has come to {offset:,}: "
                "the topic is another one of this name; use another --checkpoint"
            )
        if offset < low:
            self._bad(
                partition, offset, f"the messages before offset {low:,} have been deleted by Kafka, and were not learnt"
            )
        return max(offset, low)

    def _assign(self) -> None:
        kafka = library()
        self.consumer.assign([kafka.TopicPartition(self.topic.name, *place) for place in self._next.items()])

    # --- rows ---------------------------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[Block]:
        for read in self._reads:
            if read.rows:
                origin = pyarrow.RecordBatch.from_pydict({"partition": read.partitions, "offset": read.offsets})
                place = self._seen + np.arange(len(read.rows))
                self._seen += len(read.rows)
                yield Block(batch_of(read.rows, self.columns), _places(read), place, origin)

    def _first_reads(self) -> list[Read]:
        first: list[Read] = []
        while sum(len(read.rows) for read in first) < self.n_first and (read := next(self._reads, None)) is not None:
            first.append(read)
        return first

    def _all_reads(self) -> Iterator[Read]:
        while not self._ended():
            read = Read([], [], [])
            for message in self._messages():
                self._add(message, read)
            yield read

    def _ended(self) -> bool:
        return self._end is not None and all(self._read_to[part] >= end for part, end in self._end.items())

    def _messages(self) -> list[Any]:
        """What has come, or nothing after a while."""
        first = self.consumer.poll(PATIENCE)
        return [] if first is None else [first, *self.consumer.consume(MESSAGES - 1, 0)]

    def _add(self, message: Any, read: Read) -> None:
        kafka, error = library(), message.error()
        if error is not None and error.code() != kafka.KafkaError._PARTITION_EOF:
            if error.retriable():
                return
            raise ValueError(f"topic {self.topic.name}: {error.str()}")
        partition, offset = message.partition(), message.offset()
        if error is not None:
            self._read_to[partition] = max(self._read_to[partition], offset)
            return
        self._read_to[partition] = offset + 1
        if self._end is not None and offset >= self._end[partition]:
            return
        row = self._row(message)
        if row is not None:
            read.partitions.append(partition)
            read.offsets.append(offset)
            read.rows.append(row)

    def _row(self, message: Any) -> dict[str, Any] | None:
        n, partition, offset = self.bad_rows.n, message.partition(), message.offset()
        if message.value() is None:
            self._bad(partition, offset, "the message is empty")
            return None
        row = object_in(message.value(), _where(partition, offset), self.bad_rows)
        if self.bad_rows.n > n:
            self._ahead.append((partition, offset, (self.bad_rows.examples or [""])[-1]))
        return row

    def _bad(self, partition: int, offset: int, why: str) -> None:
        self.bad_rows.add(_where(partition, offset), why)
        self._ahead.append((partition, offset, f"{_where(partition, offset)}: {why}"))

    # --- for a checkpoint ---------------------------------------------------------------------------------------------

    def passed(self, origin: pyarrow.RecordBatch) -> None:
        for partition, offset in zip(*(column.to_pylist() for column in origin.columns), strict=True):
            self._next[partition] = offset + 1
        # A run that continues meets bad rows again that come after the last one learnt.
        ahead = [bad for bad in self._ahead if bad[1] >= self._next[bad[0]]]
        for bad in self._ahead:
            if bad[1] < self._next[bad[0]]:
                self._passed_bad = [self._passed_bad[0] + 1, [*self._passed_bad[1], bad[2]][:MOST_EXAMPLES]]
        self._ahead = ahead

    def place(self) -> dict[str, Any]:
        offsets = {str(partition): offset for partition, offset in self._next.items()}
        return {"topic": self.topic.name, "columns": self.columns, "next": offsets, "bad": self._passed_bad}

    def saved(self) -> None:
        """Tell Kafka too if there is a group: those who watch its lag see it there. The checkpoint is what counts."""
        kafka = library()
        if "group" in self.topic.options:
            places = [kafka.TopicPartition(self.topic.name, *place) for place in self._next.items()]
            try:
                self.consumer.commit(offsets=places, asynchronous=True)
            except kafka.KafkaException as error:
                raise ValueError(f"the offsets of group {self.topic.options['group']}: {reason(error)}") from error


def _where(partition: int, offset: int) -> str:
    return f"partition {partition}, offset {offset:,}"


def _places(read: Read) -> Any:
    return lambda i: _where(read.partitions[i], read.offsets[i])
