"""Errors of the disk: a failed sync, or a file that another program cuts off, ends writing; nothing is acknowledged.

A scenario across all modules of the store.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.store import failing_writer
from tests.store.failing_writer import Outcome
from tests.store.traffic import replayed

import unbasket as ub
from unbasket.errors import StoreError, UncertainError
from unbasket.store.wal import wal_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture(scope="session")
def failing_sync(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the library that lets a sync fail."""
    library = tmp_path_factory.mktemp("library") / "failing_sync.so"
    source = Path(__file__).with_name("failing_sync.c")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def test_every_failed_sync(failing_sync: Path, tmp_path: Path) -> None:
    """At any sync of a learn, forget, checkpoint, compaction or close: an `UncertainError`, and nothing after it.

    All that was acknowledged before is there when the database is opened again.
    """
    command = [sys.executable, "-m", "tests.store.failing_writer", str(tmp_path)]
    environment = {**os.environ, "LD_PRELOAD": str(failing_sync)}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    *failed, sound = (msgspec.json.decode(line, type=Outcome) for line in done.stdout.splitlines())
    assert set(sound.results) == {"ok"}
    assert sound.has_compacted
    assert len(failed) > 2 * len(sound.results)  # a forget has several
    requests = failing_writer.requests()
    for number, outcome in enumerate(failed, 1):
        first = outcome.results.index("UncertainError")
        assert outcome.results[:first] == ["ok"] * first, number
        assert "ok" not in outcome.results[first + 1 : -1], number
        with ub.open(tmp_path / str(number) / "shop.db") as engine:
            possible = [replayed(engine, requests[:count]).digest() for count in (first, first + 1)]
            assert engine.digest() in possible, number
            assert engine.verify().ok


def cut_log(path: Path, size: float) -> None:
    log = wal_path(path)
    os.truncate(log, int(size * len(log.read_bytes().rstrip(b"\0"))))  # zeros at its end hold nothing


def cut_database(path: Path, size: float) -> None:
    os.truncate(path, int(size * path.stat().st_size))


@pytest.mark.parametrize("size", [0, 0.5])
@pytest.mark.parametrize("cut", [cut_log, cut_database])
@pytest.mark.parametrize("change", ["learn", "edit", "forget", "close"])
def test_a_file_that_is_cut_off(path: Path, cut: Callable[[Path, float], None], size: float, change: str) -> None:
    """SQLite would write on, as if nothing had happened, and fill the gap by zeros."""
    changes: dict[str, Callable[[], object]] = {
        "learn": lambda: engine.learn("bob", ["milk"], basket=1),
        "edit": lambda: engine.learn("ann", ["milk"], basket=1),
        "forget": lambda: engine.forget("ann"),
        "close": lambda: engine.close(),
    }
    with ub.open(path) as engine:
        for basket in range(20):
            engine.learn("ann", ["tea", f"item {basket}"], basket=basket)
        engine.forget("ann", basket=7)
        for basket in range(20, 40):
            engine.learn("ann", ["tea", f"item {basket}"], basket=basket)
        cut(path, size)
        engine._journal._database._names_due = 0  # the size of the file is checked every 10 ms
        with pytest.raises(UncertainError, match="cut off by another program"):
            changes[change]()
        before = _states(path)
        with pytest.raises(StoreError):
            engine.learn("ann", ["milk"], basket="later")
    if cut is cut_log or size > 0:  # SQLite itself removes the log of an empty file
        assert _states(path) == before  # closing makes it no worse
    with pytest.raises(StoreError):
        ub.open(path)


def _states(path: Path) -> list[tuple[int, int]]:
    """Return size and time of the database and its log, if there; to open them would cost SQLite its locks."""
    files = [file.stat() for file in (path, wal_path(path)) if file.exists()]
    return [(file.st_size, file.st_mtime_ns) for file in files]


def test_a_log_that_is_reused(path: Path) -> None:
    """The engine checkpoints by itself: a thousand learns fill the log once, and not again and again."""
    with ub.open(path) as engine:
        sizes = []
        for basket in range(3000):
            engine.learn(basket % 7, ["milk", f"item {basket}"], basket=basket)
            sizes.append(wal_path(path).stat().st_size)
        assert sizes[-1] < 2 * sizes[999]
        digest = engine.digest()
    with ub.open(path) as engine:
        assert engine.digest() == digest
