"""Kafka's client: addresses such as kafka://broker:9092/topic?from=latest, and the settings of a client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

SCHEME = "kafka://"
#: Seconds to wait for an answer of a broker.
ANSWER = 15.0
#: Names of topics have these characters only.
EXAMPLE = "use an address such as kafka://broker:9092/topic"
#: Librdkafka prints what it has to say unless somebody listens.
LOG = logging.getLogger("streamlasso.kafka")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False


@dataclass(frozen=True)
class Topic:
    """A topic, by its address.

    >>> Topic.parse("kafka://a,b:9093/rows?from=latest", {"from": ("earliest", "latest")})
    Topic(brokers='a:9092,b:9093', name='rows', options={'from': 'latest'})
    """

    brokers: str
    name: str
    options: Mapping[str, str]

    @classmethod
    def parse(cls, address: str, allowed: Mapping[str, tuple[str, ...]]) -> Topic:
        """`allowed` are the options and their values; one that may have any has none. config is always one of them."""
        found = urlsplit(address)
        name = unquote(found.path.strip("/"))
        if not found.netloc or not name or "/" in name:
            raise ValueError(f"it names no broker and topic: {EXAMPLE}")
        if "@" in found.netloc:
            raise ValueError(
                "a password does not belong in an address: write the settings of the client to a file, ?config=FILE"
            )
        brokers = [broker if ":" in broker else f"{broker}:9092" for broker in found.netloc.split(",")]
        options = dict(parse_qsl(found.query, keep_blank_values=True))
        for option, value in options.items():
            _refuse_option(option, value, {**allowed, "config": ()})
        return cls(",".join(brokers), name, options)

    def settings(self) -> dict[str, Any]:
        """Of a client: those of ?config=FILE, lines such as security.protocol=SASL_SSL, and the brokers."""
        written = _written(Path(self.options["config"])) if "config" in self.options else {}
        return {**written, "bootstrap.servers": self.brokers, "logger": LOG}

    def partitions(self, client: Any) -> list[int]:
        """Of the topic; an error if there is no such topic, or no broker."""
        kafka = library()
        try:
            found = client.list_topics(self.name, timeout=ANSWER).topics[self.name]
        except kafka.KafkaException as error:
            raise ValueError(
                f"no broker answers at {self.brokers} ({reason(error)}): start it, or fix the address"
            ) from error
        if found.error is not None:
            raise ValueError(f"topic {self.name}: {found.error.str()}: create it, or fix the address")
        return sorted(found.partitions)


def _refuse_option(option: str, value: str, allowed: Mapping[str, tuple[str, ...]]) -> None:
    if option not in allowed:
        raise ValueError(f"its option {option} is unknown: use {', '.join(sorted(allowed))}")
    if not value or (allowed[option] and value not in allowed[option]):
        raise ValueError(f"its option {option}={value} is invalid: use {' or '.join(allowed[option]) or 'some value'}")


def _written(path: Path) -> dict[str, str]:
    settings = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, mark, value = (part.strip() for part in line.partition("="))
        if line.strip() and not line.lstrip().startswith("#"):
            if not mark or not name:
                # The line itself may hold a secret.
                raise ValueError(f"{path}, line {number}: it is not name=value: fix it")
            settings[name] = value
    return settings


def library() -> Any:
    """confluent_kafka, or an error that names the extra."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise ImportError('Kafka needs confluent-kafka: pip install "streamlasso[kafka]"') from error
    return confluent_kafka


def made(kind: str, settings: dict[str, Any]) -> Any:
    """A Consumer or Producer; an error that names the setting that it refuses."""
    kafka = library()
    try:
        return getattr(kafka, kind)(settings)
    except kafka.KafkaException as error:
        raise ValueError(f"Kafka's client refuses its settings: {reason(error)}") from error


def reason(error: Exception) -> str:
    """In words."""
    cause = error.args[0] if error.args else error
    return cause.str() if hasattr(cause, "str") else str(cause)
