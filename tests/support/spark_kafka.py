"""A small source for Spark that reads a real broker protocol: that of `support.kafka`.

It has the options and the columns of Spark's own connector, whose jar is not installed here.
"""

import logging

import confluent_kafka
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

QUIET = {"logger": logging.getLogger("kafka"), "log_level": 0}


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
