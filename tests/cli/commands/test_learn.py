"""`unbasket learn` and `unbasket rename`."""

import json
from pathlib import Path

from tests.cli.running import error, run

import unbasket as ub


def test_learn_adds_replaces_or_leaves(db: Path) -> None:
    assert "Added basket 3 of user ann: Wine (12), 14\n" in run("learn", "ann", 12, 14, "--basket", 3, "--db", db)
    assert "was known and is as it was" in run("learn", "ann", 14, 12, "--basket", 3, "--db", db)
    answer = json.loads(run("learn", "ann", 12, "--basket", 3, "--time", "1970-01-01T00:02", "--db", db, "--json"))
    assert answer == {"learned": "replaced", "user": "ann", "basket": 3, "time": 120, "items": [12]}
    run("learn", '"17"', "x", "--basket", 1, "--time", "-4", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert rec.history("ann")[1] == ub.Basket(3, 120, (12,))
        assert rec.history("17") == [ub.Basket(1, -4, ("x",))]
    for moment in ("soon", "+-5", "--5", "-", "²", "1_0", ""):
        assert f"not {moment!r}" in error("learn", "ann", 1, "--basket", 3, f"--time={moment}", "--db", db)
    assert "does not fit into 64 bits" in error("learn", "ann", 1, "--basket", 3, f"--time={'1' * 5000}", "--db", db)
    assert json.loads(run("learn", "ann", 12, "--basket", 3, "--time=+5", "--db", db, "--json"))["time"] == 5
    assert "must not be empty" in error("learn", "ann", "", "--basket", 3, "--db", db)


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
