"""From the rows of a file to purchases: one row per item of a basket."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Literal

import polars as pl

from unbasket.datasets.dataset import PURCHASE_COLUMNS, SkippedRows
from unbasket.datasets.lines import shown
from unbasket.datasets.source import ROW, Source
from unbasket.domain.returns import FIRST_ROW, quantities
from unbasket.errors import DatasetError, Remedy

FutureChoice = Literal["next", "union"]
ID_COLUMNS = ("user", "basket", "item")
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d.%m.%Y", "%Y.%m.%d", "%d.%m.%y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_SKIP = Remedy("skip_bad", True, "leaves out such rows and counts them")


def distinct_purchases(
    source: Source, columns: Mapping[str, pl.Expr], *, skip_bad: bool
) -> tuple[pl.DataFrame, tuple[SkippedRows, ...]]:
    """Return the distinct purchases of a file, in any order, and the rows skipped, by reason.

    `columns` maps user, basket, item and, where the source has them, time and quantity to expressions, which are null
    for values that can't be read. Added columns: ROW, the first row of a purchase, and quantity, the number of rows.
    Where the source has quantities, their sum may be 0 or less, and further columns count the rows of each sign: see
    `remove_returns`.
    """
    typed = source.rows.select(ROW, **columns).with_columns(bad=pl.any_horizontal(pl.col(*columns).is_null()))
    times = [pl.col("time").min()] if "time" in columns else []
    amounts = quantities(pl.col("quantity")) if "quantity" in columns else {"quantity": pl.len().cast(pl.Int64)}
    first = pl.col(ROW).min().cast(pl.Int64)
    frame = source.collect(typed.group_by(*ID_COLUMNS, "bad").agg(*times, first, **amounts))
    bad, good = frame.filter("bad"), frame.filter(~pl.col("bad")).drop("bad")
    if not bad.height:
        return good, ()
    if not skip_bad:
        raise bad_row_error(source, columns, int(bad.select(pl.col(ROW).min()).item()))
    return good, _skipped_rows(source, columns)


def _skipped_rows(source: Source, columns: Mapping[str, pl.Expr]) -> tuple[SkippedRows, ...]:
    """Count the bad rows by the first of their columns that is empty or can't be read, with the first row of each.

    An example has the value of that column alone: the rest of the row is not needed to see what is wrong.
    """
    texts = {name: pl.col(expr.meta.root_names()[0]).cast(pl.String) for name, expr in columns.items()}
    fault = pl.coalesce(pl.when(expr.is_null()).then(pl.lit(name)) for name, expr in columns.items())
    value = pl.coalesce(pl.when(expr.is_null()).then(texts[name].fill_null("")) for name, expr in columns.items())
    rows = source.rows.select(ROW, fault=fault, value=value).filter(pl.col("fault").is_not_null())
    reasons = rows.group_by("fault", empty=pl.col("value") == "").agg(pl.len(), pl.all().sort_by(ROW).first())
    found = source.collect(reasons).sort(ROW)
    return tuple(
        SkippedRows(
            f"no {fault}" if empty else f"unreadable {fault}", count, f"{source.path}, {source.place(row)}", text
        )
        for fault, empty, count, row, text in found.select("fault", "empty", "len", ROW, "value").iter_rows()
    )


def order_baskets(purchases: pl.DataFrame) -> pl.DataFrame:
    """Give all rows of a basket its earliest time or, without times, its first row as FIRST_ROW."""
    if "time" in purchases.columns:
        return purchases.with_columns(pl.col("time").min().over("user", "basket").cast(pl.Int64))
    return purchases.with_columns(pl.col(ROW).min().over("user", "basket").alias(FIRST_ROW))


def sort_purchases(purchases: pl.DataFrame) -> pl.DataFrame:
    """Sort by user, time and basket. Where there are no times, a basket's position in its history becomes its time."""
    if "time" not in purchases.columns:
        position = pl.col(FIRST_ROW).rank("dense").over("user").cast(pl.Int64)
        purchases = purchases.with_columns(time=position).drop(FIRST_ROW)
    purchases = purchases.sort("user", "time", "basket", ROW, "item")  # the items of a list have the same row
    return purchases.select(*PURCHASE_COLUMNS, pl.exclude(*PURCHASE_COLUMNS, ROW))


def sorted_purchases(
    source: Source, columns: Mapping[str, pl.Expr], *, skip_bad: bool
) -> tuple[pl.DataFrame, tuple[SkippedRows, ...]]:
    """Return a file's purchases in the order of a `Dataset`, with quantities, and the rows skipped."""
    frame, skipped = distinct_purchases(source, columns, skip_bad=skip_bad)
    return sort_purchases(order_baskets(frame)), skipped


