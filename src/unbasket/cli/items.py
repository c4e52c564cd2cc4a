"""`unbasket items`: what the shop calls its items."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from unbasket.cli.progress import progress_bar
from unbasket.cli.shop import Db, open_to_write
from unbasket.cli.terminal import AsJson, counted, say, say_json
from unbasket.datasets import DatasetError
from unbasket.datasets.source import ROW, columns_of, open_source
from unbasket.ids import Id
from unbasket.spelling import IdReader
from unbasket.store import DurableRecommender


def items(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="CSV, Parquet or NDJSON with the columns item, name and, optionally, category."
        ),
    ],
    db: Db,
    item: Annotated[str, typer.Option(help="Column with the item's id.", metavar="COLUMN")] = "item",
    name: Annotated[str, typer.Option(help="Column with the name.", metavar="COLUMN")] = "name",
    category: Annotated[
        str | None,
        typer.Option(help="Column with the category, if it is not called category.", metavar="COLUMN"),
    ] = None,
    separator: Annotated[str, typer.Option(help="Between the fields of a CSV file.")] = ",",
    as_json: AsJson = False,
) -> None:
    """Take over names and categories of items, which other commands then show.

    What is known of an item is forgotten with the last purchase of it.
    """
    if category is None and "category" in columns_of(file, separator=separator):
        category = "category"
    table, is_text = _read(file, [item, name, *([category] if category else [])], separator)
    with open_to_write(db) as rec:
        ids = _ids(rec, table[item], is_text=is_text)
        described = table.select(name=pl.col(name), category=pl.col(category) if category else pl.lit(None, pl.String))
        with progress_bar("writing"):
            for kind, dtype in ((int, pl.Int64), (str, pl.String)):  # a column of a frame is of one type
                mine = pl.Series([isinstance(value, kind) for value in ids], dtype=pl.Boolean)
                column = pl.Series("item", [value for value in ids if isinstance(value, kind)], dtype=dtype)
                if len(column):
                    rec.describe(described.filter(mine).with_columns(column))
        unsold = len(set(ids) - set(rec.items()))
    facts = {"database": str(db), "items": len(set(ids)), "never_bought": unsold}
    if as_json:
        say_json(facts)
    else:
        say(f"{db}: {counted(len(set(ids)), 'item')} described, {unsold:,} of which nobody has bought")


def _read(file: Path, columns: list[str], separator: str) -> tuple[pl.DataFrame, bool]:
    """The columns, and whether everything in them is text, as in CSV files."""
    with progress_bar("reading") as report:
        source = open_source(file, columns, separator=separator, progress=report)
        table = source.collect(source.rows.select(ROW, *dict.fromkeys(columns)))
    ids = table[columns[0]]
    for row in table.filter(ids.is_null() | (ids.cast(pl.String) == ""))[ROW]:
        raise DatasetError(f"{file}, {source.place(row)}: no {columns[0]}")
    return table, source.kind == "csv"


def _ids(rec: DurableRecommender, column: pl.Series, *, is_text: bool) -> list[Id]:
    reader = IdReader(rec)
    return [reader.item(text) for text in column] if is_text else column.to_list()
