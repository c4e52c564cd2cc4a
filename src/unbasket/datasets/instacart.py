"""Instacart 2017 as downloaded: a folder of CSV files."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.purchases import complaint, drop_ones, purchases, sampled, whole_number
from unbasket.datasets.source import ROW, open_source
from unbasket.domain.progress import ReadingProgress
from unbasket.params import Params

_ORDER_COLUMNS = ("order_id", "user_id", "order_number")
_PRODUCT_COLUMNS = ("order_id", "product_id")


def read_instacart(
    folder: str | Path, *, sample: float = 1.0, skip_bad: bool = False, progress: ReadingProgress | None = None
) -> Dataset:
    """Read orders.csv with order_products__prior.csv and, where it is there, order_products__train.csv.

    The preprocessing: a basket is an order; time is its order_number, since the source has no dates; the
    prior orders are the history, and a user's train order, the last one, is the future (users of the
    competition's test set have none). Names and categories come from products.csv, aisles.csv and
    departments.csv, if all three are there. `sample` is the share of the users to keep, always the same ones;
    the paper's subset has about a tenth of them.
    """
    folder = Path(folder)
    orders = _orders(folder / "orders.csv", sample, skip_bad)
    history, skipped = _purchases(folder / "order_products__prior.csv", orders, skip_bad, progress)
    train = folder / "order_products__train.csv"
    frames = [history]
    if train.is_file():
        future, skipped_train = _purchases(train, orders, skip_bad, progress)
        frames.append(future)
        skipped += skipped_train
    frames = drop_ones(frames)
    return Dataset(
        "instacart",
        frames[0],
        frames[1] if len(frames) > 1 else None,
        _items(folder),
        Params.paper("instacart"),
        f"Instacart, raw files, {sample:g} of the users: history from the prior orders, future from the "
        "train orders; time is the order number. Parameters: the paper's, for its subset.",
        skipped,
    )


def _orders(path: Path, sample: float, skip_bad: bool) -> pl.DataFrame:
    source = open_source(path, _ORDER_COLUMNS, narrow=True)
    columns = {name: whole_number(name) for name in _ORDER_COLUMNS}
    orders = source.collect(source.rows.select(ROW, **columns))
    bad = orders.filter(pl.any_horizontal(pl.all().is_null()))
    if bad.height and not skip_bad:
        raise complaint(source, columns, bad[ROW][0])
    return orders.drop(ROW).drop_nulls().with_columns(kept=sampled(pl.col("user_id"), sample))


def _purchases(
    path: Path, orders: pl.DataFrame, skip_bad: bool, progress: ReadingProgress | None
) -> tuple[pl.DataFrame, int]:
    source = open_source(path, _PRODUCT_COLUMNS, narrow=True, progress=progress)
    rows = source.rows.with_columns(whole_number("order_id")).join(orders.lazy(), on="order_id", how="left")
    # null: the order is not in orders.csv. Such a row must stay, to be complained about.
    rows = rows.filter(pl.col("kept").fill_null(value=True))
    columns = {
        "user": pl.col("user_id"),
        "basket": pl.col("order_id"),
        "item": whole_number("product_id"),
        "time": pl.col("order_number"),
    }
    return purchases(replace(source, rows=rows), columns, skip_bad=skip_bad)


def _items(folder: Path) -> pl.DataFrame | None:
    """The names, and as category the department and the aisle."""
    needed = {
        "products.csv": ("product_id", "product_name", "aisle_id", "department_id"),
        "aisles.csv": ("aisle_id", "aisle"),
        "departments.csv": ("department_id", "department"),
    }
    if not all((folder / name).is_file() for name in needed):
        return None
    products, aisles, departments = (
        open_source(folder / name, columns).rows.select(columns) for name, columns in needed.items()
    )
    joined = products.join(aisles, on="aisle_id", how="left").join(departments, on="department_id", how="left")
    return (
        joined.select(
            item=whole_number("product_id"),
            name=pl.col("product_name"),
            category=pl.concat_str("department", "aisle", separator=" / ", ignore_nulls=True),
        )
        .sort("item")
        .collect()
    )
