"""Any table with a user, a basket and an item per row: CSV, Parquet or NDJSON, one file or a folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from unbasket.datasets.dataset import Dataset, SkippedRows
from unbasket.datasets.purchases import (
    ID_COLUMNS,
    distinct_purchases,
    drop_ones,
    narrow_ids,
    order_baskets,
    seconds,
    sort_purchases,
    text_id,
    whole_number,
)
from unbasket.datasets.source import ROW, Source, Text, expected_rows, files_at, open_source
from unbasket.domain.frames import iso_seconds
from unbasket.domain.results import ReadingProgress
from unbasket.domain.returns import FIRST_ROW, Returns, remove_returns
from unbasket.errors import DatasetError


class TableFormat(NamedTuple):
    """The names of a table's columns and how its values are written; see `read_table`."""

    user: str = "user"
    basket: str = "basket"
    item: str = "item"
    time: str | None = None
    time_format: str | None = None
    quantity: str | None = None
    separator: str = ","
    decimal: str = "."
    skip_bad: bool = False

    def columns(self) -> dict[str, str]:
        """Return the names of the given columns by their role."""
        names = (*ID_COLUMNS, "time", "quantity")
        return {name: column for name in names if (column := getattr(self, name)) is not None}


class PurchaseTable(NamedTuple):
    """The distinct purchases of a table, in a frame that `Recommender.fit` takes: user, basket, item and perhaps time.

    A basket has one time, its earliest. Without times, baskets are in the order of the files. Further columns are for
    `Dataset`. Each of the table's `rows` is a purchase of the frame, or repeats one, or is accounted for in `skipped`
    (bad rows) or `returns` (rows that are not purchases by their quantity, and purchases that they undo).
    """

    frame: pl.DataFrame
    rows: int
    repeated: int
    skipped: tuple[SkippedRows, ...]
    returns: Returns | None


def read_purchase_table(
    path: str | Path | Text, table_format: TableFormat, progress: ReadingProgress | None = None
) -> PurchaseTable:
    """Read the purchases of a file, or of all files of a folder as one."""
    files = files_at(path)
    total = None if progress is None else _FolderProgress(progress, files)
    parts = []
    for file in files:
        source = open_table(file, table_format, total.next_file() if total else None)
        values = typed_columns(source, table_format)
        parts.append(_FilePurchases(source, *distinct_purchases(source, values, skip_bad=table_format.skip_bad)))
    frame, returns = order_baskets(_concatenate(_align_ids(parts))), None
    skipped = tuple(reason for part in parts for reason in part.skipped)
    bought = frame["quantity" if table_format.quantity is None else "bought"]
    rows = int(bought.sum())
    repeated = rows - int((bought > 0).sum())
    if table_format.quantity is not None:
        frame, returns = remove_returns(frame)
        rows += returns.zero + returns.taken_out + returns.unmatched
    if table_format.time is None:
        frame = frame.sort(FIRST_ROW)
    return PurchaseTable(frame, rows + sum(each.rows for each in skipped), repeated, skipped, returns)


def read_table(
    path: str | Path | Text,
    *,
    user: str = "user",
    basket: str = "basket",
    item: str = "item",
    time: str | None = None,
    time_format: str | None = None,
    quantity: str | None = None,
    separator: str = ",",
    decimal: str = ".",
    skip_bad: bool = False,
    progress: ReadingProgress | None = None,
) -> Dataset:
    """Read a CSV (also .csv.gz), Parquet or NDJSON file, or all of a folder as one. The arguments name the columns.

    `time` is a column of integers, kept as they are, or of dates, which become seconds since 1970 (UTC): ISO
    8601, or as `time_format` says (such as "%d.%m.%Y %H:%M"). Without it, baskets are in the order of the
    file, or of the files by name. The item column may hold lists. Repeated rows become one, with a quantity.

    `quantity` is a column of numbers: 0 is not a purchase, and a negative quantity is a return. It is taken out of the
    basket, or of the newest of the user's earlier baskets that have the item. `Dataset.returns` counts such rows.
    With decimal="," quantities of text are written like 1,5.
    """
    table_format = TableFormat(user, basket, item, time, time_format, quantity, separator, decimal, skip_bad)
    table = read_purchase_table(path, table_format, progress)
    history = sort_purchases(table.frame)
    if "quantity" in history.columns:
        [history] = drop_ones([history])
    name = Path(path.name if isinstance(path, Text) else path)
    order = f"time from column {time}" if time is not None else "baskets in the order of the file"
    notes = f"Read from {name.name}; {order}."
    return Dataset(name.stem, history, notes=notes, skipped_rows=table.skipped, returns=table.returns)


