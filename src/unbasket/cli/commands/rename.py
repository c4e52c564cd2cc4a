"""`unbasket rename`: a guest becomes an account."""

import json
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, User, id_of, known_user, open_to_write
from unbasket.cli._shared.terminal import AsJson, counted, progress_bar, reply


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
        name, target = known_user(rec, user), id_of(rec, "user", other)
        renamed = rec.rename(name, target)
    reply(
        as_json,
        {**renamed._asdict(), "user": target, "receipt": json.loads(renamed.receipt.to_json())},
        f"{db}: {counted(renamed.baskets, 'basket')} of user {name} moved to user {target}. "
        f"Receipt {renamed.receipt.number}, request {renamed.receipt.request}",
    )
