"""Spark's connector: a topic into the state, rejected messages and recommendations into topics."""

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.cli.running import error, run
from tests.kafka.broker import Broker
from tests.kafka.consuming import PARTITIONS, USERS, Producers, encoded, produce, random_events
from tests.kafka.streaming import Streaming, arguments, connector_jars, last_batch
from tests.laws import law_of_equality
from tests.spark.driver import QUICK_START, TIMEOUTS
from tests.spark.scoring import vectors_in

import unbasket as ub
from unbasket.domain.events import parse_event
from unbasket.domain.rejection import Reason
from unbasket.residue import audit
from unbasket.spark import State, histories, session

pytestmark = pytest.mark.kafka

POISON = b'{"event": "forget", "user": "user-1", "itme": "i1"}'  # it must not forget the user


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the folder of Spark's temporary files."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def spark(work: Path) -> Iterator[SparkSession]:
    running = session("local[2]", work=str(work), settings={"spark.jars": connector_jars(), **QUICK_START, **TIMEOUTS})
    yield running
    running.stop()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def retrained(broker: Broker, topic: str) -> ub.Recommender:
    """Return a fresh engine that has applied the events in a topic."""
    rec = ub.Recommender()
    for record in broker.read(topic):
        with suppress(ub.UnbasketError):
            rec.apply([parse_event(json.loads(record.value))])
    return rec


def check(spark: SparkSession, checkpoint: Path, expected: ub.Recommender) -> None:
    """Check that the state equals an engine, bit for bit."""
    state = State.read(str(checkpoint))
    held = histories(spark, str(checkpoint))
    assert vectors_in(held, state.params) == {user: expected.vector(user) for user in expected.users()}
    assert state.users == len(expected)
    run("spark", "to-db", "--checkpoint", checkpoint, "--db", checkpoint.with_suffix(".db"))
    with ub.open(checkpoint.with_suffix(".db")) as rec:
        law_of_equality(rec, expected)


def recommendations_in(broker: Broker, topic: str) -> dict[str, list[dict[str, Any] | None]]:
    """Return the values of each user's messages, in order; None is a tombstone."""
    found = defaultdict(list)
    for record in broker.read(topic):
        found[record.key.decode()].append(None if record.value is None else json.loads(record.value))
    return found


def recommended(rec: ub.Recommender, user: str, n: int) -> list[dict[str, Any]]:
    return [recommendation._asdict() for recommendation in rec.recommend(user, n=n)]


