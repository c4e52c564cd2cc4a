"""`unbasket backup`."""

import json
from pathlib import Path

from tests.cli.running import error, run

import unbasket as ub


def test_backup(db: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    assert json.loads(run("backup", target, "--db", db, "--json"))["bytes"] > 0
    with ub.open(target, read_only=True) as copy, ub.open(db, read_only=True) as rec:
        assert copy.digest() == rec.digest()
    assert "backup.db exists" in error("backup", target, "--db", db)
    assert "Error: " in error("backup", tmp_path / "no" / "backup.db", "--db", db)
