"""`unbasket serve --consume` against a broker: events from a topic beside the HTTP API, in one process."""

import json
import re
from pathlib import Path

import pytest
from tests.kafka.broker import Broker
from tests.kafka.consuming import PARTITIONS, SHORT_SESSION, Producers, cursors, random_events
from tests.service.process import Service, ending, failing, until

import unbasket as ub
from unbasket.domain.events import Forget, parse_event

pytestmark = pytest.mark.kafka


def serving(broker: Broker, topic: str, path: Path, *options: object) -> Service:
    config = path.with_suffix(".properties")
    config.write_text(SHORT_SESSION)
    return Service(
        path, "--consume", "--brokers", broker.address, "--topic", topic, "--client-config", config, *options
    )


def counted(service: Service) -> int:
    """Return the number of events that the metrics of the service count."""
    found = re.findall(r"^unbasket_kafka_events_total{.*} (.*)$", service.ask("GET", "/metrics")[1].decode(), re.M)
    return sum(int(float(count)) for count in found)


def test_events_of_a_topic_beside_requests(broker: Broker, topic: str, path: Path) -> None:
    """SIGTERM comes while events come; a second process goes on, and in the end each event counted once."""
    broker.create(topic, partitions=PARTITIONS)
    events = random_events(2000, seed=9)
    producers = Producers(broker, topic)
    producers.send(events[:1000])
    producers.flush()
    with ending(serving(broker, topic, path, "--batch", 20)) as service:
        until(lambda: counted(service) > 100, service.process)
        status, body = service.ask("PUT", "/v1/users/web/baskets/b1", {"items": ["tea"], "time": 5})
        assert (status, json.loads(body)["result"]) == (200, "added")
        assert service.stop() == 0
    producers.send(events[1000:])
    producers.close()
    with ending(serving(broker, topic, path)) as service:
        until(lambda: sum(cursors(path).values()) == len(events), service.process)
        forgotten = sum(isinstance(event, Forget) for event in events)
        assert (
            json.loads(service.ask("GET", "/v1/receipts?order=newest&limit=1")[1])["receipts"][0]["number"] == forgotten
        )
        assert service.ask("GET", "/v1/users/web/recommendations")[0] == 200
        assert service.stop() == 0
    with ub.open(path) as rec:
        expected = ub.Recommender(salt=rec.salt)
        expected.apply(parse_event(json.loads(record.value)) for record in broker.read(topic))
        expected.learn("web", ["tea"], basket="b1", time=5)
        assert rec.digest() == expected.digest()
        assert rec.verify().ok


def test_a_missing_topic_ends_the_service(broker: Broker, path: Path) -> None:
    options = ("--consume", "--brokers", broker.address, "--topic", "mistyped")
    assert "topic mistyped does not exist" in failing("serve", "--db", path, "--port", "0", *options)
