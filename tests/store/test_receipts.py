"""Receipts: their content, their JSON, and the audit of chains, signatures and gaps."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

import msgspec
import pytest

import unbasket as ub
from unbasket.core.check import testing
from unbasket.core.index import Index
from unbasket.domain.ids import Id
from unbasket.engine.state import EngineState
from unbasket.store import Receipt, audit
from unbasket.store.signing import SigningKeys


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


def test_times_that_run_backwards_are_a_warning(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        minutes = iter((5, 5, 3, 4, 9))

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls(2026, 1, 1, 0, next(cls.minutes), tzinfo=tz)

    monkeypatch.setattr("unbasket.store.receipts.datetime", Clock)
    with ub.open(path) as rec:
        for user in range(5):
            rec.forget(user)
        found = audit(rec.receipts())
    assert found.ok
    assert found.warnings == (
        "receipt 3: its time, 2026-01-01T00:03:00.000+00:00, is before that of receipt 2, "
        "2026-01-01T00:05:00.000+00:00: the clock was set back",
    )
    assert found.summary() == "Signatures valid, receipts 1 to 5 are chained, times run backwards once."


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
    assert len({receipt.subject for receipt in receipts}) == 3  # each request has a secret of its own


def test_no_receipt_has_an_id(path: Path) -> None:
    text = b"\n".join(receipt.to_json() for receipt in three_receipts(path))
    for name in (b"ann", b"nobody", b"tea", b"milk"):
        assert name not in text.replace(b"scope", b"")


def test_json_and_back(path: Path) -> None:
    for receipt in three_receipts(path):
        assert Receipt.from_json(receipt.to_json()) == receipt
        assert Receipt.from_row(receipt.to_row()) == receipt
        assert len(receipt.to_row()) < len(receipt.to_json()) / 2
    for text in ("", "{}", "[1]", '{"number": "x"}', "\0"):
        with pytest.raises(ub.InvalidReceiptError):
            Receipt.from_json(text)


def test_a_chain_goes_on_after_reopening_and_holds(path: Path) -> None:
    first = three_receipts(path)
    with ub.open(path) as rec:
        rec.forget("bob")
        receipts = rec.receipts()
    assert receipts[:3] == first
    report = audit(receipts, key=receipts[0].key)
    assert (report.ok, report.receipts, report.keys, report.faults) == (True, 4, (receipts[0].key,), ())


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [("purchases", 9, "signature is not valid"), ("time", "2020", "signature"), ("previous", "ab", "does not follow")],
)
def test_a_changed_receipt_shows(path: Path, field: str, value: object, fault: str) -> None:
    receipts = three_receipts(path)
    receipts[1] = msgspec.structs.replace(receipts[1], **{field: value})
    assert any("receipt 2" in line and fault in line for line in audit(receipts).faults)
    assert any("receipt 3" in line and "does not follow" in line for line in audit(receipts).faults)


def test_a_missing_and_a_repeated_receipt_show(path: Path) -> None:
    first, second, third = three_receipts(path)
    assert audit([first, third]).faults == ("receipt 2 is missing",)
    assert audit([third]).faults == ("receipts 1 to 2 are missing",)
    assert audit([first, first, second, third]).faults == ("receipt 1: it is there twice",)
    assert audit([first, second]).ok  # an end that is cut off can't show; the database's row totals count them
    assert audit([third, first, second]).ok  # in the order of their numbers


def test_an_incomplete_chain(path: Path) -> None:
    first, second, third = three_receipts(path)
    part = audit([second, third], whole=False)
    assert (part.ok, part.chained, part.missing) == (True, ((2, 3),), ((1, 1),))
    assert part.summary() == "Signatures valid, receipts 2 to 3 are chained, 1 is not here."
    ends = audit([first, third], whole=False)
    assert (ends.ok, ends.chained, ends.missing) == (True, ((1, 1), (3, 3)), ((2, 2),))
    torn = audit([first, msgspec.structs.replace(second, previous="ab"), third], whole=False)
    assert (torn.chained, torn.missing) == (((1, 1), (2, 2), (3, 3)), ())
    assert torn.summary().startswith("1 of 3 signatures are not valid, receipt 1 stands alone, receipt 2 stands alone")
    assert audit([]).summary() == "There is no receipt here."


def test_another_signer_shows(path: Path, tmp_path: Path) -> None:
    receipts = three_receipts(path)
    other = SigningKeys.create(tmp_path / "other-keys")
    forged = msgspec.structs.replace(receipts[2], key=other.public, purchases=9, signature="")
    forged = msgspec.structs.replace(forged, signature=other.sign(forged.to_json()).hex())
    found = audit([*receipts[:2], forged])
    assert found.faults == (
        f"receipt 3: it is signed with another key, which the key before it has not signed: {other.public}",
    )
    assert found.keys == (receipts[0].key, other.public)
    assert "another key signed it" in audit([*receipts[:2], forged], key=receipts[0].key).faults[1]


def test_a_receipt_that_is_not_verified_is_a_fault(path: Path, tmp_path: Path) -> None:
    keys = SigningKeys.create(tmp_path / "keys")
    bad = msgspec.structs.replace(three_receipts(path)[0], verified=False, key=keys.public, signature="")
    bad = msgspec.structs.replace(bad, signature=keys.sign(bad.to_json()).hex())
    assert "differed" in audit([bad]).faults[0]
