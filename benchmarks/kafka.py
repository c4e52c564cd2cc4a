"""Events per second from a topic into the durable engine, beside plain consumers in one run: `make bench-kafka`.

A plain consumer is what an engineer would write in an hour: confluent-kafka, `json`, and the rows that ours writes into
SQLite, in batches that it reads in the same way, with the offsets in the same transaction and synced
(`synchronous=FULL`, WAL). It has no model: it validates nothing, updates no vector or index, and answers no request.
There are two of them. The first deletes the rows of a forget, whose bytes stay in the files. The second erases as ours
does: it zeroes the rows in place and empties the write-ahead log before a batch counts. Neither writes receipts.

All read the same topics, baskets of The Complete Journey, from a broker on this machine, and alternate. One topic has
learns only. In the other, 5 % of the messages forget one of the user's baskets or, one in ten of them, the user.
Small batches are those of live traffic, large ones those of catching up. The clock runs from the first messages to the
last commit.
"""

import json
import random
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
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
RUNS = 3
GOAL = 0.6
FORGETS = 0.05


class Workload(NamedTuple):
    """Messages, by the share of forgets and their number, in batches of a size."""

    forgets: float
    batch: int
    events: int

    @property
    def topic(self) -> str:
        """The topic of the messages."""
        return f"events-{self.events}-{self.forgets:.0%}".replace("%", "")


WORKLOADS = [
    Workload(0, 1, 2000),
    Workload(0, 10, 10_000),
    Workload(0, 200, 40_000),
    Workload(0, 1000, 40_000),
    Workload(FORGETS, 200, 40_000),
    Workload(FORGETS, 1000, 40_000),
]


