"""A real shop: learning Ta-Feng basket by basket, and forgetting parts of it, equals a fit."""

import numpy as np
import polars as pl
import pytest

from unbasket import Params, Recommender
from unbasket.datasets import load

PARAMS = Params.paper("tafeng")


@pytest.fixture(scope="module")
def history() -> pl.DataFrame:
    return load("tafeng").history


@pytest.fixture(scope="module")
def fitted(history: pl.DataFrame) -> Recommender:
    return Recommender(PARAMS).fit(history)


def baskets_of(history: pl.DataFrame) -> pl.DataFrame:
    return history.group_by("user", "basket", "time", maintain_order=True).agg("item")


def test_learning_one_by_one_equals_a_fit(history: pl.DataFrame, fitted: Recommender) -> None:
    rec = Recommender(PARAMS)
    baskets = baskets_of(history)
    assert len(baskets) == 79_423
    for user, basket, time, items in baskets.sample(fraction=1.0, shuffle=True, seed=1).iter_rows():
        rec.learn(user, items, basket=basket, time=time)
    assert rec.digest() == fitted.digest()
    some = fitted.users()[::40]
    assert rec.recommend_many(some) == fitted.recommend_many(some)


def test_forgetting_equals_a_fit_of_the_remainder(history: pl.DataFrame) -> None:
    """Users, baskets and items of every tenth user go; 1,395 users are touched."""
    rec = Recommender(PARAMS).fit(history)
    chance = np.random.default_rng(2)
    touched = rec.users()[::10]
    gone = pl.lit(value=False)
    for user in touched:
        own = rec.history(user)
        basket = own[chance.integers(len(own))]
        item = basket.items[chance.integers(len(basket.items))]
        of_user = pl.col("user") == user
        match chance.integers(4):
            case 0:
                rec.forget(user)
                gone |= of_user
            case 1:
                rec.forget(user, basket=basket.basket)
                gone |= of_user & (pl.col("basket") == basket.basket)
            case 2:
                rec.forget(user, item=item)
                gone |= of_user & (pl.col("item") == item)
            case _:
                rec.forget(user, basket=basket.basket, item=item)
                gone |= of_user & (pl.col("basket") == basket.basket) & (pl.col("item") == item)
    others, of_touched = history.filter(~pl.col("user").is_in(touched)), history.filter(pl.col("user").is_in(touched))
    remainder = Recommender(PARAMS).fit(pl.concat([others, of_touched.filter(~gone)]))
    assert rec.digest() == remainder.digest()
    assert rec.verify().ok
    some = rec.users()[::40]
    assert rec.recommend_many(some) == remainder.recommend_many(some)
