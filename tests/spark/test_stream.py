"""A history loaded in batch equals one learned event by event, and is exported unchanged."""

import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.laws import Event, Forget, Learn, apply
from tests.spark.scoring import histories_of, vectors_in
from tests.spark.shop import Shop, random_events

from unbasket import InvalidFrameError, InvalidRequestError, Params, Recommender
from unbasket.errors import SparkError
from unbasket.spark import State, event_schema, histories, into_table, load, maintain, read_files, settle

PARAMS = Params(group_size=2, grouping="varying", alpha=0.8)


def held_by(rec: Recommender) -> dict[Any, Any]:
    """Return an engine's baskets, group sizes and suppressions."""
    return {
        user: ([tuple(basket) for basket in rec.history(user)], len(rec.groups(user)), rec.suppressed(user))
        for user in rec.users()
    }


def held_in(spark: SparkSession, checkpoint: str) -> dict[Any, Any]:
    return {
        row.user: (
            [(basket.basket, basket.time, tuple(basket["items"])) for basket in row.baskets],
            sum(basket.opens for basket in row.baskets),
            row.suppressed,
        )
        for row in histories(spark, checkpoint).collect()
    }


def test_an_engine_is_loaded_updated_and_exported(spark: SparkSession, tmp_path: Path) -> None:
    """An engine with varying groups and baskets without times moves to Spark, for two runs, and back."""
    rec = Recommender(PARAMS)
    users = [f"user {i}" for i in range(60)]
    apply(rec, list(islice(random_events(random.Random(3), users, ["a", "b", "c", "d", "e"], ["x", "y", "z"]), 600)))
    rec.suppress("user 5", "x")
    shop, checkpoint = Shop(tmp_path / "events"), str(tmp_path / "checkpoint")
    load(histories_of(spark, rec), PARAMS, checkpoint=checkpoint, shards=3, stripes=3)
    load(histories_of(spark, rec).limit(2), PARAMS, checkpoint=checkpoint)  # has no effect
    assert held_in(spark, checkpoint) == held_by(rec)
    batches: list[list[Event]] = [
        [Learn("user 1", ("x",), "late", 1), Learn("new", ("y",), "n", 2), Forget("user 2", None, None)],
        [Learn("user 3", ("z",), "again", 1), Forget("user 4", None, None)],
    ]
    events = read_files(spark, str(shop.folder), event_schema(), most=1)
    for batch in batches:
        shop.write(batch)
        apply(rec, batch)
        settle(maintain(events, PARAMS, checkpoint=checkpoint).into(every="0 seconds"))
    assert held_in(spark, checkpoint) == held_by(rec)
    assert State.read(checkpoint).users == len(rec)
    into_table(histories(spark, checkpoint), PARAMS, str(tmp_path / "table"))
    into_table(histories(spark, checkpoint), PARAMS, str(tmp_path / "table"))  # in place of the first
    rows = spark.read.parquet(str(tmp_path / "table")).collect()
    assert sorted((row.user, dict(zip(row["items"], row.weights, strict=True))) for row in rows) == [
        (user, rec.vector(user)) for user in rec.users()
    ]
    with pytest.raises(SparkError, match="was made with"):
        maintain(events, Params(alpha=0.8), checkpoint=checkpoint)


def test_a_history_with_ids_of_other_types_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Else the same user would be there twice, as 17 and as "17"."""
    history = spark.createDataFrame([(17, "a", [1], 5)], "user long, basket string, items array<long>, time long")
    (tmp_path / "events").mkdir()
    events = read_files(spark, str(tmp_path / "events"), event_schema("long", "long", "long"))
    maintain(events, PARAMS, checkpoint=str(tmp_path / "checkpoint"))
    with pytest.raises(SparkError, match=r"the history has ids of the types \{.*'basket': 'string'.*, and "):
        load(history, PARAMS, checkpoint=str(tmp_path / "checkpoint"))


def test_loaded_vectors_equal_the_engines(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(user, basket, [basket % 5, user % 3], 7 * basket % 11) for user in range(20) for basket in range(user % 9)]
    frame = spark.createDataFrame(rows, "user long, basket long, items array<long>, time long")
    params = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)
    rec = Recommender(params)
    for user, number, items, time in rows:
        rec.learn(user, items, basket=number, time=time)
    load(frame, params, checkpoint=str(tmp_path))
    assert vectors_in(histories(spark, str(tmp_path)), params) == {user: rec.vector(user) for user in rec.users()}


def test_bad_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("u", "b", ["x"])], "user string, basket string, items array<string>")
    with pytest.raises(InvalidFrameError, match=r"columns .'time', .* is needed"):
        load(frame, PARAMS, checkpoint=str(tmp_path))
    with pytest.raises(InvalidRequestError, match="stripes must be at least 2, not 1"):
        load(histories_of(spark, Recommender(PARAMS)), PARAMS, checkpoint=str(tmp_path), stripes=1)
