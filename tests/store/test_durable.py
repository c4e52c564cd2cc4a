"""The durable engine through its public methods: a scenario across all modules of the store."""

import gc
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from tests.laws import law_of_equality

import unbasket as ub
from unbasket.engine.inspector import InvariantChecker
from unbasket.engine.state import EngineState
from unbasket.store.wal import Wal
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


# Opening ------------------------------------------------------------------------------------------------------------


def test_parameters_are_kept(path: Path) -> None:
    params = ub.Params(group_size=3, basket_decay=0.8, group_decay=0.6, neighbors=5, alpha=0.25, grouping="varying")
    ub.open(path, params).close()
    with ub.open(path) as rec:
        assert rec.params == params
    ub.open(path, params).close()
    with pytest.raises(ub.InvalidParamsError, match=r"alpha=0\.25.*not.*alpha=0\.5"):
        ub.open(path, ub.Params(alpha=0.5))
    with ub.open(path) as rec:  # the error left no lock
        assert rec.params == params


def test_an_empty_shop_can_be_opened_again(path: Path) -> None:
    ub.open(path).close()
    with ub.open(path) as rec:
        assert (len(rec), rec.users(), rec.receipts()) == (0, [], [])
        assert rec.digest() == ub.Recommender().digest()


def test_one_writer_and_many_readers(path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        with pytest.raises(ub.StoreLockedError, match=r"open for writing in another place .* read_only=True"):
            ub.open(path)
        first, second = (ub.open(path, read_only=True) for _ in range(2))
        law_of_equality(rec, first)
        rec.learn("ann", ["tea"], basket=9)
        assert first.digest() == second.digest() != rec.digest() == ub.open(path, read_only=True).digest()
        for write in (
            lambda: first.learn("ann", ["tea"], basket=9),
            lambda: first.forget("ann"),
            lambda: first.fit(SHOP),
            lambda: first.apply([]),
        ):
            with pytest.raises(ub.StoreError, match="read_only=True"):
                write()


def test_a_reader_needs_a_file(path: Path) -> None:
    with pytest.raises(ub.StoreError, match="does not exist"):
        ub.open(path, read_only=True)
    assert not path.exists()


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


def test_many_events_at_once(path: Path) -> None:
    events: list[ub.Event] = [
        ub.Learn("dan", ["milk", "tea"], 1, None),
        ub.Learn("dan", ["milk"], 1, None),
        ub.Forget("bob", None, None),
        ub.Learn("bob", ["gin"], 7, 9),
        ub.Forget("nobody", None, None),
    ]
    fresh = ub.Recommender().fit(SHOP)
    with ub.open(path).fit(SHOP) as rec:
        results = rec.apply(events)
        assert results == fresh.apply(events)
        assert results == ["added", "replaced", (2, 1, 1), "added", (0, 0, 0)]
        law_of_equality(rec, fresh)
        assert len(rec.receipts()) == 2
        law_of_equality(ub.open(path, read_only=True), fresh)


def test_an_event_that_changes_nothing_writes_nothing(path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        before = rows(path)
        assert rec.learn("ann", ["bread", "milk"], basket=1, time=100) == "unchanged"
        assert rows(path) == before


def test_further_baskets_of_known_users_in_a_frame(path: Path) -> None:
    further = pl.DataFrame(
        {"user": ["ann", "ann", "dan"], "basket": [1, 9, 1], "item": ["gin", "tea", "tea"], "time": [100, 50, 7]}
    )
    fresh = ub.Recommender().fit(SHOP).fit(further)
    with ub.open(path).fit(SHOP) as rec:
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


# Threads ------------------------------------------------------------------------------------------------------------


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
    fresh = ub.Recommender(ub.Params(neighbors=5))
    for caller in range(8):
        fresh.apply(events_of(caller))
    with ub.open(path, fresh.params) as rec:
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


# Products -----------------------------------------------------------------------------------------------------------


def test_products_are_kept_and_go_with_the_last_purchase(path: Path) -> None:
    products = pl.DataFrame(
        {
            "item": ["milk", "wine", "gin"],
            "name": ["Fresh milk", "Red wine", "Gin"],
            "category": ["dairy", "alcohol", None],
        }
    )
    with ub.open(path).fit(SHOP) as rec:
        rec.describe(products)
        assert rec.catalog["milk"] == ub.Product("milk", "Fresh milk", "dairy")
        assert rec.catalog["tea"] == ub.Product("tea", None, None)
        assert (rec.catalog.name("wine"), rec.catalog.name("tea")) == ("Red wine", "tea")
    with ub.open(path) as rec:
        assert rec.catalog.categories() == {"dairy": ["milk"], "alcohol": ["wine"]}
        rec.forget("cleo")
        assert rec.catalog.name("wine") == "wine"
        rec.forget("ann", item="milk")
        assert rec.catalog.name("milk") == "Fresh milk"  # bob has it
        rec.learn("bob", ["tea"], basket=3, time=150)
        assert rec.catalog.name("milk") == "milk"
        assert [product.item for product in rec.catalog] == ["gin"]  # it never had a purchase to forget
    with ub.open(path) as rec:
        assert [product.item for product in rec.catalog] == ["gin"]


def test_a_product_that_is_described_again(path: Path) -> None:
    with ub.open(path) as rec:
        rec.describe(pl.DataFrame({"item": [1, 1], "name": ["old", "new"]}), category=None)
        rec.describe(pl.DataFrame({"item": [1], "name": ["newest"], "category": ["c"]}))
        assert list(rec.catalog) == [ub.Product(1, "newest", "c")]
    with ub.open(path) as rec:
        assert list(rec.catalog) == [ub.Product(1, "newest", "c")]
        for frame in (
            pl.DataFrame({"item": [1.5], "name": ["x"], "category": ["y"]}),
            pl.DataFrame({"item": [None], "name": ["x"], "category": ["y"]}, schema_overrides={"item": pl.Int64}),
            pl.DataFrame({"item": [1], "title": ["x"]}),
        ):
            with pytest.raises(ub.InvalidFrameError):
                rec.describe(frame)


# Hidden and suppressed items -----------------------------------------------------------------------------------------


def test_hidden_items_are_kept_until_they_are_shown(path: Path, tmp_path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        digest = rec.digest()
        assert rec.hide(["wine", "never bought", 0]) == 3
        assert rec.restock(hide=["milk", "wine"], show=[0]) == (1, 1)
        assert rec.digest() == digest
    with ub.open(path) as rec:
        assert rec.hidden() == ["milk", "never bought", "wine"]
        rec.forget("cleo")  # the only user with wine
        rec.backup(tmp_path / "copy.db")
        with ub.open(path, read_only=True) as reader, pytest.raises(ub.StoreError, match="read_only"):
            reader.show(["wine"])
        assert rec.show(["wine", "milk", "tea"]) == 2
        assert rec.show(["wine"]) == 0
    with ub.open(path) as rec, ub.open(tmp_path / "copy.db", read_only=True) as copy:
        assert (rec.hidden(), copy.hidden()) == (["never bought"], ["milk", "never bought", "wine"])


def test_items_are_hidden_in_one_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk refuses, nothing is changed, on disk or in memory."""
    with ub.open(path).fit(SHOP) as rec:
        rec.hide(["milk", "tea"])
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", _refuse)
            for change in ({"hide": ["wine", "bread"]}, {"show": ["milk"], "hide": ["wine"]}):
                with pytest.raises(ub.StoreError, match="no room"):
                    rec.restock(**change)
                assert rec.hidden() == ["milk", "tea"]
        assert rec.restock(hide=["wine"], show=["milk"]) == (1, 1)
    with ub.open(path) as rec:
        assert rec.hidden() == ["tea", "wine"]


def _refuse(_: Database) -> None:
    raise ub.StoreError("no room")


def test_suppressions_are_kept_and_go_with_the_user(path: Path, tmp_path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        assert [rec.suppress("ann", item) for item in ("wine", 0, "wine")] == [True, True, False]
        rec.suppress("bob", "milk")
        with pytest.raises(ub.UnknownUserError, match="nobody"):
            rec.suppress("nobody", "milk")
        digest = rec.digest()
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert (rec.suppressed("ann"), rec.suppressed("bob")) == ([0, "wine"], ["milk"])
        rec.backup(tmp_path / "copy.db")
        assert rec.allow("ann", 0)
        assert not rec.allow("ann", 0)
        rec.apply([ub.Forget("bob", None, None), ub.Learn("bob", ["milk"], 1, None)])
        assert rec.suppressed("bob") == []
        assert all(receipt.verified for receipt in rec.receipts())
        digest = rec.digest()
    with ub.open(path) as rec, ub.open(tmp_path / "copy.db", read_only=True) as copy:
        assert rec.digest() == digest
        assert (rec.suppressed("ann"), rec.suppressed("bob")) == (["wine"], [])
        assert (copy.suppressed("ann"), copy.suppressed("bob")) == ([0, "wine"], ["milk"])
        rec.forget("ann")
        rec.learn("ann", ["milk"], basket=1)
        assert rec.suppressed("ann") == []


def test_a_rename_is_one_transaction_with_a_receipt(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ub.open(path).fit(SHOP) as rec:
        rec.suppress("bob", "gin")
        rec.suppress("ann", "gin")
        rec.suppress("bob", "rum")
        before = rec.digest()
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", _refuse)
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


def test_a_refusal_undoes_suppress_and_allow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ub.open(path).fit(SHOP) as rec:
        rec.suppress("ann", "wine")
        digest = rec.digest()
        with monkeypatch.context() as patch:
            patch.setattr(Database, "commit", _refuse)
            for change in (
                lambda: rec.suppress("ann", "tea"),
                lambda: rec.allow("ann", "wine"),
                lambda: rec.forget("ann"),
                lambda: rec.suppress("bob", "milk"),
            ):
                with pytest.raises(ub.StoreError, match="no room"):
                    change()
                assert rec.digest() == digest
                assert rec.verify().ok
        rec.suppress("ann", "tea")
        rec.allow("ann", "wine")
    with ub.open(path) as rec:
        assert rec.suppressed("ann") == ["tea"]


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
        assert rec.suppressed("user 3") == [*range(3, 200, 20)]


# Files --------------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_database(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with ub.open(path).fit(SHOP) as rec:
        rec.forget("bob")
        rec.backup(copy)
        with pytest.raises(ub.StoreError, match="exists"):
            rec.backup(copy)
        with ub.open(copy) as other:
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
            rec.learn("ann", ["milk"], basket=1)
            rec.forget("ann")
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


# Locks and syncs ------------------------------------------------------------------------------------------------


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

    with ub.open(path, ub.Params(group_size=3, grouping=grouping)) as rec:
        methods = {
            EngineState: ("comes_last", "learn", "forget", "records", "take_vanished"),
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
