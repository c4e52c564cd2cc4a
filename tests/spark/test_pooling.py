"""Recommendations with neighbors from a pool equal the engine's, bit for bit, without a shuffle."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from tests.spark.scoring import PARAMS, recommendations, vectors_of

from unbasket import Recommender
from unbasket.spark import recommend


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
    frame = recommend(vectors_of(spark, engine, "string", "long"), params, [*some, "unknown"], n=100)
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
