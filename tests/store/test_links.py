"""Links and moved files: the lock belongs to the file, and a writer whose file lost its name stops writing.

A scenario across `lock`, `opening` and `writer`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.test_faults import digest_of, filled
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli.app import app
from unbasket.errors import StoreError, StoreLockedError, UncertainError
from unbasket.store import writer
from unbasket.store.wal import wal_path

_WRITE = """
import sys
import unbasket as ub
with ub.open(sys.argv[1]) as engine:
    engine.learn("other", ["milk"], basket=1)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    filled(tmp_path / "files" / "shop.db")
    return tmp_path / "files" / "shop.db"


def written_by_another_process(path: Path) -> str:
    """Write in another process; returns its error output."""
    return subprocess.run([sys.executable, "-c", _WRITE, path], capture_output=True, text=True, check=False).stderr


def test_a_symbolic_link(path: Path, tmp_path: Path) -> None:
    """It stands for the file that it points to: for learning, forgetting, locking, and the keys."""
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with ub.open(link) as engine:
        engine.learn("ann", ["milk"], basket=1)
        engine.forget("ann")
        engine.learn("bob", ["milk"], basket=1)
        assert "ann" not in engine
        assert digest_of(link) == digest_of(path) == engine.digest()
        for name in (path, link):
            with pytest.raises(StoreLockedError):
                ub.open(name)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["link.db"]
    key = [CliRunner().invoke(app, ["receipts", "key", "--db", str(name)]).output for name in (path, link)]
    assert key[0] == key[1]


def test_a_link_to_a_file_that_does_not_exist_yet(tmp_path: Path) -> None:
    link, path = tmp_path / "link.db", tmp_path / "new.db"
    link.symlink_to(path)
    with ub.open(link) as engine:
        engine.learn("ann", ["milk"], basket=1)
    assert digest_of(path) == digest_of(link)


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "shop.db").symlink_to(tmp_path / "shop.db")
    for read_only in (True, False):
        with pytest.raises(StoreError):
            ub.open(tmp_path / "shop.db", read_only=read_only)


def test_a_hard_link(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    os.link(path, other)
    for name in (path, other):
        for read_only in (True, False):
            with pytest.raises(StoreError, match=r"has 2 names \(hard links\)"):
                ub.open(name, read_only=read_only)
    other.unlink()
    digest_of(path)


def test_a_removed_lock_file(path: Path) -> None:
    """The database itself is locked too; and a second attempt in the same process does not break SQLite's locks."""
    with ub.open(path) as engine:
        for _ in range(2):
            path.with_name("shop.db-lock").unlink(missing_ok=True)
            with pytest.raises(StoreLockedError):
                ub.open(path)
            assert "is open for writing in another place" in written_by_another_process(path)
        engine.learn("ann", ["milk"], basket=1)
        digest = engine.digest()
    assert digest_of(path) == digest
    assert written_by_another_process(path) == ""


def test_sqlites_locks_outlast_ours(path: Path) -> None:
    """Closing an engine must not release locks of another connection of the same process; see fcntl(2)."""
    with ub.open(path) as engine:
        reader = ub.store.writer.Database(path, read_only=True)
    try:
        assert _locks_of(path) > 0
        engine.close()
    finally:
        reader.close()
    assert _locks_of(path) == 0


def _locks_of(path: Path) -> int:
    """Return how many POSIX locks a file has."""
    inode = f":{path.stat().st_ino} "
    return sum(inode in line and "POSIX" in line for line in Path("/proc/locks").read_text().splitlines())


def replaced(path: Path, tmp_path: Path) -> None:
    filled(tmp_path / "another.db", 5, seed=2)
    (tmp_path / "another.db").rename(path)


def moved(path: Path, tmp_path: Path) -> None:
    path.rename(tmp_path / "moved.db")


def removed(path: Path, tmp_path: Path) -> None:  # noqa: ARG001
    path.unlink()


def wal_removed(path: Path, tmp_path: Path) -> None:  # noqa: ARG001
    wal_path(path).unlink()


@pytest.mark.parametrize("happens", [replaced, moved, removed, wal_removed])
def test_a_file_that_loses_its_name(path: Path, tmp_path: Path, happens: Callable[[Path, Path], None]) -> None:
    """Nothing is acknowledged that the next process to open the path would not find."""
    with ub.open(path) as engine:
        engine.learn("ann", ["milk"], basket=1)
        happens(path, tmp_path)
        time.sleep(2 * writer._NAMES_CHECKED_EVERY)
        with pytest.raises(UncertainError, match="moved, replaced or removed while it was open"):
            engine.learn("bob", ["milk"], basket=1)
        for change in (lambda: engine.learn("bob", ["milk"], basket=2), lambda: engine.forget("ann")):
            with pytest.raises(StoreError, match="takes nothing more"):
                change()


def test_a_removed_log_is_checkpointed_when_closing(path: Path) -> None:
    """The writer still has it open."""
    with ub.open(path) as engine:
        engine.learn("ann", ["milk"], basket=1)
        wal_path(path).unlink()
        digest = engine.digest()
    assert digest_of(path) == digest
