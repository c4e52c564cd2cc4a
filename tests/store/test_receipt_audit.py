"""The audit of receipts: chains, signatures and gaps."""

from pathlib import Path

import msgspec
import pytest
from tests.store.test_receipts import three_receipts

import unbasket as ub
from unbasket.store import audit
from unbasket.store.signing import SigningKeys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


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
    other = SigningKeys.of(tmp_path / "other-keys")
    forged = msgspec.structs.replace(receipts[2], key=other.public, purchases=9, signature="")
    forged = msgspec.structs.replace(forged, signature=other.sign(forged.to_json()).hex())
    assert audit([*receipts[:2], forged]).ok
    assert audit([*receipts[:2], forged]).keys == (receipts[0].key, other.public)
    assert "another key signed it" in audit([*receipts[:2], forged], key=receipts[0].key).faults[0]


def test_a_receipt_that_is_not_verified_is_a_fault(path: Path, tmp_path: Path) -> None:
    keys = SigningKeys.of(tmp_path / "keys")
    bad = msgspec.structs.replace(three_receipts(path)[0], verified=False, key=keys.public, signature="")
    bad = msgspec.structs.replace(bad, signature=keys.sign(bad.to_json()).hex())
    assert "differed" in audit([bad]).faults[0]
