"""`unbasket backup`: a copy of the database."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db
from unbasket.cli._shared.terminal import AsJson, progress_bar, reply
from unbasket.store.opening import back_up
from unbasket.store.signing import signing_keys_of


def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The file to write, which must not exist.")],
    db: Db,
    as_json: AsJson = False,
) -> None:
    """Write a checked copy of the database as it is now. A service may go on meanwhile.

    Data that is forgotten before the copy is complete is not in it.

    A backup keeps data that is forgotten later, unless it is forgotten there too: `unbasket forget --also-in`.
    """
    with progress_bar("copying") as report:
        back_up(db, target, report)
    size = target.stat().st_size
    reply(
        as_json,
        {"database": str(db), "backup": str(target), "bytes": size},
        f"{target}: {size:,} bytes. The keys of receipts are not in it; they stay in {signing_keys_of(db)}",
    )
