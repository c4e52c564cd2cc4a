"""`unbasket retain`: a dry run, and forgetting."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import unbasket as ub
from unbasket.cli import app
from unbasket.store import audit

NOW = datetime(2026, 1, 31, 4, tzinfo=UTC)
RULES = """
[[rule]]
name = "two years"
older_than_days = 730

[[rule]]
name = "sober"
category = "alcohol"
users = "opted-out.csv"
"""


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with ub.open(path) as rec:
        rec.learn("ann", ["milk", "wine"], basket=1, time=days_ago(800))
        rec.learn("ann", ["milk", "wine"], basket=2, time=days_ago(3))
        rec.learn("bob", ["milk", "wine"], basket=3, time=days_ago(2))
        rec.learn("cleo", ["milk"], basket=4)
        rec.describe(pl.DataFrame({"item": ["wine"], "name": ["Wine"], "category": ["alcohol"]}))
    return path


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "opted-out.csv").write_text("user\nann\nzoe\n")
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def days_ago(days: int) -> int:
    return int((NOW - timedelta(days=days)).timestamp())


def retain(rules: Path, db: Path, *options: str, typed: str | None = None) -> Result:
    line = ["retain", str(rules), "--db", str(db), "--now", "2026-01-31T04:00", *options]
    return CliRunner().invoke(app, line, input=typed)


def error(rules: Path, db: Path, *options: str) -> str:
    result = retain(rules, db, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    return result.stderr


def checksum(db: Path) -> bytes:
    return subprocess.run(["sha256sum", db], check=True, capture_output=True).stdout


def test_a_dry_run_shows_and_changes_nothing(rules: Path, db: Path) -> None:
    before = checksum(db)
    result = retain(rules, db)
    assert result.exit_code == 0, result.output
    table = [line.split() for line in result.stdout.splitlines()]
    assert ["two", "years", "1", "1", "2"] in table
    assert ["sober", "1", "1", "1"] in table
    assert "To be forgotten: 3 purchases, and with them 1 basket and 0 users." in result.stdout
    assert "This is 42.9 % of all purchases." in result.stdout
    command = f"unbasket retain {rules} --db {db} --now 2026-01-31T04:00 --yes"
    assert result.stdout.splitlines()[-1] == f"{command} --at-most 43"
    assert retain(rules, db, "--at-most", "42.9").stdout.splitlines()[-1] == command
    assert "two years: baskets without a time, which are never too old: 1" in result.stderr
    assert "sober: listed users without baskets here: 1 of 2" in result.stderr
    assert checksum(db) == before


def test_yes_forgets_and_a_second_run_finds_nothing(rules: Path, db: Path) -> None:
    result = retain(rules, db, "--yes", "--at-most", "43")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("1 basket and 0 users. Receipts written: 2.\n")
    with ub.open(db, read_only=True) as rec:
        assert [basket.items for basket in rec.history("ann")] == [("milk",)]
        assert [basket.items for basket in rec.history("bob")] == [("milk", "wine")]
        assert audit(rec.receipts()).ok
    assert retain(rules, db).stdout.splitlines()[-1] == "There is nothing to forget."


def test_a_large_share_needs_more_than_yes(rules: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checksum(db)
    for options in ((), ("--at-most", "42"), ("--json",)):
        refused = retain(rules, db, "--yes", *options)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "would forget 42.9 % of all purchases" in refused.stderr
        assert "add --at-most 43" in refused.stderr
    assert checksum(db) == before
    with monkeypatch.context() as patch:
        patch.setattr("unbasket.cli.commands.retain.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
        refused = retain(rules, db, "--yes", typed="y\n")
        assert (refused.exit_code, "nothing was forgotten" in refused.stderr) == (2, True)
        assert retain(rules, db, "--yes", typed="").exit_code == 1
        assert checksum(db) == before
        agreed = retain(rules, db, "--yes", typed="43\n")
        assert "This forgets 42.9 % of all purchases. To go on, type 43" in agreed.stderr
        assert "Forgotten: 3 purchases" in agreed.stdout
    assert "Forgotten: 0 purchases" in retain(rules, db, "--yes").stdout


def test_json(rules: Path, db: Path) -> None:
    planned = json.loads(retain(rules, db, "--json").stdout)
    assert planned == {
        "now": "2026-01-31T04:00:00+00:00",
        "done": False,
        "rules": [
            {
                "name": "two years",
                "users": 1,
                "baskets": 1,
                "purchases": 2,
                "warnings": ["baskets without a time, which are never too old: 1"],
            },
            {
                "name": "sober",
                "users": 1,
                "baskets": 1,
                "purchases": 1,
                "warnings": ["listed users without baskets here: 1 of 2"],
            },
        ],
        "forgotten": {"purchases": 3, "baskets": 1, "users": 0},
        "share": 3 / 7,
        "receipts": 0,
    }
    assert json.loads(retain(rules, db, "--json", "--yes", "--at-most", "50").stdout) == planned | {
        "done": True,
        "receipts": 2,
    }


def test_a_service_may_have_the_file_open_during_a_dry_run(rules: Path, db: Path) -> None:
    with ub.open(db):
        assert "To be forgotten" in retain(rules, db).stdout
        assert "is open for writing in another place" in error(rules, db, "--yes")


def test_now_may_have_a_zone_and_be_left_out(rules: Path, db: Path) -> None:
    planned = json.loads(retain(rules, db, "--now", "2024-01-31T05:00+01:00", "--json").stdout)
    assert planned["now"] == "2024-01-31T05:00:00+01:00"
    assert planned["rules"][0]["purchases"] == 0
    result = CliRunner().invoke(app, ["retain", str(rules), "--db", str(db), "--json"])
    assert datetime.now(UTC) - datetime.fromisoformat(json.loads(result.stdout)["now"]) < timedelta(minutes=5)


def test_bad_input_is_one_line(rules: Path, db: Path, tmp_path: Path) -> None:
    assert "--now must be a time such as 2026-01-31T04:00, not 'noon'" in error(rules, db, "--now", "noon")
    missing = tmp_path / "mistyped.db"
    assert "mistyped.db does not exist" in error(rules, missing)
    assert "mistyped.db does not exist" in error(rules, missing, "--yes")
    assert not missing.exists()
    assert "no.toml: No such file" in error(tmp_path / "no.toml", db)
    rules.write_text("[[rule]]\nname = 'two years'\nolder_than_days = -2")
    assert "In rule 'two years', `older_than_days` must be" in error(rules, db)
