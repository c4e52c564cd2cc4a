"""Events from files of each format, and from frames without a sequence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from unbasket import InvalidFrameError
from unbasket.domain.events import Change, Learn
from unbasket.domain.ids import KINDS, IdTypes
from unbasket.domain.rejection import Reason
from unbasket.errors import SparkError
from unbasket.spark import event_schema, read_files
from unbasket.spark.sources import Format, id_types, routed
from unbasket.spark.updates import Rejection
from unbasket.spark.updates import parsed as parsed_table

JSON = """{"event": "learn", "user": "ann", "basket": "1", "items": ["tea", "milk"], "time": 5}
not JSON

{"event": "forget", "user": "ann", "item": "tea"}
{"event": "rename", "user": "ann", "other": "bob"}
"""
CSV = """event,user,basket,item,items,time,other
learn,ann,1,,tea|milk,5
nonsense
forget,ann,,tea,,
rename,ann,,,,,bob
"""


def write_parquet(spark: SparkSession, folder: Path) -> None:
    learn, forget = ("learn", "ann", "1", None, ["tea", "milk"], 5, None), ("forget", "ann", None, "tea", *[None] * 3)
    rows = [learn, (None,) * 7, forget, ("rename", "ann", *[None] * 4, "bob")]
    spark.createDataFrame(rows, event_schema()).coalesce(1).write.parquet(str(folder))


def write_text(name: str, text: str, folder: Path) -> None:
    folder.mkdir()
    (folder / name).write_text(text)


WRITERS: dict[Format, Callable[[SparkSession, Path], object]] = {
    "json": lambda _, folder: write_text("a.ndjson", JSON, folder),
    "csv": lambda _, folder: write_text("a.csv", CSV, folder),
    "parquet": write_parquet,
}


def parsed(frame: DataFrame, kinds: dict[str, str] | None = None) -> tuple[list[Change], list[Rejection]]:
    """Parse events in their order; return them, and the rejected ones."""
    kinds = kinds or id_types(frame)
    types = IdTypes(*(int if kinds[kind] == "bigint" else str for kind in KINDS))
    found = list(parsed_table(routed(frame, kinds["user"], 2).orderBy("sequence").toArrow(), types))
    rejected = [event for event in found if isinstance(event, Rejection)]
    return [event for event in found if not isinstance(event, Rejection)], rejected


def collected(stream: DataFrame, folder: Path) -> DataFrame:
    """Collect all rows of a stream in one batch, in an order that only their sequence undoes."""
    found: list[DataFrame] = []

    def collect(frame: DataFrame, _: int) -> None:
        whole = sql.struct("sequence", sql.monotonically_increasing_id())  # as in a batch
        frame = frame.withColumn("sequence", whole)
        found.append(frame.sparkSession.createDataFrame(frame.collect()[::-1], frame.schema))

    writer = stream.writeStream.foreachBatch(collect).option("checkpointLocation", str(folder))
    writer.trigger(availableNow=True).start().awaitTermination()
    [rows] = found
    return rows


@pytest.mark.parametrize("kind", WRITERS)
def test_files(spark: SparkSession, tmp_path: Path, kind: Format) -> None:
    WRITERS[kind](spark, tmp_path / "events")
    rows = collected(read_files(spark, str(tmp_path / "events"), event_schema(), kind=kind), tmp_path / "checkpoint")
    events, rejected = parsed(rows)
    assert events == [("ann", ["tea", "milk"], "1", 5), ("ann", None, "tea"), ("ann", "bob")]
    assert len(rejected) == 1
    assert ("JSON is malformed" if kind == "json" else "must be 'learn' or 'forget'") in rejected[0].reason


def test_a_large_file_is_read_in_pieces_and_applied_in_order(spark: SparkSession, tmp_path: Path) -> None:
    learns = [f'{{"event": "learn", "user": "ann", "basket": "{number}", "items": ["tea"]}}' for number in range(900)]
    write_text("b.ndjson", "\n".join(learns[500:]), tmp_path / "events")
    (tmp_path / "events" / "a.ndjson").write_text("\n".join(learns[:500]))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "7777b")
    try:
        rows = collected(read_files(spark, str(tmp_path / "events"), event_schema()), tmp_path / "checkpoint")
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert len({row.sequence.sequence for row in rows.collect()}) > 5, "one piece proves nothing"
    assert [event.basket for event in parsed(rows)[0] if isinstance(event, Learn)] == [
        str(number) for number in range(900)
    ]


SPELLED = """{"event": "learn", "user": 17, "basket": 1, "items": [1, "2"]}
{"event": "learn", "user": "17", "basket": "2", "items": ["1"]}
{"event": "learn", "user": "A-5", "basket": 3, "items": [1]}
{"event": "learn", "user": 17, "basket": 3, "items": [1, "02"]}
{"event": "forget", "user": 17, "basket": "A-5"}
{"event": "forget", "user": "9223372036854775808"}
"""


def test_ids_in_any_spelling(spark: SparkSession, tmp_path: Path) -> None:
    """An id that spells no number is rejected: as null, a basket would be the whole user."""
    write_text("a.ndjson", SPELLED, tmp_path / "events")
    schema = event_schema("long", "long", "long")
    rows = collected(read_files(spark, str(tmp_path / "events"), schema), tmp_path / "checkpoint")
    events, rejected = parsed(rows)
    assert events == [(17, [1, 2], 1, None), (17, [1], 2, None)]
    refused = [("user", "A-5"), ("item", "02"), ("basket", "A-5"), ("user", "9223372036854775808")]
    assert [event.reason.partition(" is not written as a whole number")[0] for event in rejected] == [
        f"{kind} id {spelled!r}" for kind, spelled in refused
    ]
    texts = collected(read_files(spark, str(tmp_path / "events"), event_schema()), tmp_path / "other checkpoint")
    assert [event.user for event in parsed(texts)[0]] == ["17", "17", "A-5", "17", "17", "9223372036854775808"]


STRICT = r"""{"event": "forget", "user": "ann", "itme": "tea"}
{"event": "forget", "user": "ann", "basket": null, "item": {"id": "tea"}}
{"event": "learn", "user": "ann", "basket": "1", "items": ["tea"], "time": "noon"}
{"event": "forget", "user": "bob", "item": "\u0074ea"}
"""


def test_json_is_read_by_the_rules_of_an_engine(spark: SparkSession, tmp_path: Path) -> None:
    """A misspelled field is refused: without it, the whole user would be forgotten."""
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.json").write_bytes(STRICT.encode() + b'{"event": "forget", "user": "\xff"}')
    rows = collected(read_files(spark, str(tmp_path / "events"), event_schema()), tmp_path / "checkpoint")
    events, rejected = parsed(rows)
    assert events == [("bob", None, "tea")]
    assert [event.user for event in rejected] == ["ann", "ann", "ann", "\ufffd"]
    reasons = [event.reason for event in rejected]
    assert "a forget event has no field 'itme'" in reasons[0]
    assert "item id must be a str or an int" in reasons[1]
    assert "time must be a whole number" in reasons[2]
    assert "UTF-8" in reasons[3]


def test_events_take_the_types_of_the_checkpoint(spark: SparkSession) -> None:
    rows = [("learn", "17", "1", None, ["1", "x"], None, None), ("learn", "A-5", "1", None, ["1"], None, None)]
    texts = spark.createDataFrame(rows, event_schema())
    events, rejected = parsed(texts, {"user": "bigint", "basket": "bigint", "item": "string"})
    assert events == [(17, ["1", "x"], 1, None)]
    assert [event.fault for event in rejected] == [Reason.OTHER_TYPE]
    numbers = spark.createDataFrame([("learn", 17, 1, None, [1], None, None)], event_schema("long", "long", "long"))
    events, _ = parsed(numbers, {"user": "string", "basket": "bigint", "item": "string"})
    assert events == [("17", ["1"], 1, None)]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_missing_folder_is_refused(spark: SparkSession, tmp_path: Path, kind: Format) -> None:
    with pytest.raises(SparkError, match="nowhere does not exist"):
        read_files(spark, str(tmp_path / "nowhere"), event_schema(), kind=kind)


def test_without_a_sequence_baskets_are_ordered_by_time_and_forgets_last(spark: SparkSession) -> None:
    rows = [
        ("forget", "u", "b", None, None),
        ("learn", "u", "b", ["x"], None),
        ("learn", "u", "a", ["x"], 3),
        ("learn", "u", "c", ["x"], 2),
    ]
    frame = spark.createDataFrame(rows, "event string, user string, basket string, items array<string>, time long")
    events, _ = parsed(frame)
    assert [event[2] if len(event) == 4 else event[1] for event in events] == ["c", "a", "b", "b"]
    with pytest.raises(InvalidFrameError, match=r"the columns .*'basket'"):
        id_types(frame.drop("basket"))
    with pytest.raises(InvalidFrameError, match=r"items as arrays of ids; it has .*'items': 'string'"):
        id_types(frame.withColumn("items", sql.lit("x")))
