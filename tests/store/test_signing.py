"""The keys of receipts: their file, its damage, and the destruction of one."""

import json
import resource
import stat
from pathlib import Path

import pytest
from tests.store.test_faults import digest_of, filled
from tests.store.test_receipts import three_receipts

import unbasket as ub
from unbasket.errors import (
    StoreError,
)
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
    assert keys.subject("ann") != keys.subject("bob")
    assert keys.subject("1") == keys.subject(1) != keys.subject("01")


def test_destroying_the_key_for_subjects_keeps_the_signing_key(path: Path) -> None:
    receipts = three_receipts(path)
    file = path.with_name("shop.db-keys")
    old = json.loads(file.read_text())["subjects"]
    before = SigningKeys.of(file)
    assert before.subject("ann") == receipts[0].subject
    after = SigningKeys.destroy_subjects(file)
    assert after.public == before.public
    assert after.subject("ann") != receipts[0].subject
    assert old not in file.read_text()
    assert audit(receipts, key=after.public).ok


def test_missing_keys(path: Path) -> None:
    """New ones are created; earlier receipts stay valid, and the change of keys shows."""
    digest = filled(path)
    path.with_name("shop.db-keys").unlink()
    with ub.open(path) as engine:
        assert engine.digest() == digest
        engine.forget("unknown")
        report = audit(engine.receipts())
    assert report.ok
    assert len(report.keys) == 2


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b'{"signing": "00", "subjects": "00"}',
        b'{"signing": 1, "subjects": 2}',
        b'{"signing": "%s", "subjects": ""}' % (b"00" * 32),
        b'{"signing": "%s", "subjects": "%s"}' % (b"00" * 32, b"00" * 99),
    ],
)
def test_damaged_keys(path: Path, text: bytes) -> None:
    digest = filled(path, 5)
    path.with_name("shop.db-keys").write_bytes(text)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"shop\.db-keys holds no keys"):
            ub.open(path)
    assert digest_of(path) == digest
    path.with_name("shop.db-keys").unlink()
    with ub.open(path) as engine:
        assert engine.digest() == digest


def test_no_room_for_keys(path: Path) -> None:
    """The file has both keys, or does not exist."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StoreError):
            SigningKeys.of(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not path.exists()
    assert SigningKeys.of(path).public == SigningKeys.of(path).public


def test_a_changed_digit_in_the_keys(path: Path) -> None:
    """It would be another key."""
    filled(path, 5)
    file = path.with_name("shop.db-keys")
    text = file.read_text()
    for name in ("signing", "subjects", "checksum"):
        digit = text.index(name) + len(name) + 10
        file.write_text(text[:digit] + ("0" if text[digit] != "0" else "1") + text[digit + 1 :])
        with pytest.raises(StoreError, match=r"shop\.db-keys holds no keys \(their checksum is wrong\)"):
            ub.open(path)
    file.write_text(text)
    ub.open(path).close()
