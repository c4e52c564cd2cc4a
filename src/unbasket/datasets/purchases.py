"""From rows of a file to purchases: one row per item of a basket."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Literal

import polars as pl

from unbasket.datasets.dataset import PURCHASE_COLUMNS
from unbasket.datasets.lines import shown
from unbasket.datasets.source import ROW, Source
from unbasket.errors import DatasetError, Remedy

FutureChoice = Literal["next", "union"]
_IDS = ("user", "basket", "item")
_DAYS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d.%m.%Y", "%Y.%m.%d", "%d.%m.%y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")


def purchases(source: Source, columns: Mapping[str, pl.Expr], *, skip_bad: bool = False) -> tuple[pl.DataFrame, int]:
    """The purchases of a file, with their quantity, and the number of rows skipped.

    `columns` says how to get user, basket, item and, where the source has them, time and quantity; an expression
    gives null for a value that it cannot read. The time of a basket is its earliest. Without one, it is the place of
    the basket among the user's baskets, in the order of the file. Without quantities, each row is one; with them,
    the sums may be 0 or less, and the columns `zero` and `returned` count the rows that are: see `returns.py`.
    """
    typed = source.rows.select(ROW, **columns).with_columns(bad=pl.any_horizontal(pl.col(*columns).is_null()))
    times = [pl.col("time").min()] if "time" in columns else []
    rows = pl.len().cast(pl.Int64)
    amounts = {"quantity": rows}
    if "quantity" in columns:
        quantity = pl.col("quantity")
        amounts = {"quantity": quantity.sum(), "zero": (quantity == 0).sum(), "returned": (quantity < 0).sum()}
    frame = source.collect(typed.group_by(*_IDS, "bad").agg(*times, pl.col(ROW).min(), rows=rows, **amounts))
    bad, good = frame.filter("bad"), frame.filter(~pl.col("bad"))
    if bad.height and not skip_bad:
        raise complaint(source, columns, int(bad.select(pl.col(ROW).min()).item()))
    clock = "time" if "time" in columns else ROW
    good = good.with_columns(time=pl.col(clock).min().over("user", "basket").cast(pl.Int64))
    if clock == ROW:
        good = good.with_columns(pl.col("time").rank("dense").over("user").cast(pl.Int64))
    ordered = good.sort("user", "time", "basket", ROW, "item")  # the items of a list have the same row
    return ordered.select(*PURCHASE_COLUMNS, *amounts), int(bad["rows"].sum())


def complaint(source: Source, columns: Mapping[str, pl.Expr], row: int) -> DatasetError:
    """What is wrong with a row, where it is, and what helps."""
    unusable = pl.any_horizontal(expr.is_null() for expr in columns.values())
    record = source.collect(source.rows.filter((pl.col(ROW) == row) & unusable))
    missing = [name for name, value in record.select(**columns).row(0, named=True).items() if value is None]
    used = dict.fromkeys(column for expr in columns.values() for column in expr.meta.root_names())
    values = record.select(*used).row(0, named=True)
    listed = ", ".join(f"{name!r}: {shown(value)}" for name, value in values.items())
    problem = f"{source.path}, {source.place(row)}: no usable {' and '.join(missing)} in {{{listed}}}"
    time = values[columns["time"].meta.root_names()[0]] if "time" in missing else None
    return DatasetError(problem, _time_format(time) or _SKIP)


_SKIP = Remedy("skip_bad", True, "leaves out such rows and counts them")


def _time_format(text: object) -> Remedy | None:
    """The format, or the two formats, in which a text would be a date."""
    readings = list(_readings(str(text)))
    if not readings:
        return None
    form, day = readings[0]
    effect = f"reads this as {day:%Y-%m-%d}"
    if len(readings) > 1:
        other, day = readings[1]
        effect += f", and {other!r} as {day:%Y-%m-%d}"
    return Remedy("time_format", form, effect)


def _readings(text: str) -> Iterator[tuple[str, datetime]]:
    for clock, day in product(_CLOCKS, _DAYS):
        try:
            yield day + clock, datetime.strptime(text, day + clock)
        except ValueError:
            continue


def text_id(column: str) -> pl.Expr:
    """A column of text; null where it is empty."""
    text = pl.col(column).cast(pl.String)
    return pl.when(text != "").then(text)


def whole_number(column: str) -> pl.Expr:
    """A column of integers; null where the value is not one."""
    return pl.col(column).cast(pl.Int64, strict=False)


def seconds(column: str, date_format: str) -> pl.Expr:
    """A date, as seconds since 1970 (UTC)."""
    return pl.col(column).str.to_datetime(date_format, strict=False, time_unit="us").dt.epoch("s")


def day_number(column: str, date_format: str) -> pl.Expr:
    """A date as the integer YYYYMMDD: the basket id where a basket is all that a customer bought in a day."""
    day = pl.col(column).str.to_date(date_format, strict=False)
    return day.dt.year().cast(pl.Int64) * 10_000 + day.dt.month().cast(pl.Int64) * 100 + day.dt.day()


def narrow_ids(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Make the text ids of CSV files integers, where all of a column in all frames are and nothing is lost.

    "007" stays text, and so does its whole column: 007 and 7 may be two customers.
    """
    whole = [name for name in _IDS if all(_is_whole(frame[name]) for frame in frames)]
    return [frame.with_columns(pl.col(name).cast(pl.Int64) for name in whole) for frame in frames]


def _is_whole(ids: pl.Series) -> bool:
    numbers = ids.cast(pl.Int64, strict=False)
    return bool((numbers.cast(pl.String) == ids.cast(pl.String)).fill_null(value=False).all())


def drop_ones(frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Leave out the quantity where it is 1 throughout."""
    repeats = any(bool((frame["quantity"] > 1).any()) for frame in frames)
    return list(frames) if repeats else [frame.drop("quantity") for frame in frames]


def one_future(future: pl.DataFrame, choice: FutureChoice) -> pl.DataFrame:
    """One basket per user of several that follow the history: the next one, or all of them as one."""
    if choice not in ("next", "union"):
        raise DatasetError(f'future must be "next" or "union", not {choice!r}')
    ordered = future.sort("user", "time", "basket", maintain_order=True)
    first = [pl.col(name).first().over("user") for name in ("basket", "time")]
    if choice == "next":
        return ordered.filter(pl.col("basket") == first[0])
    keys = ("user", "basket", "item", "time")
    return ordered.with_columns(first).group_by(*keys, maintain_order=True).agg(pl.col("quantity").sum())


def sampled(user: pl.Expr, share: float) -> pl.Expr:
    """Whether an integer user id belongs to a sample of this share of all users; null for a null.

    Knuth's multiplicative hash, not Polars' own: the same users in every version and on every machine.
    """
    if not 0 < share <= 1:
        raise DatasetError(f"sample must be above 0 and at most 1, not {share!r}")
    return (user % 2**31) * 2_654_435_761 % 2**32 < share * 2**32
