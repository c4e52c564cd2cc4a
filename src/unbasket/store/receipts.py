"""Receipts: what was forgotten and when, signed and chained by hash, with nothing in them that names a person."""

from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from secrets import token_hex
from typing import Literal, Self

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from unbasket.decoding import decode_json
from unbasket.errors import InvalidReceiptError
from unbasket.events import Forget
from unbasket.results import Forgotten
from unbasket.store.keys import Keys

Scope = Literal["user", "basket", "item", "item of a basket"]

FIRST = "0" * 64
"""What the first receipt of a chain has as the hash of its predecessor."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """One forget. `subject` is a keyed hash of the user's id; `before` and `after` are digests of the model;
    `verified` says that nothing of what was forgotten was left in the model, and all else of that user was, bit for
    bit, what training from what remains gives; see `unbasket.verification.Witness`.
    """

    number: int
    request: str
    time: str
    scope: Scope
    subject: str
    purchases: int
    baskets: int
    users: int
    before: str
    after: str
    verified: bool
    previous: str
    key: str
    signature: str = ""

    def to_json(self) -> bytes:
        """The receipt as one line of JSON, always the same for the same receipt."""
        return _encoder.encode(self)

    @classmethod
    def from_json(cls, line: bytes | str) -> Self:
        """The receipt in a line of JSON."""
        try:
            return decode_json(line, cls)
        except msgspec.DecodeError as error:
            raise InvalidReceiptError(f"this is no receipt: {error}") from error

    def hash(self) -> str:
        """What the next receipt refers to this one by."""
        return blake2b(self.to_json(), digest_size=32).hexdigest()

    def unsigned(self) -> Self:
        """The receipt as it was signed."""
        return msgspec.structs.replace(self, signature="")


_encoder = msgspec.json.Encoder(order="deterministic")


class Notary:
    """Writes receipts, each after the one before."""

    def __init__(self, keys: Keys, last: bytes | None) -> None:
        self._keys = keys
        self.resume(last)

    def resume(self, last: bytes | None) -> None:
        """Go on after this receipt."""
        self._last = None if last is None else Receipt.from_json(last)

    @property
    def count(self) -> int:
        """The number of the last receipt."""
        return self._last.number if self._last else 0

    def certify(self, event: Forget, removed: Forgotten, before: str, after: str, *, verified: bool) -> Receipt:
        """The receipt of a forget."""
        draft = Receipt(
            number=self.count + 1,
            request=token_hex(16),
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            scope=_scope(event),
            subject=self._keys.subject(event.user),
            purchases=removed.purchases,
            baskets=removed.baskets,
            users=removed.users,
            before=before,
            after=after,
            verified=verified,
            previous=self._last.hash() if self._last else FIRST,
            key=self._keys.public,
        )
        self._last = msgspec.structs.replace(draft, signature=self._keys.sign(draft.to_json()).hex())
        return self._last


def _scope(event: Forget) -> Scope:
    if event.item is None:
        return "user" if event.basket is None else "basket"
    return "item" if event.basket is None else "item of a basket"


class Audit(msgspec.Struct, frozen=True):
    """The outcome of checking a chain of receipts."""

    receipts: int
    keys: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every receipt is as it was signed, and none is missing between the first and the last."""
        return not self.faults


def audit(receipts: Iterable[Receipt], key: str | None = None) -> Audit:
    """Check signatures and the chain; with `key`, also that this public key made all signatures."""
    faults, keys, previous, number = [], dict[str, None](), FIRST, 0
    for receipt in receipts:
        number += 1
        keys[receipt.key] = None
        faults += [f"receipt {receipt.number}: {fault}" for fault in _faults(receipt, number, previous, key)]
        previous = receipt.hash()
    return Audit(number, tuple(keys), tuple(faults))


def _faults(receipt: Receipt, number: int, previous: str, key: str | None) -> list[str]:
    faults = []
    if receipt.number != number:
        faults.append(f"its place in the chain is {number}")
    if receipt.previous != previous:
        faults.append("it does not follow the receipt before it, which was changed or removed")
    if key is not None and receipt.key != key:
        faults.append(f"another key signed it: {receipt.key}")
    if not _signed(receipt):
        faults.append("its signature is not valid: it was changed")
    if not receipt.verified:
        faults.append("it says itself that the model differed from one that never saw what was forgotten")
    return faults


def _signed(receipt: Receipt) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt.key))
        key.verify(bytes.fromhex(receipt.signature), receipt.unsigned().to_json())
    except (InvalidSignature, ValueError):
        return False
    return True
