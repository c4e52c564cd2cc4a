"""Messages of Kafka as events, without a broker; with one, see tests/kafka/test_spark.py."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.cli.running import error

from unbasket.domain.events import Allow, Forget, Learn, Rename, Suppress, decode_change
from unbasket.domain.ids import IdTypes
from unbasket.domain.rejection import FAULTS, Reason
from unbasket.errors import SparkError
from unbasket.spark import Kafka, event_schema, parse_messages
from unbasket.spark.sources import routed
from unbasket.spark.updates import Rejection, parse, parsed, with_faults

KEY = b"ann"
LEARN: dict[str, Any] = {"event": "learn", "user": "ann", "basket": "1", "items": ["milk"]}
TEXTS = IdTypes(str, str, str)


def encoded(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def messages(spark: SparkSession, *values: tuple[bytes | None, bytes | None]) -> DataFrame:
    """Return a frame like that of Kafka's source, of one partition, in another order than that of offsets."""
    rows = [(key, value, "events", 0, offset) for offset, (key, value) in enumerate(values)]
    schema = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
    return spark.createDataFrame([(*row, None) for row in rows[::-1]], schema)


def test_events_in_the_order_of_offsets(spark: SparkSession) -> None:
    values = [
        encoded(**LEARN, time=5),
        encoded(**LEARN | {"user": 7, "items": ["b", "a", "b"]}),
        encoded(event="forget", user="ann", item="milk"),
        encoded(event="suppress", user="ann", item="milk"),
        encoded(event="allow", user="ann", item="milk"),
        encoded(event="rename", user="guest", other="ann"),
    ]
    events = parse_messages(messages(spark, *((KEY, value) for value in values)), event_schema())
    frame = routed(events, "string", shards=2)
    assert list(parsed(frame.orderBy("sequence").toArrow(), TEXTS)) == [
        Learn("ann", ["milk"], "1", 5),
        Learn("7", ["b", "a"], "1", None),
        Forget("ann", None, "milk"),
        Suppress("ann", "milk"),
        Allow("ann", "milk"),
        Rename("guest", "ann"),
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reason.NOT_JSON),
        (b"\xff\xfe", Reason.NOT_JSON),
        (b"[" * 100_000, Reason.NOT_JSON),
        (encoded(**LEARN | {"user": "\ud800"}), Reason.NOT_JSON),
        (b"[]", Reason.NO_EVENT),
        (encoded(**LEARN | {"event": ["learn"]}), Reason.NO_EVENT),
        (encoded(event="forget", user="ann", itme="milk"), Reason.NO_EVENT),  # or else the whole user would go
        (encoded(event="rename", user="ann", other="ann"), Reason.NO_EVENT),
        (encoded(event="forget", user="ann", basket={"id": 1}), Reason.INVALID_ID),
        (encoded(**LEARN | {"items": []}), Reason.INVALID_BASKET),
    ],
)
def test_reasons(value: bytes, reason: Reason) -> None:
    found = parse(TEXTS, "ann", "ann", value, None)
    assert isinstance(found, Rejection)
    assert (found.user, found.fault) == ("ann", reason)


IDS = st.integers(-3, 3) | st.text("a0-é\ud800\0", max_size=3) | st.none() | st.booleans() | st.just(2**64)
FIELDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"event": st.sampled_from(["learn", "forget", "suppress", "allow", "rename", "other", None, []])},
    optional={"user": IDS, "other": IDS, "basket": IDS, "item": IDS, "items": st.lists(IDS) | IDS, "time": IDS},
)


@given(st.binary() | FIELDS.map(lambda fields: json.dumps(fields).encode()), st.sampled_from([str, int]))
def test_no_message_stops_the_stream(value: bytes, kind: type[str] | type[int]) -> None:
    """Every message has either a reason, or ids that a table can hold: Unicode texts, numbers of 64 bits."""
    types = IdTypes(kind, kind, kind)
    try:
        expected = decode_change(value).in_types(types)
    except FAULTS:
        assert isinstance(parse(types, None, None, value, None), Rejection)
        return
    other = expected.other if isinstance(expected, Rename) else None
    assert parse(types, expected.user, other, value, None) == expected
    assert isinstance(parse(types, "another user", other, value, None), Rejection)
    fields = expected._asdict()
    ids = [*fields.pop("items", []), *(id_ for name, id_ in fields.items() if name != "time")]
    assert all(isinstance(id_, kind) for id_ in ids if id_ is not None)
    for id_ in ids:
        (id_.encode() if isinstance(id_, str) else (id_ or 0).to_bytes(8, signed=True))


def test_rejected_messages_and_tombstones(spark: SparkSession) -> None:
    bad = (KEY, encoded(**LEARN | {"user": "A-5"}))
    frame = messages(spark, (KEY, None), (None, b"{}"), (KEY, encoded(**LEARN | {"user": 5})), bad)
    events = routed(parse_messages(frame, event_schema(user="long")), "bigint", shards=2)
    assert [row.user for row in events.orderBy("offset").collect()] == [None, 5, None]
    rows = with_faults(events, IdTypes(int, str, str)).orderBy("offset").collect()
    assert [row.fault for row in rows] == [Reason.NO_KEY, Reason.OTHER_TYPE]
    assert [(row.sequence.partition, row.sequence.offset, row.topic) for row in rows] == [
        (0, offset, "events") for offset in (1, 3)
    ]
    assert (bytes(rows[1].key), bytes(rows[1].json)) == bad


def test_a_missing_connector_is_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(SparkError, match=rf"Spark has no connector for Kafka.*version {spark.version}"):
        Kafka("localhost:1").read(spark, "events", event_schema())


def test_options_that_contradict_each_other(tmp_path: Any) -> None:
    run = ("spark", "run", "--checkpoint", tmp_path / "checkpoint")
    topic = ("--brokers", "localhost:1", "--topic", "events")
    assert "give one of them" in error(*run)
    assert "give one of them" in error(*run, tmp_path, "--kafka", *topic)
    assert "--kafka needs --brokers and --topic" in error(*run, "--kafka", "--topic", "events")
    assert "--topic events has no effect without --kafka" in error(*run, tmp_path, "--topic", "events")
    assert "need topics of their own" in error(*run, "--kafka", *topic, "--dead-letter-topic", "events")
    assert "has no jars" in error(*run, "--kafka", *topic, "--jars", tmp_path)
    assert "cannot read" in error(*run, "--kafka", *topic, "--client-config", tmp_path / "missing")
    assert not (tmp_path / "checkpoint").exists()
