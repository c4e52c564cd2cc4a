"""A history loaded in batch equals one learned event by event, and is exported unchanged."""

import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.laws import Event, Forget, Learn, apply
from tests.spark.shop import Shop, random_events, vectors_in

from unbasket import InvalidFrameError, Params, Recommender
from unbasket.errors import SparkError
from unbasket.spark import event_schema, histories, load, maintain, read_files, settle

PARAMS = Params(group_size=2, grouping="varying", alpha=0.8)


def held_by(rec: Recommender) -> dict[Any, Any]:
    """Return an engine's baskets and group sizes."""
    return {user: ([tuple(basket) for basket in rec.history(user)], rec.groups(user)) for user in rec.users()}


def rows_of(rec: Recommender) -> list[tuple[Any, Any]]:
    rows = []
    for user in rec.users():
        starts = {sum(rec.groups(user)[:i]) for i in range(len(rec.groups(user)))}
        baskets = enumerate(rec.history(user))
        rows.append((user, [(b.basket, b.time, number in starts, list(b.items)) for number, b in baskets]))
    return rows


def test_an_engine_is_loaded_updated_and_exported(spark: SparkSession, tmp_path: Path) -> None:
    """An engine with varying groups and baskets without times moves to Spark, for two runs, and back."""
    rec = Recommender(PARAMS)
    users = [f"user {i}" for i in range(60)]
    apply(rec, list(islice(random_events(random.Random(3), users, ["a", "b", "c", "d", "e"], ["x", "y", "z"]), 600)))
    basket = "struct<basket: string, time: bigint, opens: boolean, items: array<string>>"
    history = spark.createDataFrame(rows_of(rec), f"user string, baskets array<{basket}>")
    shop = Shop(tmp_path / "events")
    later: list[Event] = [
        Learn("user 1", ("x",), "late", 1),
        Learn("new", ("y",), "n", 2),
        Forget("user 2", None, None),
    ]
    shop.write(later)
    apply(rec, later)
    checkpoint, table = tmp_path / "checkpoint", tmp_path / "table"
    events = read_files(spark, str(shop.folder), event_schema(), most=1)
    stream = maintain(events, PARAMS, checkpoint=str(checkpoint), loaded=load(history, PARAMS))
    settle(stream.into_table(str(table), every="0 seconds"))
    again: list[Event] = [Learn("user 3", ("z",), "again", 1), Forget("user 4", None, None)]
    shop.write(again)  # a second run needs no history: its file may be deleted
    apply(rec, again)
    settle(maintain(events, PARAMS, checkpoint=str(checkpoint)).into_table(str(table), every="0 seconds"))
    assert vectors_in(table) == {user: rec.vector(user) for user in rec.users()}
    held = {row.user: row.baskets for row in histories(spark, str(checkpoint)).collect()}
    assert {user: [(b.basket, b.time, tuple(sorted(b["items"]))) for b in held[user]] for user in held} == {
        user: baskets for user, (baskets, _) in held_by(rec).items()
    }
    assert {user: sum(b.opens for b in held[user]) for user in held} == {user: len(rec.groups(user)) for user in held}
    with pytest.raises(SparkError, match="was made with"):
        maintain(events, Params(alpha=0.8), checkpoint=str(checkpoint))
    with pytest.raises(SparkError, match="table of another checkpoint"):
        maintain(events, PARAMS, checkpoint=str(tmp_path / "other")).into_table(str(table))


def test_a_history_with_ids_of_other_types_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Else the same user would be there twice, as 17 and as "17"."""
    history = spark.createDataFrame([(17, "a", [1], 5)], "user long, basket string, items array<long>, time long")
    (tmp_path / "events").mkdir()
    events = read_files(spark, str(tmp_path / "events"), event_schema("long", "long", "long"))
    with pytest.raises(SparkError, match=r"the history has ids of the types \{.*'basket': 'string'.*, and the stream"):
        maintain(events, PARAMS, checkpoint=str(tmp_path / "checkpoint"), loaded=load(history, PARAMS))


def test_loaded_vectors_equal_the_engines(spark: SparkSession) -> None:
    rows = [(user, basket, [basket % 5, user % 3], 7 * basket % 11) for user in range(20) for basket in range(user % 9)]
    frame = spark.createDataFrame(rows, "user long, basket long, items array<long>, time long")
    params = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)
    rec = Recommender(params)
    for user, number, items, time in rows:
        rec.learn(user, items, basket=number, time=time)
    loaded = load(frame, params).collect()
    assert {row.user: dict(zip(row["items"], row.weights, strict=True)) for row in loaded} == {
        user: rec.vector(user) for user in rec.users()
    }


def test_a_history_without_times_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("u", "b", ["x"])], "user string, basket string, items array<string>")
    with pytest.raises(InvalidFrameError, match="needs the column 'time'"):
        load(frame, Params(alpha=0.8))
