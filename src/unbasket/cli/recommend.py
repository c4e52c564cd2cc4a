"""`unbasket recommend`: items for a user's next basket."""

from math import fsum
from typing import Annotated, Any

import typer

from unbasket.cli.progress import progress_bar
from unbasket.cli.shop import Db, User, item_facts, label, open_to_read
from unbasket.cli.terminal import AsJson, say, say_json, say_table
from unbasket.exchange.ids import Id
from unbasket.exchange.results import Explanation, ItemCount
from unbasket.exchange.spelling import IdReader
from unbasket.store import DurableRecommender


def recommend(
    user: User,
    db: Db,
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 10,
    new: Annotated[bool, typer.Option("--new", help="Only items that the user has never bought.")] = False,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out this item; may be repeated.", metavar="ITEM")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Say how much of each score comes from the user's own baskets and from similar users."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items for a user's next basket, the best first.

    A user about whom nothing is known gets the items that are in most baskets.
    """
    rec = open_to_read(db)
    ids = IdReader(rec)
    name, excluded = ids.user(user), [ids.item(item) for item in exclude or []]
    if name not in rec:
        _show_popular(rec, name, _popular(rec, n, excluded), as_json=as_json)
        return
    with progress_bar("recommending"):
        found = rec.recommend(name, n, exclude=excluded, only_new=new)
        reasons = rec.explain_many(name, [item for item, _ in found]) if explain else []
    if as_json:
        scored = [{**item_facts(rec, item), "score": score} for item, score in found]
        shares = [_share_facts(reason) for reason in reasons] or [{} for _ in scored]
        say_json({"user": name, "known": True, "items": [a | b for a, b in zip(scored, shares, strict=True)]})
    elif not found:
        say(f"Nothing to recommend to user {name}")
    elif explain:
        columns = ("item", "score", "own baskets", "similar users", "who have it")
        say_table(columns, [_explained(rec, reason) for reason in reasons])
    else:
        say_table(("item", "score"), [(label(rec, item), score) for item, score in found])


def _popular(rec: DurableRecommender, n: int, excluded: list[Id]) -> list[ItemCount]:
    if n < 0:
        return rec.popular(n)  # which says what is wrong with it
    wanted = [count for count in rec.popular(n + len(excluded)) if count.item not in excluded]
    return wanted[:n]


def _show_popular(rec: DurableRecommender, user: Id, popular: list[ItemCount], *, as_json: bool) -> None:
    if as_json:
        items = [{**item_facts(rec, item), "baskets": count} for item, count in popular]
        say_json({"user": user, "known": False, "items": items})
        return
    say(f"Nothing is held about user {user}. These items are in the most baskets:")
    say_table(("item", "baskets"), [(label(rec, item), count) for item, count in popular])


def _share_facts(reason: Explanation) -> dict[str, Any]:
    return {
        "own_share": fsum(share.share for share in reason.baskets),
        "neighbors_share": reason.neighbors_share,
        "neighbors_with_item": reason.neighbors_with_item,
        "neighbors": reason.neighbors,
    }


def _explained(rec: DurableRecommender, reason: Explanation) -> tuple[object, ...]:
    own = fsum(share.share for share in reason.baskets)
    return (
        label(rec, reason.item),
        reason.score,
        own,
        reason.neighbors_share,
        f"{reason.neighbors_with_item} of {reason.neighbors}",
    )
