"""`unbasket items`: the names and the availability of a shop's items."""

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from unbasket.cli._shared.database import Db, item_facts, label, open_to_read, open_to_write
from unbasket.cli._shared.purchase_files import SEPARATOR_HELP, naming_options, separator_of
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, say, say_json
from unbasket.datasets import DatasetError
from unbasket.datasets.purchases import narrow_ids
from unbasket.datasets.source import ROW, columns_of, open_source
from unbasket.domain.id_text import parse_id
from unbasket.store import DurableRecommender


def items(
    db: Db,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or NDJSON with the columns item, name and, optionally, category and further ones.",
        ),
    ] = None,
    item: Annotated[str, typer.Option(help="Name of the column with the item's id.", metavar="COLUMN")] = "item",
    name: Annotated[str, typer.Option(help="Name of the column with the item's name.", metavar="COLUMN")] = "name",
    category: Annotated[
        str | None,
        typer.Option(
            help="Name of the column with the category. By default category, if there is one.", metavar="COLUMN"
        ),
    ] = None,
    separator: Annotated[str, typer.Option(help=SEPARATOR_HELP, metavar="CHARACTER")] = ",",
    hide: Annotated[
        list[str] | None,
        typer.Option(metavar="ITEM", help="Stop recommending this item, which is out of stock; may be repeated."),
    ] = None,
    show: Annotated[
        list[str] | None, typer.Option(metavar="ITEM", help="Recommend this hidden item again; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import the names and categories of items, which other commands then show; hide items that are out of stock.

    Further columns are kept for recommendations that ask for them. An item's description is forgotten with its last
    purchase. A hidden item stays hidden until it is shown; without a FILE and other options, hidden items are listed.
    """
    if file is None and not hide and not show:
        _list_hidden(db, as_json)
        return
    table = None if file is None else _read(file, item, name, category, separator_of(separator))
    with open_to_write(db) as rec:
        facts = {"database": str(db)} | ({} if table is None else _describe(rec, table))
        if hide or show:
            facts |= _set_availability(rec, hide or [], show or [])
    if as_json:
        say_json(facts)
        return
    if table is not None:
        say(f"{db}: {counted(facts['items'], 'item')} described, {facts['never_bought']:,} of them never bought")
    if hide or show:
        hidden, shown, left = counted(facts["hidden"], "item"), facts["shown"], facts["all_hidden"]
        say(f"{db}: {hidden} hidden, {shown:,} shown; {left:,} hidden now")


def _list_hidden(db: Path, as_json: bool) -> None:
    rec = open_to_read(db)
    hidden = rec.hidden()
    if as_json:
        say_json([item_facts(rec, item) for item in hidden])
    elif hidden:
        verb = "is" if len(hidden) == 1 else "are"
        say(f"{db}: {counted(len(hidden), 'item')} {verb} hidden: {', '.join(label(rec, item) for item in hidden)}")
    else:
        say(f"{db}: no item is hidden")


def _describe(rec: DurableRecommender, table: pl.DataFrame) -> dict[str, Any]:
    with progress_bar("writing"):
        rec.describe(table)
    items = table["item"].unique()
    return {"items": len(items), "never_bought": sum(not rec.has_item(item) for item in items)}


def _set_availability(rec: DurableRecommender, hide: list[str], show: list[str]) -> dict[str, Any]:
    changed = rec.set_availability(hide=map(parse_id, hide), show=map(parse_id, show))
    return {**changed._asdict(), "all_hidden": len(rec.hidden())}


def _read(file: Path, item: str, name: str, category: str | None, separator: str) -> pl.DataFrame:
    """Read the columns item, name, category and further ones. In CSV, a column of whole numbers holds numbers."""
    with naming_options(), progress_bar("reading") as report:
        found = columns_of(file, separator=separator)
        if category is None and "category" in found:
            category = "category"
        needed = [item, name, *([category] if category else [])]
        further = [column for column in found if column not in {*needed, "item", "name", "category"}]
        source = open_source(file, [*needed, *further], separator=separator, progress=report)
        dtypes = source.rows.collect_schema()
        if not (dtypes[item].is_integer() or dtypes[item] == pl.String):
            raise DatasetError(f"{file}: column {item} holds {dtypes[item]}; ids are text or whole numbers")
        for column in needed[1:]:
            if dtypes[column].is_nested():
                raise DatasetError(f"{file}: column {column} holds {dtypes[column]}, not text")
        texts = {"name": pl.col(name), "category": pl.col(category) if category else pl.lit(None)}
        table = source.collect(
            source.rows.select(
                ROW, *further, item=pl.col(item), **{key: text.cast(pl.String) for key, text in texts.items()}
            )
        )
    for row in table.filter(pl.col("item").is_null() | (pl.col("item").cast(pl.String) == ""))[ROW]:
        raise DatasetError(f"{file}, {source.place(row)}: no {item}")
    return narrow_ids([table.drop(ROW)], ["item"])[0] if source.kind == "csv" else table.drop(ROW)
