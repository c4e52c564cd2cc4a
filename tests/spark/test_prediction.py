"""Recommendations from Spark are the engine's, bit for bit, however users are spread over blocks."""

import random
from itertools import islice

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.laws import apply
from tests.spark.answers import answers, scores_from_spark, scores_from_the_engine
from tests.spark.shop import random_events

from unbasket import Params, Recommender
from unbasket.datasets import generate, hold_out_last
from unbasket.evaluation import Holdout
from unbasket.spark import recommend

PARAMS = Params(group_size=2, neighbors=7, alpha=0.6)


@pytest.fixture(scope="module")
def engine() -> Recommender:
    """Many users with the same few baskets, so that distances and scores are often equal; one item is in most."""
    rec = Recommender(PARAMS)
    users, items = [f"user {i}" for i in range(200)], [*range(12), 3, 3, 3]
    apply(rec, list(islice(random_events(random.Random(8), users, ["a", "b"], items), 1500)))
    rec.learn("long", range(12), basket="all")
    return rec


def vectors_of(spark: SparkSession, rec: Recommender, user: str, item: str) -> DataFrame:
    rows = [(name, [*rec.vector(name)], [*rec.vector(name).values()]) for name in rec.users()]
    return spark.createDataFrame(rows, f"user {user}, items array<{item}>, weights array<double>")


@pytest.mark.parametrize("block", [1000, 40])
def test_all_users_in_one_block_or_many(spark: SparkSession, engine: Recommender, block: int) -> None:
    frame = recommend(vectors_of(spark, engine, "string", "long"), PARAMS, n=5, block=block)
    assert answers(frame) == engine.recommend_many(n=5)


def test_some_users_and_more_items_than_there_are(spark: SparkSession, engine: Recommender) -> None:
    some = engine.users()[::17]
    frame = recommend(vectors_of(spark, engine, "string", "long"), PARAMS, [*some, "nobody"], n=100)
    assert answers(frame) == engine.recommend_many(some, n=100)


def test_a_lone_user_and_items_of_text(spark: SparkSession) -> None:
    rec = Recommender(PARAMS)
    rec.learn(1, ["tea", "ärger"], basket=1)
    assert answers(recommend(vectors_of(spark, rec, "long", "string"), PARAMS)) == rec.recommend_many()


def test_evaluation_says_the_same_of_both(spark: SparkSession) -> None:
    """Under the paper's protocol, of a small shop; test_tafeng has the paper's own."""
    data = hold_out_last(generate(users=60, seed=3, baskets_per_user=6, basket_size=5))
    assert data.future is not None
    vectors = vectors_of(spark, Recommender(PARAMS).fit(data.history), "long", "long")
    scores = scores_from_spark(vectors, PARAMS, Holdout(data.history, data.future))
    assert scores.equals(scores_from_the_engine(PARAMS, Holdout(data.history, data.future)))
    assert scores["recall@10"].sum() > 0
