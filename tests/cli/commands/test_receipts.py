"""`unbasket receipts`."""

import json
import shutil
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

import pytest
from tests.cli.running import error, run
from typer.testing import CliRunner

import unbasket as ub
from unbasket import verifier
from unbasket.cli import app


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Three forgets."""
    path = tmp_path / "shop.db"
    run("import", "-", "--db", path, stdin="user,basket,item\n1,1,5\n1,2,5\n2,1,5\n3,1,6\n")
    for user in (1, 2, 3):
        run("forget", user, "--db", path)
    return path


@pytest.fixture
def exported(db: Path, tmp_path: Path) -> Path:
    assert "3 receipts" in run("receipts", "export", tmp_path / "receipts.ndjson", "--db", db)
    return tmp_path / "receipts.ndjson"


def faults(file: Path, *options: object) -> str:
    result = CliRunner().invoke(app, ["receipts", "verify", str(file), *map(str, options)])
    assert result.exit_code == 1
    return result.stderr


def test_list(db: Path) -> None:
    listed = json.loads(run("receipts", "list", "--db", db, "--json"))
    assert [(receipt["number"], receipt["purchases"], receipt["scope"]) for receipt in listed] == [
        (1, 2, "user"),
        (2, 1, "user"),
        (3, 1, "user"),
    ]
    table = run("receipts", "list", "--db", db)
    assert all(receipt["request"][:8] in table for receipt in listed)
    assert max(map(len, table.splitlines())) <= 80


def test_times_that_run_backwards_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db, days = tmp_path / "shop.db", iter((2, 1))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 1, next(days), tzinfo=tz)

    with monkeypatch.context() as patch, ub.open(db) as rec:
        patch.setattr("unbasket.store.receipts.datetime", Clock)
        rec.forget("ann")
        rec.forget("bob")
    assert "times run backwards once." in run("receipts", "verify", "--db", db)
    [warning] = json.loads(run("receipts", "verify", "--db", db, "--json"))["warnings"]
    assert warning.startswith("receipt 2: its time, 2026-01-01T00:00:00.000+00:00, is before that of receipt 1")


def test_an_exported_file_is_verified_alone(db: Path, exported: Path) -> None:
    assert run("receipts", "export", "--db", db) == exported.read_text()
    key = run("receipts", "key", "--db", db).strip()
    assert json.loads(run("receipts", "key", "--db", db, "--json"))["key"] == key
    for file in (db, Path(f"{db}-keys")):
        file.unlink()
    assert f"3 receipts, 0 faults. Signed with {key}" in run("receipts", "verify", exported, "--key", key)
    answer = json.loads(run("receipts", "verify", exported, "--json"))
    expected = {"ok": True, "receipts": 3, "keys": [key], "faults": [], "warnings": []}
    expected |= {"chained": [[1, 3]], "missing": []}
    assert answer == expected
    assert "another key signed it" in faults(exported, "--key", "00")


def test_a_database_is_verified(db: Path) -> None:
    assert "3 receipts, 0 faults" in run("receipts", "verify", "--db", db)
    assert run("receipts", "verify", "--db", db) == run("receipts", "verify", "--db", db)
    assert "say what to verify" in error("receipts", "verify")


def test_changes_are_noticed(exported: Path) -> None:
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join(lines).replace('"purchases":2', '"purchases":1'))
    assert "receipt 1: its signature is not valid" in faults(exported)
    assert "receipt 2: it does not follow the receipt before it" in faults(exported)
    assert json.loads(run("receipts", "verify", exported, "--json", code=1))["ok"] is False
    exported.write_text("".join([*lines, lines[1]]))
    assert "receipt 2: it is there twice" in faults(exported)


def test_a_part_of_the_chain_is_verified_as_such(exported: Path) -> None:
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join(lines[1:]))
    assert "Signatures valid, receipts 2 to 3 are chained, 1 is not in this file.\n" in run(
        "receipts", "verify", exported
    )
    assert "receipt 1 is missing" in faults(exported, "--whole")
    exported.write_text(lines[2] + lines[0])
    answer = json.loads(run("receipts", "verify", exported, "--json"))
    assert (answer["chained"], answer["missing"]) == ([[1, 1], [3, 3]], [[2, 2]])
    exported.write_text(lines[2].replace('"verified":true', '"verified":false'))
    assert "its signature is not valid" in faults(exported)
    exported.write_text("")
    assert "There is no receipt in this file." in run("receipts", "verify", exported)


def test_a_receipt_as_json_of_any_layout(exported: Path) -> None:
    """As the page downloads one or many, as HTTP answers, and as an editor leaves it."""
    receipts = [json.loads(line) for line in exported.read_text().splitlines()]
    backwards = [dict(reversed(receipt.items())) for receipt in receipts]
    for text in (
        json.dumps(receipts[1]),
        json.dumps(receipts[1], indent=2),
        "\n" + json.dumps(receipts[1], indent=2) + "\n\n",
        json.dumps([receipts[1]]),
        "\ufeff" + json.dumps(receipts[1], indent="\t"),
    ):
        exported.write_text(text)
        assert "receipt 2 stands alone, 1 is not in this file" in run("receipts", "verify", exported)
    for text in (
        json.dumps(receipts),
        json.dumps(backwards, indent=4),
        "\r\n\r\n".join(json.dumps(receipt) for receipt in reversed(receipts)),
    ):
        exported.write_text(text)
        assert "3 receipts, 0 faults" in run("receipts", "verify", exported, "--whole")


def test_a_damaged_file_is_bad_input(exported: Path, tmp_path: Path) -> None:
    whole = exported.read_text()
    exported.write_text(whole[:-200] + "\n")
    assert f"{exported}: line 3 is not a receipt" in error("receipts", "verify", exported)
    exported.write_text(json.dumps(json.loads(whole.splitlines()[0]), indent=2)[:-200])
    assert f"{exported}: this is not a receipt" in error("receipts", "verify", exported)
    exported.write_text('{"receipts": []}')
    assert f"{exported}: line 1 is not a receipt" in error("receipts", "verify", exported)
    exported.write_bytes(b"\xff\xfe\n")
    assert "line 1 is not a receipt" in error("receipts", "verify", exported)
    assert "cannot read" in error("receipts", "verify", tmp_path / "absent.ndjson")
    assert "cannot read" in error("receipts", "verify", tmp_path)


def test_missing_keys_are_not_made(db: Path) -> None:
    """Only with a reason, which is in a receipt; the change of keys is a fault that an audit names."""
    Path(f"{db}-keys").unlink()
    assert "shop.db-keys does not exist" in error("receipts", "key", "--db", db)
    assert "rotate-key --lost" in error("receipts", "rotate-key", "--yes", "--db", db)
    assert "rotate-key --lost" in error("forget", 1, "--db", db)
    assert not Path(f"{db}-keys").exists()
    run("receipts", "rotate-key", "--yes", "--lost", "stolen", "--db", db)
    assert json.loads(run("receipts", "list", "--db", db, "--json"))[-1]["detail"] == "the key before was lost: stolen"
    verified = CliRunner().invoke(app, ["receipts", "verify", "--db", str(db)])
    assert verified.exit_code == 1
    assert "which the key before it has not signed" in verified.stderr


def test_the_key_is_rotated_after_asking(db: Path) -> None:
    key = run("receipts", "key", "--db", db).strip()
    declined = CliRunner().invoke(app, ["receipts", "rotate-key", "--db", str(db)], input="n\n")
    assert declined.exit_code == 1
    assert run("receipts", "key", "--db", db).strip() == key
    run("receipts", "rotate-key", "--yes", "--db", db)
    run("forget", 1, "--db", db)
    assert run("receipts", "key", "--db", db).strip() != key
    assert "0 faults" in run("receipts", "verify", "--db", db, "--key", key, "--every-signature")


def test_checkpoints_and_proofs_of_receipts(db: Path, tmp_path: Path) -> None:
    old, proof = tmp_path / "old.checkpoint", tmp_path / "proof.json"
    run("receipts", "checkpoint", "--db", db, "--output", old)
    [facts] = json.loads(run("forget", 1, "--db", db, "--json"))
    number, secret = facts["receipts"][0]["number"], facts["secrets"][0]
    options = ("--user", 1, "--secret", secret)
    run("receipts", "prove", number, "--db", db, "--output", proof, *options)
    assert "about 1, is in the log" in verifier.verify(proof.read_text())
    assert "belong together" in error("receipts", "prove", number, "--db", db, "--user", 1)
    assert "there is no receipt 99" in error("receipts", "prove", 99, "--db", db)
    assert "0 faults" in run("receipts", "verify", "--db", db, "--since", old)
    assert "not a signed note" in error("receipts", "verify", "--db", db, "--since", proof)
    with ub.open(tmp_path / "other.db") as other:
        (tmp_path / "other.checkpoint").write_text(other.checkpoint())
    foreign = ["receipts", "verify", "--db", str(db), "--since", str(tmp_path / "other.checkpoint")]
    assert "the checkpoint is of another log" in CliRunner().invoke(app, foreign).stderr
    run("receipts", "prove", "--since", old, "--db", db, "--output", proof)
    assert "The log begins with the 3 receipts" in verifier.verify(proof.read_text(), since=old.read_text())
    assert "say what to prove" in error("receipts", "prove", "--db", db)
    assert "say what to prove" in error("receipts", "prove", number, "--since", old, "--db", db)
    assert "different logs" in error("receipts", "prove", "--since", tmp_path / "other.checkpoint", "--db", db)
    exported = tmp_path / "all.ndjson"
    run("receipts", "export", exported, "--db", db)
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join(lines[:2]))
    cut = CliRunner().invoke(app, ["receipts", "verify", str(exported), "--since", str(old)])
    assert cut.exit_code == 1
    assert "the log was cut or rolled back: it had 3 receipts" in cut.stderr


def test_a_witness(db: Path, tmp_path: Path) -> None:
    """Yesterday's database is refused; with a reason, it goes on, and the reason is in a receipt."""
    folder, yesterday = tmp_path / "witness", tmp_path / "yesterday.db"
    folder.mkdir()
    shutil.copy(db, yesterday)
    run("forget", 1, "--db", db)
    checkpoint = run("receipts", "checkpoint", "--db", db, "--witness", folder)
    assert verifier.read_checkpoint(checkpoint).size == 4
    shutil.copy(yesterday, db)
    refused = error("receipts", "checkpoint", "--db", db, "--witness", folder)
    assert "the log was cut or rolled back: it had 4 receipts" in refused
    run("receipts", "checkpoint", "--db", db, "--witness", folder, "--accept-rollback", "the disk died")
    [*_, last] = json.loads(run("receipts", "list", "--db", db, "--json"))
    assert (last["scope"], last["detail"]) == ("rollback", "the disk died")
    run("receipts", "checkpoint", "--db", db, "--witness", folder)
    assert "is not a folder" in error("receipts", "checkpoint", "--db", db, "--witness", tmp_path / "absent")
