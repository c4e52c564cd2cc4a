"""The journal on disk: events of many callers, and errors of the disk. See also `test_blocked.py`."""

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.laws import law_of_equality
from tests.store.test_durable import SHOP

import unbasket as ub
from unbasket.domain.events import Learn
from unbasket.engine.state import EngineState
from unbasket.engine.verification import InvariantChecker
from unbasket.errors import (
    StoreError,
    UncertainError,
)
from unbasket.store.wal import Wal
from unbasket.store.write_request import WriteRequest
from unbasket.store.writer import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_a_forget_is_one_erasure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of events without zeroed rows, none: they are synced."""
    attempts: list[Database] = []
    truncate = Database._truncate_wal

    def counted(database: Database) -> bool:
        attempts.append(database)
        return truncate(database)

    with ub.open(path).fit(SHOP) as rec:
        monkeypatch.setattr(Database, "_truncate_wal", counted)
        rec.learn("ann", ["tea"], basket=9)
        rec.suppress("ann", "wine")
        assert len(attempts) == 0
        rec.forget("bob")
        assert len(attempts) == 1
        rec.apply([ub.Forget("ann", 1, None), ub.Forget("cleo", None, None)])
        assert len(attempts) == 2
        monkeypatch.undo()


def test_many_events_at_once(path: Path) -> None:
    events: list[ub.Event] = [
        ub.Learn("dan", ["milk", "tea"], 1, None),
        ub.Learn("dan", ["milk"], 1, None),
        ub.Forget("bob", None, None),
        ub.Learn("bob", ["gin"], 7, 9),
        ub.Forget("nobody", None, None),
    ]
    with ub.open(path).fit(SHOP) as rec:
        fresh = ub.Recommender(salt=rec.salt).fit(SHOP)
        results = rec.apply(events)
        assert results == fresh.apply(events)
        assert results == ["added", "replaced", (2, 1, 1), "added", (0, 0, 0)]
        law_of_equality(rec, fresh)
        assert len(rec.receipts()) == 2
        law_of_equality(ub.open(path, read_only=True), fresh)


def events_of(caller: int) -> list[ub.Event]:
    events: list[ub.Event] = []
    for number in range(30):
        user = f"user {caller}.{number % 3}"
        events.append(ub.Learn(user, [f"i{number % 7}", f"i{caller}"], number, number * 37 % 11))
        if number % 4 == 3:
            events.append(ub.Forget(user, number - 3, None))
        if number % 9 == 8:
            events.append(ub.Forget(user, None, f"i{caller}"))
    return events


def test_callers_in_many_threads(path: Path) -> None:
    """Each has users of its own; the result, in memory and on disk, equals a fresh engine."""
    with ub.open(path, ub.Params(neighbors=5)) as rec:
        fresh = ub.Recommender(rec.params, salt=rec.salt)
        for caller in range(8):
            fresh.apply(events_of(caller))
        with ThreadPoolExecutor(8) as callers:
            done = [callers.submit(lambda caller: [rec.apply([e]) for e in events_of(caller)], i) for i in range(8)]
            while not all(future.done() for future in done):
                rec.recommend_many(n=3)
            for future in done:
                future.result()
        law_of_equality(rec, fresh)
        assert ub.store.audit(rec.receipts()).ok
    with ub.open(path) as rec:
        law_of_equality(rec, fresh)


def test_an_unknown_user_does_not_affect_other_callers(path: Path) -> None:
    """Their events are in the same transaction."""

    def suppress(number: int) -> bool:
        try:
            return rec.suppress(f"user {number % 20}", number)
        except ub.UnknownUserError:
            return False

    with ub.open(path) as rec:
        for number in range(10):
            rec.learn(f"user {number}", ["milk"], basket=1)
        with ThreadPoolExecutor(8) as pool:
            done = [*pool.map(suppress, range(200))]
        assert [number for number in range(200) if done[number]] == [n for n in range(200) if n % 20 < 10]
        digest = rec.digest()
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert rec.suppressed("user 3") == sorted(map(str, range(3, 200, 20)))


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_a_writer_reads_the_state_under_the_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch, grouping: Literal["fixed", "varying"]
) -> None:
    """A query with unknown items grows the state, and does not wait for the disk as writers do."""
    entered: list[bool] = []
    threads: list[threading.Thread] = []

    def enter(done: threading.Event) -> None:
        with rec._model.lock.writing:
            done.set()

    def probed(kind: type, name: str) -> Callable[..., Any]:
        method = getattr(kind, name)

        def run(*given: Any) -> Any:
            done = threading.Event()
            threads.append(threading.Thread(target=enter, args=(done,)))
            threads[-1].start()
            entered.append(done.wait(0.05))
            return method(*given)

        return run

    with ub.open(path, ub.Params(group_size=3, grouping=grouping, alpha=0.8)) as rec:
        methods = {
            EngineState: ("comes_last", "learn", "forget"),
            Database: ("append_baskets",),
            InvariantChecker: ("trace", "faults"),
        }
        for kind, names in methods.items():
            for name in names:
                monkeypatch.setattr(kind, name, probed(kind, name))
        rec.learn("ann", ["milk"], basket=1, time=1)
        rec.learn("ann", ["bread"], basket=2, time=0)
        rec.forget("ann", basket=2)
        for thread in threads:
            thread.join()
    assert len(entered) >= 7
    assert not any(entered)


def test_unsynced_rows_of_a_crash_are_synced_before_they_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may have been killed between writing and syncing them."""
    with ub.open(path) as rec:
        rec.learn("ann", ["milk"], basket=1)
    synced: list[Wal] = []
    monkeypatch.setattr(Wal, "sync", lambda log: synced.append(log))
    with ub.open(path) as rec:
        assert len(synced) == 1  # by the truncating checkpoint
        assert rec.learn("ann", ["milk"], basket=1) == "unchanged"
        assert len(synced) == 1


