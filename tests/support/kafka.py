"""A real broker protocol without a broker: librdkafka's mock cluster, and a small source for Spark that reads it.

The source has the options and the columns of Spark's own connector, whose jar is not installed here.
"""

import json
import logging

import confluent_kafka
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

QUIET = {"logger": logging.getLogger("kafka"), "log_level": 0}


class MockCluster:
    """One broker within this process, on a port of its own."""

    def __init__(self):
        self._producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, **QUIET})
        (broker,) = self._producer.list_topics(timeout=60).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def send(self, topic, rows):
        """Rows as JSON, to the topic's partitions in turn."""
        for number, row in enumerate(rows):
            self._producer.produce(topic, json.dumps(row).encode(), partition=number % 2)
        assert self._producer.flush(60) == 0


class Slice(InputPartition):
    """Messages of a partition of the topic."""

    def __init__(self, partition, start, end):
        self.partition, self.start, self.end = partition, start, end


class Kafka(DataSource):
    """What comes with spark-sql-kafka, as far as a test needs it."""

    @classmethod
    def name(cls):
        return "mock_kafka"

    def schema(self):
        return "partition INT, offset BIGINT, value BINARY"

    def streamReader(self, schema):
        return _Reader(self.options["kafka.bootstrap.servers"], self.options["subscribe"])


class _Reader(DataSourceStreamReader):
    def __init__(self, brokers, topic):
        self._settings = {"bootstrap.servers": brokers, "group.id": "spark", "enable.auto.commit": False}
        self._topic = topic

    def _consumer(self):
        return confluent_kafka.Consumer({**self._settings, **QUIET})

    def initialOffset(self):
        return {"0": 0, "1": 0}

    def latestOffset(self, start, limit):
        consumer = self._consumer()
        parts = {p: confluent_kafka.TopicPartition(self._topic, int(p)) for p in start}
        ends = {p: consumer.get_watermark_offsets(part, timeout=60)[1] for p, part in parts.items()}
        consumer.close()
        return ends

    def partitions(self, start, end):
        return [Slice(int(p), start[p], end[p]) for p in end if end[p] > start[p]]

    def read(self, partition):
        consumer = self._consumer()
        consumer.assign([confluent_kafka.TopicPartition(self._topic, partition.partition, partition.start)])
        left = partition.end - partition.start
        while left:
            for message in consumer.consume(left, timeout=60):
                yield message.partition(), message.offset(), message.value()
                left -= 1
        consumer.close()
