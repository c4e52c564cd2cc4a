"""A batch is applied exactly once, wherever the driver dies, and the sink gets its changes under one number."""

import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.laws import ShopEvent, apply
from tests.spark.driver import POINTS, die_at
from tests.spark.scoring import vectors_in
from tests.spark.shop import fields_of, random_shop_events

from unbasket import Params, Recommender
from unbasket.errors import SparkError
from unbasket.spark import State, event_schema, histories
from unbasket.spark.batch import Maintainer
from unbasket.spark.sources import routed

PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)
KINDS = {"user": "string", "basket": "string", "item": "string"}


class DiedError(Exception):
    """The driver's end."""


def die() -> None:
    raise DiedError


def frame_of(spark: SparkSession, events: list[ShopEvent]) -> DataFrame:
    rows = [{name: fields_of(event).get(name) for name in event_schema().names} for event in events]
    numbered = [{**row, "sequence": number} for number, row in enumerate(rows)]
    return as_in_a_stream(spark.createDataFrame(numbered, event_schema().add("sequence", "long")).repartition(3))


def as_in_a_stream(events: DataFrame) -> DataFrame:
    """Add the columns that lead events to their shard, and a row for each shard, of which there are two."""
    marks = events.sparkSession.range(2).withColumnRenamed("id", "shard")
    return routed(events, KINDS["user"], 2).unionByName(marks, allowMissingColumns=True)


class Sink:
    """A table of vectors by user that every batch changes, and that survives the driver."""

    def __init__(self) -> None:
        self.vectors: dict[str, dict[str, float]] = {}
        self.batches: dict[int, list[Any]] = {}

    def __call__(self, changes: DataFrame, batch: int) -> None:
        rows = sorted(changes.collect(), key=lambda row: row.user)
        assert self.batches.setdefault(batch, rows) == rows, "the same batch comes with the same changes"
        for row in rows:
            self.vectors.pop(row.user, None) if row.change != "rejected" else None
            if row.change == "updated":
                self.vectors[row.user] = dict(zip(row["items"], row.weights, strict=True))


def test_a_driver_that_dies_anywhere_applies_each_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    chance, users = random.Random(2), [f"user {i}" for i in range(20)]
    events = random_shop_events(chance, users, ["a", "b", "c", "d"], ["p", "q", "r", "s"])
    rec, sink, checkpoint = Recommender(PARAMS), Sink(), str(tmp_path)
    State.create(checkpoint, PARAMS, KINDS, shards=2, stripes=2)
    for batch, point in enumerate(POINTS):
        own = list(islice(events, 40))
        apply(rec, own)
        frame = frame_of(spark, own)
        undo = die_at(point, batch, die)
        try:
            with pytest.raises(DiedError):
                Maintainer(State.take_over(checkpoint), sink)(frame, batch)
        finally:
            undo()
        again = Maintainer(State.take_over(checkpoint), sink)
        again(frame, batch)
        assert again.reports[-1].batch == batch
        state = State.read(checkpoint)
        assert (state.batch, state.users) == (batch, len(rec))
        assert set(state.folder.names()) == {state.manifest, *state.files}, point
    expected = {user: rec.vector(user) for user in rec.users()}
    assert vectors_in(histories(spark, checkpoint), PARAMS) == sink.vectors == expected


def test_a_second_driver_ends_the_first(spark: SparkSession, tmp_path: Path) -> None:
    """The first one's next batch fails, and changes nothing."""
    State.create(str(tmp_path), PARAMS, KINDS, shards=2, stripes=2)
    frame = frame_of(spark, list(islice(random_shop_events(random.Random(3), ["u", "v"], ["a"], ["p"]), 9)))
    first = Maintainer(State.take_over(str(tmp_path)))
    second = Maintainer(State.take_over(str(tmp_path)))
    with pytest.raises(SparkError, match="another driver has taken over"):
        first(frame, 0)
    second(frame, 0)
    second(frame, 0)  # a batch that comes again
    held = State.read(str(tmp_path))
    assert held == second.state
    assert set(held.folder.names()) == {held.manifest, *held.files}
    with pytest.raises(SparkError, match="offsets are lost"):
        second(frame, -1)


def test_rejected_events_and_reports(spark: SparkSession, tmp_path: Path) -> None:
    State.create(str(tmp_path), PARAMS, KINDS, shards=2, stripes=2)
    rows = [
        ("learn", "ann", "1", ["tea"]),
        ("learn", "ann", None, ["tea"]),
        (None, None, None, None),
        ("x", "bob", None, None),
    ]
    schema = "event string, user string, basket string, items array<string>"
    sink, maintainer = Sink(), Maintainer(State.take_over(str(tmp_path)))
    maintainer(as_in_a_stream(spark.createDataFrame(rows, schema)), 0)
    report = maintainer.reports[-1]
    assert (report.events, report.users, report.rejected, report.is_settled) == (4, 1, 3, False)
    assert report.bytes == sum(file.stat().st_size for file in (tmp_path / "histories").glob("*.arrow"))
    assert report.seconds["total"] >= report.seconds["tasks"] > 0 <= report.seconds["sink"]
    again = Maintainer(State.take_over(str(tmp_path)), lambda changes, _: sink.batches.update({0: changes.collect()}))
    again(spark.createDataFrame([], schema), 0)
    assert sorted(row.change for row in sink.batches[0]) == ["rejected"] * 3 + ["updated"]
    assert {row.user for row in sink.batches[0] if row.change == "rejected"} == {None, "ann", "bob"}
    assert all(
        "learn event needs the field 'basket'" in r.reason for r in sink.batches[0] if r.user == "ann" and r.reason
    )
    assert State.read(str(tmp_path)).rejected == 3
    renames = [("rename", "ann", "cid"), ("rename", "nobody", "bob"), ("rename", "cid", "cid")]
    again(as_in_a_stream(spark.createDataFrame(renames, "event string, user string, other string")), 1)
    assert again.reports[-1][:4] == (1, 3, 2, 2)
    assert sorted(row.change for row in sink.batches[0]) == ["rejected", "rejected", "removed", "updated"]
    state = State.read(str(tmp_path))
    assert (state.rejected, state.users) == (5, 1)
