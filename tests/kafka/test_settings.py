"""Settings: what is refused, and the options of the client."""

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from unbasket.errors import SettingsError
from unbasket.kafka import ConsumerSettings


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"topic": "a b"}, "a topic has 1 to 249 letters.*'a b'"),
        ({"topic": ""}, "a topic has"),
        ({"receipts_topic": "x" * 250}, "a topic has"),
        ({"receipts_topic": "events"}, r"need topics of their own, not \['events', 'events'\]"),
        ({"brokers": ""}, "brokers must not be empty"),
        ({"group": ""}, "group must not be empty"),
        ({"batch": 0}, "a batch has 1 to 100,000 messages, not 0"),
        ({"client": {"group.id": "x"}}, "group.id is set by unbasket"),
    ],
)
def test_invalid_settings(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        ConsumerSettings(**{"brokers": "localhost:9092", "topic": "events"} | fields)


def test_the_client_accepts_the_options() -> None:
    settings = ConsumerSettings("localhost:1", "events", client={"client.id": "shop", "compression.type": "none"})
    options = settings.consumer_options("ab" * 32)
    assert options["group.instance.id"] == "unbasket-" + "ab" * 16
    assert options["client.id"] == "shop"
    Consumer({**options, "log_level": 0}).close()
    Producer({**settings.producer_options(), "log_level": 0})
