"""`unbasket verify`: the proof that the model is one of what remains."""

from typing import Annotated

import typer

from unbasket.cli.progress import progress_bar
from unbasket.cli.shop import Db, open_to_read
from unbasket.cli.terminal import AsJson, complain, counted, say, say_json
from unbasket.spelling import IdReader


def verify(
    db: Db,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Only this user.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model from the baskets that remain, and compare the live one with it, bit by bit.

    Opening checks the database for damage. The exit code is 1 if the models differ.
    """
    rec = open_to_read(db)
    with progress_bar("verifying"):
        result = rec.verify(None if user is None else IdReader(rec).user(user))
    if as_json:
        say_json(result._asdict())
    elif result.ok:
        say(f"{db}: the model of {counted(result.users, 'user')} is, bit by bit, that of what remains")
    for mismatch in () if as_json else result.mismatches:
        complain(f"{db}: {mismatch}")
    if not result.ok:
        raise typer.Exit(1)
