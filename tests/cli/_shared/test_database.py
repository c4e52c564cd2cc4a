"""Commands on a database: its name, unknown users, and other processes that have it open."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.running import PROGRAM, SALES, error, run
from typer.testing import CliRunner

from unbasket.cli import app


def test_the_database_may_come_from_the_environment(db: Path) -> None:
    result = CliRunner().invoke(app, ["history", "7"], env={"UNBASKET_DB": str(db)})
    assert result.exit_code == 0
    assert "13" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["history", "zoe"],
        ["export", "zoe"],
        ["explain", "zoe", "10"],
        ["suppress", "zoe", "10"],
        ["allow", "zoe", "10"],
    ],
)
def test_an_unknown_user_is_named(db: Path, command: list[str]) -> None:
    assert "nothing is held about user 'zoe'" in error(*command, "--db", db)


READING = [
    ["recommend", "ann"],
    ["explain", "ann", "10"],
    ["history", "ann"],
    ["export", "ann"],
    ["verify"],
    ["receipts", "list"],
    ["receipts", "export"],
    ["receipts", "key"],
]
WRITING = [
    ["rename", "ann", "zoe"],
    ["suppress", "ann", "10"],
    ["allow", "ann", "10"],
    ["learn", "ann", "10", "--basket", "9"],
    ["forget", "ann"],
    ["receipts", "rotate-key", "--yes"],
]
ASKING = ["receipts", "rotate-key"]


@pytest.mark.parametrize("command", [*READING, *WRITING, ASKING, ["backup", "b.db"]])
def test_a_mistyped_name_makes_no_database(tmp_path: Path, command: list[str]) -> None:
    assert "does not exist" in error(*command, "--db", tmp_path / "shpo.db")
    assert list(tmp_path.iterdir()) == []


def test_commands_read_but_do_not_write_beside_a_service(db: Path, tmp_path: Path) -> None:
    service = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, unbasket as ub\n"
            "with ub.open(sys.argv[1]) as rec:\n"
            "    rec.learn('eve', [10], basket=1)\n"
            "    print('open', flush=True)\n"
            "    sys.stdin.read()",
            str(db),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    try:
        assert service.stdout is not None
        assert service.stdout.readline() == b"open\n"
        for command in READING:
            run(*command, "--db", db)
        run("backup", tmp_path / "b.db", "--db", db)
        assert "10" in run("history", "eve", "--db", db)
        for command in [*WRITING, ["import", "-"], ["items", str(tmp_path / "items.csv")]]:
            assert f"(process {service.pid})" in error(*command, "--db", db, stdin=SALES)
    finally:
        service.communicate(b"")


def test_as_a_program(db: Path) -> None:
    """Standard output is data and nothing else; errors go to standard error."""
    good = subprocess.run(
        [*PROGRAM, "recommend", "ann", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "UNBASKET_DB": str(db)},
    )
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["known"] is True
    bad = subprocess.run(
        [*PROGRAM, "history", "zoe", "--db", str(db)], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "Error: nothing is held about user 'zoe'\n"
