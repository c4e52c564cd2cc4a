"""Brokers that do not answer, and topics that are not there."""

import threading

import pytest
from tests.kafka.broker import Broker

from unbasket.errors import KafkaError
from unbasket.kafka import ConsumerSettings, check_topics

NOWHERE = "127.0.0.1:1"  # a port on which nothing listens


def test_no_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.kafka.topics._TIMEOUT", 0.2)
    with pytest.raises(KafkaError, match=rf"no broker answers at {NOWHERE}: .* Check the address"):
        check_topics(ConsumerSettings(NOWHERE, "events"))


def test_stop_ends_the_wait_for_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.kafka.topics._TIMEOUT", 0.2)
    monkeypatch.setattr("unbasket.kafka.topics._POLL", 60.0)
    stop = threading.Event()
    stop.set()
    with pytest.raises(KafkaError, match="no broker answers"):
        check_topics(ConsumerSettings(NOWHERE, "events"), stop)


@pytest.mark.kafka
def test_every_topic_must_exist(broker: Broker, topic: str) -> None:
    with pytest.raises(KafkaError, match=f"topic {topic} does not exist"):
        check_topics(ConsumerSettings(broker.address, topic))
    broker.create(topic)
    check_topics(ConsumerSettings(broker.address, topic))
    with pytest.raises(KafkaError, match=f"topic {topic}-receipts does not exist"):
        check_topics(ConsumerSettings(broker.address, topic, receipts_topic=f"{topic}-receipts"))
