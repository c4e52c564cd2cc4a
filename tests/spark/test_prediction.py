"""Recommendations from Spark, with and without a pool, equal the engine's, bit for bit, for any blocks."""

import random
from dataclasses import replace
from itertools import islice

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.laws import apply
from tests.spark.scoring import recommendations, scores_from_spark, scores_from_the_engine
from tests.spark.shop import random_events

from unbasket import Params, Recommender
from unbasket.datasets import generate, hold_out_last
from unbasket.evaluation import Holdout
from unbasket.spark import recommend

PARAMS = Params(group_size=2, neighbors=7, alpha=0.6)


@pytest.fixture(scope="module")
def engine() -> Recommender:
    """Fit many users with the same few baskets, for ties of distances and scores; one item is in most."""
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
    assert recommendations(frame) == engine.recommend_many(n=5)


def test_some_users_and_more_items_than_exist(spark: SparkSession, engine: Recommender) -> None:
    some = engine.users()[::17]
    frame = recommend(vectors_of(spark, engine, "string", "long"), PARAMS, [*some, "nobody"], n=100)
    assert recommendations(frame) == engine.recommend_many(some, n=100)


def test_a_lone_user_and_items_of_text(spark: SparkSession) -> None:
    rec = Recommender(PARAMS)
    rec.learn(1, ["tea", "ärger"], basket=1)
    assert recommendations(recommend(vectors_of(spark, rec, "long", "string"), PARAMS)) == rec.recommend_many()


@pytest.mark.parametrize(("pool", "seed"), [(1, None), (30, 5), (1000, 0)])
def test_neighbors_from_a_pool(spark: SparkSession, engine: Recommender, pool: int, seed: int | None) -> None:
    """An engine of the same baskets and pool recommends the same; a pool of one has few of the items."""
    params = replace(PARAMS, pool=pool, pool_seed=seed)
    pooled = Recommender(params)
    for user in engine.users():
        for basket, time, items in engine.history(user):
            pooled.learn(user, items, basket=basket, time=time)
    frame = recommend(vectors_of(spark, engine, "string", "long"), params, n=5)
    assert recommendations(frame) == pooled.recommend_many(n=5)
    assert (recommendations(frame) == engine.recommend_many(n=5)) == (pool >= len(engine))
    some = engine.users()[::17]
    frame = recommend(vectors_of(spark, engine, "string", "long"), params, [*some, "nobody"], n=100)
    assert recommendations(frame) == pooled.recommend_many(some, n=100)


def test_a_pool_of_one_user_and_an_empty_pool(spark: SparkSession) -> None:
    params = replace(PARAMS, pool=3)
    rec = Recommender(params)
    rec.learn(1, ["tea", "ärger"], basket=1)
    assert recommendations(recommend(vectors_of(spark, rec, "long", "string"), params)) == rec.recommend_many()
    rec.forget(1)
    assert recommendations(recommend(vectors_of(spark, rec, "long", "string"), params)) == {}


def test_the_limit_grows_if_too_few_priorities_are_below_it(
    spark: SparkSession, engine: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    params, vectors = replace(PARAMS, pool=30), vectors_of(spark, engine, "string", "long")
    expected = recommendations(recommend(vectors, params))
    monkeypatch.setattr("unbasket.spark.pooling.sqrt", lambda _: -4.8)  # a first limit for only 1.2 users
    assert recommendations(recommend(vectors, params)) == expected


def test_a_pool_needs_no_shuffle(spark: SparkSession, engine: Recommender) -> None:
    frame = recommend(vectors_of(spark, engine, "string", "long"), replace(PARAMS, pool=30))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    assert "Exchange" not in plan


def test_evaluation_of_both_is_equal(spark: SparkSession) -> None:
    """The paper's protocol on a small shop; test_tafeng uses the paper's data."""
    data = hold_out_last(generate(users=60, seed=3, baskets_per_user=6, basket_size=5))
    assert data.future is not None
    vectors = vectors_of(spark, Recommender(PARAMS).fit(data.history), "long", "long")
    scores = scores_from_spark(vectors, PARAMS, Holdout(data.history, data.future))
    assert scores.equals(scores_from_the_engine(PARAMS, Holdout(data.history, data.future)))
    assert scores["recall@10"].sum() > 0