def events_of(workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield learns in the order of time, and between them forgets of what was learned."""
    history = load("completejourney").history
    baskets = history.group_by("user", "basket", "time").agg("item").sort("time", "basket").iter_rows()
    chance, learned = random.Random(1), list[dict[str, Any]]()
    for _ in range(workload.events):
        if learned and chance.random() < workload.forgets:
            old = chance.choice(learned)
            only = {} if chance.random() < 0.1 else {"basket": old["basket"]}
            yield {"event": "forget", "user": old["user"], **only}
        else:
            user, basket, moment, items = next(baskets)
            learned.append({"event": "learn", "user": user, "basket": basket, "items": items, "time": moment})
            yield learned[-1]


def fill(broker: Broker) -> None:
    """Write the topics, keyed by user."""
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50, "log_level": 2})
    for topic, workload in {workload.topic: workload for workload in WORKLOADS}.items():
        broker.create(topic, partitions=PARTITIONS)
        for event in events_of(workload):
            producer.produce(topic, key=str(event["user"]), value=msgspec.json.encode(event))
            producer.poll(0)
        producer.flush()


class PlainConsumer:
    """A consumer that writes the rows of baskets into SQLite, and deletes the rows of a forget."""

    setup: Sequence[str] = ()
    removal = "DELETE FROM baskets WHERE id = ?"

    def __init__(self, broker: Broker, folder: Path, workload: Workload) -> None:
        self._db = sqlite3.connect(folder / "plain.db", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            *self.setup,
            "CREATE TABLE baskets (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
            "CREATE TABLE offsets (partition INTEGER PRIMARY KEY, offset INTEGER NOT NULL)",
        ):
            self._db.execute(statement)
        options = {"bootstrap.servers": broker.address, "group.id": f"plain-{folder.name}", "enable.auto.commit": False}
        self._consumer = Consumer({**options, "enable.partition.eof": True})
        self._workload = workload
        self._rows = defaultdict[int, dict[int, int]](dict)  # by user and basket
        self._next = 1
        self.events = 0

    def run(self) -> float:
        """Read the topic to its end; return the seconds from the first messages to the last commit."""
        topic, batch, ended, first, last = self._workload.topic, self._workload.batch, set[int | None](), 0.0, 0.0
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
        while len(ended) < PARTITIONS:
            messages = self._consumer.consume(1, 0.5)
            messages += self._consumer.consume(batch - 1, 0) if batch > 1 else []
            first = first or time.perf_counter()
            ended |= {message.partition() for message in messages if message.error() is not None}
            messages = [message for message in messages if message.error() is None]
            if messages:
                self._write(messages)
                last = time.perf_counter()
        self._consumer.close()
        self._db.close()
        return last - first

    def _write(self, messages: Sequence[Message]) -> None:
        new, removed, offsets = dict[int, bytes](), list[tuple[int]](), {}
        for message in messages:
            event = json.loads(message.value() or b"")
            rows = self._rows[event["user"]]
            if event["event"] == "learn":
                body = msgspec.msgpack.encode((event["user"], event["basket"], event["time"], 0, False, event["items"]))
                new[self._next] = crc32(body).to_bytes(4, "big") + body + bytes(8)  # ours has a seal there
                rows[event["basket"]] = self._next
                self._next += 1
            else:
                gone = [event["basket"]] if "basket" in event else list(rows)
                removed += [(rows.pop(basket),) for basket in gone if basket in rows]
            offsets[message.partition()] = message.offset()
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT INTO baskets VALUES (?, ?)", new.items())
        self._db.executemany(self.removal, removed)
        self._db.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?)", offsets.items())
        self._db.execute("COMMIT")
        if removed:
            self._removed()
        self.events += len(messages)

    def _removed(self) -> None:
        """Follow the commit of a batch that has removed rows: a hook."""


class ErasingConsumer(PlainConsumer):
    """A plain consumer that erases as the durable engine does: no file has the bytes when the batch counts."""

    setup = ("PRAGMA secure_delete = ON",)
    removal = "UPDATE baskets SET body = zeroblob(length(body)) WHERE id = ?"

    def _removed(self) -> None:
        assert self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


class TimedConsumer(EventConsumer):
    """A consumer that notes when its first messages came, and when it last applied some."""

    first = last = 0.0

    def _apply(self, messages: Sequence[Message]) -> None:
        self.first = self.first or time.perf_counter() * bool(messages)
        before = self.counters.events
        super()._apply(messages)
        if self.counters.events > before:
            self.last = time.perf_counter()


def ours(broker: Broker, folder: Path, workload: Workload) -> float:
    """Read a topic into a database; return the seconds."""
    with ub.open(folder / "ours.db") as rec:
        settings = ConsumerSettings(broker.address, workload.topic, batch=workload.batch, until_end=True)
        consumer = TimedConsumer(rec, settings)
        consumer.run()
        assert consumer.counters.events == workload.events
        return consumer.last - consumer.first


def plain(kind: type[PlainConsumer]) -> Callable[[Broker, Path, Workload], float]:
    """Return a function like `ours` for a plain consumer."""

    def run(broker: Broker, folder: Path, workload: Workload) -> float:
        consumer = kind(broker, folder, workload)
        seconds = consumer.run()
        assert consumer.events == workload.events
        return seconds

    return run


CONSUMERS = [ours, plain(PlainConsumer), plain(ErasingConsumer)]


def measure(broker: Broker, place: Path, workload: Workload) -> list[float]:
    """Let all consumers read a topic, one after another; return the seconds of each."""
    seconds = []
    for consumer in CONSUMERS:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            seconds.append(consumer(broker, Path(folder), workload))
    return seconds


def row_of(workload: Workload, runs: list[list[float]]) -> list[str]:
    """Return the row of a workload: the medians of rates and of shares."""
    rates = [median(workload.events / seconds for seconds in column) for column in zip(*runs, strict=True)]
    plainly, erasing = (median(run[i] / run[0] for run in runs) for i in (1, 2))
    reached = "[green]yes[/]" if plainly >= GOAL else "[red]no[/]"
    figures = [f"{rate:,.0f}" for rate in rates]
    return [
        *(f"{workload.forgets:.0%}", f"{workload.batch:,}", *figures),
        *(f"{plainly:.0%}", f"{erasing:.0%}", f"{GOAL:.0%}", reached),
    ]


def main() -> None:
    """Run all and print the table."""
    columns = ("forgets", "messages in a batch", "events/s: ours", "plain", "plain, erasing", "share of plain")
    table = Table(*columns, "share of plain, erasing", "must reach", "")
    with tempfile.TemporaryDirectory() as place, Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("producing", total=RUNS * len(WORKLOADS))
        broker = Broker(Path(place))
        try:
            fill(broker)
            progress.update(task, description="consuming")
            for workload in WORKLOADS:
                runs = []
                for _ in range(RUNS):
                    runs.append(measure(broker, Path(place), workload))
                    progress.advance(task)
                table.add_row(*row_of(workload, runs))
        finally:
            broker.kill()
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
