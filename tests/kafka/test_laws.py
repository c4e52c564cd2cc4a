"""The laws through a broker: whatever is killed when, a database has what a fresh engine learns from the topic."""

import json
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kafka.broker import Broker, wait_until
from tests.kafka.conftest import StartConsumer
from tests.kafka.consuming import (
    PARTITIONS,
    Consuming,
    Producers,
    cursors,
    ends,
    random_events,
    retrained,
    wait_for,
)
from tests.laws import law_of_equality

import unbasket as ub
from unbasket.domain.events import Forget
from unbasket.store import Receipt, audit

pytestmark = pytest.mark.kafka

CONSUMER_KILLS = 20
BROKER_KILLS = 5


def check(path: Path, broker: Broker, topic: str) -> None:
    """Check that a database equals a fresh engine that has applied what is in the topic, with a receipt a forget.

    Learns and forgets that are applied twice often end in the same state; their receipts tell.
    """
    forgets = [record for record in broker.read(topic) if json.loads(record.value)["event"] == "forget"]
    with ub.open(path) as rec:
        assert rec.receipt_count == len(forgets)
        law_of_equality(rec, retrained(broker, topic))
        assert rec.verify().ok
        assert {int(name.rpartition("/")[2]): end for name, end in rec.cursors().items() if name.startswith(topic)} == {
            number: end for number, end in ends(broker, topic).items() if end
        }


@contextmanager
def traffic(broker: Broker, topic: str, seed: int) -> Iterator[None]:
    """Produce events, some two hundred a second, until the block ends; then all of them are in the topic."""
    producers, ending = Producers(broker, topic), threading.Event()

    def send() -> None:
        for first in range(10_000):
            if ending.wait(0.1):
                return
            producers.send(random_events(20, seed + first))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        producers.close()


def await_progress(path: Path, consumer: Consuming) -> None:
    """Wait until the cursors of a database move."""
    before = sum(cursors(path).values())

    def has_moved() -> bool:
        assert consumer.is_running(), consumer.log()
        return sum(cursors(path).values()) > before

    wait_until(has_moved, 60)


def test_every_event_counts_once(consume: StartConsumer, broker: Broker, topic: str, path: Path) -> None:
    """Kill the consumer 20 times and the broker 5 times while events come in."""
    receipts, chance = f"{topic}-receipts", random.Random(topic)
    broker.create(topic, partitions=PARTITIONS)
    broker.create(receipts)
    options = ("--batch", 25, "--receipts-topic", receipts)
    with traffic(broker, topic, chance.randrange(2**32)):
        for kill in range(1, CONSUMER_KILLS + 1):
            consumer = consume(*options)
            await_progress(path, consumer)
            if kill % (CONSUMER_KILLS // BROKER_KILLS) == 0:
                broker.kill()
                broker.start()
            threading.Event().wait(chance.uniform(0, 0.4))
            consumer.kill()
    consume(*options, "--until-end").finished()
    check(path, broker, topic)
    sent = {record.key: Receipt.from_json(record.value) for record in broker.read(receipts)}
    with ub.open(path, read_only=True) as rec:
        assert list(sent.values()) == rec.receipts()
    assert audit(sent.values()).ok


def test_partitions_move_between_two_databases(
    consume: StartConsumer, broker: Broker, topic: str, path: Path, tmp_path: Path
) -> None:
    """Each database has each event once, though partitions move to the other consumer and back."""
    broker.create(topic, partitions=PARTITIONS)
    other = tmp_path / "other.db"
    with traffic(broker, topic, 1):
        first = consume("--group", topic, "--batch", 25)
        wait_until(lambda: len(cursors(path)) == PARTITIONS, 60)
        second = consume("--group", topic, "--batch", 25, db=other)
        wait_until(lambda: len(cursors(other)) > 0, 60)
        first.kill()  # after the session's timeout, the second one has all partitions
        wait_until(lambda: len(cursors(other)) == PARTITIONS, 60)
        first = consume("--group", topic, "--batch", 25)
        await_progress(path, first)
        assert "which another consumer of the group reads now" in second.terminate()
    wait_for(path, topic, broker, first)
    first.terminate()
    check(path, broker, topic)
    consume("--until-end", db=other).finished()
    check(other, broker, topic)


def test_redelivery_from_an_older_offset(consume: StartConsumer, broker: Broker, topic: str, path: Path) -> None:
    """Messages that come again are skipped."""
    broker.create(topic, partitions=PARTITIONS)
    producers, events = Producers(broker, topic), random_events(800, 3)
    producers.send(events)
    producers.flush()
    consume("--tombstone", "--until-end").finished()
    with ub.open(path) as rec:
        digest, applied = rec.digest(), sum(ends(broker, topic).values())
        rec.apply([], cursors={f"{topic}/{number}/tombstones": 0 for number in range(PARTITIONS)})
    printed = consume("--tombstone", "--until-end").finished().splitlines()[-1]
    skipped = int(printed.rpartition("rejected, ")[2].split()[0].replace(",", ""))
    assert printed.startswith("0 learns and 0 forgets")
    assert skipped >= 800
    assert sum(ends(broker, topic).values()) > applied  # the tombstones were written again
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert rec.receipt_count == sum(isinstance(event, Forget) for event in events)
    more = random_events(200, 4)
    producers.send(more)
    producers.close()
    assert consume("--tombstone", "--until-end").finished().endswith("0 skipped since they were applied before\n")
    expected = ub.Recommender()
    expected.apply(events + more)
    with ub.open(path) as rec:
        assert rec.digest() == expected.digest()


def test_a_restored_backup_reads_what_it_lacks(
    consume: StartConsumer, broker: Broker, topic: str, path: Path, tmp_path: Path
) -> None:
    """Its cursors are as old as its baskets, so it also forgets again what was forgotten since."""
    broker.create(topic, partitions=PARTITIONS)
    producers = Producers(broker, topic)
    producers.send(random_events(500, 5))
    producers.flush()
    consume("--until-end").finished()
    with ub.open(path) as rec:
        rec.backup(tmp_path / "copy.db")
    producers.send(random_events(500, 6))
    producers.close()
    consume("--until-end").finished()
    check(path, broker, topic)
    shutil.copy(f"{path}-keys", tmp_path / "copy.db-keys")
    consume("--until-end", db=tmp_path / "copy.db").finished()
    check(tmp_path / "copy.db", broker, topic)
