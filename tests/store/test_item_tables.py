"""Products, hidden items and suppressed items on disk."""

from pathlib import Path

import polars as pl
import pytest
from tests.store.test_durable import SHOP, refuse

import unbasket as ub
from unbasket.store.writer import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_hidden_items_are_kept_until_they_are_shown(path: Path, tmp_path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        digest = rec.digest()
        assert rec.hide(["wine", "never bought", 0]) == 3
        assert rec.set_availability(hide=["milk", "wine"], show=[0]) == (1, 1)
        assert rec.digest() == digest
    with ub.open(path) as rec:
        assert rec.hidden() == ["milk", "never bought", "wine"]
        rec.forget("cleo")  # the only user with wine
        rec.backup(tmp_path / "copy.db")
        with ub.open(path, read_only=True) as reader, pytest.raises(ub.StoreError, match="read_only"):
            reader.show(["wine"])
        assert rec.show(["wine", "milk", "tea"]) == 2
        assert rec.show(["wine"]) == 0
    with ub.open(path) as rec, ub.open(tmp_path / "copy.db", read_only=True) as copy:
        assert (rec.hidden(), copy.hidden()) == (["never bought"], ["milk", "never bought", "wine"])


def test_items_are_hidden_in_one_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk refuses, nothing is changed, on disk or in memory."""
    with ub.open(path).fit(SHOP) as rec:
        rec.hide(["milk", "tea"])
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", refuse)
            for change in ({"hide": ["wine", "bread"]}, {"show": ["milk"], "hide": ["wine"]}):
                with pytest.raises(ub.StoreError, match="no room"):
                    rec.set_availability(**change)
                assert rec.hidden() == ["milk", "tea"]
        assert rec.set_availability(hide=["wine"], show=["milk"]) == (1, 1)
    with ub.open(path) as rec:
        assert rec.hidden() == ["tea", "wine"]


def test_a_database_with_too_many_suppressions_opens(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version had no limit."""
    with ub.open(path).fit(SHOP) as rec:
        for item in ("wine", "gin", "rum"):
            rec.suppress("ann", item)
    monkeypatch.setattr("unbasket.engine.histories.MAX_SUPPRESSIONS", 2)
    with ub.open(path) as rec:
        assert rec.suppressed("ann") == ["gin", "rum", "wine"]
        with pytest.raises(ub.InvalidEventError, match="would have 4 suppressed items, of at most 2"):
            rec.suppress("ann", "tea")
        assert rec.allow("ann", "gin")
        assert rec.suppress("bob", "tea")
    with ub.open(path) as rec:
        assert (rec.suppressed("ann"), rec.suppressed("bob")) == (["rum", "wine"], ["tea"])


def test_suppressions_are_kept_and_go_with_the_user(path: Path, tmp_path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        assert [rec.suppress("ann", item) for item in ("wine", 0, "wine")] == [True, True, False]
        rec.suppress("bob", "milk")
        with pytest.raises(ub.UnknownUserError, match="nobody"):
            rec.suppress("nobody", "milk")
        digest = rec.digest()
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert (rec.suppressed("ann"), rec.suppressed("bob")) == (["0", "wine"], ["milk"])
        rec.backup(tmp_path / "copy.db")
        assert rec.allow("ann", 0)
        assert not rec.allow("ann", 0)
        rec.apply([ub.Forget("bob", None, None), ub.Learn("bob", ["milk"], 1, None)])
        assert rec.suppressed("bob") == []
        assert all(receipt.verified for receipt in rec.receipts())
        digest = rec.digest()
    with ub.open(path) as rec, ub.open(tmp_path / "copy.db", read_only=True) as copy:
        assert rec.digest() == digest
        assert (rec.suppressed("ann"), rec.suppressed("bob")) == (["wine"], [])
        assert (copy.suppressed("ann"), copy.suppressed("bob")) == (["0", "wine"], ["milk"])
        rec.forget("ann")
        rec.learn("ann", ["milk"], basket=1)
        assert rec.suppressed("ann") == []


def test_a_refusal_undoes_suppress_and_allow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ub.open(path).fit(SHOP) as rec:
        rec.suppress("ann", "wine")
        digest = rec.digest()
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", refuse)
            for change in (
                lambda: rec.suppress("ann", "tea"),
                lambda: rec.allow("ann", "wine"),
                lambda: rec.forget("ann"),
                lambda: rec.suppress("bob", "milk"),
            ):
                with pytest.raises(ub.StoreError, match="no room"):
                    change()
                assert rec.digest() == digest
                assert rec.verify().ok
        rec.suppress("ann", "tea")
        rec.allow("ann", "wine")
    with ub.open(path) as rec:
        assert rec.suppressed("ann") == ["tea"]


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
