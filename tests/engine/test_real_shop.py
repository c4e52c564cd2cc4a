"""A scenario on real data: learning The Complete Journey basket by basket, and forgetting some of it, equals a fit."""

import numpy as np
import polars as pl
import pytest

from unbasket import Params, Recommender
from unbasket.datasets import load
from unbasket.domain.ids import Id

PARAMS = Params.paper("tafeng")


@pytest.fixture(scope="module")
def history() -> pl.DataFrame:
    return load("completejourney").history


@pytest.fixture(scope="module")
def fitted(history: pl.DataFrame) -> Recommender:
    return Recommender(PARAMS).fit(history)


def baskets_of(history: pl.DataFrame) -> pl.DataFrame:
    return history.group_by("user", "basket", "time", maintain_order=True).agg("item")


def test_learning_one_by_one_equals_a_fit(history: pl.DataFrame, fitted: Recommender) -> None:
    rec = Recommender(PARAMS)
    baskets = baskets_of(history)
    assert len(baskets) == 148_149
    for user, basket, time, items in baskets.sample(fraction=1.0, shuffle=True, seed=1).iter_rows():
        rec.learn(user, items, basket=basket, time=time)
    assert rec.digest() == fitted.digest()
    some = fitted.users()[::40]
    assert rec.recommend_many(some) == fitted.recommend_many(some)


def test_forgetting_equals_a_fit_of_the_remainder(history: pl.DataFrame) -> None:
    """Users, baskets and items of every tenth user are forgotten: 240 users change."""
    rec = Recommender(PARAMS).fit(history)
    chance = np.random.default_rng(2)
    gone: dict[Id, tuple[Id | None, Id | None]] = {}  # per user, the basket and item to forget; None: any
    for user in rec.users()[::10]:
        own = rec.history(user)
        basket = own[chance.integers(len(own))]
        item = basket.items[chance.integers(len(basket.items))]
        kind = chance.integers(4)
        gone[user] = (basket.basket if kind in (1, 3) else None, item if kind in (2, 3) else None)
        rec.forget(user, basket=gone[user][0], item=gone[user][1])

    def stays(user: Id, basket: Id, item: Id) -> bool:
        of_basket, of_item = gone.get(user, (-1, -1))
        return of_basket not in (None, basket) or of_item not in (None, item)

    rows = history.select("user", "basket", "item").iter_rows()
    remainder = Recommender(PARAMS).fit(history.filter([stays(*row) for row in rows]))
    assert len(gone) == 240
    assert rec.digest() == remainder.digest()
    assert rec.verify().ok
    some = rec.users()[::40]
    assert rec.recommend_many(some) == remainder.recommend_many(some)
