"""`unbasket history`: what is held about a user."""

from unbasket.cli._shared.database import Db, User, basket_facts, known_user, label, open_to_read
from unbasket.cli._shared.terminal import AsJson, say, say_json, say_table
from unbasket.cli._shared.times import as_dates


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
    names = (basket.basket for basket in baskets)
    say_table(("basket", "time", "items"), list(zip(names, times, contents, strict=True)))
    if suppressed:
        say(f"Never recommended to them: {', '.join(label(rec, item) for item in suppressed)}")
