"""A broker for all tests that need one, and topics of their own for each."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.kafka.broker import Broker
from tests.kafka.consuming import Consuming

StartConsumer = Callable[..., Consuming]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.kill()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"events-{abs(hash(request.node.nodeid))}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def consume(broker: Broker, topic: str, path: Path) -> Iterator[StartConsumer]:
    """Return a function that starts `unbasket consume` with these options, for `db` or else for `path`."""
    started = []

    def start(*options: object, db: Path = path) -> Consuming:
        started.append(Consuming(broker, topic, db, *options))
        return started[-1]

    yield start
    for consumer in started:
        consumer.end()
