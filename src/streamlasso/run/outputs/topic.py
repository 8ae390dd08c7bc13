"""Predictions as messages of a Kafka topic, one JSON object each.

With a checkpoint every row is there once, whenever the run is killed: what was written after the last checkpoint is
found in the topic when the run continues, and not written again. Transactions see to it that nothing of the killed run
can still arrive after that. Without a checkpoint a run starts anew, and so do its predictions.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow

from streamlasso.data.sources.kafka_client import ANSWER, Topic, library, made, reason

#: The columns that identify a row in its source, and the header of a message with the run and the row.
IDENTITY, HEADER = ("row", "partition", "offset"), "streamlasso"
#: Seconds to wait for the transactions of others, which end after a minute unless their client is told otherwise.
OTHERS = 90.0


class PredictionTopic:
    """A topic that predictions are written to.

    exact : whether the run has a checkpoint; `name` of the run is then the same whenever it continues
    position : the run's id, and the end of each partition: what the run has written since then is in the topic
    """

    def __init__(self, address: str, name: str | None, position: Any = None) -> None:
        self.address, self.topic, self.exact = address, Topic.parse(address, {}), name is not None
        self.errors: list[str] = []
        settings = {**self.topic.settings(), "enable.idempotence": True, "linger.ms": 5}
        if name is not None:
            settings["transactional.id"] = f"streamlasso-{hashlib.sha256(name.encode()).hexdigest()[:24]}"
        self.producer = made("Producer", settings)
        self._sent: set[str] = set()
        with self._or_refused():
            self.topic.partitions(self.producer)
            if self.exact:
                self.producer.init_transactions(ANSWER * 4)
            self._find(position)

    def _find(self, position: Any) -> None:
        """What the run has written since the checkpoint."""
        ends = self._ends()
        self.run = uuid.uuid4().hex if position is None else position["run"]
        if position is not None:
            starts = {part: int(position["ends"].get(str(part), 0)) for part in ends}
            self._sent = self._rows_between(starts, ends)
        self.ends = ends

    @property
    def position(self) -> Any:
        return {"run": self.run, "ends": {str(part): end for part, end in self.ends.items()}}

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, rows: pyarrow.RecordBatch) -> None:
        """Readers see all of these rows at once."""
        messages = [(self._identity(row), row) for row in rows.to_pylist()]
        new = [(identity, row) for identity, row in messages if identity not in self._sent]
        self._sent.difference_update(identity for identity, _ in messages)
        if not new:
            return
        with self._or_refused():
            if self.exact:
                self.producer.begin_transaction()
            for identity, row in new:
                self._produce(identity, row)
            if self.exact:
                self.producer.commit_transaction()
            self.producer.poll(0)
            self._refuse_lost()

    def _identity(self, row: dict[str, Any]) -> str:
        place = "-".join(str(row[name]) for name in IDENTITY if name in row)
        return f"{self.run}/{place}"

    def _produce(self, identity: str, row: dict[str, Any]) -> None:
        value = json.dumps(row, ensure_ascii=False, default=str).encode()
        key = row["key"] if "key" in row else identity.partition("/")[2]
        while True:
            try:
                headers = [(HEADER, identity.encode())]
                self.producer.produce(self.topic.name, value, key, on_delivery=self._delivered, headers=headers)
                return
            except BufferError:
                self.producer.poll(0.1)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error.str())
        else:
            self.ends[message.partition()] = max(self.ends.get(message.partition(), 0), message.offset() + 1)

    def sync(self) -> None:
        with self._or_refused():
            self.producer.flush()
            self._refuse_lost()

    def close(self) -> None:
        self.sync()

    def abandon(self) -> None:
        """A transaction that is open ends without effect when the run continues, or after a minute."""
        self.producer.purge()

    # --- what is in the topic -----------------------------------------------------------------------------------------

    def _ends(self) -> dict[int, int]:
        """Of each partition, with all that is in transactions."""
        kafka, consumer = library(), self._consumer("read_uncommitted")
        places = {part: kafka.TopicPartition(self.topic.name, part) for part in self.topic.partitions(self.producer)}
        ends = {part: consumer.get_watermark_offsets(place, timeout=ANSWER)[1] for part, place in places.items()}
        consumer.close()
        return ends

    def _rows_between(self, starts: dict[int, int], ends: dict[int, int]) -> set[str]:
        """The rows of this run in messages that were committed."""
        kafka, consumer = library(), self._consumer("read_committed")
        # What was deleted by age was written before.
        consumer.assign([kafka.TopicPartition(self.topic.name, *place) for place in starts.items()])
        found: set[str] = set()
        until = time.monotonic() + OTHERS
        while any(starts[part] < ends[part] for part in ends):
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.update(value.decode() for name, value in message.headers() or [] if name == HEADER)
            if message is not None:
                at_end = message.error() is not None
                starts[message.partition()] = message.offset() + (not at_end)
            if time.monotonic() > until:
                raise ValueError("another producer has not ended its transaction: try again when it has")
        consumer.close()
        return {identity for identity in found if identity.startswith(f"{self.run}/")}

    def _consumer(self, isolation: str) -> Any:
        settings = {"group.id": "streamlasso", **self.topic.settings(), "enable.auto.commit": False}
        settings |= {"enable.partition.eof": True, "auto.offset.reset": "earliest", "isolation.level": isolation}
        return made("Consumer", settings)

    # --- trouble ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _or_refused(self) -> Iterator[None]:
        """Within it, what Kafka refuses is an error that names the topic."""
        try:
            yield
        except (ValueError, library().KafkaException) as error:
            raise ValueError(f"{self.address}: {reason(error)}") from error

    def _refuse_lost(self) -> None:
        if self.errors:
            raise ValueError(f"predictions were not written ({self.errors[0]})")
