"""The write-ahead log: zeros ahead; after a crash: missing, replaced, with an old index. See also `test_loss.py`."""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.test_faults import PAGE, crashed, filled, use

import unbasket as ub
from unbasket.errors import (
    ErasureBlockedError,
    InvalidParamsError,
    StoreCorruptError,
    StoreError,
)
from unbasket.store import journal, wal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def crash(path: Path, tmp_path: Path) -> tuple[Path, str]:
    """Return a database that a crash left with its newest events in the log, and its digest."""
    filled(path)
    with ub.open(path) as engine:
        for basket in range(20):
            engine.learn("newest", ["milk"], basket=basket)
        copy = crashed(path, tmp_path / "copy")
        assert (copy.parent / "shop.db-wal").stat().st_size > PAGE
        return copy, engine.digest()


def test_a_missing_log(crash: tuple[Path, str], tmp_path: Path) -> None:
    path, digest = crash
    log = (path.parent / "shop.db-wal").rename(tmp_path / "log")
    for read_only in (False, True, False):
        with pytest.raises(StoreCorruptError, match=r"shop\.db-wal is missing"):
            ub.open(path, read_only=read_only)
    log.rename(path.parent / "shop.db-wal")
    with ub.open(path) as engine:
        assert engine.digest() == digest


@pytest.mark.parametrize(
    "garbage", [b"garbage" * 3000, b"\xff" * 100, b"7\x7f\x06\x82" + b"x" * 5000], ids=["text", "short", "no header"]
)
def test_garbage_instead_of_a_log(crash: tuple[Path, str], garbage: bytes) -> None:
    path, _ = crash
    (path.parent / "shop.db-wal").write_bytes(garbage)
    for read_only in (True, False, False):
        with pytest.raises(StoreCorruptError, match=r"shop\.db-wal"):
            ub.open(path, read_only=read_only)


def test_a_log_of_garbage_beside_a_closed_database(path: Path) -> None:
    """SQLite would overwrite it, though it may be of use to its owner: an error."""
    digest, log = filled(path), path.parent / "shop.db-wal"
    log.write_bytes(b"garbage" * 3000)
    for read_only in (True, False, True):
        with pytest.raises(StoreCorruptError, match=r"shop\.db-wal is damaged.* remove it"):
            ub.open(path, read_only=read_only)
    assert log.read_bytes() == b"garbage" * 3000
    log.unlink()
    use(path, digest, writing=True)


@pytest.mark.parametrize("left", [b"", b"garbage" * 5000, None])
def test_an_old_index_of_the_log(crash: tuple[Path, str], left: bytes | None) -> None:
    """SQLite rebuilds `-shm` from the log, whatever was in it."""
    path, digest = crash
    index = path.parent / "shop.db-shm"
    if left is None:
        index.unlink()
    else:
        index.write_bytes(left)
    with ub.open(path) as engine:
        assert engine.digest() == digest
    index.write_bytes(b"garbage" * 5000)  # beside a closed database
    with ub.open(path) as engine:
        assert engine.digest() == digest


@pytest.mark.parametrize("mistake", ["params", "keys"])
def test_a_mistake_after_a_crash(crash: tuple[Path, str], mistake: str) -> None:
    """An attempt to open it that fails changes nothing for the next."""
    path, digest = crash
    keys = path.parent / "shop.db-keys"
    good = keys.read_bytes()
    if mistake == "keys":
        keys.write_text("no keys")
    for _ in range(2):
        with pytest.raises(InvalidParamsError if mistake == "params" else StoreError):
            ub.open(path, ub.Params(group_size=2, alpha=0.8) if mistake == "params" else None)
    keys.write_bytes(good)
    with ub.open(path) as engine:
        assert engine.digest() == digest


def test_zeros_are_written_ahead(path: Path, tmp_path: Path) -> None:
    """SQLite takes them for the end of its log, and a forget truncates them."""
    log = path.parent / "shop.db-wal"
    with ub.open(path) as engine:
        engine.forget("nobody")
        sizes = []
        for basket in range(40):
            engine.learn("ann", ["milk"], basket=basket)
            sizes.append(log.stat().st_size)
        assert sizes[0] < sizes[1] < 2**15
        longer = next(size for size in sizes if size > 2**18)
        assert sizes[-1] == longer
        assert not any(log.read_bytes()[-(2**17) :])
        with ub.open(crashed(path, tmp_path / "copy")) as copy:
            assert copy.digest() == engine.digest()
        engine.forget("ann", basket=0)
        assert log.stat().st_size == 0
        engine.learn("ann", ["milk"], basket=0)
        assert 0 < log.stat().st_size < 2**15


def test_a_disk_without_room_for_zeros(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    with ub.open(path) as engine:
        monkeypatch.setattr(wal, "_RESERVE_FROM", 0)
        monkeypatch.setattr(os, "pwrite", fail)
        for basket in range(20):
            engine.learn("ann", ["milk"], basket=basket)
        assert len(engine.history("ann")) == 20


def test_zeros_are_written_once_while_a_reader_forbids_truncation(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each learn tries to truncate the log then, for as long as the reader stays."""
    monkeypatch.setattr(journal, "TIMEOUT", 0)
    log = wal.wal_path(path)
    with ub.open(path) as engine, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        for basket in range(40):
            engine.learn("ann", ["milk"], basket=basket)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM baskets").fetchone()
        with pytest.raises(ErasureBlockedError):
            engine.forget("ann", basket=0)
        before = log.stat().st_size
        for basket in range(100, 130):
            engine.learn("ann", ["milk"], basket=basket)
        assert log.stat().st_size < before + 2**19
        reader.execute("ROLLBACK")
        engine.forget("ann", basket=1)
        assert log.stat().st_size == 0
