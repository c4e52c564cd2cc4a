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
    learned = "alpha is 0.800, learned from 0 users with two baskets or more"
    assert run("params", "--db", str(database)) == f"{database}: {ub.Params(neighbors=2)}\n{learned}\n"
    facts = json.loads(run("params", "--db", str(database), "--json"))
    assert facts.pop("learned") == {"alpha": pytest.approx(0.8), "users": 0, "most": [], "least": []}
    assert ub.Params(**facts) == ub.Params(neighbors=2)


def test_items_that_are_bought_again_are_listed(database: Path) -> None:
    with ub.open(database) as rec:
        for user in range(25):
            rec.learn(f"user {user}", ["milk", "tea"], basket=1)
            rec.learn(f"user {user}", ["milk"], basket=2)
        learned = rec.learned()
    assert learned is not None
    lines = run("params", "--db", str(database)).splitlines()[2:]
    (_, most, _), (_, least, _) = learned.most
    assert lines == [
        f"bought again most readily: milk ({most:.2f}), tea ({least:.2f})",
        f"bought again least readily: tea ({least:.2f}), milk ({most:.2f})",
    ]
    facts = json.loads(run("params", "--db", str(database), "--json"))["learned"]
    assert facts["most"] == [factor._asdict() for factor in learned.most]


def test_a_number_and_back(database: Path) -> None:
    shown = run("params", "--db", str(database), "--set", "alpha=0.5")
    assert shown == f"{database}: {ub.Params(neighbors=2, alpha=0.5)}\n"
    assert json.loads(run("params", "--db", str(database), "--json"))["learned"] is None
    run("params", "--db", str(database), "--set", "alpha=learned")
    with ub.open(database) as rec:
        assert rec.params == ub.Params(neighbors=2)
        assert rec.verify().ok


def test_changed(database: Path) -> None:
    run("params", "--db", str(database), "--set", "alpha=0.1", "--set", "pool=2")
    with ub.open(database) as rec:
        assert (rec.params.alpha, rec.params.pool, rec.params.neighbors) == (0.1, 2, 2)
        assert rec.verify().ok
    run("params", "--db", str(database), "--set", "pool=None")
    with ub.open(database) as rec:
        assert rec.params == ub.Params(neighbors=2, alpha=0.1)


def test_refused(database: Path) -> None:
    assert 'alpha must be "learned" or from 0 to 1, not 2' in error("params", "--db", str(database), "--set", "alpha=2")
    assert "Did you mean 'neighbors'?" in error("params", "--db", str(database), "--set", "neighbours=2")
    assert 'alpha="learned" needs' in error("params", "--db", str(database), "--set", "grouping=varying")
    changes = "--set", "grouping=varying", "--set", "alpha=0.5"
    assert "can't become varying groups" in error("params", "--db", str(database), *changes)
    with ub.open(database) as rec:
        assert rec.params == ub.Params(neighbors=2)
