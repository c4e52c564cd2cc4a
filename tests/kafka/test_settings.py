"""Settings: what is refused, and the options of the client."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from unbasket.errors import SettingsError
from unbasket.kafka import ConsumerSettings
from unbasket.kafka.settings import read_client_options


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


def test_a_file_of_client_options(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# a comment\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\n")
    assert read_client_options(file) == {"security.protocol": "SASL_SSL", "sasl.password": "a=b"}
    file.write_text("security.protocol=SSL\nsecret")
    with pytest.raises(SettingsError, match=r"client.properties, line 2: an option is written as name=value$"):
        read_client_options(file)
    with pytest.raises(SettingsError, match="cannot read"):
        read_client_options(tmp_path / "missing")
