"""Receipts of forgets: signed, chained by hash, and without anything that names a person; and their audit."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b, blake2s
from secrets import token_bytes, token_hex
from typing import Any, Literal, NamedTuple, Self, cast

import msgspec

from unbasket.domain.events import Forget, Rename
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten
from unbasket.engine.model import ErasureRecord
from unbasket.errors import InvalidReceiptError
from unbasket.store.signing import SigningKeys

Scope = Literal["user", "basket", "item", "item of a basket", "id", "types of ids", "key", "rollback"]

FIRST = "0" * 64
"""The hash of the predecessor in the first receipt of a chain."""

Run = tuple[int, int]
"""The numbers of the first and the last of consecutive receipts."""

_FORGED = "its signature is not valid: it was changed"
_UNCHAINED = "it does not follow the receipt before it, which was changed or removed"


class Receipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A receipt of one forget, of a rename, which forgets an id, or of a change of the types of ids, by `change_ids`.

    Two more scopes forget nothing: `key` hands over to the public key in `detail`, and `rollback` has the reason why an
    older state of the database was accepted there.

    `subject` is a hash of the user's id under a secret of that request, which the requester gets with the receipt, and
    which is kept nowhere; it is empty if the receipt is not about one user. `before` and `after` are digests of the
    model. `verified` says that nothing of the forgotten data was left in the model, and that all else of the user was,
    bit for bit, the result of training from what remains: see `unbasket.engine.verification.ErasureProof`. After a
    change of types it says that no basket was lost.
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
    detail: str = ""
    previous: str
    key: str
    signature: str = ""

    def to_json(self) -> bytes:
        """Encode the receipt as one line of JSON, always the same for the same receipt."""
        return _encoder.encode(self)

    @classmethod
    def from_json(cls, line: bytes | str) -> Self:
        """Decode the receipt in a line of JSON."""
        return cast(Self, _decoded(line, "this is not a receipt")[0])

    def to_row(self) -> bytes:
        """Encode the receipt for the database, without field names and hex: with less than half as many bytes,
        a forget seldom begins a new page.
        """
        fields = msgspec.structs.asdict(self)
        return _row_encoder.encode([bytes.fromhex(fields[name]) if name in _HEX else fields[name] for name in fields])

    @classmethod
    def from_row(cls, payload: bytes) -> Self:
        """Decode the receipt in a row of the database."""
        try:
            fields = [field.hex() if isinstance(field, bytes) else field for field in _row_decoder.decode(payload)]
            return msgspec.convert(dict(zip(cls.__struct_fields__, fields, strict=True)), cls)
        except (ValueError, TypeError) as error:  # of msgspec, or of zip
            raise InvalidReceiptError(f"a row holds no receipt: {error}; it was written by something else") from error

    def hash(self) -> str:
        """Return the hash by which the next receipt refers to this one."""
        return blake2b(self.to_json(), digest_size=32).hexdigest()

    def unsigned(self) -> Self:
        """Return the receipt without its signature, as it was signed."""
        return msgspec.structs.replace(self, signature="")


_encoder = msgspec.json.Encoder(order="deterministic")
_row_encoder, _row_decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[Any])
_HEX = {"request", "subject", "before", "after", "previous", "key", "signature"}  # the fields that are bytes in hex


def read_receipts(data: bytes) -> list[Receipt]:
    """Read the receipts in a file: JSON of one or of a list of them, or one on each line."""
    data = data.removeprefix(BOM_UTF8)  # some editors put it there
    text = data.strip()
    if text[:1] == b"[" or text.partition(b"\n")[0].strip() == b"{":  # one document over several lines
        return _decoded(text, "this is not a receipt")
    lines = enumerate(data.splitlines(), 1)
    return [
        each for number, line in lines if line.strip() for each in _decoded(line, f"line {number} is not a receipt")
    ]


def _decoded(text: bytes | str, complaint: str) -> list[Receipt]:
    """Decode receipts, strictly: no field is missing, unknown or there twice."""
    from unbasket import verifier  # with cryptography, which takes long to import

    try:
        found = verifier.parse_json(text if isinstance(text, str) else text.decode())
        return msgspec.convert(found if isinstance(found, list) else [found], list[Receipt])
    except (verifier.ProofError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidReceiptError(f"{complaint}: {error}") from error


class Issued(NamedTuple):
    """A receipt, and the secret that shows whom it is about, in hex; empty if it is not about one user."""

    receipt: Receipt
    secret: str


class ReceiptSigner:
    """The issuer of receipts, each chained to the one before."""

    def __init__(self, keys: SigningKeys, last: Receipt | None) -> None:
        self.keys = keys
        self.resume(last)

    def resume(self, last: Receipt | None) -> None:
        """Continue the chain after this receipt."""
        self._last = last

    @property
    def count(self) -> int:
        """The number of the last receipt."""
        return self._last.number if self._last else 0

    def issue(self, event: Forget | Rename, record: ErasureRecord) -> Issued:
        """Issue the receipt of a forget, or of a rename for the old id."""
        forgotten = Forgotten(*record.result) if isinstance(event, Forget) else Forgotten(0, 0, 1)
        secret = token_bytes(32)
        return Issued(self._issue(_scope(event), record, forgotten, subject_of(event.user, secret)), secret.hex())

    def issue_conversion(self, record: ErasureRecord) -> Receipt:
        """Issue the receipt of a change of the types of ids; its users are those that were merged into others."""
        return self._issue("types of ids", record, Forgotten(*record.result))

    def issue_note(self, scope: Literal["key", "rollback"], detail: str, digest: str) -> Receipt:
        """Issue a receipt that forgets nothing."""
        nothing = Forgotten(0, 0, 0)
        return self._issue(scope, ErasureRecord(nothing, digest, digest, verified=True), nothing, detail=detail)

    def _issue(
        self, scope: Scope, record: ErasureRecord, forgotten: Forgotten, subject: str = "", detail: str = ""
    ) -> Receipt:
        draft = Receipt(
            number=self.count + 1,
            request=token_hex(16),
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            scope=scope,
            subject=subject,
            purchases=forgotten.purchases,
            baskets=forgotten.baskets,
            users=forgotten.users,
            before=record.before,
            after=record.after,
            verified=record.verified,
            detail=detail,
            previous=self._last.hash() if self._last else FIRST,
            key=self.keys.public,
        )
        self._last = msgspec.structs.replace(draft, signature=self.keys.sign(draft.to_json()).hex())
        return self._last


def subject_of(user: Id, secret: bytes) -> str:
    """Return the subject of a receipt, which only its secret links to the user: the same for 17 and "17"."""
    return blake2s(str(user).encode(), key=secret, digest_size=16, person=b"ub-subj").hexdigest()


def _scope(event: Forget | Rename) -> Scope:
    if isinstance(event, Rename):
        return "id"
    if event.item is None:
        return "user" if event.basket is None else "basket"
    return "item" if event.basket is None else "item of a basket"


class Audit(msgspec.Struct, frozen=True):
    """The result of checking receipts: a whole chain, or a part of one.

    In `chained` runs, each receipt has the hash of the one before. `missing` runs are not there, though later ones are.
    `warnings` are no proof of a change: a clock that was set back has times that run backwards.
    """

    receipts: int
    keys: tuple[str, ...]
    faults: tuple[str, ...]
    chained: tuple[Run, ...]
    missing: tuple[Run, ...]
    signed: int
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every receipt is as it was signed, and follows the one before it if that is there."""
        return not self.faults

    def summary(self, place: str = "here") -> str:
        """Return the result as a sentence.

        >>> Audit(6, (), (), chained=((4, 9),), missing=((1, 3),), signed=6).summary("in this file")
        'Signatures valid, receipts 4 to 9 are chained, 1 to 3 are not in this file.'
        """
        if not self.receipts:
            return f"There is no receipt {place}."
        broken = self.receipts - self.signed
        parts = [f"{broken} of {self.receipts} signatures are not valid" if broken else "Signatures valid"]
        parts += [f"receipts {first} to {last} are chained" for first, last in self.chained if last > first]
        parts += [f"receipt {first} stands alone" for first, last in self.chained if first == last]
        parts += [f"{_are(first, last)} not {place}" for first, last in self.missing]
        parts += [f"times run backwards {_times(len(self.warnings))}"] if self.warnings else []
        return ", ".join(parts) + "."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _are(first: int, last: int) -> str:
    return f"{first} is" if first == last else f"{first} to {last} are"