def test_every_event_counts_once(
    spark: SparkSession, broker: Broker, topic: str, checkpoint: Path, tmp_path: Path
) -> None:
    """Kill the driver 3 times: when the state has a batch and Spark does not know, when it has not, and at random."""
    dead, best, chance = f"{topic}-dead", f"{topic}-best", random.Random(topic)
    broker.create(topic, partitions=PARTITIONS)
    broker.create(dead, best, partitions=2)
    outputs = ("--dead-letter-topic", dead, "--recommendations-topic", best, "-n", 5)
    options = (*outputs, "--batch", 80, "--every", "0 seconds")
    producers, poison = Producers(broker, topic), 0

    def send(count: int) -> None:
        nonlocal poison
        for _ in range(count // 25):
            producers.send(random_events(25, chance.randrange(2**32)))
            producers.flush()
            produce(broker, topic, [(b"user-1", POISON)])
            poison += 1

    for point in ("after the manifest", "after the tasks", None):
        send(400)
        start = last_batch(checkpoint) + 1
        command = arguments(broker, topic, checkpoint, *options)
        driver = Streaming(tmp_path, *command, die_at=(point or "after the sink", start + 2 if point else 10**6))
        if point is None:
            driver.wait_for(checkpoint, start + 1)
            driver.kill()
        else:
            driver.died()
    send(100)
    producers.close()
    run(*arguments(broker, topic, checkpoint, *outputs, "--once"))

    expected = retrained(broker, topic)
    assert 10 < len(expected) <= len(USERS)
    check(spark, checkpoint, expected)
    assert State.read(str(checkpoint)).rejected == poison
    check_dead_letters(broker, topic, dead)
    check_recommendations(broker, best, expected)


def check_dead_letters(broker: Broker, topic: str, dead: str) -> None:
    """Check that all rejected messages are there, as they were, and only these."""
    places = {(r.partition, r.offset) for r in broker.read(topic) if r.value == POISON}
    found = set()
    for record in broker.read(dead):
        headers = {name: value.decode() for name, value in record.headers}
        assert (record.key, record.value) == (b"user-1", POISON)
        assert (headers["reason"], headers["topic"]) == (Reason.NO_EVENT, topic)
        found.add((int(headers["partition"]), int(headers["offset"])))
    assert found == places


def check_recommendations(broker: Broker, best: str, expected: ub.Recommender) -> None:
    """Check that batches come in order, and that a batch which came again is the same."""
    found = recommendations_in(broker, best)
    assert {user for user, values in found.items() if values[-1] is not None} == set(expected.users())
    newest = max(values[-1]["batch"] for values in found.values() if values[-1])
    for user, values in found.items():
        batches = [value["batch"] for value in values if value]
        assert batches == sorted(batches)
        by_batch = {value["batch"]: value for value in values if value}
        assert all(value == by_batch[value["batch"]] for value in values if value)
        if values[-1] and values[-1]["batch"] == newest:  # others are as of an earlier batch
            assert values[-1]["recommendations"] == recommended(expected, user, 5)


@pytest.mark.usefixtures("spark")
def test_recommendations_follow_the_changes(broker: Broker, topic: str, checkpoint: Path, work: Path) -> None:
    """Users who changed have new recommendations, users who are gone a tombstone, and temporary files nothing."""
    best = f"{topic}-best"
    broker.create(topic, best)
    command = arguments(broker, topic, checkpoint, "--recommendations-topic", best, "-n", 3, "--once")
    learns = [ub.Learn(f"forgotten-person-{n}", [f"i{n}", f"i{n + 1}", "tea"], "b1", n) for n in range(20)]
    produce(broker, topic, [(str(event.user).encode(), encoded(event)) for event in learns])
    run(*command)
    rec, found = retrained(broker, topic), recommendations_in(broker, best)
    assert {user: [value["recommendations"] for value in values if value] for user, values in found.items()} == {
        str(user): [recommended(rec, str(user), 3)] for user in rec.users()
    }

    gone, changed = "forgotten-person-7", "forgotten-person-3"
    events: list[ub.Event] = [ub.Forget(gone, None, None), ub.Learn(changed, ["milk"], "b2", 50)]
    produce(broker, topic, [(str(event.user).encode(), encoded(event)) for event in events])
    run(*command)
    rec, before, found = retrained(broker, topic), found, recommendations_in(broker, best)
    assert found[gone][1:] == [None]
    [value] = [value for value in found[changed][1:] if value]
    assert value == {"user": changed, "batch": value["batch"], "recommendations": recommended(rec, changed, 3)}
    assert {user for user in found if found[user] != before[user]} == {gone, changed}
    assert not audit([checkpoint, work], [gone])[1]

    users = [str(user) for user in rec.users()]
    produce(broker, topic, [(user.encode(), encoded(ub.Forget(user, None, None))) for user in users])
    run(*command)
    assert all(values[-1] is None for values in recommendations_in(broker, best).values())
    assert not audit([checkpoint, work], users)[1]


def test_bad_messages_are_counted_and_kept(spark: SparkSession, broker: Broker, topic: str, checkpoint: Path) -> None:
    """A bad message in every batch; one is too large for the dead-letter topic, and another's id is no number."""
    dead = f"{topic}-dead"
    broker.create(topic, config={"max.message.bytes": "3000000"})
    broker.create(dead)
    learn = ub.Learn("7", ["tea"], "1", None)
    bad: dict[tuple[bytes | None, bytes], Reason] = {
        (b"7", b"{"): Reason.NOT_JSON,
        (b"7", b"secret" * 300_000): Reason.NOT_JSON,
        (b"7", b'{"event": "buy", "user": "7"}'): Reason.NO_EVENT,
        (None, encoded(learn)): Reason.NO_KEY,
        (b"7", b'{"event": "forget", "user": 7.5}'): Reason.INVALID_ID,
        (b"7", b'{"event": "learn", "user": 7, "basket": 2, "items": "tea"}'): Reason.INVALID_BASKET,
        (b"secret", encoded(learn._replace(user="secret"))): Reason.OTHER_TYPE,
    }
    events = [learn._replace(basket=str(number)) for number in range(len(bad))]
    for message, event in zip(bad, events, strict=True):
        produce(broker, topic, [message, (b"7", encoded(event)), (b"7", None)])
    options = ("--dead-letter-topic", dead, "--batch", 3, "--users", "long", "--baskets", "long", "--once")
    said = run(*arguments(broker, topic, checkpoint, *options))
    assert said.endswith(f", {len(bad)} events rejected\n")
    [row] = histories(spark, str(checkpoint)).collect()
    assert (row.user, [basket.basket for basket in row.baskets]) == (7, list(range(len(bad))))
    records = sorted(broker.read(dead), key=lambda record: int(dict(record.headers)["offset"]))
    for number, ((message, reason), record) in enumerate(zip(bad.items(), records, strict=True)):
        headers = {name: value.decode() for name, value in record.headers}
        assert (headers["reason"], headers["offset"]) == (reason, str(3 * number))
        if len(message[1]) > 1_000_000:
            assert (record.key, record.value, headers["size"]) == (None, None, str(len(message[1]) + 1))
        else:
            assert (record.key, record.value) == message


def test_uncommitted_transactions_are_not_read(
    spark: SparkSession, broker: Broker, topic: str, checkpoint: Path
) -> None:
    broker.create(topic)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": topic, "log_level": 2})
    producer.init_transactions(60)
    for user, end in (("ann", producer.abort_transaction), ("bob", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, key=user, value=encoded(ub.Learn(user, ["tea"], "1", None)))
        producer.flush(60)
        end(60)
    run(*arguments(broker, topic, checkpoint, "--once"))
    assert [row.user for row in histories(spark, str(checkpoint)).collect()] == ["bob"]


def test_lost_messages_are_an_error_unless_accepted(
    spark: SparkSession, broker: Broker, topic: str, checkpoint: Path
) -> None:
    broker.create(topic)
    command = arguments(broker, topic, checkpoint, "--once")
    for user in ("ann", "bob"):
        produce(broker, topic, [(b"", encoded(ub.Learn(user, ["tea"], "1", None)))] * 2)
        if user == "ann":
            run(*command)
    broker.delete_records(topic, 3)
    assert "the stream has failed" in error(*command)
    run(*command, "--accept-loss")
    assert sorted(row.user for row in histories(spark, str(checkpoint)).collect()) == ["ann", "bob"]


@pytest.mark.usefixtures("spark")
def test_a_missing_topic_is_an_error(broker: Broker, topic: str, checkpoint: Path) -> None:
    assert "UnknownTopicOrPartition" in error(*arguments(broker, topic, checkpoint, "--once"))
