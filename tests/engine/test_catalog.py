"""The catalog and availability of an engine in memory; tests/store/test_durable.py shows that both are durable."""

import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pytest

import unbasket as ub
from unbasket.domain.ids import Id

PRODUCTS = pl.DataFrame(
    {
        "item": ["milk", "wine", "gin"],
        "name": ["Fresh milk", "Red wine", "Gin"],
        "category": ["dairy", "alcohol", None],
        "price": [1.25, 8.0, None],
        "organic": [True, None, False],
        "listed": [date(2024, 1, 31), None, None],
    }
)


@pytest.fixture
def shop() -> ub.Recommender:
    rec = ub.Recommender(ub.Params(neighbors=2))
    rec.learn("ann", ["milk", "bread"], basket=1)
    rec.learn("bob", ["milk", "wine"], basket=1)
    return rec.describe(PRODUCTS)


def test_an_item_is_described_by_name_category_and_all_further_columns(shop: ub.Recommender) -> None:
    assert shop.catalog["milk"] == ub.Product(
        "milk", "Fresh milk", "dairy", {"price": 1.25, "organic": True, "listed": "2024-01-31"}
    )
    assert shop.catalog["gin"] == ub.Product("gin", "Gin", None, {"organic": False})
    assert shop.catalog["bread"] == ub.Product("bread")
    assert [shop.catalog["milk"].value(column) for column in ("name", "category", "price", "color")] == [
        "Fresh milk",
        "dairy",
        1.25,
        None,
    ]
    assert shop.catalog.categories() == {"dairy": ["milk"], "alcohol": ["wine"]}
    assert (shop.catalog.name("wine"), shop.catalog.name("bread")) == ("Red wine", "bread")


def test_a_product_is_dropped_with_the_last_purchase(shop: ub.Recommender) -> None:
    shop.recommend("ann", category=["dairy", "alcohol"])
    shop.forget("bob", item="milk")
    assert "milk" in shop.catalog  # ann has it
    shop.learn("ann", ["tea"], basket=1)
    assert "milk" not in shop.catalog
    shop.forget("bob")
    assert [product.item for product in shop.catalog] == ["gin"]  # never bought
    assert shop.catalog.categories() == {}
    left = pickle.dumps((vars(shop.catalog), shop._model.item_filters._cache))
    assert b"Gin" in left
    assert not any(trace in left for trace in (b"milk", b"dairy", b"wine", b"alcohol"))
    assert not shop._state.orphaned_items


def test_a_load_that_replaces_baskets_drops_products_too(shop: ub.Recommender) -> None:
    shop.fit(pl.DataFrame({"user": ["bob"], "basket": [1], "item": ["milk"]}))
    assert [product.item for product in shop.catalog] == ["milk", "gin"]


def test_a_product_that_is_described_again(shop: ub.Recommender) -> None:
    shop.describe(
        {"item": ["milk", "milk"], "title": ["old", "new"], "shelf": ["a", "b"]}, name="title", category="shelf"
    )
    assert shop.catalog["milk"] == ub.Product("milk", "new", "b")
    assert shop.catalog.categories() == {"alcohol": ["wine"], "b": ["milk"]}


def test_any_table_will_do() -> None:
    table = PRODUCTS.select("item", "name", "category", "price")
    expected = list(ub.Recommender().describe(table).catalog)
    for other in (table.lazy(), table.to_arrow(), pd.DataFrame(table.to_dict(as_series=False)), table.to_dict()):
        assert list(ub.Recommender().describe(other).catalog) == expected


@pytest.mark.parametrize(
    ("further", "value"),
    [
        (pl.Series([Decimal("1.50")]), 1.5),
        (pl.Series([float("nan")]), None),
        (pl.Series(["red"], dtype=pl.Categorical), "red"),
        (pl.Series([3], dtype=pl.UInt8), 3),
    ],
)
def test_further_columns_are_plain_values(further: pl.Series, value: object) -> None:
    rec = ub.Recommender().describe(pl.DataFrame({"item": [1], "name": ["one"], "more": further}), category=None)
    assert rec.catalog[1].value("more") == value


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"item": [1], "title": ["x"]}), "no column 'name'"),
        (pl.DataFrame({"item": [1.5], "name": ["x"], "category": ["y"]}), "Float64"),
        (pl.DataFrame({"item": [None, "a"], "name": "x", "category": "y"}), "null in row 0"),
        (pl.DataFrame({"item": [1], "name": ["x"], "category": ["y"], "sizes": [[1, 2]]}), "'sizes' has type List"),
        ([1, 2], "list"),
    ],
)
def test_a_frame_that_describes_nothing(shop: ub.Recommender, frame: Any, message: str) -> None:
    before = list(shop.catalog)
    with pytest.raises(ub.InvalidFrameError, match=message):
        shop.describe(frame)
    assert list(shop.catalog) == before


