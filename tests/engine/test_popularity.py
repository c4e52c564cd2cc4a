"""Popular items: exact counts, with filters and since a time."""

import pytest
from tests.engine.small_shop import CATEGORIES, params

import unbasket as ub
from unbasket.core.arrays import Int64s
from unbasket.core.model import Histories, queries


def test_popular_items_are_counted_by_baskets(shop: ub.Recommender) -> None:
    assert shop.popular() == [("milk", 3), ("tea", 2), ("bread", 1)]
    shop.learn("dan", ["bread", 5], basket=1)
    assert shop.popular() == [("milk", 3), ("bread", 2), ("tea", 2), (5, 1)]
    assert shop.popular(2) == [("milk", 3), ("bread", 2)]
    assert shop.popular(1)[0].count == 3


def test_popular_items_are_filtered_before_the_cut(shop: ub.Recommender) -> None:
    shop.describe(CATEGORIES)
    assert shop.popular(1, exclude=["milk"]) == [("tea", 2)]
    assert shop.popular(only=["bread", "tea", "gin"]) == [("tea", 2), ("bread", 1)]
    assert shop.popular(category=["dry", "cold"]) == [("milk", 3), ("bread", 1)]
    assert shop.popular(category="hot", exclude=["tea"]) == shop.popular(only=[]) == []


def test_popular_items_since_a_time(shop: ub.Recommender) -> None:
    """Bob's and cat's baskets have no time."""
    shop.learn("dan", ["tea", "milk"], basket=1, time=20)
    shop.learn("ann", ["salt"], basket=3)
    shop.learn("ann", ["gin"], basket=4, time=15)
    assert shop.popular(since=20) == [("milk", 2), ("tea", 1)]
    assert shop.popular(since=15) == [("milk", 2), ("gin", 1), ("tea", 1)]
    assert shop.popular(since=-(2**63) + 1) == [("milk", 3), ("bread", 1), ("gin", 1), ("tea", 1)]
    assert shop.popular(1, since=15, exclude=["milk"]) == [("gin", 1)]
    assert shop.popular(since=15, only=["tea", "bread"]) == [("tea", 1)]
    assert shop.popular(since=21) == []
    shop.forget("dan")
    assert shop.popular(since=20) == [("milk", 1)]


def test_popular_items_are_counted_though_items_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item loses its code to another while users are counted."""
    monkeypatch.setattr("unbasket.engine.popularity._CHUNK", 1)
    rec = ub.Recommender(params())
    rec.learn("first", ["rare"], basket=1, time=1)
    for user in range(40):
        rec.learn(user, ["common"], basket=1, time=1)
    count, steps = queries.add_popularity, []

    def count_and_change(histories: Histories, first: int, end: int, since: int, counts: Int64s) -> None:
        count(histories, first, end, since, counts)
        steps.append(end)
        if len(steps) == 2:  # as another thread could between two steps
            rec._state.forget("first", None, None)
            rec._state.learn(39, ["other"], 2, 1)

    monkeypatch.setattr("unbasket.core.model.queries.add_popularity", count_and_change)
    assert rec.popular(since=0) == [("common", 40), ("other", 1)]
    assert steps == [4, 8, 16, 32, 48]
