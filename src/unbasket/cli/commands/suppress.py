"""`unbasket suppress` and `unbasket allow`: items that are never recommended to a user."""

from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, id_of, known_user, label, open_to_write
from unbasket.cli._shared.terminal import AsJson, reply

Item = Annotated[str, typer.Argument(metavar="ITEM", help="An item's id.")]


def suppress(user: User, item: Item, db: Db, as_json: AsJson = False) -> None:
    """Never recommend an item to a user, until it is allowed again.

    It is personal data like a basket: `history` and `export` show it, and it is forgotten with the user. The item goes
    on training the model; `forget` takes it out of the user's baskets.
    """
    with open_to_write(db) as rec:
        name, unwanted = known_user(rec, user), id_of(rec, "item", item)
        is_new = rec.suppress(name, unwanted)
        shown = label(rec, unwanted)
    facts = {"user": name, "item": unwanted, "suppressed": True, "changed": is_new}
    reply(as_json, facts, f"{shown} is never recommended to user {name}{'' if is_new else ', as before'}")


def allow(user: User, item: Item, db: Db, as_json: AsJson = False) -> None:
    """Let a suppressed item be recommended to a user again, and forget that it was suppressed."""
    with open_to_write(db) as rec:
        name, allowed = known_user(rec, user), id_of(rec, "item", item)
        was_suppressed = rec.allow(name, allowed)
        shown = label(rec, allowed)
    facts = {"user": name, "item": allowed, "suppressed": False, "changed": was_suppressed}
    reply(as_json, facts, f"{shown} may be recommended to user {name}{' again' if was_suppressed else ', as before'}")
