"""Any table with a user, a basket and an item per row."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.errors import DatasetError
from unbasket.datasets.purchases import drop_ones, narrow_ids, purchases, seconds, text_id, whole_number
from unbasket.datasets.source import Progress, Source, open_source

_ISO_FORMATS = ("%F", "%F %R", "%F %T%.f", "%F %T%.f%#z")


def read_table(
    path: str | Path,
    *,
    user: str = "user",
    basket: str = "basket",
    item: str = "item",
    time: str | None = None,
    time_format: str | None = None,
    separator: str = ",",
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Read a CSV (also .csv.gz), Parquet or NDJSON file. The arguments name its columns.

    `time` is a column of integers, kept as they are, or of dates, which become seconds since 1970 (UTC): ISO
    8601, or as `time_format` says (such as "%d.%m.%Y %H:%M"). Without it, baskets are in the order of the
    file. The item column may hold lists. Repeated rows become one, with a quantity.
    """
    needed = [user, basket, item, *([time] if time is not None else [])]
    source = open_source(path, needed, separator=separator, progress=progress)
    schema = source.rows.collect_schema()
    if isinstance(schema[item], pl.List):
        source = replace(source, rows=source.rows.explode(item))
    columns = {name: _id(source, column) for name, column in (("user", user), ("basket", basket), ("item", item))}
    if time is not None:
        columns["time"] = _time(source, time, time_format)
    history, skipped = purchases(source, columns, skip_bad=skip_bad)
    if source.kind == "csv":
        [history] = narrow_ids([history])
    [history] = drop_ones([history])
    order = f"time from column {time}" if time is not None else "baskets in the order of the file"
    return Dataset(source.path.stem, history, notes=f"Read from {source.path.name}; {order}.", skipped=skipped)


def _id(source: Source, column: str) -> pl.Expr:
    """Text or an integer, as the file has it; null where it is empty."""
    dtype = source.rows.collect_schema()[column]
    if dtype.is_integer():
        return whole_number(column)
    if dtype in (pl.String, pl.Categorical, pl.Enum) or dtype.is_temporal():
        return text_id(column)
    raise DatasetError(f"{source.path}: column {column} holds {dtype}; ids are text or integers")


def _time(source: Source, column: str, time_format: str | None) -> pl.Expr:
    dtype = source.rows.collect_schema()[column]
    if dtype.is_integer():
        return whole_number(column)
    if dtype in (pl.Date, pl.Datetime):
        return pl.col(column).dt.epoch("s")
    if dtype != pl.String:
        raise DatasetError(f"{source.path}: column {column} holds {dtype}; a time is an integer or a date")
    if time_format is not None:
        return seconds(column, time_format)
    # One rule for the whole column, by its first value: a number among dates is a mistake, not a second
    first = str(source.first_value(column) or "")
    return whole_number(column) if first.lstrip("+-").isdigit() else _iso_seconds(column)


def _iso_seconds(column: str) -> pl.Expr:
    text = pl.col(column).str.replace("T", " ", literal=True)
    return pl.coalesce(text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s") for form in _ISO_FORMATS)
