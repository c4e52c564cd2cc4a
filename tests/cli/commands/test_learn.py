"""`unbasket learn`."""

import json
from pathlib import Path

from tests.cli.running import error, run

import unbasket as ub


def test_learn_adds_replaces_or_leaves(db: Path) -> None:
    assert "Added basket 3 of user ann: Wine (12), 14\n" in run("learn", "ann", 12, 14, "--basket", 3, "--db", db)
    assert "was known and is as it was" in run("learn", "ann", 14, 12, "--basket", 3, "--db", db)
    answer = json.loads(run("learn", "ann", 12, "--basket", 3, "--time", "1970-01-01T00:02", "--db", db, "--json"))
    assert answer == {"learned": "replaced", "user": "ann", "basket": 3, "time": 120, "items": [12]}
    run("learn", '"17"', '"15"', "--basket", 1, "--time", "-4", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert rec.history("ann")[1] == ub.Basket(3, 120, (12,))
        assert rec.history("17") == [ub.Basket(1, -4, (15,))]
    for moment in ("soon", "+-5", "--5", "-", "²", "1_0", ""):
        assert f"not {moment!r}" in error("learn", "ann", 1, "--basket", 3, f"--time={moment}", "--db", db)
    assert "does not fit into 64 bits" in error("learn", "ann", 1, "--basket", 3, f"--time={'1' * 5000}", "--db", db)
    assert json.loads(run("learn", "ann", 12, "--basket", 3, "--time=+5", "--db", db, "--json"))["time"] == 5
    assert "must not be empty" in error("learn", "ann", "", "--basket", 3, "--db", db)
