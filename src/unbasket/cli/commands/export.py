"""`unbasket export`: everything that is held about a user, for them or for another shop."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, basket_facts, item_facts, known_user, open_to_read
from unbasket.cli._shared.terminal import say, say_json, to_json, write_file

_FORMAT, _VERSION = "unbasket user", 1


def export(
    user: User,
    db: Db,
    output: Annotated[
        Path | None, typer.Option(help="Write it to this file instead of printing it.", metavar="FILE")
    ] = None,
) -> None:
    """Write everything that is held about a user as JSON: baskets with their ids, times, items and names of items.

    Times are as they are stored: whole numbers. What is `suppressed` is never recommended to the user.
    """
    rec = open_to_read(db)
    name = known_user(rec, user)
    baskets = [basket_facts(rec, basket) for basket in rec.history(name)]
    suppressed = [item_facts(rec, item) for item in rec.suppressed(name)]
    held = {"format": _FORMAT, "version": _VERSION, "user": name, "baskets": baskets, "suppressed": suppressed}
    if output is None:
        say_json(held)
        return
    write_file(output, to_json(held) + "\n")
    say(f"{output}: everything that is held about user {name}")
