"""`unbasket verify` and `unbasket backup`."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, run
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli import app


def test_verify(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the model of 3 users is, bit by bit, that of what remains" in run("verify", "--db", db)
    assert json.loads(run("verify", "ann", "--db", db, "--json")) == {"ok": True, "users": 1, "mismatches": []}
    assert "nothing is held about user 'zoe', and every record belongs to" in run("verify", "zoe", "--db", db)
    bad = ub.Verification(ok=False, users=1, mismatches=("vector of 'ann'",))
    monkeypatch.setattr(ub.Recommender, "verify", lambda *_: bad)
    result = CliRunner().invoke(app, ["verify", "--db", str(db)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "vector of 'ann'" in result.stderr
    assert json.loads(run("verify", "--db", db, "--json", code=1))["mismatches"] == ["vector of 'ann'"]


def test_backup(db: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    assert json.loads(run("backup", target, "--db", db, "--json"))["bytes"] > 0
    with ub.open(target, read_only=True) as copy, ub.open(db, read_only=True) as rec:
        assert copy.digest() == rec.digest()
    assert "backup.db exists" in error("backup", target, "--db", db)
    assert "Error: " in error("backup", tmp_path / "no" / "backup.db", "--db", db)
