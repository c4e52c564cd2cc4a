"""The consumer against a broker: bad messages, signals, metrics, lost messages, and a blocked erasure."""

import gc
import json
import random
import re
import signal
import sqlite3
import sys
import threading
import urllib.request
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.kafka.broker import Broker, free_port, wait_until
from tests.kafka.conftest import StartConsumer
from tests.kafka.consuming import Producers, cursors, encoded, produce, random_events, retrained, wait_for

import unbasket as ub
from unbasket.core.check.testing import Interrupter
from unbasket.domain.events import Forget, Learn
from unbasket.domain.rejection import Reason
from unbasket.kafka import ConsumerSettings, EventConsumer
from unbasket.kafka.consumer import _with_collector

pytestmark = pytest.mark.kafka

MARKER = "Jane-Doe-1980"
BAD = {
    b"{" + MARKER.encode(): Reason.NOT_JSON,
    json.dumps({"event": "unlearn", "user": MARKER}).encode(): Reason.NO_EVENT,
    json.dumps({"event": "learn", "user": MARKER, "basket": 1, "items": {"milk": 1}}).encode(): Reason.INVALID_BASKET,
    json.dumps({"event": "learn", "user": [MARKER], "basket": "b", "items": ["milk"]}).encode(): Reason.INVALID_ID,
    json.dumps({"event": "learn", "user": MARKER, "basket": "b", "items": []}).encode(): Reason.INVALID_BASKET,
    json.dumps({"event": "learn", "user": MARKER, "basket": "b", "items": ["milk"]}).encode(): Reason.OTHER_TYPE,
    b"x" * 1_000_000: Reason.NOT_JSON,
    random.Random(1).randbytes(1_000_000): Reason.NOT_JSON,
    random.Random(2).randbytes(1_048_490): Reason.NOT_JSON,  # with the headers, too large for the broker
}


def learn(number: int) -> tuple[bytes, bytes]:
    return b"%d" % (number % 5), encoded(Learn(number % 5, [number % 7, 100], number, number))


def test_bad_messages_are_counted_and_kept(broker: Broker, topic: str, consume: StartConsumer, path: Path) -> None:
    """One in each batch, of each kind; all others are applied, and none is lost."""
    rejected = f"{topic}-rejected"
    broker.create(topic, rejected)
    bad = [*((b"key", value) for value in BAD), (None, learn(1)[1])]
    messages: list[tuple[bytes | None, bytes | None]] = [learn(0)]
    for number, message in enumerate(bad):
        messages += [message, *(learn(1 + 9 * number + i) for i in range(9))]
    messages.append((b"3", None))  # a tombstone is not an error
    produce(broker, topic, messages)
    printed = consume("--batch", 10, "--dead-letter-topic", rejected, "--until-end").finished()
    assert f"91 learns and 0 forgets applied, {len(bad)} messages rejected" in printed
    assert MARKER not in printed
    expected = ub.Recommender()
    expected.apply(Learn(number % 5, [number % 7, 100], number, number) for number in range(91))
    with ub.open(path) as rec:
        assert rec.digest() == expected.digest()
        assert rec.cursors() == {f"{topic}/0": len(messages)}
    kept = broker.read(rejected)
    assert len(kept) == len(bad)
    for record, (key, value) in zip(kept, bad, strict=True):
        headers = dict(record.headers)
        reason = Reason.NO_KEY if key is None else BAD[value or b""]
        assert (record.key, headers["reason"].decode()) == (key, reason)
        assert (headers["topic"].decode(), headers["partition"]) == (topic, b"0")
        assert messages[int(headers["offset"])] == (key, value)
        assert MARKER.encode() not in b"".join(headers.values())
        if "size" in headers:
            assert (record.value, headers["size"]) == (b"", b"1048490")
        else:
            assert record.value == value
    assert sum("size" in dict(record.headers) for record in kept) == 1


def test_without_a_dead_letter_topic_the_log_says_where(
    broker: Broker, topic: str, consume: StartConsumer, path: Path
) -> None:
    broker.create(topic)
    produce(broker, topic, [learn(0), (b"ann", b"{"), learn(1)])
    printed = consume("--until-end").finished()
    assert f"partition 0, offset 1 of {topic} was rejected: it is not JSON" in printed
    assert cursors(path) == {f"{topic}/0": 3}


