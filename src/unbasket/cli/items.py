"""`unbasket items`: the names of a shop's items."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from unbasket.cli.data import SEPARATOR, naming_options, separator_of
from unbasket.cli.progress import progress_bar
from unbasket.cli.shop import Db, open_to_write
from unbasket.cli.terminal import AsJson, counted, say, say_json
from unbasket.datasets import DatasetError
from unbasket.datasets.source import ROW, columns_of, open_source
from unbasket.exchange.ids import Id
from unbasket.exchange.spelling import IdReader
from unbasket.store import DurableRecommender


def items(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or NDJSON with the columns item, name and, optionally, category and further ones.",
        ),
    ],
    db: Db,
    item: Annotated[str, typer.Option(help="Name of the column with the item's id.", metavar="COLUMN")] = "item",
    name: Annotated[str, typer.Option(help="Name of the column with the item's name.", metavar="COLUMN")] = "name",
    category: Annotated[
        str | None,
        typer.Option(
            help="Name of the column with the category. By default category, if there is one.", metavar="COLUMN"
        ),
    ] = None,
    separator: Annotated[str, typer.Option(help=SEPARATOR, metavar="CHARACTER")] = ",",
    as_json: AsJson = False,
) -> None:
    """Import the names and categories of items, which other commands then show.

    Further columns are kept for recommendations that ask for them. What is known of an item is forgotten with its last
    purchase.
    """
    table, is_text = _read(file, item, name, category, separator_of(separator))
    with open_to_write(db) as rec:
        ids = _ids(rec, table["item"], is_text=is_text)
        with progress_bar("writing"):
            for kind, dtype in ((int, pl.Int64), (str, pl.String)):  # a column of a frame is of one type
                mine = pl.Series([isinstance(value, kind) for value in ids], dtype=pl.Boolean)
                column = pl.Series("item", [value for value in ids if isinstance(value, kind)], dtype=dtype)
                if len(column):
                    rec.describe(table.filter(mine).with_columns(column))
        unsold = len(set(ids) - set(rec.items()))
    facts = {"database": str(db), "items": len(set(ids)), "never_bought": unsold}
    if as_json:
        say_json(facts)
    else:
        say(f"{db}: {counted(len(set(ids)), 'item')} described, {unsold:,} of which nobody has bought")


def _read(file: Path, item: str, name: str, category: str | None, separator: str) -> tuple[pl.DataFrame, bool]:
    """The columns item, name, category and further ones, and whether everything in them is text, as in CSV files."""
    with naming_options(), progress_bar("reading") as report:
        there = columns_of(file, separator=separator)
        if category is None and "category" in there:
            category = "category"
        needed = [item, name, *([category] if category else [])]
        further = [column for column in there if column not in {*needed, "item", "name", "category"}]
        source = open_source(file, [*needed, *further], separator=separator, progress=report)
        kinds = source.rows.collect_schema()
        if not (kinds[item].is_integer() or kinds[item] == pl.String):
            raise DatasetError(f"{file}: column {item} holds {kinds[item]}; ids are text or whole numbers")
        for column in needed[1:]:
            if kinds[column].is_nested():
                raise DatasetError(f"{file}: column {column} holds {kinds[column]}, not text")
        texts = {"name": pl.col(name), "category": pl.col(category) if category else pl.lit(None)}
        table = source.collect(
            source.rows.select(
                ROW, *further, item=pl.col(item), **{key: text.cast(pl.String) for key, text in texts.items()}
            )
        )
    for row in table.filter(pl.col("item").is_null() | (pl.col("item").cast(pl.String) == ""))[ROW]:
        raise DatasetError(f"{file}, {source.place(row)}: no {item}")
    return table.drop(ROW), source.kind == "csv"


def _ids(rec: DurableRecommender, column: pl.Series, *, is_text: bool) -> list[Id]:
    reader = IdReader(rec)
    return [reader.item(text) for text in column] if is_text else column.to_list()
