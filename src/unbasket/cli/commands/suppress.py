"""`unbasket suppress` and `unbasket allow`: what is never recommended to a user."""

from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, known_user, label, open_to_write
from unbasket.cli._shared.terminal import AsJson, say, say_json
from unbasket.domain.id_text import IdReader, matches_id
from unbasket.domain.ids import Id
from unbasket.store import DurableRecommender

Item = Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.")]


def suppress(user: User, item: Item, db: Db, as_json: AsJson = False) -> None:
    """Never recommend an item to a user, until it is allowed again.

    It is personal data like a basket: `history` and `export` show it, and it is forgotten with the user. The item goes
    on training the model; `forget` takes it out of the user's baskets.
    """
    with open_to_write(db) as rec:
        name, wanted = known_user(rec, user), IdReader(rec).item(item)
        is_new = rec.suppress(name, wanted)
        told = label(rec, wanted)
    if as_json:
        say_json({"user": name, "item": wanted, "suppressed": True, "changed": is_new})
    else:
        say(f"{told} is never recommended to user {name}{'' if is_new else ', as before'}")


def allow(user: User, item: Item, db: Db, as_json: AsJson = False) -> None:
    """Let a suppressed item be recommended to a user again, and forget that it was suppressed."""
    with open_to_write(db) as rec:
        name = known_user(rec, user)
        wanted = _suppressed(rec, name, item)
        was_suppressed = rec.allow(name, wanted)
        told = label(rec, wanted)
    if as_json:
        say_json({"user": name, "item": wanted, "suppressed": False, "changed": was_suppressed})
    else:
        say(f"{told} may be recommended to user {name}{' again' if was_suppressed else ', as before'}")


def _suppressed(rec: DurableRecommender, user: Id, text: str) -> Id:
    """The suppressed item that a text stands for, which nobody needs to have bought; else the item that it means."""
    for item in rec.suppressed(user):
        if matches_id(text, item):
            return item
    return IdReader(rec).item(text)