def test_a_disk_that_fails_to_sync(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of the disk is unknown then, and another sync would not tell: nothing more is acknowledged."""
    requests: list[Callable[[], object]] = [
        lambda: engine.learn("ann", ["milk"], basket=2),
        lambda: engine.learn("ann", ["soap"], basket=1),
        lambda: engine.apply([Learn("bob", ["milk"], 1, None)]),
        lambda: engine.forget("ann"),
    ]
    for request in requests:
        with monkeypatch.context() as patch, ub.open(path, ub.Params(group_size=3, alpha=0.8)) as engine:
            engine.learn("ann", ["tea"], basket=1)
            patch.setattr(Wal, "sync", _failing)
            with pytest.raises(UncertainError, match=r"did not confirm what was written .*Input/output error"):
                request()
            patch.undo()
            assert engine.verify().ok
            with pytest.raises(StoreError, match="takes nothing more"):
                engine.learn("ann", ["tea"], basket=3)
        with ub.open(path) as engine:
            assert engine.verify().ok
            engine.forget("ann")


def _failing(_: Wal) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_waiting_callers_if_the_leader_is_interrupted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader gets the interrupt; a caller that it serves gets an `UncertainError`."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with ub.open(path) as engine:
        monkeypatch.setattr(engine._journal, "_write_requests", interrupted)
        waiting = WriteRequest([Learn("bob", ["milk"], 1, None)])
        with pytest.raises(KeyboardInterrupt):
            engine._journal.serve([waiting])
        assert not waiting.is_served
        monkeypatch.setattr(engine._journal, "serve", lambda _: None)
        with pytest.raises(UncertainError, match="may have happened, or not"):
            engine.learn("bob", ["milk"], basket=1)


def test_a_disk_that_can_neither_be_written_nor_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_: Database) -> None:
        raise StoreError("its disk reports an error")

    with ub.open(path) as engine:
        monkeypatch.setattr(Database, "commit", unreadable)
        monkeypatch.setattr(Database, "roll_back", unreadable)
        with pytest.raises(UncertainError, match="finding out what is on disk"):
            engine.apply([Learn("bob", ["milk"], 1, None)])
        monkeypatch.undo()
        with pytest.raises(StoreError, match="takes nothing more"):
            engine.learn("ann", ["tea"], basket=3)
        engine._journal._database.roll_back()