def metrics(port: int, name: str) -> list[float]:
    """Return the values of a metric."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        text = response.read().decode()
    return [float(value) for value in re.findall(rf"^unbasket_kafka_{name}(?:_total\S*)? (\S+)$", text, re.MULTILINE)]


def test_sigterm_finishes_the_batch(broker: Broker, topic: str, consume: StartConsumer, path: Path) -> None:
    port = free_port()
    broker.create(topic, partitions=4)
    producers = Producers(broker, topic)
    producers.send(random_events(500, 1))
    producers.flush()
    consumer = consume("--metrics-port", port)
    wait_for(path, topic, broker, consumer)
    wait_until(lambda: sum(metrics(port, "events")) == 500, 10)
    wait_until(lambda: metrics(port, "lag") == [0], 10)
    producers.send(random_events(2000, 2))
    printed = consumer.terminate()
    assert re.search(r"[\d,]+ events, [\d,]+ per second, 0 rejected, lag [\d,]+", printed)
    assert "learns and" in printed.splitlines()[-1]
    assert not path.with_name(path.name + "-wal").exists()  # the database was closed
    producers.close()
    assert consume("--until-end").finished().endswith("0 skipped since they were applied before\n")
    assert sum(cursors(path).values()) == 2500


@pytest.fixture
def shortened(broker: Broker, topic: str, consume: StartConsumer) -> None:
    """Let the topic lose messages that the database has not read."""
    broker.create(topic, config={"segment.ms": "200", "file.delete.delay.ms": "0"})
    produce(broker, topic, [learn(0)])
    consume("--until-end").finished()
    for number in range(1, 5):
        produce(broker, topic, [learn(number)])
    broker.delete_records(topic, 3)


@pytest.mark.usefixtures("shortened")
def test_lost_messages_are_an_error(topic: str, consume: StartConsumer, path: Path) -> None:
    printed = consume("--until-end").finished(code=2)
    assert f"partition 0 of {topic} has messages from offset 3 to 5, and this database has read up to 1" in printed
    assert cursors(path) == {f"{topic}/0": 1}


@pytest.mark.usefixtures("shortened")
def test_a_loss_can_be_accepted(topic: str, consume: StartConsumer, path: Path) -> None:
    printed = consume("--until-end", "--accept-loss").finished()
    assert "partition 0 goes on at offset 3 instead of 1: the loss was accepted" in printed
    with ub.open(path) as rec:
        assert (rec.cursors(), len(rec)) == ({f"{topic}/0": 5}, 3)


def test_another_topic_of_the_same_name(broker: Broker, topic: str, consume: StartConsumer) -> None:
    """Its offsets are not those in the database."""
    broker.create(topic)
    produce(broker, topic, [learn(0), learn(1), learn(2)])
    consume("--until-end").finished()
    broker.delete(topic)
    broker.create(topic)
    produce(broker, topic, [learn(3)])
    assert "has messages from offset 0 to 1, and this database has read up to 3" in consume("--until-end").finished(
        code=2
    )


def test_a_reader_that_blocks_an_erasure_does_not_stop_the_stream(
    broker: Broker, topic: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbasket.store.journal.TIMEOUT", 0.2)
    broker.create(topic)
    produce(broker, topic, [learn(0), learn(1), (b"0", encoded(Forget(0, None, None))), learn(2)])
    warnings: list[str] = []
    with ub.open(path) as rec:
        rec.apply([Learn(9, [1], 1, 1), Learn(0, [1], 50, 1)])  # on disk before the reader, which keeps its pages
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM baskets").fetchone()
            settings = ConsumerSettings(broker.address, topic, until_end=True)
            consumer = EventConsumer(rec, settings, warn=warnings.append)
            consumer.run()
        assert rec.users() == [1, 2, 9]
        assert (consumer.counters.blocked, consumer.counters.events) == (1, 4)
    assert "its bytes are still in the files" in warnings[0]


def test_missing_topics(broker: Broker, topic: str, consume: StartConsumer, path: Path) -> None:
    assert f"topic {topic} does not exist" in consume("--until-end").finished(code=2)
    broker.create(topic)
    printed = consume("--receipts-topic", "elsewhere", "--until-end").finished(code=2)
    assert "topic elsewhere does not exist" in printed
    assert not path.exists()


def test_a_thread_beside_other_callers(broker: Broker, topic: str, path: Path) -> None:
    """As beside a service: others learn, forget and recommend meanwhile."""
    broker.create(topic, partitions=4)
    producers = Producers(broker, topic)
    with ub.open(path) as rec:
        consumer = EventConsumer(rec, ConsumerSettings(broker.address, topic, batch=10))
        thread = threading.Thread(target=consumer.run)
        thread.start()
        for number in range(20):
            producers.send(random_events(50, number))
            rec.learn("caller", ["milk", f"i{number}"], basket=f"b{number}")
            rec.forget("caller", basket=f"b{number - 1}")
            rec.recommend("caller")
        producers.close()
        wait_until(lambda: consumer.counters.events == 1000, 60)
        consumer.stop()
        thread.join()
        expected = retrained(broker, topic)
        expected.learn("caller", ["milk", "i19"], basket="b19")
        assert rec.digest() == expected.digest()
        assert rec.verify().ok


def test_an_interrupt_leaves_the_garbage_collector_on() -> None:
    """Whichever bytecode of a call it comes at, and while its traceback is kept."""
    kept, coverage = list[BaseException](), sys.gettrace()
    for moment in range(100):
        try:
            try:
                sys.settrace(Interrupter(moment, signal.SIGINT))
                assert not _with_collector(gc.disable, gc.isenabled)
            finally:
                sys.settrace(coverage)
        except KeyboardInterrupt as error:
            kept.append(error)
        assert gc.isenabled()
    assert 10 < len(kept) < 100


def test_garbage_is_collected_while_brokers_are_down(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rejected message is delivered before its batch is applied, however long that takes."""
    message = Mock(error=Mock(return_value=None), partition=Mock(return_value=0), offset=Mock(return_value=0))
    message.key.return_value, message.value.return_value = b"key", b"no event"
    client = Mock(consume=Mock(return_value=[message]), get_watermark_offsets=Mock(return_value=(0, 1)))
    outbox = Mock(is_flushed=False, flush=Mock(side_effect=lambda _: gc.isenabled()))
    for name, double in {"Consumer": client, "Outbox": outbox, "check_topics": None}.items():
        monkeypatch.setattr(f"unbasket.kafka.consumer.{name}", Mock(return_value=double))
    with ub.open(path) as rec:
        settings = ConsumerSettings("localhost:9", "events", batch=1)
        consumer = EventConsumer(rec, settings, progress=lambda _: consumer.stop())
        consumer._ended = {0: False}
        consumer.run()
        assert rec.cursors() == {"events/0": 1}
