"""Audit of receipts: is each as it was signed, and does each follow the one before it?"""

from collections.abc import Iterable

import msgspec

from unbasket.store.receipts import FIRST, Receipt

Run = tuple[int, int]
"""The numbers of the first and the last of consecutive receipts."""

_FORGED = "its signature is not valid: it was changed"
_UNCHAINED = "it does not follow the receipt before it, which was changed or removed"


class Audit(msgspec.Struct, frozen=True):
    """The result of checking receipts: a whole chain, or a part of one.

    In `chained` runs, each receipt has the hash of the one before. `missing` runs are not there, though later ones are.
    """

    receipts: int
    keys: tuple[str, ...]
    faults: tuple[str, ...]
    chained: tuple[Run, ...]
    missing: tuple[Run, ...]
    signed: int

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
        return ", ".join(parts) + "."


def _are(first: int, last: int) -> str:
    return f"{first} is" if first == last else f"{first} to {last} are"


def audit(receipts: Iterable[Receipt], key: str | None = None, *, whole: bool = True) -> Audit:
    """Check signatures and links; with `key`, also that this public key made all signatures.

    Of a `whole` chain, every receipt up to the last must be there; of a part, any may be missing.
    """
    auditor = Auditor(key)
    auditor.check(sorted(receipts, key=lambda receipt: receipt.number))
    return auditor.outcome(whole=whole)


class Auditor:
    """Checks receipts in the order of their numbers, a few at a time: a long chain need not be in memory."""

    def __init__(self, key: str | None = None) -> None:
        self._key = key
        self._keys: dict[str, None] = {}
        self._faults, self._chained, self._missing = list[str](), list[Run](), list[Run]()
        self._count = self._signed = 0
        self._before: Receipt | None = None

    def check(self, receipts: Iterable[Receipt]) -> None:
        """Check the next receipts."""
        for receipt in receipts:
            self._check(receipt)

    def _check(self, receipt: Receipt) -> None:
        before, number = self._before, receipt.number
        last = max(0, before.number) if before else 0
        wrong = _faults(receipt, before, self._key)
        self._faults += [f"receipt {number}: {fault}" for fault in wrong]
        self._count += 1
        self._signed += _FORGED not in wrong
        if number > last + 1:
            self._missing.append((last + 1, number - 1))
        if before and number == last + 1 and _UNCHAINED not in wrong:
            self._chained[-1] = (self._chained[-1][0], number)
        else:
            self._chained.append((number, number))
        self._keys[receipt.key] = None
        self._before = receipt

    def outcome(self, *, whole: bool = True) -> Audit:
        """Return the result. Of a `whole` chain, every receipt up to the last must have been checked."""
        faults, missing = self._faults, self._missing
        if whole:
            gaps = [f"receipt{'s' * (last > first)} {_are(first, last)} missing" for first, last in missing]
            faults = faults + gaps
        chained = tuple(self._chained)
        return Audit(self._count, tuple(self._keys), tuple(faults), chained, tuple(missing), self._signed)


def _faults(receipt: Receipt, before: Receipt | None, key: str | None) -> list[str]:
    faults = []
    if before and before.number == receipt.number:
        faults.append("it is there twice")
    if receipt.previous != _expected_link(receipt, before):
        faults.append(_UNCHAINED)
    if key is not None and receipt.key != key:
        faults.append(f"another key signed it: {receipt.key}")
    if not _signed(receipt):
        faults.append(_FORGED)
    if not receipt.verified:
        faults.append("it says itself that the model differed from one that never saw what was forgotten")
    return faults


def _expected_link(receipt: Receipt, before: Receipt | None) -> str:
    """Return the `previous` hash that a receipt must have; without the receipt before it, its own is accepted."""
    if receipt.number == 1:
        return FIRST
    return before.hash() if before and before.number == receipt.number - 1 else receipt.previous


def _signed(receipt: Receipt) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt.key))
        key.verify(bytes.fromhex(receipt.signature), receipt.unsigned().to_json())
    except (InvalidSignature, ValueError):
        return False
    return True
