"""Receipts for nothing: each is kept for good, so whoever asks again on the same day gets the earlier one."""

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
"""Receipts for nothing that there are about one person in a day, whoever asks."""

_DAY = 24 * 60 * 60
_MOST_PEOPLE = 10_000


class Repeats:
    """The numbers of today's receipts for nothing, of each person. Whose they are is known by a hash only."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._lock = Lock()
        self._day = 0
        self._numbers: OrderedDict[bytes, dict[bytes, int]] = OrderedDict()

    def earlier(self, event: Forget) -> int | None:
        """The number of the receipt that the same event got today, if any; an error if there were too many others."""
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

    def note(self, event: Forget, number: int) -> None:
        """An event found nothing, and got a receipt of this number."""
        with self._lock:
            self._today().setdefault(self._hashed(event.user), {})[self._hashed(event)] = number
            if len(self._numbers) > _MOST_PEOPLE:
                self._numbers.popitem(last=False)

    def drop(self, user: Id) -> None:
        """Something of the person is being forgotten: until that has succeeded, no earlier receipt is an answer."""
        with self._lock:
            self._numbers.pop(self._hashed(user), None)

    def clear(self) -> None:
        """The same of everybody."""
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
