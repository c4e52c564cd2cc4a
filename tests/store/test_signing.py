"""The keys of receipts: their file, its damage, their loss, and their change."""

import json
import resource
import stat
from pathlib import Path

import pytest
from tests.store.test_faults import digest_of, filled
from tests.store.test_receipts import three_receipts

import unbasket as ub
from unbasket import verifier
from unbasket.errors import StoreError
from unbasket.store import audit
from unbasket.store.signing import SigningKeys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_the_keys_are_for_the_owner_only_and_stay(path: Path) -> None:
    three_receipts(path)
    file = path.with_name("shop.db-keys")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    keys = SigningKeys.of(file)
    assert keys.public == SigningKeys.of(file).public
    assert keys.sign(b"text") == SigningKeys.of(file).sign(b"text")


def test_missing_keys_are_an_error(path: Path) -> None:
    """No new key is made without a word; with a reason, a receipt has it, and an audit shows that the key changed."""
    digest = filled(path)
    file = path.with_name("shop.db-keys")
    file.unlink()
    with pytest.raises(StoreError, match=r"shop\.db-keys is missing.*Put it back.*rotate-key --lost"):
        ub.open(path)
    assert not file.exists()
    assert digest_of(path) == digest
    with ub.open(path, lost_keys="the disk died") as engine:
        assert engine.digest() == digest
        engine.forget("unknown")
        receipts = engine.receipts()
    assert receipts[-2].detail == "the key before was lost: the disk died"
    assert "which the key before it has not signed" in audit(receipts).faults[0]
    assert audit(receipts[-2:], key=receipts[-1].key, whole=False).ok
    with ub.open(path) as engine:  # rows have the seals of the new key
        assert verifier.verify(json.dumps(engine.prove_absence("unknown")), key=receipts[-1].key)
        assert engine.digest() == digest
        assert engine.verify().ok
    with pytest.raises(StoreError, match="is there"):
        ub.open(path, lost_keys="by mistake")


def test_the_old_key_signs_the_new_one(path: Path) -> None:
    first = three_receipts(path)
    file = path.with_name("shop.db-keys")
    origin = SigningKeys.of(file).origin
    with ub.open(path) as engine:
        public = engine.rotate_key()
        engine.forget("bob")
        receipts = engine.receipts()
    assert SigningKeys.of(file).public == public != first[0].key
    assert SigningKeys.of(file).origin == origin
    assert [receipt.key for receipt in receipts[-2:]] == [first[0].key, public]
    assert (receipts[-2].scope, receipts[-2].detail) == ("key", public)
    for known in (first[0].key, public):  # the old key hands over to the new one, which covers all before
        assert audit(receipts, key=known).ok
        lines = "\n".join(receipt.to_json().decode() for receipt in receipts)
        assert "Receipts 1 to 5 are as" in verifier.verify(lines, key=known)
    assert [fault[:9] for fault in audit(receipts, key="00").faults] == [f"receipt {n}" for n in range(1, 6)]
    gap = [*receipts[:3], receipts[4]]
    assert "receipt 1: another key" in audit(gap, key=public, whole=False).faults[0]
    ub.open(path).close()


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_crash_while_the_key_changes(path: Path, monkeypatch: pytest.MonkeyPatch, is_noted: bool) -> None:
    """The new keys are used if the receipt about them is there, and dropped if not."""
    old = three_receipts(path)[0].key
    with ub.open(path) as engine, monkeypatch.context() as patch:
        if is_noted:
            patch.setattr(Path, "replace", lambda *_: pytest.fail("crash"))
        else:
            patch.setattr(type(engine._journal), "_note", lambda *_: pytest.fail("crash"))
        with pytest.raises(pytest.fail.Exception):
            engine.rotate_key()
    assert path.with_name("shop.db-keys-next").exists()
    with ub.open(path) as engine:
        engine.forget("bob")
        assert audit(engine.receipts(), key=old).ok
        assert (engine.receipts()[-1].key == old) == (not is_noted)
    assert not path.with_name("shop.db-keys-next").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b'{"signing": "00", "rows": "00", "origin": "x", "checksum": "00"}',
        b'{"signing": 1, "rows": 2}',
        b'{"signing": "%s", "rows": "", "origin": "x", "checksum": ""}' % (b"00" * 32),
        b'{"signing": "%s", "rows": "%s", "origin": "x", "checksum": ""}' % (b"00" * 32, b"00" * 99),
    ],
)
def test_damaged_keys(path: Path, text: bytes) -> None:
    digest = filled(path, 5)
    path.with_name("shop.db-keys").write_bytes(text)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"shop\.db-keys holds no keys"):
            ub.open(path)
    assert digest_of(path) == digest


def test_no_room_for_keys(path: Path) -> None:
    """The file has both keys, or does not exist."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError):
            SigningKeys.create(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not path.exists()
    assert SigningKeys.create(path).public == SigningKeys.of(path).public


def test_a_changed_digit_in_the_keys(path: Path) -> None:
    """It would be another key."""
    filled(path, 5)
    file = path.with_name("shop.db-keys")
    text = file.read_text()
    for name in ("signing", "rows", "checksum"):
        digit = text.index(name) + len(name) + 10
        file.write_text(text[:digit] + ("0" if text[digit] != "0" else "1") + text[digit + 1 :])
        with pytest.raises(StoreError, match=r"shop\.db-keys holds no keys \(their checksum is wrong\)"):
            ub.open(path)
    file.write_text(text)
    ub.open(path).close()
