"""Filters: they apply before the cut, and their cached codes follow every change."""

from typing import Any

import polars as pl
from tests.engine.small_shop import BREAD, CATEGORIES, MILK, TEA

import unbasket as ub


def test_excluded_items_are_left_out_before_the_cut(shop: ub.Recommender) -> None:
    assert shop.recommend("ann", 2, exclude=["milk"]) == [("tea", TEA), ("bread", BREAD)]
    assert shop.recommend("ann", 1, exclude={"milk", "tea", "never seen"}) == [("bread", BREAD)]
    assert shop.recommend("ann", exclude=["milk", "tea", "bread"]) == []
    assert shop.recommend("ann", exclude=[]) == shop.recommend("ann")


def test_only_new_items(shop: ub.Recommender) -> None:
    assert shop.recommend("ann", 2, only_new=True) == [("tea", TEA)]
    assert shop.recommend("cat", 1, only_new=True) == [("milk", 0.4375)]
    assert shop.recommend("cat", 5, only_new=True, exclude=["milk"]) == [("bread", 0.0625)]


def test_only_new_items_are_new_even_if_their_weight_is_rounded_away() -> None:
    rec = ub.Recommender(ub.Params(group_size=1, group_decay=0.001, neighbors=1))
    rec.learn("u", ["old"], basket=0)
    for basket in range(1, 10):
        rec.learn("u", ["new"], basket=basket)
    rec.learn("v", ["old", "other"], basket=0)
    assert [item for item, _ in rec.recommend("u", only_new=True)] == ["other"]


def test_only_these_items(shop: ub.Recommender) -> None:
    assert shop.recommend("ann", 1, only=["tea", "bread"]) == [("tea", TEA)]
    assert shop.recommend("ann", only={"bread", "never seen"}) == [("bread", BREAD)]
    assert shop.recommend("ann", only=["milk", "milk", "tea"], exclude=["milk"]) == [("tea", TEA)]
    assert shop.recommend("ann", only=["milk", "tea"], only_new=True) == [("tea", TEA)]
    assert shop.recommend("ann", only=[]) == []
    assert shop.recommend("ann", only=["never seen"]) == []
    assert shop.recommend("ann", only=shop.items()) == shop.recommend("ann")


def test_a_frozen_set_follows_every_change(shop: ub.Recommender) -> None:
    """Its codes are cached, and change with the items."""
    selection = frozenset(["tea", "gin"])
    assert (
        shop.recommend("ann", only=selection) == shop.recommend("ann", only=selection, exclude=["x"]) == [("tea", TEA)]
    )
    shop.learn("bob", ["gin"], basket=2)
    assert [item for item, _ in shop.recommend("ann", only=selection)] == ["tea", "gin"]
    shop.forget("bob")
    shop.learn("dan", ["ham"], basket=1)  # it may get the code of gin
    assert [item for item, _ in shop.recommend("ann", only=selection)] == ["tea"]
    for number in range(300):  # more than are cached
        assert shop.recommend("ann", only=frozenset(["milk", number])) == shop.recommend("ann", only=["milk"])


def test_only_items_of_categories(shop: ub.Recommender) -> None:
    shop.describe(CATEGORIES)
    assert shop.recommend("ann", category="cold") == [("milk", MILK)]
    assert shop.recommend("ann", 1, category=["dry", "hot", "dry"]) == [("tea", TEA)]
    assert shop.recommend("ann", category={"dry", "hot"}) == [("tea", TEA), ("bread", BREAD)]
    assert shop.recommend("ann", category=["cold", "hot"], only=["bread", "tea"]) == [("tea", TEA)]
    assert shop.recommend("ann", category="unheard of") == shop.recommend("ann", category=[]) == []
    assert shop.recommend("ann", category="cold", only_new=True) == []


def test_categories_follow_every_change(shop: ub.Recommender) -> None:
    """The codes of a category are cached; they change with the items and with the catalog."""
    shop.describe(CATEGORIES)

    def cold() -> list[object]:
        return [item for item, _ in shop.recommend("ann", category="cold")]

    assert cold() == ["milk"]
    shop.learn("bob", ["gin"], basket=2)
    assert cold() == ["milk", "gin"]
    shop.recommend_for([["new here"]])  # has a code for this answer only
    shop.forget("bob")
    assert cold() == ["milk"]
    shop.learn("dan", ["ham"], basket=1)  # it may get the code of gin
    assert cold() == ["milk"]
    shop.describe({"item": ["ham", "milk"], "name": "a name", "category": ["cold", "dry"]})
    assert cold() == ["ham"]
    shop.fit(pl.DataFrame({"user": ["eve"], "basket": [1], "item": ["gin"]}))
    assert cold() == ["ham"]  # the description of gin was dropped


def test_many_answers_are_filtered_as_one_by_one(shop: ub.Recommender) -> None:
    shop.describe(CATEGORIES)
    filters: list[dict[str, Any]] = [
        {"exclude": ["milk"]},
        {"only_new": True},
        {"only": ["tea", "bread"]},
        {"category": ["hot", "dry"], "only_new": True, "exclude": ["bread"]},
    ]
    for each in filters:
        expected = {user: shop.recommend(user, 2, **each) for user in shop.users()}
        assert shop.recommend_many(n=2, **each) == expected
        rows = [(user, item) for user, answer in expected.items() for item, _ in answer]
        assert shop.recommend_frame(n=2, **each).select("user", "item").rows() == rows
        history = [["milk", "bread"], ["milk"]]
        assert shop.recommend_for(history, 2, user="ann", **each) == expected["ann"]
