"""`unbasket consume` without a broker: what it refuses. tests/kafka has the rest."""

from pathlib import Path

import pytest
from tests.cli.running import error
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli import app


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_invalid_settings_create_no_database(path: Path, tmp_path: Path) -> None:
    options = ("consume", "--db", path, "--brokers", "localhost:9092")
    assert "a topic has 1 to 249 letters" in error(*options, "--topic", "a b")
    assert "a batch has 1 to 100,000 messages, not 0" in error(*options, "--topic", "events", "--batch", 0)
    missing = tmp_path / "client.properties"
    assert f"cannot read {missing}" in error(*options, "--topic", "events", "--client-config", missing)
    assert not path.exists()


@pytest.mark.parametrize("command", [["consume"], ["serve", "--port", "0", "--consume"]])
def test_wrong_brokers_leave_nothing_behind(
    command: list[str], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbasket.kafka.topics._TIMEOUT", 0.1)
    options = ["--db", str(path), "--brokers", "127.0.0.1:1", "--topic", "events"]
    failed = CliRunner().invoke(app, command + options)
    assert failed.exit_code == 2
    assert failed.stderr.splitlines()[-1].startswith("Error: no broker answers at 127.0.0.1:1")
    assert [*tmp_path.iterdir()] == []


def test_no_broker_answers_for_a_database_that_exists(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.kafka.topics._TIMEOUT", 0.1)
    with ub.open(path) as rec:
        rec.learn("ann", ["milk"], basket=1)
        digest = rec.digest()
    failed = CliRunner().invoke(app, ["consume", "--db", str(path), "--brokers", "127.0.0.1:1", "--topic", "events"])
    assert (failed.exit_code, "no broker answers" in failed.stderr) == (2, True)
    with ub.open(path) as rec:
        assert rec.digest() == digest
