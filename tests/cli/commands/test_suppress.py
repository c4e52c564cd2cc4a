"""`unbasket suppress` and `unbasket allow`."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, recommended, run

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
    with ub.open(db) as rec:
        rec.suppress("ann", 4711)
    answer = json.loads(run("allow", "ann", '"4711"', "--db", db, "--json"))
    assert answer == {"user": "ann", "item": 4711, "suppressed": False, "changed": True}


def test_the_suppressions_of_a_user_are_limited(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.histories.MAX_SUPPRESSIONS", 1)
    run("suppress", "ann", 12, "--db", db)
    assert "would have 2 suppressed items, of at most 1. Allow some" in error("suppress", "ann", 11, "--db", db)