def test_columns_of_the_catalog_come_with_recommendations(shop: ub.Recommender) -> None:
    table = shop.recommend_frame(["ann"], columns=["name", "price", "color"])
    assert table.columns == ["user", "item", "score", "rank", "name", "price", "color"]
    assert table.select("item", "name", "price", "color").rows() == [
        ("milk", "Fresh milk", 1.25, None),
        ("bread", None, None, None),
        ("wine", "Red wine", 8.0, None),
    ]
    assert shop.recommend_frame(["ann"]).equals(table.select("user", "item", "score", "rank"))


@pytest.mark.parametrize("columns", ["name", ["score"], ["name", 3]])
def test_invalid_columns(shop: ub.Recommender, columns: Any) -> None:
    with pytest.raises(ub.InvalidRequestError, match=r"columns|further column"):
        shop.recommend_frame(columns=columns)


# Availability ---------------------------------------------------------------------------------------------------


@pytest.fixture
def plain_shop() -> ub.Recommender:
    rec = ub.Recommender(ub.Params(neighbors=2, alpha=0.5))
    rec.learn("ann", ["milk", "bread"], basket=1, time=1)
    rec.learn("bob", ["milk", "wine", "tea"], basket=1, time=1)
    return rec


def names(found: list[ub.Recommendation] | list[ub.ItemCount]) -> set[Id]:
    return {item for item, _ in found}


def test_hidden_items_are_not_recommended(plain_shop: ub.Recommender) -> None:
    assert names(plain_shop.recommend("ann")) == {"milk", "bread", "wine", "tea"}
    assert plain_shop.hide(["milk", "tea", "milk"]) == 2
    assert plain_shop.hidden() == ["milk", "tea"]
    for found in (
        plain_shop.recommend("ann"),
        plain_shop.recommend("ann", cart=["tea"]),
        plain_shop.recommend("new user", cart=["something new"]),
        plain_shop.recommend_many()["ann"],
        plain_shop.recommend_for([["milk"], ["unheard of", "bread"]], exclude=["unheard of"]),
        plain_shop.popular(),
        plain_shop.popular(since=0),
    ):
        assert names(found) == {"bread", "wine"}
    assert set(plain_shop.recommend_frame()["item"]) == {"bread", "wine"}
    assert names(plain_shop.recommend("ann", only=["milk", "wine"], only_new=True)) == {"wine"}
    assert names(plain_shop.recommend("ann", n=2)) == {"bread", "wine"}  # before the cut
    assert plain_shop.show(["milk", "gin"]) == 1
    assert names(plain_shop.recommend("ann")) == {"milk", "bread", "wine"}


def test_hidden_items_are_still_learned(plain_shop: ub.Recommender) -> None:
    other = ub.Recommender(plain_shop.params)
    plain_shop.hide(["milk"])
    for rec in (plain_shop, other):
        rec.forget("bob")
        rec.learn("ann", ["milk", "bread"], basket=1, time=1)
        rec.learn("bob", ["milk"], basket=2)
    assert plain_shop.vector("bob") == {"milk": other.vector("bob")["milk"]}
    assert plain_shop.similar_users("ann") == other.similar_users("ann")
    assert plain_shop.explain("ann", "milk") == other.explain("ann", "milk")
    assert plain_shop.digest() == other.digest()
    assert plain_shop.verify().ok


def test_an_item_stays_hidden_without_purchases(plain_shop: ub.Recommender) -> None:
    plain_shop.hide(["wine", "never bought"])
    plain_shop.forget("bob")
    assert plain_shop.items() == ["bread", "milk"]
    assert plain_shop.hidden() == ["never bought", "wine"]
    plain_shop.recommend("ann")
    plain_shop.learn("cleo", ["wine", "never bought", "rum"], basket=1)
    assert names(plain_shop.recommend("cleo")) == {"bread", "milk", "rum"}


def test_another_item_under_the_code_of_a_hidden_one_is_recommended(plain_shop: ub.Recommender) -> None:
    plain_shop.hide(["wine"])
    plain_shop.recommend("ann")
    plain_shop.forget("bob", item="wine")
    plain_shop.learn("bob", ["rum"], basket=2)
    assert "rum" in names(plain_shop.recommend("ann"))


def test_availability_changes_all_or_nothing(plain_shop: ub.Recommender) -> None:
    assert plain_shop.set_availability(hide=["milk"], show=["tea"]) == (1, 0)
    assert plain_shop.set_availability(hide=["tea"], show=["milk"]) == (1, 1)
    with pytest.raises(ub.InvalidRequestError, match="item 'milk' can't be hidden and shown at once"):
        plain_shop.set_availability(hide=["milk", "bread"], show=["milk"])
    with pytest.raises(ub.InvalidRequestError, match="hide must be a list of item ids, not 'milk'"):
        plain_shop.hide("milk")
    with pytest.raises(ub.InvalidIdError):
        plain_shop.hide(["bread", ""])
    assert plain_shop.hidden() == ["tea"]
