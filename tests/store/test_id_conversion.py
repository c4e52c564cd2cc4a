"""Numbers that become texts in a database: in one step, live, or not at all. See also `cli/commands/test_ids.py`."""

import random
import threading
from pathlib import Path

import polars as pl
import pytest
from tests.laws import law_of_equality, law_of_one_person

import unbasket as ub
from unbasket.domain.ids import Kind
from unbasket.store import audit


def fill(rec: ub.Recommender) -> None:
    """Learn baskets with numbers as ids, some at the same time, and all that goes with them."""
    chance = random.Random(5)
    for basket in chance.sample(range(300), 80):
        time = chance.choice([None, chance.randrange(4)])
        rec.learn(chance.randrange(12), chance.sample(range(40), 3), basket=basket, time=time)
    rec.suppress(3, 7)
    rec.suppress(4, 10**9)
    rec.hide([5, 1000])
    rec.describe(pl.DataFrame({"item": [1, 2, 3], "name": ["one", "two", "three"], "category": "c", "size": 1}))


def all_of(rec: ub.Recommender) -> tuple[object, ...]:
    return rec.digest(), rec.hidden(), list(rec.catalog), rec.id_types()


@pytest.mark.parametrize("kinds", [["user"], ["basket"], ["item"], ["user", "basket", "item"]])
def test_the_file_follows_the_model(tmp_path: Path, kinds: list[Kind]) -> None:
    with ub.open(tmp_path / "shop.db", ub.Params(neighbors=3)) as rec:
        memory = ub.Recommender(rec.params, salt=rec.salt)
        for engine in (memory, rec):
            fill(engine)
            engine.change_ids(**dict.fromkeys(kinds, "text"))  # type: ignore[arg-type]
        law_of_equality(memory, rec)
        law_of_one_person(rec)
        rec.learn(3, [1, 2], basket=5)
        rec.forget(4)
        memory.learn("3", ["1", "2"], basket="5")
        memory.forget("4")
        expected = all_of(memory)
        assert all_of(rec) == expected
        rec.change_ids(**dict.fromkeys(kinds, "text"))  # type: ignore[arg-type]  # they are: there is nothing to do
        assert [receipt.scope for receipt in rec.receipts()] == ["types of ids", "user"]
        assert audit(rec.receipts()).ok
    with ub.open(tmp_path / "shop.db") as rec:
        assert all_of(rec) == expected
        assert rec.verify().ok


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ub.open(tmp_path / "shop.db") as rec:
        fill(rec)
        before = all_of(rec)
        with monkeypatch.context() as patch:
            patch.setattr(rec._journal._database, "commit", lambda: (_ for _ in ()).throw(ub.StoreError("no room")))
            with pytest.raises(ub.StoreError, match="no room"):
                rec.change_ids(user="text", item="text")
        assert all_of(rec) == before
        assert rec.verify().ok
        rec.change_ids(user="text")
        assert rec.verify().ok
        assert rec.learn("A-5", [1], basket=1) is ub.Learned.ADDED
    with ub.open(tmp_path / "shop.db") as rec:
        assert rec.users()[-1] == "A-5"


def test_an_interrupted_conversion_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ub.open(tmp_path / "shop.db") as rec:
        fill(rec)
        before = all_of(rec)
        with monkeypatch.context() as patch:
            patch.setattr(
                "unbasket.store.id_conversion._rewrite_table",
                lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
            )
            with pytest.raises(KeyboardInterrupt):
                rec.change_ids(user="text", item="text")
        assert all_of(rec) == before
        assert rec.verify().ok
    with ub.open(tmp_path / "shop.db") as rec:
        assert all_of(rec) == before


@pytest.mark.parametrize("durable", [False, True])
def test_readers_and_writers_go_on(tmp_path: Path, durable: bool) -> None:
    """A reader sees the shop before or after the change; a writer waits, and its ids are converted."""
    rec = ub.open(tmp_path / "shop.db") if durable else ub.Recommender()
    fill(rec)
    expected = sorted(str(basket.basket) for basket in rec.history(3))
    done, wrong, learned = threading.Event(), list[object](), 0

    def read() -> None:
        while not done.is_set():
            found = [basket.basket for basket in rec.history(3)]
            if sorted(map(str, found)) != expected or len({type(name) for name in found}) > 1:
                wrong.append(found)
            rec.recommend("3", 5)

    def write() -> None:
        nonlocal learned
        while not done.is_set():
            rec.learn(10_000 + learned, [39], basket=1)
            rec.forget(10_000 + learned)
            learned += 1

    threads = [threading.Thread(target=work) for work in (read, write)]
    for thread in threads:
        thread.start()
    rec.change_ids(user="text", basket="text")
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    law_of_one_person(rec)
    assert rec.id_types()["user"] == "text"
    assert rec.verify().ok


def test_a_rebuild_of_the_former_model_is_refused(tmp_path: Path) -> None:
    """New parameters would be stored for a model that does not have them."""
    for rec in (ub.Recommender(), ub.open(tmp_path / "shop.db")):
        fill(rec)
        before = rec.params

        def change(done: int, total: int, rec: ub.Recommender = rec) -> None:
            if done == total:
                rec.change_ids(user="text")

        with pytest.raises(ub.BusyError, match="the types of ids were changed meanwhile"):
            rec.change_params(ub.Params(neighbors=7), progress=change)
        assert rec.params == before
        assert rec.verify().ok
        rec.change_params(ub.Params(neighbors=7))
        assert rec.params.neighbors == 7
