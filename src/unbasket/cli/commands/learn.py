"""`unbasket learn` and `unbasket rename`: a basket of a user, and all baskets of a user under another id."""

import json
import re
from datetime import UTC, datetime
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, known_user, label, open_to_write
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, reply
from unbasket.domain.id_text import IdReader
from unbasket.domain.results import Learned
from unbasket.errors import InvalidRequestError

_DONE = {
    Learned.ADDED: "Added basket {} of user {}: {}",
    Learned.REPLACED: "Replaced basket {} of user {}: {}",
    Learned.UNCHANGED: "Basket {} of user {} was known and is as it was: {}",
}


def learn(
    user: User,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="The ids of the items in the basket.")],
    db: Db,
    basket: Annotated[str, typer.Option(help="The basket's id. A basket that is known is replaced.", metavar="ID")],
    time: Annotated[
        str | None,
        typer.Option(
            help="A whole number as in the data, or an ISO date, which becomes seconds since 1970 (UTC). Without it, "
            "the basket is the user's latest."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a basket that a user has bought, or edit the one of this id."""
    moment = None if time is None else _moment(time)
    with open_to_write(db) as rec:
        ids = IdReader(rec)
        owner = ids.user(user)
        name, bought = ids.basket(owner, basket), [ids.item(item) for item in items]
        learned = rec.learn(owner, bought, basket=name, time=moment)
        labels = ", ".join(label(rec, item) for item in bought)
    facts = {"learned": learned.value, "user": owner, "basket": name, "time": moment, "items": bought}
    reply(as_json, facts, _DONE[learned].format(name, owner, labels))


def _moment(text: str) -> int:
    try:
        if re.fullmatch(r"[+-]?[0-9]+", text):
            return int(text[:21])  # a number of more digits is refused too, since it does not fit into 64 bits
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(
            f"--time must be a whole number or an ISO date such as 2026-05-31T18:30, not {text!r}"
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() // 1)


def rename(
    user: User,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The id that the user becomes. It may be new.")],
    db: Db,
    as_json: AsJson = False,
) -> None:
    """Merge a user into another, such as a guest into an account: the baskets of one are the other's then.

    The first id is gone from the database's files, and a signed receipt says so. Nothing is changed if both have a
    basket of the same id.
    """
    with open_to_write(db) as rec, progress_bar("renaming"):
        name, target = known_user(rec, user), IdReader(rec).user(other)
        renamed = rec.rename(name, target)
    reply(
        as_json,
        {**renamed._asdict(), "user": target, "receipt": json.loads(renamed.receipt.to_json())},
        f"{db}: {counted(renamed.baskets, 'basket')} of user {name} moved to user {target}. "
        f"Receipt {renamed.receipt.number}, request {renamed.receipt.request}",
    )
