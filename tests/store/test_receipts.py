"""Receipts: their content, and their JSON."""

from collections.abc import Callable
from pathlib import Path

import pytest

import unbasket as ub
from unbasket.core.check import testing
from unbasket.core.index import Index
from unbasket.domain.ids import Id
from unbasket.engine.state import EngineState
from unbasket.store import Receipt


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def three_receipts(path: Path) -> list[Receipt]:
    with ub.open(path) as rec:
        rec.learn("ann", ["milk", "tea"], basket=1)
        rec.learn("ann", ["milk"], basket=2)
        rec.learn("bob", ["milk"], basket=1)
        rec.forget("ann", item="tea")
        rec.forget("nobody")
        rec.forget("ann")
        return rec.receipts()


def test_a_receipt_has_the_removed_data_and_the_digests(path: Path) -> None:
    with ub.open(path) as rec:
        rec.learn("ann", ["milk", "tea"], basket=1)
        rec.learn("bob", ["milk"], basket=1)
        before = rec.digest()
        erased = rec.forget("ann", basket=1, item="tea")
        assert isinstance(erased, ub.Erased)
        receipt = erased.receipt
        assert (receipt.number, receipt.scope, receipt.verified) == (1, "item of a basket", True)
        assert (receipt.purchases, receipt.baskets, receipt.users) == erased == (1, 0, 0)
        assert (receipt.before, receipt.after) == (before, rec.digest())
        assert rec.receipts() == [receipt]
        assert rec.seconds_to_erasure == {1: erased.seconds}
        assert erased.seconds > 0


def spoil_vectors(index: Index) -> None:
    for row in range(index.shards[0].end):
        testing.row(index.shards[0].vectors, row, testing.ENTRY)["weight"] += 1


def spoil_postings(index: Index) -> None:
    for item in range(index.item_room):
        testing.row(index.shards[0].postings, item, testing.POSTING)["weight"] += 1


@pytest.mark.parametrize("spoil", [spoil_vectors, spoil_postings])
def test_a_receipt_tells_if_the_vector_is_not_that_of_a_retrain(
    path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Index], None]
) -> None:
    with ub.open(path) as rec:
        rec.learn("ann", ["milk", "tea"], basket=1)
        forget = EngineState.forget

        def spoiled(memory: EngineState, user: Id, basket: Id | None, item: Id | None) -> ub.Forgotten:
            forgotten = forget(memory, user, basket, item)
            spoil(memory.index)
            return forgotten

        monkeypatch.setattr(EngineState, "forget", spoiled)
        rec.forget("ann", item="tea")
        [receipt] = rec.receipts()
        assert not receipt.verified


def test_some_receipts(path: Path) -> None:
    receipts = three_receipts(path)
    with ub.open(path) as rec:
        assert rec.receipt_count == 3
        assert (rec.receipts(first=2), rec.receipts(first=2, last=2)) == (receipts[1:], receipts[1:2])
        assert rec.seconds_to_erasure == {}
        with ub.open(path, read_only=True) as reader:
            assert (reader.receipt_count, reader.receipts()) == (3, receipts)
            rec.forget("bob")
            assert reader.receipt_count == len(reader.receipts()) == rec.receipt_count == 4


def test_scopes_and_empty_forgets(path: Path) -> None:
    receipts = three_receipts(path)
    assert [receipt.scope for receipt in receipts] == ["item", "user", "user"]
    assert [receipt.purchases for receipt in receipts] == [1, 0, 2]
    assert receipts[1].before == receipts[1].after == receipts[0].after
    assert receipts[0].subject == receipts[2].subject != receipts[1].subject


def test_no_receipt_has_an_id(path: Path) -> None:
    text = b"\n".join(receipt.to_json() for receipt in three_receipts(path))
    for name in (b"ann", b"nobody", b"tea", b"milk"):
        assert name not in text.replace(b"scope", b"")


def test_json_and_back(path: Path) -> None:
    for receipt in three_receipts(path):
        assert Receipt.from_json(receipt.to_json()) == receipt
    for text in ("", "{}", "[1]", '{"number": "x"}', "\0"):
        with pytest.raises(ub.InvalidReceiptError):
            Receipt.from_json(text)
