"""`unbasket verify`: the proof that the model follows from the remaining baskets alone."""

from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, id_of, open_to_read, open_to_write
from unbasket.cli._shared.terminal import AsJson, complain, counted, progress_bar, say, say_json


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
    wanted = None if user is None else id_of(rec, "user", user)
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
