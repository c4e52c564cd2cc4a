"""Recommendations from Spark equal the engine's, bit for bit, with every pool, weight and filter."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.spark.scoring import PARAMS, histories_of, recommendations, scores_from_spark, scores_from_the_engine

from unbasket import InvalidRequestError, Params, Recommender
from unbasket.core.model import FACTOR_ONE, ONE, FoldWorkspace, alpha_from, factors_from, queries
from unbasket.datasets import generate, hold_out_last
from unbasket.domain.ids import Id
from unbasket.evaluation import Holdout
from unbasket.residue import audit
from unbasket.spark import recommend


def same_baskets(engine: Recommender, params: Params) -> Recommender:
    """Return an engine with the same baskets and other parameters."""
    rec = Recommender(params)
    for user in engine.users():
        for basket, time, items in engine.history(user):
            rec.learn(user, items, basket=basket, time=time)
    return rec


@pytest.mark.parametrize(("pool", "seed"), [(None, None), (1, None), (30, 5), (1000, 0)])
@pytest.mark.parametrize("learned", [False, True])
def test_pools_and_learned_weights(
    spark: SparkSession, engine: Recommender, pool: int | None, seed: int | None, learned: bool
) -> None:
    """A pool of one has few of the items; a large one has all users."""
    params = replace(Params(neighbors=7) if learned else PARAMS, pool=pool, pool_seed=seed)
    rec, frame = same_baskets(engine, params), histories_of(spark, engine)
    assert recommendations(recommend(frame, params, n=5)) == rec.recommend_many(n=5)
    some = engine.users()[::17]
    assert recommendations(recommend(frame, params, [*some, "unknown"], n=100)) == rec.recommend_many(some, n=100)


def test_learned_weights_without_factors_and_without_users(spark: SparkSession, engine: Recommender) -> None:
    params = Params(repurchase=None, neighbors=7)
    assert (
        recommendations(recommend(histories_of(spark, engine), params)) == same_baskets(engine, params).recommend_many()
    )
    nothing = histories_of(spark, engine).where("false")
    assert recommendations(recommend(nothing, params)) == recommendations(recommend(nothing, PARAMS)) == {}


FILTERS: list[dict[str, Any]] = [
    {"exclude": [3, "5", 10**9]},
    {"only": [1, 2, 3, 4]},
    {"only": []},
    {"category": "even"},
    {"category": ["odd", "none"], "only": [1, 2, 3], "exclude": [1]},
    {"only_new": True},
    {"only_new": True, "exclude": [3]},
]


@pytest.mark.parametrize("filters", FILTERS)
def test_filters_hidden_products_and_suppressions(
    spark: SparkSession, engine: Recommender, filters: dict[str, Any]
) -> None:
    rec = same_baskets(engine, PARAMS)
    for number, user in enumerate(rec.users()[::3]):
        rec.suppress(user, number % 12)
        rec.suppress(user, 10**6)
    products = pl.DataFrame({"item": range(12), "category": ["even", "odd"] * 6, "hidden": [i == 7 for i in range(12)]})
    rec.describe(products.drop("hidden"), name="category")
    rec.hide([7])
    frame = spark.createDataFrame(products.rows(), "item long, category string, hidden boolean")
    found = recommend(histories_of(spark, rec), PARAMS, n=4, products=frame, **filters)
    assert recommendations(found) == rec.recommend_many(n=4, **filters)


def test_a_category_needs_products(spark: SparkSession, engine: Recommender) -> None:
    with pytest.raises(InvalidRequestError, match="needs products"):
        recommend(histories_of(spark, engine), PARAMS, category="tea")


@pytest.mark.parametrize("params", [PARAMS, replace(PARAMS, pool=3)])
def test_a_lone_user_and_items_of_text(spark: SparkSession, params: Params) -> None:
    rec = Recommender(params)
    rec.learn(1, ["tea", "ärger"], basket=1)
    users: list[Id] = ["1"]  # spells the number
    assert recommendations(recommend(histories_of(spark, rec), params, users)) == rec.recommend_many()


def test_the_limit_grows_if_too_few_priorities_are_below_it(
    spark: SparkSession, engine: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    params, frame = replace(PARAMS, pool=30), histories_of(spark, engine)
    expected = recommendations(recommend(frame, params))
    monkeypatch.setattr("unbasket.spark.prediction.sqrt", lambda _: -4.8)  # a first limit for only 1.2 users
    assert recommendations(recommend(frame, params)) == expected


def test_users_are_not_shuffled(spark: SparkSession, engine: Recommender) -> None:
    frame = recommend(histories_of(spark, engine), replace(PARAMS, pool=30))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    assert "Exchange" not in plan


def test_what_tasks_get_is_removed_when_a_stack_is_closed(spark: SparkSession, work: str) -> None:
    rec = Recommender(PARAMS)
    rec.learn("sent-to-tasks", ["tea"], basket=1)
    frame = histories_of(spark, rec)
    with ExitStack() as stack:
        answers = recommend(frame, PARAMS, until=stack)
        assert recommendations(answers) == rec.recommend_many()
        assert audit([work], ["sent-to-tasks"])[1]
    assert not audit([work], ["sent-to-tasks"])[1]


def test_evaluation_of_both_is_equal(spark: SparkSession) -> None:
    """The paper's protocol on a small shop; test_real_shop uses the paper's data."""
    data = hold_out_last(generate(users=60, seed=3, baskets_per_user=6, basket_size=5))
    assert data.future is not None
    histories = histories_of(spark, Recommender(PARAMS).fit(data.history))
    scores = scores_from_spark(histories, PARAMS, Holdout(data.history, data.future))
    assert scores.equals(scores_from_the_engine(PARAMS, Holdout(data.history, data.future)))
    assert scores["recall@10"].sum() > 0


def test_sums_of_parts_give_the_alpha_and_the_factors_of_the_whole(engine: Recommender) -> None:
    rec = same_baskets(engine, Params())
    sums = rec._model.state.sums
    assert sums is not None
    codes = range(len(rec._model.state.items.names))
    totals, by_item = sums.sums(codes)
    items = np.array([by_item[code] for code in codes], np.int64)
    assert alpha_from(totals) * ONE == sums.alpha() != 0.8 * ONE
    factors, _ = sums.factors()
    assert factors_from(totals, items, 1.5).tolist() == factors[: len(codes)].tolist()
    assert set(factors_from(totals, items, 0.0).tolist()) == {FACTOR_ONE}


def test_vectors_in_bulk_are_those_of_each_user(engine: Recommender) -> None:
    state = engine._model.state
    owners = np.array([*state.users.codes.values()], np.int64)
    space = FoldWorkspace()
    ends, items, weights, scales = queries.vectors(state.histories, space, state.rule, owners)
    for first, end, owner in zip([0, *ends], ends, owners.tolist(), strict=False):
        expected = queries.vector(state.histories, space, state.rule, owner)
        assert [items[first:end].tolist(), weights[first:end].tolist()] == [each.tolist() for each in expected]
    assert set(scales.tolist()) == {FACTOR_ONE}
