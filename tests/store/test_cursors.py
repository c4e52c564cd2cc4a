"""Cursors: they move in the transaction of the events that they count."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unbasket as ub
from unbasket.domain.events import Event, Forget, Learn
from unbasket.store.cursors import StoredCursors
from unbasket.store.row_codec import with_checksum
from unbasket.store.row_totals import TotalsRecord
from unbasket.store.signing import signing_keys_of
from unbasket.store.writer import Database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def learns(count: int, first: int = 0) -> list[Event]:
    return [Learn(f"u{i % 7}", ["milk", f"i{i}"], f"b{i}", i) for i in range(first, first + count)]


def test_cursors_move_with_the_events(path: Path) -> None:
    with ub.open(path) as rec:
        assert rec.cursors() == {}
        rec.apply(learns(3), cursors={"events/0": 3, "events/1": 0})
        rec.apply([], cursors={"events/1": 5})
        rec.apply(learns(1, 3))
        assert rec.cursors() == {"events/0": 3, "events/1": 5}
    with ub.open(path) as rec:
        assert (rec.cursors(), len(rec)) == ({"events/0": 3, "events/1": 5}, 4)
        rec.apply([Forget("u1", None, None)], cursors={"events/0": 2})  # back, as the caller says
    with ub.open(path, read_only=True) as rec:
        assert rec.cursors() == {"events/0": 2, "events/1": 5}


def test_a_single_event_and_its_cursor_are_one_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single learn may commit early, but not without the cursor."""
    rec = ub.open(path)
    rec.apply(learns(1), cursors={"events/0": 1})
    digest = rec.digest()

    def fail(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(StoredCursors, "move", fail)
        with pytest.raises(ub.StoreError):
            rec.apply(learns(1, 1), cursors={"events/0": 2})
    rec.close()
    with ub.open(path) as again:
        assert (again.digest(), again.cursors()) == (digest, {"events/0": 1})


@pytest.mark.parametrize("count", [1, 2])
def test_a_failed_transaction_moves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    with ub.open(path) as rec:
        rec.apply(learns(2), cursors={"events/0": 2})
        digest = rec.digest()

        def fail(_: Database) -> None:
            raise ub.DiskFullError("full")

        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", fail)
            with pytest.raises(ub.DiskFullError):
                rec.apply(learns(count, 2), cursors={"events/0": 4, "events/1": 1})
        assert (rec.digest(), rec.cursors()) == (digest, {"events/0": 2})
        rec.apply(learns(count, 2), cursors={"events/0": 4, "events/1": 1})
        assert rec.cursors() == {"events/0": 4, "events/1": 1}


def test_an_invalid_event_moves_nothing(path: Path) -> None:
    with ub.open(path) as rec:
        rec.apply([Learn(1, [2], 3, None)], cursors={"events/0": 1})
        with pytest.raises(ub.InvalidIdError):
            rec.apply([Learn(2, [2], 3, None), Learn("ann", [2], 3, None)], cursors={"events/0": 3})
        assert (rec.users(), rec.cursors()) == ([1], {"events/0": 1})


def test_a_backup_has_the_cursors_of_its_baskets(path: Path, tmp_path: Path) -> None:
    """A restored database reads again from where its own baskets end."""
    with ub.open(path) as rec:
        rec.apply(learns(10), cursors={"events/0": 10})
        rec.backup(tmp_path / "copy.db")
        digest = rec.digest()
        rec.apply(learns(10, 10), cursors={"events/0": 20})
    with ub.open(tmp_path / "copy.db", keys=signing_keys_of(path)) as copy:
        assert (copy.cursors(), copy.digest()) == ({"events/0": 10}, digest)


def test_cursors_survive_other_types_of_ids(path: Path) -> None:
    with ub.open(path) as rec:
        rec.apply([Learn(1, [2], 3, None)], cursors={"events/0": 1})
        rec.change_ids(user="text")
        rec.apply([Learn("2", [2], 3, None)], cursors={"events/0": 2})
    with ub.open(path) as rec:
        assert (rec.users(), rec.cursors()) == (["1", "2"], {"events/0": 2})


def test_former_positions_do_not_fill_the_file(path: Path) -> None:
    with ub.open(path) as rec:
        rec.apply(learns(5))
        for position in range(20_000):
            rec._journal.apply([], {"events/0": position})
        assert path.stat().st_size < 2**21


def test_damaged_and_forged_cursors_are_found(path: Path) -> None:
    with ub.open(path) as rec:
        rec.apply(learns(2), cursors={"events/0": 2, "events/1": 17})
    with closing(sqlite3.connect(path)) as connection, connection:
        ((body,),) = connection.execute("SELECT body FROM row_totals")
    for bit in range(8 * len(body)):
        damaged = bytearray(body)
        damaged[bit // 8] ^= 1 << bit % 8
        put_totals(path, bytes(damaged))
        with pytest.raises(ub.StoreCorruptError):
            ub.open(path)
    forged, _ = with_checksum("cursors", 1, msgspec.msgpack.encode({"events/0": 1000}))
    put_totals(path, TotalsRecord.from_bytes(body)._replace(cursors=forged).to_bytes())  # type: ignore[union-attr]
    with pytest.raises(ub.StoreCorruptError, match="its checksum or seal is wrong"):
        ub.open(path)
    put_totals(path, body)
    with ub.open(path) as rec:
        assert rec.cursors() == {"events/0": 2, "events/1": 17}


def put_totals(path: Path, body: bytes) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE row_totals SET body = ?", (body,))


@pytest.mark.parametrize("cursors", [{}, {"events/0": 2}])
def test_cursors_get_the_seal_of_new_keys(path: Path, cursors: dict[str, int]) -> None:
    with ub.open(path) as rec:
        rec.apply(learns(2), cursors=cursors)
    signing_keys_of(path).unlink()
    with ub.open(path, lost_keys="a test") as rec:
        assert rec.cursors() == cursors
    with ub.open(path) as rec:
        assert rec.cursors() == cursors


@pytest.mark.parametrize("cursors", [{"": 1}, {"a": -1}, {"a": 2**63}, {"a": True}, {"a": 1.0}, {3: 1}])
def test_invalid_cursors(path: Path, cursors: Any) -> None:
    with ub.open(path) as rec:
        with pytest.raises(ub.InvalidRequestError, match="a cursor must be a name with a whole number"):
            rec.apply(learns(1), cursors=cursors)
        assert len(rec) == 0
