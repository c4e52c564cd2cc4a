"""`unbasket params`: the parameters of a shop's model."""

from dataclasses import asdict
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, open_to_read, open_to_write
from unbasket.cli._shared.options import parse_params
from unbasket.cli._shared.terminal import AsJson, progress_bar, reply


def params(
    db: Db,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change this parameter, as in alpha=0.1; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the parameters of a database's model, or change some of them.

    A change rebuilds the model from the baskets, as if it had had these parameters from the start. A running service
    changes them by PUT /v1/params, and goes on answering.
    """
    if changes:
        named = parse_params(", ".join(changes))
        with open_to_write(db) as rec:
            with progress_bar("rebuilding the model") as report:
                rec.change_params(rec.params.changed(**named), progress=report)
            current = rec.params
    else:
        current = open_to_read(db).params
    reply(as_json, asdict(current), f"{db}: {current}")
