"""A Kafka cluster within the process: librdkafka's mock, which answers on 127.0.0.1 as long as its client lives.

It takes transactions, but does not hide what was aborted: a topic holds all that was ever written to it.
"""

import json

import confluent_kafka


class Cluster:
    """`put` writes rows to a topic, `messages` is all that it holds."""

    def __init__(self):
        self._holder = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._holder.list_topics(timeout=10).brokers.values()
        self.address = f"{broker.host}:{broker.port}"
        self._producer = confluent_kafka.Producer({"bootstrap.servers": self.address, "log_level": 0})

    def url(self, topic, options=""):
        return f"kafka://{self.address}/{topic}{options}"

    def put(self, topic, rows, partitions=1):
        """Rows as JSON, bytes as they are; in turn to so many partitions."""
        for i, row in enumerate(rows):
            value = row if row is None or isinstance(row, bytes) else json.dumps(row).encode()
            self._producer.produce(topic, value, partition=i % partitions)
            self._producer.poll(0)
        assert self._producer.flush(10) == 0

    def make(self, topic):
        """An empty topic: nothing can be deleted, but somebody asks for it."""
        self._producer.list_topics(topic, timeout=10)

    def messages(self, topic):
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.address, "group.id": "test", "log_level": 0, "enable.partition.eof": True}
        )
        partitions = self._holder.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in partitions])
        found, ended = [], set()
        while len(ended) < len(partitions):
            message = consumer.poll(5)
            assert message is not None
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
        consumer.close()
        return found

    def rows(self, topic):
        return [json.loads(message.value()) for message in self.messages(topic)]
