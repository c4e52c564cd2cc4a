"""Whether a user was forgotten since a moment: what ends a shopper's token.

Nothing is stored for this, and receipts do not tell whom they are about. So forgets are noted in memory; of those
before the start, only the newest that ended some user is known, and a presence from before it counts as ended.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple

from unbasket.domain.ids import Id
from unbasket.store.receipts import Receipt

MOST = 100_000
"""Pseudonyms in memory, 20 MB; beyond, all presences until then count as ended."""

_STEP = 1_000  # receipts that are read at a time


class Presence(NamedTuple):
    """A user at a moment: a pseudonym, and the number of the newest receipt then."""

    subject: str
    receipts: int


class Forgets:
    """The newest receipt by which each user was forgotten since the start, by pseudonym."""

    def __init__(self, salt: bytes, newest: int) -> None:
        self._salt = salt
        self._start = self._newest = newest  # numbers of receipts: noted are those after the one, up to the other
        self._last_end: int | None = (
            None  # the newest receipt up to the start that ended a user, once it was looked for
        )
        self._numbers: dict[str, int] = {}

    def presence(self, user: Id) -> Presence:
        """Return a user's presence now, known or not."""
        return Presence(self._subject(user), self._newest)

    def _subject(self, user: Id) -> str:
        """Return the pseudonym of a user, the same for 17 and "17"."""
        person = b"unbasket subject"
        return blake2b(repr(str(user)).encode(), key=self._salt, digest_size=16, person=person).hexdigest()

    def note(self, erased: Iterable[tuple[Id, Receipt]]) -> None:
        """Note the users of new receipts, which are committed."""
        if len(self._numbers) >= MOST:
            self._numbers, self._start, self._last_end = {}, self._newest, self._newest
        for user, receipt in erased:
            if _ends_user(receipt):
                self._numbers[self._subject(user)] = receipt.number
            self._newest = max(self._newest, receipt.number)

    def ended(self, user: Id, presence: Presence, read: Callable[[int, int], list[Receipt]]) -> bool:
        """Return whether the user was forgotten since, or may have been before the start.

        `read` returns the receipts of these numbers. A presence of another user or database has ended too.
        """
        if presence.subject != self._subject(user) or presence.receipts > self._newest:
            return True
        if presence.receipts < self._start and presence.receipts < self._find_last_end(read):
            return True
        return self._numbers.get(presence.subject, 0) > presence.receipts

    def _find_last_end(self, read: Callable[[int, int], list[Receipt]]) -> int:
        """Return the number of the newest receipt up to the start that ended a user; 0 if none did."""
        if self._last_end is None:
            last, found = self._start, 0
            while last > 0 and not found:
                found = max((r.number for r in read(max(1, last - _STEP + 1), last) if _ends_user(r)), default=0)
                last -= _STEP
            self._last_end = found
        return self._last_end


def _ends_user(receipt: Receipt) -> bool:
    """Return whether a receipt ends a user: by their forget, or by that of their last basket, or of their id."""
    return receipt.users > 0 or receipt.scope == "user"
