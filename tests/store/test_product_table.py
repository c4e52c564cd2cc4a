"""Products on disk."""

from pathlib import Path

import polars as pl
import pytest
from tests.store.test_durable import SHOP

import unbasket as ub


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_products_are_kept_and_go_with_the_last_purchase(path: Path) -> None:
    products = pl.DataFrame(
        {
            "item": ["milk", "wine", "gin"],
            "name": ["Fresh milk", "Red wine", "Gin"],
            "category": ["dairy", "alcohol", None],
        }
    )
    with ub.open(path).fit(SHOP) as rec:
        rec.describe(products)
        assert rec.catalog["milk"] == ub.Product("milk", "Fresh milk", "dairy")
        assert rec.catalog["tea"] == ub.Product("tea", None, None)
        assert (rec.catalog.name("wine"), rec.catalog.name("tea")) == ("Red wine", "tea")
    with ub.open(path) as rec:
        assert rec.catalog.categories() == {"dairy": ["milk"], "alcohol": ["wine"]}
        rec.forget("cleo")
        assert rec.catalog.name("wine") == "wine"
        rec.forget("ann", item="milk")
        assert rec.catalog.name("milk") == "Fresh milk"  # bob has it
        rec.learn("bob", ["tea"], basket=3, time=150)
        assert rec.catalog.name("milk") == "milk"
        assert [product.item for product in rec.catalog] == ["gin"]  # it never had a purchase to forget
    with ub.open(path) as rec:
        assert [product.item for product in rec.catalog] == ["gin"]


def test_a_product_that_is_described_again(path: Path) -> None:
    with ub.open(path) as rec:
        rec.describe(pl.DataFrame({"item": [1, 1], "name": ["old", "new"]}), category=None)
        rec.describe(pl.DataFrame({"item": [1], "name": ["newest"], "category": ["c"]}))
        assert list(rec.catalog) == [ub.Product(1, "newest", "c")]
    with ub.open(path) as rec:
        assert list(rec.catalog) == [ub.Product(1, "newest", "c")]
        for frame in (
            pl.DataFrame({"item": [1.5], "name": ["x"], "category": ["y"]}),
            pl.DataFrame({"item": [None], "name": ["x"], "category": ["y"]}, schema_overrides={"item": pl.Int64}),
            pl.DataFrame({"item": [1], "title": ["x"]}),
        ):
            with pytest.raises(ub.InvalidFrameError):
                rec.describe(frame)