def bad_row_error(source: Source, columns: Mapping[str, pl.Expr], row: int) -> DatasetError:
    """Return an error that says what is wrong with a row, where it is, and which argument helps."""
    unusable = pl.any_horizontal(expr.is_null() for expr in columns.values())
    record = source.collect(source.rows.filter((pl.col(ROW) == row) & unusable))
    missing = [name for name, value in record.select(**columns).row(0, named=True).items() if value is None]
    used = dict.fromkeys(column for expr in columns.values() for column in expr.meta.root_names())
    values = record.select(*used).row(0, named=True)
    listed = ", ".join(f"{name!r}: {shown(value)}" for name, value in values.items())
    problem = f"{source.path}, {source.place(row)}: no usable {' and '.join(missing)} in {{{listed}}}"
    time = values[columns["time"].meta.root_names()[0]] if "time" in missing else None
    quantity = values[columns["quantity"].meta.root_names()[0]] if "quantity" in missing else None
    return DatasetError(problem, _time_format(time) or _decimal_comma(quantity) or _SKIP)


def _decimal_comma(text: object) -> Remedy | None:
    """Suggest a decimal comma if a text is a number with one."""
    if not re.fullmatch(r"[+-]?\d*,\d+", str(text)):
        return None
    return Remedy("decimal", ",", f"reads this as {str(text).replace(',', '.')}")


def _time_format(text: object) -> Remedy | None:
    """Suggest the one or two formats that would read a text as a date."""
    matches = list(matching_formats(str(text)))
    if not matches:
        return None
    form, day = matches[0]
    effect = f"reads this as {day:%Y-%m-%d}"
    if len(matches) > 1:
        other, day = matches[1]
        effect += f", and {other!r} as {day:%Y-%m-%d}"
    return Remedy("time_format", form, effect)


def matching_formats(text: str) -> Iterator[tuple[str, datetime]]:
    """Yield the formats that read a text as a date, with what they read."""
    for clock, day in product(_CLOCKS, _DAYS):
        try:
            yield day + clock, datetime.strptime(text, day + clock)
        except ValueError:
            continue


def text_id(column: str) -> pl.Expr:
    """Return a column as text, null where it is empty."""
    text = pl.col(column).cast(pl.String)
    return pl.when(text != "").then(text)


def whole_number(column: str) -> pl.Expr:
    """Return a column as integers, null where the value is not one."""
    return pl.col(column).cast(pl.Int64, strict=False)


def seconds(column: str, date_format: str) -> pl.Expr:
    """Return a column of dates as seconds since 1970 (UTC)."""
    return pl.col(column).str.to_datetime(date_format, strict=False, time_unit="us").dt.epoch("s")


def day_number(column: str, date_format: str) -> pl.Expr:
    """Return a column of dates as integers YYYYMMDD: basket ids where a basket is a customer's day."""
    day = pl.col(column).str.to_date(date_format, strict=False)
    return day.dt.year().cast(pl.Int64) * 10_000 + day.dt.month().cast(pl.Int64) * 100 + day.dt.day()


def narrow_ids(frames: Sequence[pl.DataFrame], columns: Sequence[str] = ID_COLUMNS) -> list[pl.DataFrame]:
    """Turn the text ids of CSV files into integers, column by column, if that loses nothing in any frame.

    "007" stays text, and so does its whole column: 007 and 7 may be two customers.
    """
    whole = [name for name in columns if all(_is_whole(frame[name]) for frame in frames)]
    return [frame.with_columns(pl.col(name).cast(pl.Int64) for name in whole) for frame in frames]


def _is_whole(ids: pl.Series) -> bool:
    numbers = ids.cast(pl.Int64, strict=False)
    return bool((numbers.cast(pl.String) == ids.cast(pl.String)).fill_null(value=False).all())


def drop_ones(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Drop the quantity if it is 1 in all rows of all frames."""
    repeats = any(bool((frame["quantity"] > 1).any()) for frame in frames)
    return list(frames) if repeats else [frame.drop("quantity") for frame in frames]


def one_future(future: pl.DataFrame, choice: FutureChoice) -> pl.DataFrame:
    """Reduce the baskets after a user's history to one: the next one, or the union of all."""
    if choice not in ("next", "union"):
        raise DatasetError(f'future must be "next" or "union", not {choice!r}')
    ordered = future.sort("user", "time", "basket", maintain_order=True)
    first = [pl.col(name).first().over("user") for name in ("basket", "time")]
    if choice == "next":
        return ordered.filter(pl.col("basket") == first[0])
    return ordered.with_columns(first).group_by(*PURCHASE_COLUMNS, maintain_order=True).agg(pl.col("quantity").sum())


def sampled(user: pl.Expr, share: float) -> pl.Expr:
    """Return whether an integer user id is in a sample of this share of all users; null for null.

    Uses Knuth's multiplicative hash rather than Polars' own, to get the same users in every version.
    """
    if not 0 < share <= 1:
        raise DatasetError(f"sample must be above 0 and at most 1, not {share!r}")
    return (user % 2**31) * 2_654_435_761 % 2**32 < share * 2**32
