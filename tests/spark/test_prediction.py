"""Recommendations from Spark equal the engine's, bit for bit, for any division into blocks."""

import pytest
from pyspark.sql import SparkSession
from tests.spark.scoring import PARAMS, recommendations, scores_from_spark, scores_from_the_engine, vectors_of

from unbasket import Params, Recommender
from unbasket.datasets import generate, hold_out_last
from unbasket.errors import InvalidParamsError
from unbasket.evaluation import Holdout
from unbasket.spark import recommend


@pytest.mark.parametrize("block", [1000, 40])
def test_all_users_in_one_block_or_many(spark: SparkSession, engine: Recommender, block: int) -> None:
    frame = recommend(vectors_of(spark, engine, "string", "long"), PARAMS, n=5, block=block)
    assert recommendations(frame) == engine.recommend_many(n=5)


def test_some_users_and_more_items_than_exist(spark: SparkSession, engine: Recommender) -> None:
    some = engine.users()[::17]
    frame = recommend(vectors_of(spark, engine, "string", "long"), PARAMS, [*some, "unknown"], n=100)
    assert recommendations(frame) == engine.recommend_many(some, n=100)


def test_a_lone_user_and_items_of_text(spark: SparkSession) -> None:
    rec = Recommender(PARAMS)
    rec.learn(1, ["tea", "ärger"], basket=1)
    assert recommendations(recommend(vectors_of(spark, rec, "long", "string"), PARAMS)) == rec.recommend_many()


def test_evaluation_of_both_is_equal(spark: SparkSession) -> None:
    """The paper's protocol on a small shop; test_real_shop uses the paper's data."""
    data = hold_out_last(generate(users=60, seed=3, baskets_per_user=6, basket_size=5))
    assert data.future is not None
    vectors = vectors_of(spark, Recommender(PARAMS).fit(data.history), "long", "long")
    scores = scores_from_spark(vectors, PARAMS, Holdout(data.history, data.future))
    assert scores.equals(scores_from_the_engine(PARAMS, Holdout(data.history, data.future)))
    assert scores["recall@10"].sum() > 0


def test_learned_weights_are_refused(spark: SparkSession, engine: Recommender) -> None:
    with pytest.raises(InvalidParamsError, match=r"Params\(alpha=0.8\)"):
        recommend(vectors_of(spark, engine, "string", "long"), Params())
