"""A data folder with small shops under the names of the published datasets."""

from pathlib import Path

import polars as pl
import pytest

from unbasket.datasets import generate, hold_out_last

USERS = 40


def write(folder: Path, name: str, **splits: pl.DataFrame) -> None:
    """Write purchases (user, basket, item, time[, quantity]), by their split, as a published file."""
    frame = pl.concat([purchases.with_columns(split=pl.lit(split)) for split, purchases in splits.items()])
    if "quantity" not in frame.columns:
        frame = frame.with_columns(quantity=1)
    names = {"user": "user_id", "basket": "basket_id", "item": "item_id", "time": "position"}
    frame.rename(names).write_parquet(folder / f"{name}.parquet")


@pytest.fixture(scope="session")
def small_shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ta-Feng and ValuedShopper with a future, Instacart and Coop-100 without; the purchases are generated."""
    folder = tmp_path_factory.mktemp("data")
    shop = generate(USERS, seed=1, items=60, baskets_per_user=12, basket_size=4)
    held = hold_out_last(shop)
    assert held.future is not None
    write(folder, "tafeng", history=held.history, future=held.future)
    write(folder, "instacart", history=shop.history)
    write(folder, "coop100", history=shop.history)
    later = held.future.with_columns(pl.col("basket") + 100_000, pl.col("time") + 1, item=pl.col("item") % 60 + 1)
    splits = {"history": held.history, "future": held.future, "future_later": later}
    write(folder, "valuedshopper", **{split: _with_repeats(purchases) for split, purchases in splits.items()})
    return folder


def _with_repeats(purchases: pl.DataFrame) -> pl.DataFrame:
    return purchases.with_columns(quantity=1 + (pl.col("item") % 3 == 0).cast(pl.Int64))


@pytest.fixture
def data(small_shops: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use the small shops as the data folder of a test."""
    monkeypatch.setenv("UNBASKET_DATA", str(small_shops))
    return small_shops
