"""A real shop as a stream: all of Ta-Feng, then 1 % of its users are forgotten, equals a fit of the remainder."""

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.laws import Event, Forget, Learn
from tests.spark.shop import Shop, vectors_in

from unbasket import Params, Recommendation, Recommender
from unbasket.datasets import load
from unbasket.spark import Table, event_schema, maintain, read_files, recommend, settle


@pytest.mark.slow
def test_the_stream_equals_a_fit_of_the_remainder(spark: SparkSession, tmp_path: Path) -> None:
    history = load("tafeng").history
    baskets = history.group_by("user", "basket", "time", maintain_order=True).agg("item").sort("time", "basket")
    assert len(baskets) == 79_423
    learns: list[Event] = [Learn(user, tuple(items), basket, time) for user, basket, time, items in baskets.iter_rows()]
    shop = Shop(tmp_path / "events")
    for start in range(0, len(learns), 20_000):
        shop.write(learns[start : start + 20_000])
    gone = sorted(set(history["user"]))[::100]
    shop.write([Forget(user, None, None) for user in gone])
    events = read_files(spark, str(shop.folder), event_schema("long", "long", "long"), most=1)
    stream = maintain(events, Params(), checkpoint=str(tmp_path / "checkpoint"))
    settle(stream.into_table(str(tmp_path / "table"), every="0 seconds"))

    rec = Recommender(Params()).fit(history.filter(~pl.col("user").is_in(gone)))
    vectors = vectors_in(tmp_path / "table")
    assert len(gone) == 140
    assert vectors == {user: rec.vector(user) for user in rec.users()}
    answers = recommend(Table(str(tmp_path / "table")).read(spark), Params(), n=20)
    found = {row.user: [Recommendation(*pair) for pair in row.recommendations] for row in answers.collect()}
    assert found == rec.recommend_many(n=20)  # so recall and NDCG are the engine's, too
