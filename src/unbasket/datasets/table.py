"""Any table with a user, a basket and an item per row."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.purchases import drop_ones, narrow_ids, purchases, seconds, text_id, whole_number
from unbasket.datasets.returns import without_returns
from unbasket.datasets.source import Source, Text, expected_rows, files_at, open_source
from unbasket.domain.frames import iso_seconds
from unbasket.domain.progress import ReadingProgress
from unbasket.errors import DatasetError


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
    skip_bad: bool = False,
    progress: ReadingProgress | None = None,
) -> Dataset:
    """Read a CSV (also .csv.gz), Parquet or NDJSON file, or all of a folder as one. The arguments name the columns.

    `time` is a column of integers, kept as they are, or of dates, which become seconds since 1970 (UTC): ISO
    8601, or as `time_format` says (such as "%d.%m.%Y %H:%M"). Without it, baskets are in the order of the
    file, or of the files by name. The item column may hold lists. Repeated rows become one, with a quantity.

    `quantity` is a column of numbers: 0 is not a purchase, and what is below 0 was returned. It is taken out of the
    basket, or of the newest of the user's earlier baskets that have the item. `Dataset.returns` counts such rows.
    """
    optional = {"time": time, "quantity": quantity}
    columns = {"user": user, "basket": basket, "item": item}
    columns |= {name: column for name, column in optional.items() if column is not None}
    files = files_at(path)
    watch = None if progress is None else _Watch(progress, files)
    parts = []
    for file in files:
        source = open_source(
            file, list(columns.values()), separator=separator, progress=watch.next_file() if watch else None
        )
        parts.append(_read(source, columns, time_format, skip_bad))
    history, returns = _as_one(_with_ids_alike(parts), timed=time is not None), None
    if quantity is None:
        [history] = drop_ones([history])
    else:
        history, returns = without_returns(history)
        history = history if time is not None else _numbered(history)
    name = Path(path.name if isinstance(path, Text) else path)
    order = f"time from column {time}" if time is not None else "baskets in the order of the file"
    skipped = sum(part.skipped for part in parts)
    return Dataset(name.stem, history, notes=f"Read from {name.name}; {order}.", skipped=skipped, returns=returns)


class _Part(NamedTuple):
    """The purchases in one file."""

    source: Source
    frame: pl.DataFrame
    skipped: int


def _read(source: Source, columns: Mapping[str, str], time_format: str | None, skip_bad: bool) -> _Part:
    if isinstance(source.rows.collect_schema()[columns["item"]], pl.List):
        source = replace(source, rows=source.rows.explode(columns["item"]))
    values = {name: _id(source, columns[name]) for name in ("user", "basket", "item")}
    if "time" in columns:
        values["time"] = _time(source, columns["time"], time_format)
    if "quantity" in columns:
        values["quantity"] = _quantity(source, columns["quantity"])
    return _Part(source, *purchases(source, values, skip_bad=skip_bad))


def _with_ids_alike(parts: Sequence[_Part]) -> list[pl.DataFrame]:
    """The frames, with the ids of CSV files as integers where those of all of them are."""
    texts = iter(narrow_ids([part.frame for part in parts if part.source.kind == "csv"]))
    frames = [next(texts) if part.source.kind == "csv" else part.frame for part in parts]
    for part, frame in zip(parts, frames, strict=True):
        for name in ("user", "basket", "item"):
            if frame[name].dtype != frames[0][name].dtype:
                raise DatasetError(
                    f"{part.source.path}: a {name} is of type {frame[name].dtype} here, but "
                    f"{frames[0][name].dtype} in {parts[0].source.path}. Give all files the same, or read them apart"
                )
    return frames


def _as_one(frames: Sequence[pl.DataFrame], *, timed: bool) -> pl.DataFrame:
    """The purchases of several files as if they stood in one, file after file."""
    if len(frames) == 1:
        return frames[0]
    later = 0 if timed else 2**40  # a place in a file is far below that
    together = pl.concat(frame.with_columns(pl.col("time") + number * later) for number, frame in enumerate(frames))
    together = together.with_columns(pl.col("time").min().over("user", "basket"))
    if not timed:
        together = _numbered(together)
    counted = together.group_by("user", "basket", "item", "time", maintain_order=True).agg(pl.all().sum())
    return counted.sort("user", "time", "basket", maintain_order=True)


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Times that are the places of the baskets among the user's."""
    return frame.with_columns(pl.col("time").rank("dense").over("user").cast(pl.Int64))


class _Watch:
    """Progress through several files, as through one."""

    def __init__(self, progress: ReadingProgress, files: Sequence[Path | Text]) -> None:
        self._progress = progress
        expected = [expected_rows(file) for file in files]
        self._expected = None if None in expected else sum(rows or 0 for rows in expected)
        self._before = self._seen = 0

    def next_file(self) -> ReadingProgress:
        """The progress of one more file."""
        self._before += self._seen
        self._seen = 0
        return self._report

    def _report(self, done: int, _: int | None) -> None:
        self._seen = done
        rows = self._before + done
        self._progress(rows, None if self._expected is None else max(rows, self._expected))


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
        if not time_format.isprintable():  # Polars could not even be asked about half a character
            raise DatasetError(f"a time format is written like '%d.%m.%Y %H:%M', not {time_format!r}")
        return seconds(column, time_format)
    # One rule for the whole column, by its first value: a number among dates is a mistake, not a second
    first = str(source.first_value(column) or "")
    return whole_number(column) if first.lstrip("+-").isdigit() else iso_seconds(pl.col(column))


def _quantity(source: Source, column: str) -> pl.Expr:
    dtype = source.rows.collect_schema()[column]
    if not dtype.is_numeric() and dtype != pl.String:
        raise DatasetError(f"{source.path}: column {column} holds {dtype}; a quantity is a number")
    number = pl.col(column).cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)
