"""Messages out: receipts, and tombstones with which the bytes of a forgotten user leave the broker's files."""

import time
from pathlib import Path
from random import randbytes
from threading import Event as Flag

import pytest
from tests.kafka.broker import Broker, wait_until
from tests.kafka.conftest import StartConsumer
from tests.kafka.consuming import encoded, produce

import unbasket as ub
from unbasket.domain.events import Forget, Learn
from unbasket.errors import KafkaError
from unbasket.kafka import ConsumerSettings, EventConsumer
from unbasket.kafka.outbox import Outbox
from unbasket.store import Receipt, audit

pytestmark = pytest.mark.kafka

# What docs/kafka.md advises, with seconds in place of days
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
    "file.delete.delay.ms": "1000",
}
MARKERS = ("Jane-Doe-1980", "secret-purchase")


def learn(user: str, item: str, basket: int) -> tuple[bytes, bytes]:
    return user.encode(), encoded(Learn(user, [item], basket, basket))


def forget(user: str) -> tuple[bytes, bytes]:
    return user.encode(), encoded(Forget(user, None, None))


def test_the_bytes_of_a_forgotten_user_leave_the_segments(
    broker: Broker, topic: str, consume: StartConsumer, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values and key are gone after compaction; the other users' messages and the database are as they were."""
    broker.create(topic, config=COMPACTED)
    user, item = MARKERS
    produce(
        broker, topic, [learn(user, item, 1), learn(user, item, 2), learn("bob", "milk", 1), learn("cid", "tea", 1)]
    )
    assert broker.residue(topic, MARKERS) == list(MARKERS)
    consumer = consume("--tombstone")
    start, gone = time.monotonic(), dict[str, float]()
    produce(broker, topic, [forget(user)])

    def everything_is_gone() -> bool:
        produce(broker, topic, [learn("dan", "tea", 1)])  # a segment is closed when a message comes after its time
        time.sleep(0.2)
        for marker in set(MARKERS) - set(broker.residue(topic, MARKERS)) - set(gone):
            gone[marker] = time.monotonic() - start
        return len(gone) == len(MARKERS)

    wait_until(everything_is_gone, 60)
    consumer.terminate()
    assert broker.residue(topic, MARKERS) == []
    with capsys.disabled():  # docs/kafka.md has these figures
        for name, marker in zip(("the key was", "the values were"), MARKERS, strict=True):
            print(f"{gone[marker]:.1f} s after the forget, {name} gone from the segments")  # noqa: T201
    kept = {record.key: record.value for record in broker.read(topic)}
    assert {key: value for key, value in kept.items() if value is not None} == dict(
        [learn("bob", "milk", 1), learn("cid", "tea", 1), learn("dan", "tea", 1)]
    )
    with ub.open(path) as rec:
        assert rec.users() == ["bob", "cid", "dan"]


def test_without_tombstones_the_bytes_stay(broker: Broker, topic: str, consume: StartConsumer) -> None:
    """The forget itself replaces older messages of its key, but names the user for ever."""
    broker.create(topic, config=COMPACTED)
    user, item = MARKERS
    produce(broker, topic, [learn(user, item, 1), learn("bob", "milk", 1), forget(user)])
    consume("--until-end").finished()

    def values_are_gone() -> bool:
        produce(broker, topic, [learn("dan", "tea", 1)])
        time.sleep(0.2)
        return broker.residue(topic, MARKERS) == [user]

    wait_until(values_are_gone, 60)
    time.sleep(5)
    produce(broker, topic, [learn("dan", "tea", 1)])
    assert broker.residue(topic, MARKERS) == [user]


def test_tombstones_are_for_users_of_whom_nothing_is_held(broker: Broker, topic: str, path: Path) -> None:
    broker.create(topic)
    messages = [
        learn("ann", "milk", 1),
        learn("bob", "milk", 1),
        learn("bob", "tea", 2),
        (b"ann", encoded(Forget("ann", 1, None))),  # their last basket
        (b"bob", encoded(Forget("bob", 1, None))),
        forget("nobody"),
        forget("cid"),
        learn("cid", "tea", 1),  # back before the batch ends: the older messages of the key are superseded
    ]
    produce(broker, topic, messages)
    with ub.open(path) as rec:
        consumer = EventConsumer(rec, ConsumerSettings(broker.address, topic, tombstone=True, until_end=True))
        consumer.run()
        assert consumer.counters.tombstones == 2
        assert rec.cursors()[f"{topic}/0/tombstones"] >= len(messages)
    buried = [record.key for record in broker.read(topic) if record.value is None]
    assert buried == [b"ann", b"nobody"]


def test_tombstones_that_a_crash_prevented_are_written_later(
    broker: Broker, topic: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create(topic)
    produce(broker, topic, [learn("ann", "milk", 1), forget("ann"), learn("bob", "milk", 1)])
    settings = ConsumerSettings(broker.address, topic, tombstone=True, until_end=True)
    with ub.open(path) as rec:
        with monkeypatch.context() as patch:
            patch.setattr(Outbox, "bury", _crash)
            with pytest.raises(KeyboardInterrupt):
                EventConsumer(rec, settings).run()
        assert rec.users() == ["bob"]  # the forget was committed, and its tombstone was not written
        assert rec.cursors() == {f"{topic}/0": 3, f"{topic}/0/tombstones": 0}
        consumer = EventConsumer(rec, settings)
        consumer.run()
        assert (consumer.counters.redelivered, consumer.counters.tombstones) == (3, 1)
    assert [record.key for record in broker.read(topic) if record.value is None] == [b"ann"]


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_receipts_of_all_callers_go_out(broker: Broker, topic: str, path: Path, consume: StartConsumer) -> None:
    receipts = f"{topic}-receipts"
    broker.create(topic, receipts)
    with ub.open(path) as rec:
        rec.learn("ann", ["milk"], basket=1)
        rec.forget("ann")  # by another caller
    produce(broker, topic, [learn("bob", "milk", 1), forget("bob"), forget("cid")])
    options = ("--receipts-topic", receipts, "--until-end")
    consume(*options).finished()
    consume(*options).finished()  # nothing more to send
    records = broker.read(receipts)
    sent = [Receipt.from_json(record.value) for record in records]
    with ub.open(path) as rec:
        assert sent == rec.receipts()
        assert rec.cursors()[f"receipts/{receipts}"] == 3
    assert [record.key for record in records] == [b"1", b"2", b"3"]
    assert audit(sent).ok


def test_a_message_that_was_refused_is_not_delivered(broker: Broker, topic: str) -> None:
    broker.create(topic, config={"max.message.bytes": "100"})
    outbox = Outbox(ConsumerSettings(broker.address, topic))
    outbox.bury(randbytes(1000), 0)  # which can't be compressed
    assert not outbox.is_flushed
    with pytest.raises(KafkaError, match="too large"):
        outbox.flush(Flag())
    assert not outbox.is_flushed


def test_a_topic_that_refuses_receipts(broker: Broker, topic: str, path: Path) -> None:
    """Nothing is lost: they are sent by the next start with a topic that takes them."""
    receipts = f"{topic}-receipts"
    broker.create(topic)
    broker.create(receipts, config={"max.message.bytes": "100"})
    produce(broker, topic, [learn("ann", "milk", 1), forget("ann")])
    settings = ConsumerSettings(broker.address, topic, receipts_topic=receipts, until_end=True)
    with ub.open(path) as rec:
        with pytest.raises(KafkaError, match=r"a message could not be written: .*too large"):
            EventConsumer(rec, settings).run()
        assert rec.cursors() == {f"{topic}/0": 2}
        broker.set_config(receipts, {"max.message.bytes": "100000"})
        consumer = EventConsumer(rec, settings)
        consumer.run()
        assert consumer.counters.receipts == 1