def audit(
    receipts: Iterable[Receipt], key: str | None = None, *, whole: bool = True, every_signature: bool = True
) -> Audit:
    """Check signatures and links; with `key`, also that this public key, its predecessors or successors signed.

    Of a `whole` chain, every receipt up to the last must be there; of a part, any may be missing. Without
    `every_signature`, one that the next receipt of the same key covers by its link is not checked: a hundredth of the
    time, and the last signature still vouches for all before it.
    """
    auditor = Auditor(key, every_signature=every_signature)
    auditor.check(sorted(receipts, key=lambda receipt: receipt.number))
    return auditor.outcome(whole=whole)


class Auditor:
    """A check of receipts in the order of their numbers, a few at a time: a long chain need not be in memory."""

    def __init__(self, key: str | None = None, *, every_signature: bool = True) -> None:
        self._key, self._every_signature = key, every_signature
        self._keys: dict[str, None] = {}
        self._faults, self._warnings = list[str](), list[str]()
        self._chained, self._missing = list[Run](), list[Run]()
        self._count = self._signed = 0
        self._before: Receipt | None = None
        self._foreign: list[str] = []  # faults of a run so far, unless a receipt by the known key follows in it
        self._found: list[str] = []  # the faults of the receipt before, whose signature is yet to be checked

    def check(self, receipts: Iterable[Receipt]) -> None:
        """Check the next receipts."""
        for receipt in receipts:
            before, number = self._before, receipt.number
            last = max(0, before.number) if before else 0
            wrong = _faults(receipt, before)
            follows = before is not None and number == last + 1 and _UNCHAINED not in wrong
            self._finish(is_covered=follows and before is not None and before.key == receipt.key)
            if before and before.time > receipt.time:
                self._warnings.append(
                    f"receipt {number}: its time, {receipt.time}, is before that of receipt {before.number}, "
                    f"{before.time}: the clock was set back"
                )
            if number > last + 1:
                self._missing.append((last + 1, number - 1))
            if follows:
                self._chained[-1] = (self._chained[-1][0], number)
            else:
                self._chained.append((number, number))
                self._end_run()
            self._check_key(receipt)
            self._keys[receipt.key] = None
            self._before, self._found = receipt, wrong
            self._count += 1

    def _check_key(self, receipt: Receipt) -> None:
        """Check that the key is the known one, or that a receipt by that hands over to it, or follows and covers it."""
        if self._key in (None, receipt.key):
            self._foreign.clear()
            self._key = self._key and (_successor(receipt) or self._key)
        else:
            self._foreign.append(f"receipt {receipt.number}: another key signed it: {receipt.key}")

    def _end_run(self) -> None:
        self._faults += self._foreign
        self._foreign.clear()

    def _finish(self, *, is_covered: bool) -> None:
        """Check the signature of the receipt before, unless the next one covers it, and note its faults."""
        from unbasket import verifier

        receipt = self._before
        if receipt is None:
            return
        try:
            verifier.from_hex(receipt.signature, 64, "it: its signature")
            if self._every_signature or not is_covered:
                verifier.check_signature(
                    verifier.from_hex(receipt.key, 32, "its key"),
                    bytes.fromhex(receipt.signature),
                    receipt.unsigned().to_json(),
                    "it",
                )
            self._signed += 1
        except verifier.ProofError:
            self._found.append(_FORGED)
        self._faults += [f"receipt {receipt.number}: {fault}" for fault in self._found]

    def outcome(self, *, whole: bool = True) -> Audit:
        """Return the result, once. Of a `whole` chain, every receipt up to the last must have been checked."""
        self._finish(is_covered=False)
        self._end_run()
        faults, missing = self._faults, self._missing
        if whole:
            gaps = [f"receipt{'s' * (last > first)} {_are(first, last)} missing" for first, last in missing]
            faults = faults + gaps
        chained = tuple(self._chained)
        warnings = tuple(self._warnings)
        return Audit(self._count, tuple(self._keys), tuple(faults), chained, tuple(missing), self._signed, warnings)


def _faults(receipt: Receipt, before: Receipt | None) -> list[str]:
    """Return the faults of a receipt that need no signature."""
    faults = []
    if before and before.number == receipt.number:
        faults.append("it is there twice")
    if receipt.previous != _expected_link(receipt, before):
        faults.append(_UNCHAINED)
    if before and before.number == receipt.number - 1 and receipt.key not in (before.key, _successor(before)):
        faults.append(f"it is signed with another key, which the key before it has not signed: {receipt.key}")
    if not receipt.verified:
        faults.append("it says itself that the model differed from one that never saw what was forgotten")
    return faults


def _successor(receipt: Receipt) -> str | None:
    """Return the key that a receipt hands over to; after a loss of the key, the reason is there instead."""
    is_key = receipt.scope == "key" and re.fullmatch("[0-9a-f]{64}", receipt.detail)
    return receipt.detail if is_key else None


def _expected_link(receipt: Receipt, before: Receipt | None) -> str:
    """Return the `previous` hash that a receipt must have; without the receipt before it, its own is accepted."""
    if receipt.number == 1:
        return FIRST
    return before.hash() if before and before.number == receipt.number - 1 else receipt.previous
