"""`unbasket verify` and `unbasket backup`: the proof that the model follows from the remaining baskets, and a copy."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, open_to_read, open_to_write
from unbasket.cli._shared.terminal import AsJson, complain, counted, progress_bar, reply, say, say_json
from unbasket.domain.id_text import IdReader
from unbasket.store.opening import back_up
from unbasket.store.signing import signing_keys_of


def verify(
    db: Db,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Only this user.")] = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Go on without the last events if they are lost: the log was removed or damaged after a crash.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model from the baskets that remain, and compare the live one with it, bit by bit.

    For an unknown user, all records are searched for orphans. Opening checks the database for damage. The exit code is
    1 if the models differ.
    """
    if accept_loss:
        with open_to_write(db, accept_loss=True):
            pass  # closing merges the log into the database
    rec = open_to_read(db)
    wanted = None if user is None else IdReader(rec).user(user)
    with progress_bar("verifying"):
        result = rec.verify(wanted)
    if as_json:
        say_json(result._asdict())
    elif result.ok and wanted is not None and not result.users:
        say(f"{db}: nothing is held about user {wanted!r}, and every record belongs to a known user")
    elif result.ok:
        say(f"{db}: the model of {counted(result.users, 'user')} is, bit by bit, that of what remains")
    for mismatch in () if as_json else result.mismatches:
        complain(f"{db}: {mismatch}")
    if not result.ok:
        raise typer.Exit(1)


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
