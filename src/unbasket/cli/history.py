"""`unbasket history`: what is held of a user."""

from unbasket.cli.shop import Db, User, basket_facts, known_user, label, open_to_read
from unbasket.cli.terminal import AsJson, say_json, say_table


def history(user: User, db: Db, as_json: AsJson = False) -> None:
    """List the baskets that are held of a user, oldest first."""
    rec = open_to_read(db)
    baskets = rec.history(known_user(rec, user))
    if as_json:
        say_json([basket_facts(rec, basket) for basket in baskets])
        return
    rows = [
        (basket.basket, "" if basket.time is None else basket.time, ", ".join(label(rec, i) for i in basket.items))
        for basket in baskets
    ]
    say_table(("basket", "time", "items"), rows)
