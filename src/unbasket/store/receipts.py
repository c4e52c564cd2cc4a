"""Receipts of forgets: signed, chained by hash, and without anything that names a person."""

from codecs import BOM_UTF8
from datetime import UTC, datetime
from hashlib import blake2b
from secrets import token_hex
from typing import Any, Literal, Self

import msgspec

from unbasket.domain.decoding import decode_json
from unbasket.domain.events import Forget, Rename
from unbasket.domain.results import Forgotten
from unbasket.engine.model import ErasureRecord
from unbasket.errors import InvalidReceiptError
from unbasket.store.signing import SigningKeys

Scope = Literal["user", "basket", "item", "item of a basket", "id"]

FIRST = "0" * 64
"""The hash of the predecessor in the first receipt of a chain."""


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt of one forget, or of a rename, which forgets an id.

    `subject` is a keyed hash of the user's id; `before` and `after` are digests of the model. `verified` says that
    nothing of the forgotten data was left in the model, and that all else of the user was, bit for bit, the result of
    training from what remains; see `unbasket.engine.verification.ErasureProof`.
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
        """Encode the receipt as one line of JSON, always the same for the same receipt."""
        return _encoder.encode(self)

    @classmethod
    def from_json(cls, line: bytes | str) -> Self:
        """Decode the receipt in a line of JSON."""
        try:
            return decode_json(line, cls)
        except msgspec.DecodeError as error:
            raise InvalidReceiptError(f"this is not a receipt: {error}") from error

    def hash(self) -> str:
        """Return the hash by which the next receipt refers to this one."""
        return blake2b(self.to_json(), digest_size=32).hexdigest()

    def unsigned(self) -> Self:
        """Return the receipt without its signature, as it was signed."""
        return msgspec.structs.replace(self, signature="")


_encoder = msgspec.json.Encoder(order="deterministic")


def read_receipts(data: bytes) -> list[Receipt]:
    """Read the receipts in a file: JSON of one or of a list of them, or one on each line."""
    data = data.removeprefix(BOM_UTF8)  # some editors put it there
    text = data.strip()
    if text[:1] == b"[" or text.partition(b"\n")[0].strip() == b"{":  # one document over several lines
        return _decoded(text, Receipt | list[Receipt], "this is not a receipt")
    lines = enumerate(data.splitlines(), 1)
    return [
        each
        for number, line in lines
        if line.strip()
        for each in _decoded(line, Receipt, f"line {number} is not a receipt")
    ]


def _decoded(text: bytes, kind: Any, complaint: str) -> list[Receipt]:
    try:
        found = decode_json(text, kind)
    except msgspec.DecodeError as error:
        raise InvalidReceiptError(f"{complaint}: {error}") from error
    return found if isinstance(found, list) else [found]


class ReceiptSigner:
    """Issues receipts, each chained to the one before."""

    def __init__(self, keys: SigningKeys, last: bytes | None) -> None:
        self._keys = keys
        self.resume(last)

    def resume(self, last: bytes | None) -> None:
        """Continue the chain after this receipt."""
        self._last = None if last is None else Receipt.from_json(last)

    @property
    def count(self) -> int:
        """The number of the last receipt."""
        return self._last.number if self._last else 0

    def issue(self, event: Forget | Rename, record: ErasureRecord) -> Receipt:
        """Issue the receipt of a forget, or of a rename for the old id."""
        forgotten = Forgotten(*record.result) if isinstance(event, Forget) else Forgotten(0, 0, 1)
        draft = Receipt(
            number=self.count + 1,
            request=token_hex(16),
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            scope=_scope(event),
            subject=self._keys.subject(event.user),
            purchases=forgotten.purchases,
            baskets=forgotten.baskets,
            users=forgotten.users,
            before=record.before,
            after=record.after,
            verified=record.verified,
            previous=self._last.hash() if self._last else FIRST,
            key=self._keys.public,
        )
        self._last = msgspec.structs.replace(draft, signature=self._keys.sign(draft.to_json()).hex())
        return self._last


def _scope(event: Forget | Rename) -> Scope:
    if isinstance(event, Rename):
        return "id"
    if event.item is None:
        return "user" if event.basket is None else "basket"
    return "item" if event.basket is None else "item of a basket"
