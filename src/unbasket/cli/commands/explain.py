"""`unbasket explain`: the reasons for an item's score."""

from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, id_of, item_facts, known_user, label, open_to_read
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, say, say_json, say_table
from unbasket.domain.times import as_dates


def explain(
    user: User,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.")],
    db: Db,
    as_json: AsJson = False,
) -> None:
    """Say where an item's score for a user comes from: which of their baskets, and how many similar users.

    Similar users are counted and never named.
    """
    rec = open_to_read(db)
    name = known_user(rec, user)
    with progress_bar("explaining"):
        reason = rec.explain(name, id_of(rec, "item", item))
    if as_json:
        baskets = [share._asdict() for share in reason.baskets]
        say_json({"user": name, **item_facts(rec, reason.item), **reason._asdict(), "baskets": baskets})
        return
    say(f"{label(rec, reason.item)} scores {reason.score:.4f} for user {name}:")
    if reason.baskets:
        times = as_dates([share.time for share in reason.baskets])
        rows = [(share.basket, time, share.share) for share, time in zip(reason.baskets, times, strict=True)]
        say_table(("own basket", "time", "share"), rows)
        say(f"Together they are weight {reason.weight:.4f} x alpha {reason.alpha:.4f} x factor {reason.factor:.4f}.")
    else:
        say("It is in none of the user's baskets.")
    say(
        f"{reason.neighbors_with_item} of {counted(reason.neighbors, 'similar user')} have bought it, which adds "
        f"{reason.neighbors_share:.4f}"
    )
