"""Restoring a backup after a crash, by the steps of docs/operations.md: a scenario of the command line."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.cli.running import run
from tests.deploy.recipes import ROOT

import unbasket as ub

CRASH = "import os, sys, unbasket as ub; rec = ub.open(sys.argv[1]); rec.learn('eve', ['gin'], basket=1); os._exit(9)"
[STEP] = re.findall(
    r"^2\. Put the damaged files aside: (.*?)\. Leave", (ROOT / "docs" / "operations.md").read_text(), re.M
)


def test_a_backup_is_restored(tmp_path: Path) -> None:
    db, copy, requests = tmp_path / "shop.db", tmp_path / "monday.db", tmp_path / "requests.csv"
    with ub.open(db) as rec:
        rec.learn("ann", ["milk"], basket=1)
        rec.learn("bob", ["tea"], basket=1)
        before = rec.digest()
    run("backup", copy, "--db", db)
    run("forget", "bob", "--db", db)
    subprocess.run([sys.executable, "-c", CRASH, db], check=False)
    files = re.findall(r"`([\w.-]+)`", STEP)
    assert {path.name for path in tmp_path.glob("shop.db*")} == {*files, "shop.db-keys"}
    for file in files:
        tmp_path.joinpath(file).unlink()
    shutil.copy(copy, db)
    with ub.open(db, read_only=True) as rec:
        assert rec.digest() == before
    requests.write_text("user\nbob\n")
    run("forget", "--file", requests, "--db", db)
    assert "that of what remains" in run("verify", "--db", db)
    run("receipts", "verify", db)
    with ub.open(db, read_only=True) as rec:
        assert rec.users() == ["ann"]
