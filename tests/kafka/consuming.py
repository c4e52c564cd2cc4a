"""Random events, their producers, and `unbasket consume` as a process."""

import json
import random
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from tests.cli.running import PROGRAM, interruptible
from tests.kafka.broker import Broker, wait_until

import kafka
import unbasket as ub
from unbasket.domain.events import Event, Forget, Learn, parse_event

USERS = [f"user-{number}" for number in range(40)]
PARTITIONS = 4
SHORT_SESSION = "session.timeout.ms=2000\nheartbeat.interval.ms=300\n"


def random_events(count: int, seed: int) -> list[Event]:
    """Return learns, edits, late arrivals and forgets of a few users."""
    chance = random.Random(seed)
    events: list[Event] = []
    for _ in range(count):
        user, basket = chance.choice(USERS), f"b{chance.randrange(12)}"
        item = f"i{chance.randrange(30)}"
        if chance.random() < 0.8:
            items: list[Any] = [f"i{number}" for number in chance.sample(range(30), chance.randint(1, 6))]
            events.append(Learn(user, items, basket, chance.choice([None, chance.randrange(1000)])))
        else:
            basket_or_none, item_or_none = chance.choice([(None, None), (basket, None), (basket, item), (None, item)])
            events.append(Forget(user, basket_or_none, item_or_none))
    return events


def encoded(event: Event) -> bytes:
    """Return the value of an event's message."""
    kind = "learn" if isinstance(event, Learn) else "forget"
    fields = {name: value for name, value in event._asdict().items() if value is not None}
    return json.dumps({"event": kind, **fields}).encode()


class Producers:
    """Two implementations: the users of one half are written by librdkafka, those of the other by kafka-python."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._topic = topic
        self._native = Producer(
            {"bootstrap.servers": broker.address, "enable.idempotence": True, "linger.ms": 0, "log_level": 2}
        )
        self._python = kafka.KafkaProducer(
            bootstrap_servers=broker.address, enable_idempotence=True, delivery_timeout_ms=120_000, linger_ms=0
        )

    def send(self, events: Iterable[Event]) -> None:
        for event in events:
            key = str(event.user).encode()
            if USERS.index(str(event.user)) % 2:
                self._native.produce(self._topic, key=key, value=encoded(event))
                self._native.poll(0)
            else:
                self._python.send(self._topic, key=key, value=encoded(event))

    def flush(self) -> None:
        assert self._native.flush(120) == 0
        self._python.flush(120)

    def close(self) -> None:
        self.flush()
        self._python.close()


def produce(broker: Broker, topic: str, messages: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    """Write messages to a topic of one partition, or to partition 0."""
    failures: list[Any] = []

    def delivered(error: Any, _: object) -> None:
        if error is not None:
            failures.append(error)

    options = {"message.max.bytes": 10_000_000, "enable.idempotence": True}  # in order, also after a retry
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 2, **options})
    for key, value in messages:
        producer.produce(topic, key=key, value=value, partition=0, on_delivery=delivered)
    assert producer.flush(60) == 0
    assert not failures


def retrained(broker: Broker, topic: str) -> ub.Recommender:
    """Return a fresh engine that has applied what is in a topic."""
    rec = ub.Recommender()
    rec.apply(parse_event(json.loads(record.value)) for record in broker.read(topic))
    return rec


class Consuming:
    """`unbasket consume` in a process; the fixture `consume` starts it."""

    def __init__(self, broker: Broker, topic: str, path: Path, *options: object, session: str = SHORT_SESSION) -> None:
        config = path.with_suffix(".properties")
        config.write_text(session)
        self._log = path.with_suffix(".log")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *PROGRAM,
                    "consume",
                    *("--db", path, "--brokers", broker.address, "--topic", topic, "--client-config", config),
                    *map(str, options),
                ],
                stdout=log,
                stderr=log,
                **({} if "--until-end" in options else interruptible()),  # the others are ended by signals
            )

    def kill(self) -> None:
        """Kill the process, which must still be running."""
        assert self._process.poll() is None, self.log()
        self.end()

    def end(self) -> None:
        """Kill the process, if it is still running."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> str:
        """End the process by SIGTERM; return what it has printed."""
        self._process.send_signal(signal.SIGTERM)
        return self.finished()

    def finished(self, code: int = 0) -> str:
        """Wait for the end of the process; return what it has printed."""
        assert self._process.wait(120) == code, self.log()
        return self.log()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        return self._log.read_text()


def cursors(path: Path) -> dict[str, int]:
    """Return the cursors of a database that another process writes to, or is about to create."""
    try:
        with ub.open(path, read_only=True) as rec:
            return rec.cursors()
    except ub.StoreError:
        return {}


def wait_for(path: Path, topic: str, broker: Broker, consumer: Consuming) -> None:
    """Wait until a database has applied all of a topic."""
    with_ends = {f"{topic}/{number}": end for number, end in ends(broker, topic).items() if end}

    def caught_up() -> bool:
        assert consumer.is_running(), consumer.log()
        found = cursors(path)
        return all(found.get(name) == end for name, end in with_ends.items())

    wait_until(caught_up, 90)


def ends(broker: Broker, topic: str) -> dict[int, int]:
    """Return the end of each partition of a topic."""
    reader = kafka.KafkaConsumer(bootstrap_servers=broker.address)
    try:
        partitions = [kafka.TopicPartition(topic, number) for number in reader.partitions_for_topic(topic)]
        return {partition.partition: end for partition, end in reader.end_offsets(partitions).items()}
    finally:
        reader.close()
