"""The data that a command works on: its arguments, and how it is read."""

from typing import Annotated

import typer

from unbasket.cli.progress import progress_bar
from unbasket.datasets import PUBLISHED, Dataset, load, read_table

Data = Annotated[
    str,
    typer.Argument(
        help=f"{', '.join(PUBLISHED)}, or a file: CSV, Parquet or NDJSON with the columns user, basket, item and, "
        "optionally, time, or a format that docs/datasets.md lists."
    ),
]
_COLUMN = "Column with the {}, if it has another name."
UserColumn = Annotated[str | None, typer.Option("--user", help=_COLUMN.format("user"), metavar="COLUMN")]
BasketColumn = Annotated[str | None, typer.Option("--basket", help=_COLUMN.format("basket"), metavar="COLUMN")]
ItemColumn = Annotated[str | None, typer.Option("--item", help=_COLUMN.format("item"), metavar="COLUMN")]
TimeColumn = Annotated[
    str | None,
    typer.Option("--time", help=_COLUMN.format("time (a date or an integer)"), metavar="COLUMN"),
]


def read_data(data: str, user: str | None, basket: str | None, item: str | None, time: str | None) -> Dataset:
    """Load by name or path; a file with columns of its own is a table, whatever else it looks like."""
    with progress_bar("reading") as report:
        if user is basket is item is time is None:
            return load(data, progress=report)
        return read_table(
            data, user=user or "user", basket=basket or "basket", item=item or "item", time=time, progress=report
        )
