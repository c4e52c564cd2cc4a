"""What an engine in memory knows of its items; that a durable one keeps it is in tests/store/test_durable.py."""

import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pytest

import unbasket as ub

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


def test_what_is_known_of_an_item_goes_with_its_last_purchase(shop: ub.Recommender) -> None:
    shop.recommend("ann", category=["dairy", "alcohol"])
    shop.forget("bob", item="milk")
    assert "milk" in shop.catalog  # ann has it
    shop.learn("ann", ["tea"], basket=1)
    assert "milk" not in shop.catalog
    shop.forget("bob")
    assert [product.item for product in shop.catalog] == ["gin"]  # which nobody ever bought
    assert shop.catalog.categories() == {}
    left = pickle.dumps((vars(shop.catalog), shop._model.item_filters._kept))
    assert b"Gin" in left
    assert not any(trace in left for trace in (b"milk", b"dairy", b"wine", b"alcohol"))
    assert not shop._state.vanished


def test_a_load_that_replaces_baskets_forgets_products_too(shop: ub.Recommender) -> None:
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
def test_columns_that_there_cannot_be(shop: ub.Recommender, columns: Any) -> None:
    with pytest.raises(ub.InvalidRequestError, match=r"columns|further column"):
        shop.recommend_frame(columns=columns)
