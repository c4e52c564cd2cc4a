"""How a file of purchases is written, detected from its values: separator, columns, decimal mark, format of dates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from unbasket.datasets.lines import fields_of, records_of
from unbasket.datasets.purchases import matching_formats, seconds
from unbasket.datasets.source import SEPARATORS, Source, Text, columns_of, files_at, is_csv
from unbasket.datasets.table import TableFormat, open_table, typed_columns
from unbasket.domain.frames import iso_seconds

_SAMPLE = 1000  # rows
_NAMES = {
    "user": ("user", "customer", "client", "household", "member", "shopper", "kunde"),
    "basket": ("basket", "order", "invoice", "receipt", "transaction", "bon", "beleg", "rechnung"),
    "item": ("item", "product", "article", "sku", "stockcode", "artikel", "produkt"),
    "time": ("time", "timestamp", "date", "datetime", "day", "datum", "zeit", "tag"),
    "quantity": ("quantity", "qty", "pieces", "units", "menge", "anzahl"),
}
_ENDINGS = ("", "id", "no", "number", "code", "date", "nr", "nummer")  # as in customer_id


class Column(NamedTuple):
    """A column of the table: what it holds, its first value as written, and that value as it is read."""

    name: str
    holds: str
    written: str
    read: object


class Detection(NamedTuple):
    """A proposed format, the columns as it reads them, and another format that reads all dates as well, if any."""

    table_format: TableFormat
    columns: tuple[Column, ...]
    other_time_format: str | None


def detect_format(path: str | Path | Text, given: Mapping[str, Any]) -> Detection:
    """Propose how to read a file, or all files of a folder, from the first of them. What is `given` is not guessed."""
    file = files_at(path)[0]
    separator = given.get("separator") or (_separator(file) if is_csv(file) else ",")
    named = TableFormat(**{**_roles(columns_of(file, separator=separator)), **given, "separator": separator})
    source = open_table(file, named)
    other = None
    if named.time is not None and named.time_format is None:
        formats = _time_formats(source, named.time)
        named = named._replace(time_format=formats[0] if formats else None)
        other = formats[1] if len(formats) > 1 else None
    if named.quantity is not None and "decimal" not in given:
        named = named._replace(decimal=_decimal(source, named.quantity))
    return Detection(named, _columns(source, named), other)


def _separator(file: Path | Text) -> str:
    """Return the separator that splits the most of the first records into as many fields as the header."""
    content = file.content if isinstance(file, Text) else file
    records = [record.text for record in islice(records_of(content), _SAMPLE)]

    def score(separator: str) -> tuple[int, int]:
        sizes = [len(fields_of(record, separator) or ()) for record in records]
        return (sizes.count(sizes[0]), sizes[0]) if sizes and sizes[0] > 1 else (0, 0)

    best = max(SEPARATORS, key=score)
    return best if score(best) > (0, 0) else ","


def _roles(columns: Sequence[str]) -> dict[str, str]:
    """Return the column of each role by its name, if one has a usual name."""
    plain = {"".join(filter(str.isalnum, column.lower())): column for column in reversed(columns)}
    found: dict[str, str] = {}
    for role, names in _NAMES.items():
        usual = (name + ending for ending in _ENDINGS for name in names)
        column = next((plain[name] for name in usual if name in plain and plain[name] not in found.values()), None)
        if column is not None:
            found[role] = column
    return found


def _time_formats(source: Source, column: str) -> list[str]:
    """Return the formats that read the most dates; none if they are numbers or in ISO 8601."""
    text = pl.col(column)
    rows = source.rows.select(text).drop_nulls()
    if rows.collect_schema()[column] != pl.String:
        return []
    sample = source.collect(rows.head(_SAMPLE))
    plain = pl.coalesce(text.cast(pl.Int64, strict=False), iso_seconds(text))
    found = Counter(form for value in sample[column].unique() for form, _ in matching_formats(value))
    if not found or sample.select(plain.count()).item() > sample.height / 2:
        return []
    likely = [form for form in found if found[form] == max(found.values())]
    dates = source.collect(rows.select(seconds(column, form).count().alias(form) for form in likely))
    counts = dates.row(0, named=True)
    return [form for form in likely if counts[form] == max(counts.values())]


def _decimal(source: Source, column: str) -> str:
    if source.rows.collect_schema()[column] != pl.String:
        return "."
    commas, points = (pl.col(column).str.contains(rf"^[+-]?\d*{mark}\d+$").sum() for mark in (",", r"\."))
    return "," if source.collect(source.rows.select(commas > points)).item() else "."


def _columns(source: Source, table_format: TableFormat) -> tuple[Column, ...]:
    """Return the columns that are used, with the first row that can be read."""
    names = table_format.columns()
    typed = typed_columns(source, table_format)
    written = {f"{role} written": pl.col(column).cast(pl.String) for role, column in names.items()}
    [row] = source.collect(source.rows.select(**typed, **written).drop_nulls().head(1)).rows(named=True) or [{}]
    return tuple(
        Column(column, role, str(row.get(f"{role} written", "")), row.get(role)) for role, column in names.items()
    )
