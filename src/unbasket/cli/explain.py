"""`unbasket explain`: why an item scores what it does."""

from typing import Annotated

import typer

from unbasket.cli.shop import Db, User, item_facts, known_user, label, open_to_read
from unbasket.cli.terminal import AsJson, say, say_json, say_table
from unbasket.spelling import IdReader


def explain(
    user: User,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.")],
    db: Db,
    as_json: AsJson = False,
) -> None:
    """Say where an item's score for a user comes from: which of his baskets, and how many similar users.

    Similar users are counted and never named.
    """
    rec = open_to_read(db)
    name = known_user(rec, user)
    reason = rec.explain(name, IdReader(rec).item(item))
    if as_json:
        baskets = [share._asdict() for share in reason.baskets]
        say_json({"user": name, **item_facts(rec, reason.item), **reason._asdict(), "baskets": baskets})
        return
    say(f"{label(rec, reason.item)} scores {reason.score:.4f} for user {name}:")
    if reason.baskets:
        say_table(
            ("own basket", "time", "share"),
            [(share.basket, _time(share.time), share.share) for share in reason.baskets],
        )
    else:
        say("It is in none of the user's baskets.")
    say(
        f"{reason.neighbors_share:.4f} come from {reason.neighbors_with_item} of {reason.neighbors} similar users "
        "who have bought it"
    )


def _time(time: int | None) -> int | str:
    return "" if time is None else time
