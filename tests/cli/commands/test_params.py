"""`unbasket params`: shown, changed, and refused."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, run

import unbasket as ub


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with ub.open(tmp_path / "shop.db", ub.Params(neighbors=2)) as rec:
        for user in ("ann", "bob", "cem"):
            rec.learn(user, ["milk", user], basket=1)
    return tmp_path / "shop.db"


def test_shown(database: Path) -> None:
    assert run("params", "--db", str(database)) == f"{database}: {ub.Params(neighbors=2)}\n"
    assert ub.Params(**json.loads(run("params", "--db", str(database), "--json"))) == ub.Params(neighbors=2)


def test_changed(database: Path) -> None:
    run("params", "--db", str(database), "--set", "alpha=0.1", "--set", "pool=2")
    with ub.open(database) as rec:
        assert (rec.params.alpha, rec.params.pool, rec.params.neighbors) == (0.1, 2, 2)
        assert rec.verify().ok
    run("params", "--db", str(database), "--set", "pool=None")
    with ub.open(database) as rec:
        assert rec.params == ub.Params(neighbors=2, alpha=0.1)


def test_refused(database: Path) -> None:
    assert "alpha must be from 0 to 1, not 2" in error("params", "--db", str(database), "--set", "alpha=2")
    assert "Did you mean 'neighbors'?" in error("params", "--db", str(database), "--set", "neighbours=2")
    assert "can't become varying groups" in error("params", "--db", str(database), "--set", "grouping=varying")
    with ub.open(database) as rec:
        assert rec.params == ub.Params(neighbors=2)
