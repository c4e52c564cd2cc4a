"""A backup is of one snapshot, though other threads learn and forget while it is written, without waiting."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from tests.laws import law_of_equality
from tests.store.file_search import FileSearcher

import unbasket as ub
from unbasket.store import backup
from unbasket.store.backup import Copy
from unbasket.store.opening import back_up
from unbasket.store.signing import signing_keys_of

USERS = 60


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a database with rows enough for many small chunks."""
    monkeypatch.setattr("unbasket.store.backup._ROWS", 7)
    monkeypatch.setattr("unbasket.store.backup._SPAN", 11)
    monkeypatch.setattr("unbasket.store.journal.TIMEOUT", 0)  # a forget that a reader blocks is an error at once
    path = tmp_path / "shop.db"
    with ub.open(path) as rec:
        rows = [(name(user), 1, item) for user in range(USERS) for item in (f"item {user % 9}", f"own {user}")]
        rec.fit(pl.DataFrame(rows, ["user", "basket", "item"], orient="row"))
        items = rec.items()
        rec.describe({"item": items, "name": [f"name of {item}" for item in items]}, category=None)
        for user in range(USERS):
            rec.suppress(name(user), "milk")
    return path


def name(number: int) -> str:
    """Return an id that has no eight letters in common with another."""
    return blake2b(number.to_bytes(2, "big"), digest_size=12).hexdigest()


@pytest.fixture(scope="module")
def searcher() -> Iterator[FileSearcher]:
    with FileSearcher() as searcher:
        yield searcher


def test_cursors_move_meanwhile_with_their_events(path: Path, tmp_path: Path) -> None:
    """The last event of the copy is the one that its cursor counts."""
    target, moved = tmp_path / "copy.db", count(1)

    def consume(*_: int) -> None:
        position = next(moved)
        rec.apply([ub.Learn("ann", ["milk"], position, None)], cursors={"events/0": position})

    with ub.open(path) as rec:
        rec.apply([], cursors={"events/0": 0})
        rec.backup(target, progress=consume)
    with ub.open(target, read_only=True) as copy:
        assert copy.cursors() == {"events/0": len(copy.history("ann"))}
        assert len(copy.history("ann")) > 9


@pytest.mark.parametrize("seed", range(4))
def test_learning_and_forgetting_meanwhile(path: Path, tmp_path: Path, searcher: FileSearcher, seed: int) -> None:
    chance, target, forgotten = random.Random(seed), tmp_path / "backups" / "monday.db", set[str]()
    target.parent.mkdir()
    with ub.open(path) as rec:

        def happen(done: int, rows: int) -> None:
            assert done <= rows
            rec.learn(name(chance.randrange(USERS)), ["milk"], basket=chance.randrange(10**6))
            user = name(chance.randrange(USERS))
            if chance.random() < 0.5 and user in rec:
                rec.forget(user)  # with their suppressions, and the products that only they bought
                forgotten.add(user)

        rec.backup(target, progress=happen)
        assert len(forgotten) > 2
        assert [file.name for file in target.parent.iterdir()] == ["monday.db"]
        with ub.open(target, keys=signing_keys_of(path)) as copy:
            law_of_equality(rec, copy)
            assert copy.receipts() == rec.receipts()
        assert searcher.search(target.parent, forgotten - set(rec.users())) == {}


def test_forgetting_all_the_time(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt is one transaction, so a backup comes to an end."""
    attempts, zero_erased = list[bool](), Copy._zero_erased
    with ub.open(path) as rec:

        def after_a_forget(copy: Copy, at_once: bool) -> None:
            zero_erased(copy, at_once)
            attempts.append(at_once)
            if not at_once:
                rec.forget(name(len(attempts)))

        monkeypatch.setattr(Copy, "_zero_erased", after_a_forget)
        rec.backup(tmp_path / "copy.db", progress=lambda done, _: done > USERS and rec.forget(name(0)))
        assert attempts == [False] * (backup._ATTEMPTS - 2) + [True]
        with ub.open(tmp_path / "copy.db", keys=signing_keys_of(path)) as copy:
            law_of_equality(rec, copy)


def test_during_a_compaction(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compaction moves rows while they are copied."""
    monkeypatch.setattr("unbasket.store.writer._WORTH_COMPACTING", 20)
    monkeypatch.setattr("unbasket.store.writer._PACE", 0)
    monkeypatch.setattr("unbasket.store.compaction.BATCH_SIZE", 300)
    with ub.open(path) as rec:
        for user in range(40):
            rec.forget(name(user))
        assert rec._journal._database._to_compact
        spaces, baskets = rec._journal._database.reader.spaces.copy(), count(1)
        rec.backup(tmp_path / "copy.db", progress=lambda *_: rec.learn("ann", ["milk"], basket=next(baskets)))
        assert rec._journal._database.reader.spaces != spaces
        with ub.open(tmp_path / "copy.db", keys=signing_keys_of(path)) as copy:
            law_of_equality(rec, copy)


def test_damage_is_not_copied(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM baskets WHERE id = 30")
    with pytest.raises(ub.StoreError, match="other rows than its row totals say"):
        back_up(path, tmp_path / "copy.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE baskets SET body = CAST(substr(body, 1, 8) || x'FF' || substr(body, 10) AS BLOB) WHERE id = 31"
        )
    with pytest.raises(ub.StoreError, match="row 31 of baskets is damaged"):
        back_up(path, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.glob("copy*")] == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_lost_receipt_is_an_error(path: Path, tmp_path: Path, number: int) -> None:
    """Neither one in the middle nor the newest: the copy would not show that it is lost."""
    with ub.open(path) as rec:
        rec.forget(name(1))
        rec.forget(name(2))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM receipts WHERE id = ?", (number,))
    with pytest.raises(ub.StoreError, match="other rows than its row totals say"):
        back_up(path, tmp_path / "copy.db")


def test_rows_lost_by_a_crash_are_an_error(path: Path, tmp_path: Path) -> None:
    with ub.open(path) as rec:
        rec.learn("ann", ["milk"], basket=1)
        for file in tmp_path.glob("shop.db*"):
            if not file.name.endswith(("-wal", "-shm")):
                (tmp_path / "crashed").mkdir(exist_ok=True)
                shutil.copy(file, tmp_path / "crashed")
    with pytest.raises(ub.StoreError, match="are lost"):
        back_up(tmp_path / "crashed" / "shop.db", tmp_path / "copy.db")
