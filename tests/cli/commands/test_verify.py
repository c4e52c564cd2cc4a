"""`unbasket verify`."""

import json
from pathlib import Path

import pytest
from tests.cli.running import run
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
