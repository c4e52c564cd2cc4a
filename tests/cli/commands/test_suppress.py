"""`unbasket suppress` and `unbasket allow`."""

import json
from pathlib import Path

from tests.cli.running import recommended, run

import unbasket as ub


def test_a_suppressed_item_is_not_recommended(db: Path) -> None:
    assert 12 in recommended("ann", "--db", db)
    answer = json.loads(run("suppress", "ann", 12, "--db", db, "--json"))
    assert answer == {"user": "ann", "item": 12, "suppressed": True, "changed": True}
    assert 12 not in recommended("ann", "--db", db)
    assert "Wine (12) is never recommended to user ann, as before" in run("suppress", "ann", 12, "--db", db)
    assert "Wine (12) may be recommended to user ann again" in run("allow", "ann", 12, "--db", db)
    assert "Wine (12) may be recommended to user ann, as before" in run("allow", "ann", 12, "--db", db)
    assert 12 in recommended("ann", "--db", db)


def test_a_suppressed_item_without_purchases_is_allowed_by_its_text(db: Path) -> None:
    run("learn", "bob", "gin", "--basket", 5, "--db", db)  # from now on, a number without purchases means a text
    with ub.open(db) as rec:
        rec.suppress("ann", 4711)
    answer = json.loads(run("allow", "ann", 4711, "--db", db, "--json"))
    assert answer == {"user": "ann", "item": 4711, "suppressed": False, "changed": True}
