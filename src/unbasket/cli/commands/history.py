"""`unbasket history` and `unbasket export`: everything that is held about a user, to read and to take along."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, basket_facts, item_facts, known_user, label, open_to_read
from unbasket.cli._shared.terminal import AsJson, say, say_json, say_table, to_json, write_file
from unbasket.domain.times import as_dates


def history(user: User, db: Db, as_json: AsJson = False) -> None:
    """List a user's baskets, oldest first."""
    rec = open_to_read(db)
    name = known_user(rec, user)
    baskets, suppressed = rec.history(name), rec.suppressed(name)
    if as_json:
        say_json([basket_facts(rec, basket) for basket in baskets])
        return
    contents = (", ".join(label(rec, item) for item in basket.items) for basket in baskets)
    times = as_dates([basket.time for basket in baskets])
    say_table(("basket", "time", "items"), zip((basket.basket for basket in baskets), times, contents, strict=True))
    if suppressed:
        say(f"Never recommended to them: {', '.join(label(rec, item) for item in suppressed)}")


def export(
    user: User,
    db: Db,
    output: Annotated[
        Path | None, typer.Option(help="Write it to this file instead of printing it.", metavar="FILE")
    ] = None,
) -> None:
    """Write everything that is held about a user as JSON: baskets with their ids, times, items and names of items.

    Times are as they are stored: whole numbers. Items under `suppressed` are never recommended to the user.
    """
    rec = open_to_read(db)
    name = known_user(rec, user)
    baskets = [basket_facts(rec, basket) for basket in rec.history(name)]
    suppressed = [item_facts(rec, item) for item in rec.suppressed(name)]
    held = {"format": "unbasket user", "version": 1, "user": name, "baskets": baskets, "suppressed": suppressed}
    if output is None:
        say_json(held)
        return
    write_file(output, to_json(held) + "\n")
    say(f"{output}: everything that is held about user {name}")
