"""`unbasket verify`: the proof that the model is made of what remains, and of nothing else."""

from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, open_to_read, open_to_write
from unbasket.cli._shared.progress import progress_bar
from unbasket.cli._shared.terminal import AsJson, complain, counted, say, say_json
from unbasket.domain.id_text import IdReader


def verify(
    db: Db,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Only this user.")] = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="If what was learned last is lost, since the log was removed or damaged after a crash: go on without.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model from the baskets that remain, and compare the live one with it, bit by bit.

    For a user who is not there, all records are searched for any that belongs to nobody. Opening checks the database
    for damage. The exit code is 1 if the models differ.
    """
    if accept_loss:
        with open_to_write(db, accept_loss=True):
            pass  # closing it leaves a database without a log
    rec = open_to_read(db)
    wanted = None if user is None else IdReader(rec).user(user)
    with progress_bar("verifying"):
        result = rec.verify(wanted)
    if as_json:
        say_json(result._asdict())
    elif result.ok and wanted is not None and not result.users:
        say(f"{db}: nothing is held about user {wanted!r}, and every record belongs to somebody who is there")
    elif result.ok:
        say(f"{db}: the model of {counted(result.users, 'user')} is, bit by bit, that of what remains")
    for mismatch in () if as_json else result.mismatches:
        complain(f"{db}: {mismatch}")
    if not result.ok:
        raise typer.Exit(1)
