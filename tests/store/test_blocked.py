"""A reader blocks an erasure: a forget waits for it, other writers do not.

A scenario across `journal`, `group_commit` and `writer`.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.service.serving import make_shop, serving

import unbasket as ub
from unbasket.errors import ErasureBlockedError
from unbasket.service.settings import Settings
from unbasket.store import writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_shop(tmp_path / "shop.db")


@contextmanager
def reader(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold another program's read transaction."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM baskets").fetchone()
    try:
        yield connection
    finally:
        connection.close()


def set_timeout(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("writer", "journal", "opening"):
        monkeypatch.setattr(f"unbasket.store.{module}.TIMEOUT", seconds)


def test_other_callers_write_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learns are acknowledged and further forgets committed while two forgets wait; then all are erased."""
    set_timeout(20, monkeypatch)
    with ub.open(path) as engine:
        engine.learn("dan", ["milk"], basket=1)
        with reader(path):
            erased: list[ub.Forgotten] = []

            def forget(user: str) -> None:
                erased.append(engine.forget(user))

            threads = [threading.Thread(target=forget, args=(user,)) for user in ("ann", "bob")]
            for thread in threads:
                thread.start()
            while "ann" in engine or "bob" in engine:
                pass
            for basket in range(30):
                engine.learn("dan", ["milk", "tea"], basket=basket)
            engine.describe({"item": ["milk"], "name": ["Milk"]}, category=None)
            assert all(thread.is_alive() for thread in threads)
            assert erased == []
        for thread in threads:
            thread.join()
        assert [result.users for result in erased] == [1, 1]
        assert {result.receipt.number for result in erased if isinstance(result, ub.Erased)} == {1, 2}
        assert len(engine.seconds_to_erasure) == 2


def test_closing_ends_the_wait(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_timeout(1, monkeypatch)
    engine = ub.open(path)
    with reader(path):
        errors: list[BaseException] = []

        def forget() -> None:
            try:
                engine.forget("ann")
            except ErasureBlockedError as error:
                errors.append(error)

        thread = threading.Thread(target=forget)
        thread.start()
        while "ann" in engine:
            pass
        engine.close()
        thread.join()
        assert len(errors) == 1


def test_the_service_reports_it_in_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(db=path).timeout / 2 >= writer.TIMEOUT
    set_timeout(0.5, monkeypatch)
    with serving(path) as service:
        with reader(path):
            assert service.code("DELETE", "/v1/users/ann", 503) == "erasure_blocked"
            service("PUT", "/v1/users/dan/baskets/1", json={"items": ["milk"]})
        service("DELETE", "/v1/users/bob")
