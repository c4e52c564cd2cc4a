"""Real data on Spark: a shop as a stream, evaluated as the paper does, then 1 % of its users forgotten."""

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.laws import Event, Forget, Learn
from tests.spark.scoring import recommendations, scores_from_spark, scores_from_the_engine, vectors_in
from tests.spark.shop import Shop

from unbasket import Params, Recommender
from unbasket.datasets import load
from unbasket.evaluation import Holdout
from unbasket.spark import event_schema, histories, maintain, read_files, recommend, settle

PARAMS = Params.paper("tafeng")

# As in docs/reproduction.md.
PUBLISHED = {"recall@10": 0.1297, "ndcg_paper@10": 0.0847, "recall@20": 0.1858, "ndcg_paper@20": 0.0817}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [("completejourney", 148_149), pytest.param("tafeng", 79_423, marks=pytest.mark.needs("tafeng"))]
)
def test_the_stream_equals_a_fit(spark: SparkSession, tmp_path: Path, name: str, count: int) -> None:
    """First for the whole history, by the paper's metrics; then, after deletions, for the remainder."""
    history, future = (data := load(name)).history, data.future
    assert future is not None
    baskets = history.group_by("user", "basket", "time", maintain_order=True).agg("item").sort("time", "basket")
    assert len(baskets) == count
    learns: list[Event] = [Learn(user, tuple(items), basket, time) for user, basket, time, items in baskets.iter_rows()]
    shop = Shop(tmp_path / "events")
    for start in range(0, len(learns), 20_000):
        shop.write(learns[start : start + 20_000])
    scores = scores_from_spark(follow(spark, tmp_path), PARAMS, Holdout(history, future))
    assert scores.equals(scores_from_the_engine(PARAMS, Holdout(history, future)))
    if name == "tafeng":
        assert scores.select(pl.col(*PUBLISHED).mean().round(4)).row(0, named=True) == PUBLISHED

    forgotten = sorted(set(history["user"]))[::100]
    assert len(forgotten) == -(-history["user"].n_unique() // 100)
    shop.write([Forget(user, None, None) for user in forgotten])
    held = follow(spark, tmp_path)
    rec = Recommender(PARAMS).fit(history.filter(~pl.col("user").is_in(forgotten)))
    assert vectors_in(held, PARAMS) == {user: rec.vector(user) for user in rec.users()}
    assert recommendations(recommend(held, PARAMS, n=20)) == rec.recommend_many(n=20)


def follow(spark: SparkSession, folder: Path) -> DataFrame:
    """Apply all events, and return the histories."""
    events = read_files(spark, str(folder / "events"), event_schema("long", "long", "long"), most=1)
    settle(maintain(events, PARAMS, checkpoint=str(folder / "checkpoint")).into(every="0 seconds"))
    return histories(spark, str(folder / "checkpoint"))
