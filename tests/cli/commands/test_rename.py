"""`unbasket rename`."""

import json
from pathlib import Path

from tests.cli.running import error, run


def test_a_guest_becomes_an_account(db: Path) -> None:
    assert "users 'ann' and 'bob' both have a basket 1" in error("rename", "ann", "bob", "--db", db)
    run("learn", "guest", 12, "--basket", 77, "--db", db)
    assert "1 basket of user guest moved to user ann. Receipt 1, request" in run("rename", "guest", "ann", "--db", db)
    assert [basket["basket"] for basket in json.loads(run("history", "ann", "--db", db, "--json"))] == [1, 2, 77]
    answer = json.loads(run("rename", "bob", "robert", "--db", db, "--json"))
    assert (answer["user"], answer["baskets"], answer["purchases"]) == ("robert", 1, 2)
    assert (answer["receipt"]["scope"], answer["receipt"]["users"]) == ("id", 1)
    assert "nothing is held about user 'bob'" in error("rename", "bob", "ann", "--db", db)
    assert "can't be renamed to the same id" in error("rename", "ann", "ann", "--db", db)
