"""The durable engine through its public methods: a scenario across all modules of the store."""

import gc
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.laws import law_of_equality

import unbasket as ub
from unbasket.store.signing import signing_keys_of
from unbasket.store.writer import Database

SHOP = pl.DataFrame(
    {
        "user": ["ann", "ann", "ann", "bob", "bob", "cleo"],
        "basket": [1, 1, 2, 3, 3, 4],
        "item": ["milk", "bread", "milk", "milk", "tea", "wine"],
        "time": [100, 100, 200, 150, 150, 160],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def rows(path: Path) -> list[int]:
    """Return the numbers of the rows that hold a basket."""
    with closing(Database(path, read_only=True)) as database:
        return [row for row, _ in database.reader.payloads("baskets")]


# Closing ------------------------------------------------------------------------------------------------------------


def test_closing(path: Path) -> None:
    rec = ub.open(path).fit(SHOP)
    rec.close()
    rec.close()
    for call in (rec.users, rec.digest, lambda: rec.recommend("ann"), lambda: rec.learn("ann", ["x"], basket=1)):
        with pytest.raises(ub.ClosedError, match=r"shop\.db was closed"):
            call()
    assert sorted(file.name for file in path.parent.iterdir()) == ["shop.db", "shop.db-keys", "shop.db-lock"]


def test_an_engine_that_is_dropped_closes_its_file(path: Path) -> None:
    rec = ub.open(path).fit(SHOP)
    digest = rec.digest()
    del rec
    gc.collect()
    with ub.open(path) as again:
        assert again.digest() == digest


# Events -------------------------------------------------------------------------------------------------------------


def test_bad_input_changes_nothing(path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        digest, before = rec.digest(), rows(path)
        bad_ones: list[list[Any]] = [
            [ub.Learn("dan", ["milk"], 1, None), ub.Learn("dan", [], 2, None)],
            [ub.Forget("ann", None, None), ub.Forget("", None, None)],
            [ub.Learn("dan", ["milk"], 1, None), "forget"],
        ]
        for bad in bad_ones:
            with pytest.raises(ub.UnbasketError):
                rec.apply(bad)
        assert (rec.digest(), rows(path), rec.receipts()) == (digest, before, [])


def test_an_event_that_changes_nothing_writes_nothing(path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        before = rows(path)
        assert rec.learn("ann", ["bread", "milk"], basket=1, time=100) == "unchanged"
        assert rows(path) == before


def test_further_baskets_of_known_users_in_a_frame(path: Path) -> None:
    further = pl.DataFrame(
        {"user": ["ann", "ann", "dan"], "basket": [1, 9, 1], "item": ["gin", "tea", "tea"], "time": [100, 50, 7]}
    )
    with ub.open(path).fit(SHOP) as rec:
        fresh = ub.Recommender().fit(SHOP).fit(further)
        rec.fit(further)
        assert [basket.basket for basket in rec.history("ann")] == [9, 1, 2]
        law_of_equality(rec, fresh)
    with ub.open(path) as rec:
        law_of_equality(rec, fresh)


def test_untimed_baskets_stay_where_a_late_one_left_them(path: Path) -> None:
    """Replaying rows in the order of arrival would get this wrong."""
    with ub.open(path) as rec:
        rec.learn("ann", ["a"], basket="A", time=5)
        rec.learn("ann", ["b"], basket="B")
        rec.learn("ann", ["c"], basket="C", time=3)
        rec.forget("ann", basket="A")
        rec.learn("ann", ["b", "d"], basket="B")
        assert [basket.basket for basket in rec.history("ann")] == ["C", "B"]
    with ub.open(path) as rec:
        assert [basket.basket for basket in rec.history("ann")] == ["C", "B"]


def test_baskets_that_come_late_again_and_again(path: Path) -> None:
    """Each goes between the same two, until no position is left and all later ones move."""
    with ub.open(path) as rec:
        rec.learn("ann", ["first"], basket="first", time=0)
        rec.learn("ann", ["last"], basket="last", time=10**6)
        for time in range(60, 0, -1):
            rec.learn("ann", [f"item {time}"], basket=time, time=time)
        for time in range(1000, 1060):
            rec.learn("ann", [f"item {time}"], basket=time, time=time)
        history = rec.history("ann")
    with ub.open(path) as rec:
        assert rec.history("ann") == history
        assert [basket.time for basket in history] == [0, *range(1, 61), *range(1000, 1060), 10**6]


def test_progress(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with ub.open(path) as rec:
        rec.fit(SHOP, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    seen.clear()
    ub.open(path, progress=lambda done, total: seen.append((done, total))).close()
    assert (4, 4) in seen


def refuse(_: Database) -> None:
    raise ub.StoreError("no room")


def test_a_rename_is_one_transaction_with_a_receipt(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ub.open(path).fit(SHOP) as rec:
        rec.suppress("bob", "gin")
        rec.suppress("ann", "gin")
        rec.suppress("bob", "rum")
        before = rec.digest()
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", refuse)
            with pytest.raises(ub.StoreError, match="no room"):
                rec.rename("bob", "ann")
            assert rec.digest() == before
            assert rec.verify().ok
        renamed = rec.rename("bob", "ann")
        assert renamed == (2, 1)
        receipt = renamed.receipt
        assert rec.receipts() == [receipt]
        assert (receipt.scope, receipt.purchases, receipt.baskets, receipt.users) == ("id", 0, 0, 1)
        assert (receipt.before, receipt.after, receipt.verified) == (before, rec.digest(), True)
        assert rec.seconds_to_erasure == {1: renamed.seconds}
        assert [basket.basket for basket in rec.history("ann")] == [1, 3, 2]
        rec.learn("guest", ["tea"], basket=3)
        with pytest.raises(ub.BasketConflictError, match="basket 3"):
            rec.rename("guest", "ann")
        rec.rename("guest", "a new user")
        digest = rec.digest()
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert rec.suppressed("ann") == ["gin", "rum"]
        assert rec.users() == ["a new user", "ann", "cleo"]
        assert rec.verify().ok


# Files --------------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_database(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with ub.open(path).fit(SHOP) as rec:
        rec.forget("bob")
        rec.backup(copy)
        with pytest.raises(ub.StoreError, match="exists"):
            rec.backup(copy)
        with ub.open(copy, keys=signing_keys_of(path)) as other:
            law_of_equality(rec, other)
            assert other.receipts() == rec.receipts()
            other.forget("ann")
            assert "ann" in rec


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_file_that_is_mostly_zeroed_is_compacted(path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Each write copies a batch; a reader that opens the file in between finds everything."""
    monkeypatch.setattr("unbasket.store.writer._WORTH_COMPACTING", 5000)
    monkeypatch.setattr("unbasket.store.writer._PACE", 0)
    monkeypatch.setattr("unbasket.store.compaction.BATCH_SIZE", size)
    with ub.open(path) as rec:
        for number in range(200):
            rec.learn(f"user {number}", [f"item {i}" for i in range(20)], basket=number)
        rec.apply([ub.Forget(f"user {number}", None, None) for number in range(90)])
        assert all_rows(path) == 200
        batches = 0
        for number in range(90, 150):
            rec.forget(f"user {number}")
            if rec._journal._database._to_compact:
                batches += 1
                with ub.open(path, read_only=True) as other:
                    assert other.digest() == rec.digest()
        assert (batches > 10) == (size == 1000)  # however much was zeroed before
        assert all_rows(path) < 130
        digest = rec.digest()
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert rec.verify().ok


def test_a_compaction_goes_on_after_opening(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.store.writer._WORTH_COMPACTING", 5000)
    monkeypatch.setattr("unbasket.store.compaction.BATCH_SIZE", 1000)
    rec = ub.open(path)
    items = [f"item {i} of a shop" for i in range(500)]
    rec.fit(pl.DataFrame({"user": range(500), "basket": [1] * 500, "item": items}))
    rec.describe({"item": items, "name": ["x" * 20] * 500}, category=None)
    user = 0
    while not rec._journal._database._to_compact:
        user += 1
        rec.forget(user)
    while rec._journal._database._to_compact:
        digest = rec.digest()
        rec.close()
        rec = ub.open(path)
        assert rec.digest() == digest
        for _ in range(5):
            rec.learn(10_000, ["milk"], basket=1)
            rec.forget(10_000)
    assert all_rows(path) < 350
    rec.close()


def test_a_large_basket_that_shrinks_does_not_let_the_file_grow(path: Path) -> None:
    """Zeroed bytes count, not zeroed rows: each forget leaves the former basket zeroed."""
    items = [f"item {i} {'x' * 100}" for i in range(5000)]
    with ub.open(path) as rec:
        rec.learn("ann", items, basket=1)
        rec.learn("bob", items[:10], basket=1)
        size = path.stat().st_size + path.with_name("shop.db-wal").stat().st_size
        for item in items[:40]:
            rec.forget("ann", basket=1, item=item)
            assert path.stat().st_size < 6 * size
        assert rec.verify().ok
        digest = rec.digest()
    with ub.open(path) as rec:
        assert rec.digest() == digest


def all_rows(path: Path) -> int:
    """Return how many rows of baskets are in both spaces, zeroed ones included."""
    with closing(sqlite3.connect(path)) as connection:
        [[rows]] = connection.execute("SELECT count(*) FROM (SELECT id FROM baskets UNION SELECT id FROM baskets_2)")
        return int(rows)
