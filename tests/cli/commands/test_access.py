"""`unbasket access` and `unbasket prove-absence`: files that the verifier accepts."""

import json
from pathlib import Path

from tests.cli.running import error, run

import unbasket as ub
from unbasket import verifier


def test_what_is_held_and_what_is_not(tmp_path: Path) -> None:
    db, file = tmp_path / "shop.db", tmp_path / "proof.json"
    with ub.open(db) as rec:
        rec.learn("ann", ["milk", "tea"], basket=1)
        rec.learn("bob", ["milk"], basket=1)
        rec.suppress("ann", "gin")
    run("access", "ann", "--db", db, "--output", file)
    assert verifier.verify(file.read_text()).startswith("This is all that the shop has committed to hold")
    assert json.loads(file.read_text())["suppressed"] == ["gin"]
    assert "nothing is held about user 'eve'" in error("access", "eve", "--db", db)
    run("prove-absence", "eve", "--db", db, "--output", file)
    assert verifier.verify(file.read_text()).startswith("The shop has committed to hold nothing about 'eve'")
    assert "1 baskets are held about user 'ann'" in error("prove-absence", "ann", "--db", db)
    assert json.loads(run("prove-absence", "eve", "--db", db))["user"] == "eve"
