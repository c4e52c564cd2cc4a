"""Events per second from a topic into the durable engine, beside a plain consumer in one run: `make bench-kafka`.

The plain consumer is what an engineer would write in an hour: confluent-kafka, json, and the rows that ours writes into
SQLite, in batches of the same size, with the offsets in the same transaction and synced (`synchronous=FULL`). It has no
model: it validates nothing, updates no vector and no index, and can't forget. Both read the same topic, baskets of The
Complete Journey, from a broker on this machine, and alternate. Small batches are those of live traffic, large ones
those of catching up. The clock runs from the first messages to the last commit.
"""

import json
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from zlib import crc32

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.kafka.broker import Broker

import unbasket as ub
from unbasket.datasets import load
from unbasket.kafka import ConsumerSettings, EventConsumer

PARTITIONS = 4
EVENTS = {1: 2000, 10: 10_000, 200: 40_000, 1000: 40_000}  # by the size of batches; 1000 is the default
RUNS = 5
GOAL = 0.6


def fill(broker: Broker) -> None:
    """Write learns, in the order of time and keyed by user, to a topic for each size of batches."""
    history = load("completejourney").history
    baskets = history.group_by("user", "basket", "time").agg("item").sort("time", "basket")
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50, "log_level": 2})
    for batch, events in EVENTS.items():
        broker.create(topic_of(batch), partitions=PARTITIONS)
        for user, basket, moment, items in baskets.head(events).iter_rows():
            event = {"event": "learn", "user": user, "basket": basket, "items": items, "time": moment}
            producer.produce(topic_of(batch), key=str(user), value=json.dumps(event))
            producer.poll(0)
        producer.flush()


def topic_of(batch: int) -> str:
    """Return the topic for batches of a size."""
    return f"batches-of-{batch}"


def plain(broker: Broker, folder: Path, batch: int) -> float:
    """Read a topic into a table of SQLite; return the seconds."""
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    for statement in (
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "CREATE TABLE baskets (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        "CREATE TABLE offsets (partition INTEGER PRIMARY KEY, offset INTEGER NOT NULL)",
    ):
        connection.execute(statement)
    options = {"bootstrap.servers": broker.address, "group.id": f"plain-{folder.name}", "enable.auto.commit": False}
    consumer = Consumer({**options, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic_of(batch), number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    ended: set[int | None] = set()
    start = 0.0
    while len(ended) < PARTITIONS:
        rows, offsets = [], {}
        messages = consumer.consume(batch, 0.1)
        start = start or time.perf_counter() * bool(messages)
        for message in messages:
            error, value = message.error(), message.value()
            if error is not None or value is None:
                ended.add(message.partition())
                continue
            event = json.loads(value)
            row = event["user"], event["basket"], event["time"], 0, False, event["items"]
            body = msgspec.msgpack.encode(row)
            rows.append((crc32(body).to_bytes(4, "big") + body,))
            offsets[message.partition()] = message.offset()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO baskets (body) VALUES (?)", rows)
        connection.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?)", offsets.items())
        connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    consumer.close()
    assert connection.execute("SELECT count(*) FROM baskets").fetchone() == (EVENTS[batch],)
    connection.close()
    return seconds


class TimedConsumer(EventConsumer):
    """A consumer that notes when its first and its last messages came."""

    first = last = 0.0

    def _apply(self, messages: Sequence[Message]) -> None:
        self.first = self.first or time.perf_counter() * bool(messages)
        super()._apply(messages)
        self.last = time.perf_counter()


def ours(broker: Broker, folder: Path, batch: int) -> float:
    """Read a topic into a database; return the seconds."""
    with ub.open(folder / "ours.db") as rec:
        consumer = TimedConsumer(rec, ConsumerSettings(broker.address, topic_of(batch), batch=batch, until_end=True))
        consumer.run()
        assert consumer.counters.events == EVENTS[batch]
        return consumer.last - consumer.first


def main() -> None:
    """Run both and print the table."""
    table = Table("baskets in a batch", "ours, events/s", "plain, events/s", "share", "must reach", "")
    with tempfile.TemporaryDirectory() as place, Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("producing", total=RUNS * len(EVENTS))
        broker = Broker(Path(place))
        try:
            fill(broker)
            progress.update(task, description="consuming")
            for batch, events in EVENTS.items():
                rates = []
                for _ in range(RUNS):
                    with tempfile.TemporaryDirectory(dir=place) as folder:
                        seconds = ours(broker, Path(folder), batch), plain(broker, Path(folder), batch)
                    rates.append((events / seconds[0], events / seconds[1], seconds[1] / seconds[0]))
                    progress.advance(task)
                our_rate, plain_rate, share = map(median, zip(*rates, strict=True))
                reached = "[green]yes[/]" if share >= GOAL else "[red]no[/]"
                table.add_row(
                    f"{batch:,}", f"{our_rate:,.0f}", f"{plain_rate:,.0f}", f"{share:.0%}", f"{GOAL:.0%}", reached
                )
        finally:
            broker.kill()
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