class _FilePurchases(NamedTuple):
    source: Source
    frame: pl.DataFrame
    skipped: tuple[SkippedRows, ...]


def open_table(file: Path | Text, table_format: TableFormat, progress: ReadingProgress | None = None) -> Source:
    """Open a file with a row per item of a basket, or with a row per basket and a list of items."""
    needed, item = list(table_format.columns().values()), table_format.item
    source = open_source(file, needed, separator=table_format.separator, progress=progress)
    if isinstance(source.rows.collect_schema()[item], pl.List):
        source = replace(source, rows=source.rows.explode(item))
    return source


def typed_columns(source: Source, table_format: TableFormat) -> dict[str, pl.Expr]:
    """Return the values of a table by their role; they are null where they can't be read."""
    columns = table_format.columns()
    values = {name: _id(source, columns[name]) for name in ID_COLUMNS}
    if "time" in columns:
        values["time"] = _time(source, columns["time"], table_format.time_format)
    if "quantity" in columns:
        values["quantity"] = _quantity(source, columns["quantity"], table_format.decimal)
    return values


def _align_ids(parts: Sequence[_FilePurchases]) -> list[pl.DataFrame]:
    """Return the frames with ids of the same types: the ids of CSV files are integers if all of them are."""
    narrowed = iter(narrow_ids([part.frame for part in parts if part.source.kind == "csv"]))
    frames = [next(narrowed) if part.source.kind == "csv" else part.frame for part in parts]
    for part, frame in zip(parts, frames, strict=True):
        for name in ID_COLUMNS:
            if frame[name].dtype != frames[0][name].dtype:
                raise DatasetError(
                    f"{part.source.path}: a {name} is of type {frame[name].dtype} here, but "
                    f"{frames[0][name].dtype} in {parts[0].source.path}. Give all files the same, or read them apart"
                )
    return frames


def _concatenate(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the purchases of several files as if they were in one, file after file."""
    if len(frames) == 1:
        return frames[0]
    later = 2**40  # more rows than a file has
    rows = pl.concat(frame.with_columns(pl.col(ROW) + number * later) for number, frame in enumerate(frames))
    earliest = [column for column in ("time", ROW) if column in rows.columns]
    return rows.group_by(ID_COLUMNS).agg(pl.col(earliest).min(), pl.exclude(*ID_COLUMNS, *earliest).sum())


class _FolderProgress:
    """Progress through several files, reported as if through one."""

    def __init__(self, progress: ReadingProgress, files: Sequence[Path | Text]) -> None:
        self._progress = progress
        expected = [expected_rows(file) for file in files]
        self._expected = None if None in expected else sum(rows or 0 for rows in expected)
        self._before = self._seen = 0

    def next_file(self) -> ReadingProgress:
        """Begin another file; return the function that reports its progress."""
        self._before += self._seen
        self._seen = 0
        return self._report

    def _report(self, done: int, _: int | None) -> None:
        self._seen = done
        rows = self._before + done
        self._progress(rows, None if self._expected is None else max(rows, self._expected))


def _id(source: Source, column: str) -> pl.Expr:
    """Return a column as text or integers, as the file has it; null where it is empty."""
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
        if not time_format.isprintable():  # Polars fails on half a character (a lone surrogate)
            raise DatasetError(f"a time format is written like '%d.%m.%Y %H:%M', not {time_format!r}")
        return seconds(column, time_format)
    # One rule for the whole column, by its first value: a number among dates is a mistake, not a second
    first = str(source.first_value(column) or "")
    return whole_number(column) if first.lstrip("+-").isdigit() else iso_seconds(pl.col(column))


def _quantity(source: Source, column: str, decimal: str) -> pl.Expr:
    if decimal not in (".", ","):
        raise DatasetError(f"the decimal mark must be . or a comma, not {decimal!r}")
    dtype = source.rows.collect_schema()[column]
    if not dtype.is_numeric() and dtype != pl.String:
        raise DatasetError(f"{source.path}: column {column} holds {dtype}; a quantity is a number")
    value = pl.col(column)
    if decimal == "," and dtype == pl.String:  # 1.5 is then no number: it could be a thousand and a half
        value = pl.when(~value.str.contains(".", literal=True)).then(value.str.replace(",", ".", literal=True))
    number = value.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)
