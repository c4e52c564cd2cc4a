"""Receipts of forgets that found nothing. Receipts are kept for good, so a repeated forget gets the one of that day."""

import os
import time
from collections import OrderedDict
from hashlib import blake2b
from threading import Lock

import msgspec

from unbasket.domain.events import Forget
from unbasket.domain.ids import Id
from unbasket.service.errors import ApiError

MOST = 10
"""Empty receipts per user and day, whichever caller forgets."""

_DAY = 24 * 60 * 60
_MOST_USERS = 10_000


class EmptyReceipts:
    """The numbers of today's empty receipts by user. Users and events are stored as keyed hashes only."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._lock = Lock()
        self._day = 0
        self._numbers: OrderedDict[bytes, dict[bytes, int]] = OrderedDict()

    def find(self, event: Forget) -> int | None:
        """Return the number of today's receipt for the same event, if any. Raises if the user has too many others."""
        with self._lock:
            numbers = self._today().get(self._hashed(event.user), {})
            number = numbers.get(self._hashed(event))
        if number is None and len(numbers) >= MOST:
            raise ApiError(
                "too_many_requests",
                f"nothing was found {MOST} times today, as receipt {max(numbers.values())} says last; wait a day",
                {"retry-after": str(int(_DAY - time.time() % _DAY) + 1)},
            )
        return number

    def add(self, event: Forget, number: int) -> None:
        """Store the receipt number of an event that found nothing."""
        with self._lock:
            self._today().setdefault(self._hashed(event.user), {})[self._hashed(event)] = number
            if len(self._numbers) > _MOST_USERS:
                self._numbers.popitem(last=False)

    def discard(self, user: Id) -> None:
        """Remove a user's receipts before a forget: if its erasure fails, a retry must not get an earlier receipt."""
        with self._lock:
            self._numbers.pop(self._hashed(user), None)

    def renew(self, user: Id) -> None:
        """Let the next forget of the whole user have a receipt of its own, within the same limit."""
        with self._lock:
            numbers = self._today().get(self._hashed(user), {})
            number = numbers.pop(self._hashed(Forget(user, None, None)), None)
            if number is not None:
                numbers[os.urandom(16)] = number

    def clear(self) -> None:
        """Remove the receipts of all users."""
        with self._lock:
            self._numbers.clear()

    def _today(self) -> OrderedDict[bytes, dict[bytes, int]]:
        day = int(time.time() // _DAY)
        if day != self._day:
            self._day = day
            self._numbers.clear()
        return self._numbers

    def _hashed(self, value: Id | Forget) -> bytes:
        return blake2b(msgspec.json.encode(value), key=self._secret, digest_size=16).digest()
