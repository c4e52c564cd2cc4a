"""The shop of `unbasket demo`, read or generated, and written to its database. `python -m` runs it as a process."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from unbasket import store
from unbasket.cli._shared.terminal import command, progress_bar, say
from unbasket.datasets import Dataset, DatasetError, generate, read_complete_journey


def fill(db: Path, offline: Annotated[bool, typer.Option("--offline")] = False) -> None:
    """Fill an empty database with a shop. Names come first: a database with purchases is complete."""
    with store.open(db) as rec:
        if len(rec):
            return
        shop = _shop(offline)
        purchases = shop.history if shop.future is None else pl.concat([shop.history, shop.future])
        with progress_bar("learning") as report:
            rec.describe(shop.items).fit(purchases, progress=report)


def _shop(offline: bool) -> Dataset:
    if not offline:
        try:
            with progress_bar("reading The Complete Journey") as report:
                return read_complete_journey(progress=report)
        except DatasetError as error:
            say(f"{error}. Without it, here is a generated shop.")
    with progress_bar("generating a shop") as report:
        return generate(2000, progress=report)


if __name__ == "__main__":
    typer.run(command(fill))
