"""`unbasket forget`: in the database and in its backups."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, files_with, run
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli import app

SALES = (
    "user,basket,item\nann,1,milk\nann,1,MARKED-GIN\nann,2,MARKED-GIN\nbob,1,milk\nbob,2,MARKED-GIN\ncleo,1,tea\n"
    "MARKED-DAN,1,milk\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run("import", "-", "--db", tmp_path / "shop.db", stdin=SALES)
    return tmp_path


@pytest.fixture
def db(folder: Path) -> Path:
    return folder / "shop.db"


def users(db: Path) -> list[object]:
    with ub.open(db, read_only=True) as rec:
        return list(rec.users())


def test_a_user(db: Path) -> None:
    assert "forgot 3 purchases, and with that 2 baskets and 1 user. Receipt 1, request " in run(
        "forget", "ann", "--db", db
    )
    assert users(db) == ["MARKED-DAN", "bob", "cleo"]
    assert "nothing about user ann was held. Receipt 2" in run("forget", "ann", "--db", db)


def test_an_unknown_user_is_named_and_an_error_if_that_is_strict(db: Path) -> None:
    assert "nothing about user zoe was held. Receipt 1" in run("forget", "zoe", "--db", db)
    assert "nothing about user zoe was held. Receipt 2" in run("forget", "zoe", "--strict", "--db", db, code=1)
    assert "nothing of this was held. Receipt 3" in run("forget", "ann", "--basket", 9, "--strict", "--db", db, code=1)
    [outcome] = json.loads(run("forget", "zoe", "--strict", "--db", db, "--json", code=1))
    assert outcome["unknown"] == ["zoe"]
    [outcome] = json.loads(run("forget", "ann", "--strict", "--db", db, "--json"))
    assert outcome["unknown"] == []


def test_unknown_users_of_a_file_are_named(db: Path, tmp_path: Path) -> None:
    (tmp_path / "requests.csv").write_text("user\nzoe\nann\neve\n")
    printed = run("forget", "--file", tmp_path / "requests.csv", "--strict", "--db", db, code=1)
    assert "and 1 user; 2 requests found nothing. Nothing was held about zoe, eve. Receipts 1 to 3\n" in printed


def test_a_basket_an_item_and_an_item_of_a_basket(db: Path) -> None:
    [outcome] = json.loads(run("forget", "ann", "--basket", 1, "--item", "milk", "--db", db, "--json"))
    [receipt] = outcome["receipts"]
    assert (outcome["database"], outcome["error"]) == (str(db), None)
    assert (receipt["number"], receipt["scope"], receipt["purchases"]) == (1, "item of a basket", 1)
    with ub.open(db, read_only=True) as rec:
        assert ub.store.audit([ub.Receipt.from_json(json.dumps(receipt))]).ok
        assert rec.history("ann")[0].items == ("MARKED-GIN",)
    run("forget", "bob", "--basket", 2, "--db", db)
    run("forget", "ann", "--item", "MARKED-GIN", "--db", db)
    assert users(db) == ["MARKED-DAN", "bob", "cleo"]


def test_the_bytes_are_gone_here_and_in_the_backups(db: Path, folder: Path) -> None:
    for name in ("one.db", "two.db"):
        run("backup", folder / name, "--db", db)
    assert files_with("MARKED-DAN", folder) == ["./one.db", "./shop.db", "./two.db"]
    printed = run("forget", "MARKED-DAN", "--db", db, "--also-in", folder / "one.db", "--also-in", folder / "two.db")
    assert printed.count("forgot 1 purchase, and with that 1 basket and 1 user. Receipt 1") == 3
    assert files_with("MARKED-DAN", folder) == []
    key = run("receipts", "key", "--db", db).strip()
    for name in ("shop.db", "one.db", "two.db"):
        assert "1 receipt, 0 faults" in run("receipts", "verify", folder / name, "--key", key)
    assert not (folder / "one.db-keys").exists()


def test_a_backup_that_fails_is_named_and_the_others_are_done(db: Path, folder: Path) -> None:
    run("backup", folder / "good.db", "--db", db)
    (folder / "bad.db").write_text("no database")
    backups = [option for name in ("absent.db", "bad.db", "good.db") for option in ("--also-in", str(folder / name))]
    result = CliRunner().invoke(app, ["forget", "ann", "--db", str(db), *backups])
    assert result.exit_code == 2
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == [str(db), str(folder / "good.db")]
    absent, bad = result.stderr.splitlines()
    assert f"{folder / 'absent.db'}: not forgotten there: " in absent
    assert f"{folder / 'bad.db'}: not forgotten there: " in bad
    assert not (folder / "absent.db").exists()
    outcomes = json.loads(run("forget", "bob", "--db", db, *backups, "--json", code=2))
    assert [outcome["error"] is None for outcome in outcomes] == [True, False, False, True]


def test_backups_wait_for_the_database(db: Path, folder: Path) -> None:
    run("backup", folder / "copy.db", "--db", db)
    command = ["forget", "ann", "--db", str(folder / "absent.db"), "--also-in", str(folder / "copy.db")]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "copy.db: not forgotten there: not tried" in result.stderr
    assert "ann" in users(folder / "copy.db")
    assert not (folder / "absent.db-keys").exists()


def test_many_at_once(db: Path, folder: Path) -> None:
    requests = folder / "requests.csv"
    requests.write_text("user,basket,item\nann,2,\nbob,,MARKED-GIN\nMARKED-DAN,,\nann,1,milk\nzoe,,\n\n")
    printed = run("forget", "--file", requests, "--db", db)
    assert "forgot 4 purchases, and with that 3 baskets and 1 user; 1 request found nothing" in printed
    assert "Receipts 1 to 5" in printed
    requests.unlink()
    assert files_with("MARKED-DAN", folder) == []
    with ub.open(db, read_only=True) as rec:
        assert [basket.items for basket in rec.history("ann")] == [("MARKED-GIN",)]


def test_a_repeated_request_is_applied_once(db: Path, folder: Path) -> None:
    """The item of a basket goes with the basket, and the basket with the user."""
    requests = folder / "requests.csv"
    requests.write_text(
        'user,basket,item\nann,2,\nann,2,MARKED-GIN\nann,2,\n"ann",1,milk\nbob,1,\nbob,,\nbob,,milk\nbob,,\n'
    )
    printed = run("forget", "--file", requests, "--db", db)
    assert "forgot 4 purchases, and with that 3 baskets and 1 user. Receipts 1 to 3" in printed
    assert users(db) == ["MARKED-DAN", "ann", "cleo"]


def test_many_users(db: Path, folder: Path) -> None:
    (folder / "requests.csv").write_text("user\nann\nbob\n")
    run("forget", "--file", folder / "requests.csv", "--db", db)
    assert users(db) == ["MARKED-DAN", "cleo"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("user,baskets\nann,1\n", "the columns may be user, basket and item, separated by commas, not baskets"),
        ("user,basket\nann,1\n,2\n", "requests.csv, line 3: no user"),
        ("user,basket\nann,1\n\nbob,2\n", "requests.csv, line 3: no user"),
        ("user\nann\n\nbob\n", "requests.csv, line 3: no user"),
        ('user,basket\nann,1\n"bob,2\ncleo,1\n', "requests.csv: line 3 has a quote that is never closed"),
        ('user,basket\nann,1\nb"ob,2\n"cleo,1\n', "requests.csv: line 3 has a quote inside a field"),
        ("user;basket\nann;1\n", "separated by commas, not user;basket"),
        ("basket\n1\n", "no column user"),
        ("user\n", "there is no request in it"),
        ("", "the file is empty"),
    ],
)
def test_a_bad_list_forgets_nothing(db: Path, folder: Path, text: str, complaint: str) -> None:
    before = users(db)
    (folder / "requests.csv").write_text(text)
    assert complaint in error("forget", "--file", folder / "requests.csv", "--db", db)
    assert users(db) == before
    assert "0 receipts" in run("receipts", "verify", db)


def test_a_request_is_given_once(db: Path, folder: Path) -> None:
    assert "say what to forget: a USER, or --file" in error("forget", "--db", db)
    assert "not by both" in error("forget", "ann", "--file", folder / "r.csv", "--db", db)
    assert "not by both" in error("forget", "--basket", 1, "--file", folder / "r.csv", "--db", db)
    (folder / "r.ndjson").write_text('{"user": "ann"}\n')
    assert "must be in a CSV file" in error("forget", "--file", folder / "r.ndjson", "--db", db)
