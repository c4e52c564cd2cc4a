"""`unbasket learn`: one basket."""

import re
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, id_of, label, open_to_write
from unbasket.cli._shared.terminal import AsJson, reply
from unbasket.domain.id_text import parse_id
from unbasket.domain.results import Learned
from unbasket.domain.times import as_number
from unbasket.errors import InvalidBasketError, InvalidRequestError

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
        learned = rec.learn(parse_id(user), map(parse_id, items), basket=parse_id(basket), time=moment)
        owner, name = id_of(rec, "user", user), id_of(rec, "basket", basket)
        bought = [id_of(rec, "item", item) for item in items]
        labels = ", ".join(label(rec, item) for item in bought)
    facts = {"learned": learned.value, "user": owner, "basket": name, "time": moment, "items": bought}
    reply(as_json, facts, _DONE[learned].format(name, owner, labels))


def _moment(text: str) -> int | None:
    try:
        if re.fullmatch(r"[+-]?[0-9]+", text):
            return int(text[:21])  # a number of more digits is refused too, since it does not fit into 64 bits
        return as_number(text)
    except InvalidBasketError as error:
        raise InvalidRequestError(
            f"--time must be a whole number or an ISO date such as 2026-05-31T18:30, not {text!r}"
        ) from error
