"""Checkpoints of a running service before a witness, which remembers them."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.process import failing, running, until
from tests.service.serving import make_shop
from tests.store.test_timestamp import Authority
from tests.store.test_timestamp import authority as authority  # the fixture
from tests.store.test_witness import SmallWitness
from tests.store.test_witness import address as address  # the fixture

import unbasket as ub
from unbasket.service.background_tasks import CheckpointPublisher
from unbasket.verifier import read_checkpoint, verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    witness = tmp_path / "witness"
    witness.mkdir()
    return witness


def sizes(folder: Path) -> list[int]:
    """Return the number of receipts in each checkpoint of a witness, all of which hold."""
    notes = [file.read_text() for file in sorted(folder.iterdir())]
    assert all(map(verify, notes))
    return [read_checkpoint(note).size for note in notes]


def test_a_service_publishes_at_its_start_and_end(db: Path, folder: Path) -> None:
    with running(make_shop(db), "--witness", folder) as service:
        assert sizes(folder) == [0]
        assert service.ask("DELETE", "/v1/users/ann")[0] == 200
        metrics = service.ask("GET", "/metrics")[1].decode()
        assert "unbasket_witnessed_timestamp_seconds 1." in metrics
        assert service.stop() == 0
    assert sizes(folder) == [0, 1]


def test_an_authority_timestamps_them(db: Path, folder: Path, authority: Authority) -> None:
    with running(make_shop(db), "--witness", folder, "--timestamp", authority.url) as service:
        assert service.ask("DELETE", "/v1/users/ann")[0] == 200
        assert service.stop() == 0
    checkpoints = sorted(folder.glob("*.checkpoint"))
    assert len(checkpoints) == 2
    assert all(authority.verifies(file, file.with_name(file.name + ".tsr")) for file in checkpoints)
    options = ("serve", "--db", db, "--port", "0", "--timestamp", authority.url)
    assert "nothing to timestamp without a witness" in failing(*options)


def test_an_older_database_is_refused(db: Path, folder: Path) -> None:
    make_shop(db)
    shutil.copy(db, db.with_name("yesterday"))
    with running(db, "--witness", folder) as service:
        service.ask("DELETE", "/v1/users/ann")
        assert service.stop() == 0
    shutil.copy(db.with_name("yesterday"), db)
    refused = failing("serve", "--db", db, "--port", "0", "--witness", folder)
    assert "the log was cut or rolled back: it had 1 receipt on" in refused
    assert "--accept-rollback REASON" in refused
    with running(db, "--witness", folder, "--accept-rollback", "the disk died") as service:
        receipts = json.loads(service.ask("GET", "/v1/receipts")[1])["receipts"]
        assert [(each["scope"], each["detail"]) for each in receipts] == [("rollback", "the disk died")]
        assert service.stop() == 0
    with running(db, "--witness", folder) as service:  # it goes on from there
        assert service.stop() == 0


def test_a_witness_over_http(db: Path, address: str) -> None:
    file = db.with_name("settings.toml")
    file.write_text(f'witness = "{address}"\n')
    with running(make_shop(db), "--config", file) as service:
        service.ask("DELETE", "/v1/users/ann")
        assert service.stop() == 0
    assert [checkpoint.size for checkpoint in SmallWitness.seen.values()] == [1]


def test_a_witness_must_be_there_at_the_start(db: Path, folder: Path) -> None:
    folder.rmdir()
    assert f"{folder} is not a folder" in failing("serve", "--db", db, "--port", "0", "--witness", folder)


@pytest.fixture
def published(db: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ub.store.DurableRecommender]:
    """Run a publisher that hardly waits."""
    monkeypatch.setattr("unbasket.service.background_tasks.INTERVAL", 0.01)
    publisher = CheckpointPublisher()
    with ub.open(make_shop(db), witness=folder) as rec:
        thread = threading.Thread(target=publisher.run, args=(rec,))
        thread.start()
        yield rec
        publisher.stop()
        thread.join()


def test_it_publishes_regularly_and_survives_a_lost_witness(
    published: ub.store.DurableRecommender, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published.forget("ann")
    until(lambda: sizes(folder)[-1] == 1)
    folder.rename(folder.with_name("unmounted"))
    until(lambda: "checkpoint not published" in capsys.readouterr().out)
    published.forget("bob")
    folder.with_name("unmounted").rename(folder)
    until(lambda: sizes(folder)[-1] == 2)
