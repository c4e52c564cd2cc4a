"""Events in bulk: a batch sends them in requests within the limits of the service."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import msgspec

from unbasket.client.decoding import event_results
from unbasket.client.errors import ServiceError
from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.ids import Id
from unbasket.domain.times import Time, as_number
from unbasket.store import Erased, Receipt

MAX_EVENTS, MAX_FORGETS, MAX_BYTES = 10_000, 1_000, 4 * 2**20
"""Limits of one request: events, forgets among them, and bytes (the service takes twice as many)."""

_encode = msgspec.json.Encoder().encode


def event_line(event: Event) -> bytes:
    """Return an event as a line of JSON."""
    kind = "learn" if isinstance(event, Learn) else "forget"
    given = {name: value for name, value in event._asdict().items() if value is not None}
    return _encode({"event": kind, **given}) + b"\n"


class Batch:
    """Events that are sent in bulk, in their order: `with client.batch() as batch`.

    Each request is all or nothing, and is sent when it is full; the rest is sent at the end of the block, unless an
    exception ends it. `sent` counts the events that the service has acknowledged. After an error, all before them are
    done: a batch may be repeated from there, or from its start. `receipts` has the receipts of all forgets,
    and `secrets` the secret of each, which the service does not keep.
    """

    def __init__(self, post: Callable[[bytes], Any]) -> None:
        self._post = post
        self._lines: list[bytes] = []
        self._bytes = self._forgets = 0
        self.sent = 0
        self.receipts: list[Receipt] = []
        self.secrets: list[str] = []

    def learn(self, user: Id, items: Iterable[Id], *, basket: Id, time: Time | None = None) -> None:
        """Add a basket to learn, or to edit."""
        self.add(Learn.checked(user, items, basket, as_number(time)))

    def forget(self, user: Id, *, basket: Id | None = None, item: Id | None = None) -> None:
        """Add a forget."""
        self.add(Forget.checked(user, basket, item))

    def add(self, event: Event) -> None:
        """Add an event."""
        line, forgets = event_line(event), isinstance(event, Forget)
        is_full = len(self._lines) == MAX_EVENTS or self._bytes + len(line) > MAX_BYTES
        if is_full or (forgets and self._forgets == MAX_FORGETS):
            self.flush()
        self._lines.append(line)
        self._bytes += len(line)
        self._forgets += forgets

    def flush(self) -> None:
        """Send the events that were added since the last request."""
        lines, self._lines, self._bytes, self._forgets = self._lines, [], 0, 0
        if lines:
            self._send(lines)

    def _send(self, lines: list[bytes]) -> None:
        """Send lines in one request, or in halves if they are too many for it: forgets in long histories cost more."""
        try:
            response = self._post(b"".join(lines))
        except ServiceError as error:
            if error.code != "too_large" or len(lines) == 1:
                raise
            middle = len(lines) // 2
            self._send(lines[:middle])
            self._send(lines[middle:])
            return
        self.sent += len(lines)
        erased = [each for each in event_results(response) if isinstance(each, Erased)]
        self.receipts += [each.receipt for each in erased]
        self.secrets += [each.secret for each in erased]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()
