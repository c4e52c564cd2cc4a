"""Whether a user was forgotten since a moment: what ends a shopper's token.

Nothing is stored for this. Receipts hold the pseudonym of each user who was forgotten, and their numbers are in order
whatever the clock says.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from unbasket.domain.ids import Id
from unbasket.store.receipts import Receipt
from unbasket.store.signing import SigningKeys

MOST = 100_000
"""Pseudonyms in memory, 20 MB; beyond, receipts are read again."""


class Presence(NamedTuple):
    """A user at a moment: the pseudonym that receipts use, and the number of the newest receipt then."""

    subject: str
    receipts: int


class Forgets:
    """The newest receipt by which each user was forgotten, by pseudonym. Those before the start are read on demand."""

    def __init__(self, keys: SigningKeys, newest: int) -> None:
        self._keys = keys
        self._start = self._newest = newest  # numbers of receipts: noted are those after the one, up to the other
        self._numbers: dict[str, int] = {}

    def presence(self, user: Id) -> Presence:
        """Return a user's presence now, known or not."""
        return Presence(self._keys.subject(user), self._newest)

    def note(self, receipts: Iterable[Receipt]) -> None:
        """Note new receipts, which are committed."""
        if len(self._numbers) >= MOST:
            self._numbers, self._start = {}, self._newest
        for receipt in receipts:
            self._add(receipt)
            self._newest = max(self._newest, receipt.number)

    def ended(self, user: Id, presence: Presence, read: Callable[[int, int], Iterable[Receipt]]) -> bool:
        """Return whether the user was forgotten since; `read` returns the receipts of these numbers.

        A presence of another chain of receipts, or of a destroyed key for pseudonyms, has ended too.
        """
        if presence.subject != self._keys.subject(user) or presence.receipts > self._newest:
            return True
        if presence.receipts < self._start:
            for receipt in read(presence.receipts + 1, self._start):
                self._add(receipt)
            self._start = min(self._start, presence.receipts)
        return self._numbers.get(presence.subject, 0) > presence.receipts

    def _add(self, receipt: Receipt) -> None:
        """Add a receipt if it ends a user: by their forget, or by that of their last basket, or of their id."""
        if receipt.subject and (receipt.users or receipt.scope == "user"):
            self._numbers[receipt.subject] = max(receipt.number, self._numbers.get(receipt.subject, 0))
