"""Messages of a topic: the event in a message, or the reason why there is none."""

from typing import Any

import msgspec

from unbasket.domain.decoding import decode_json
from unbasket.domain.events import Event, Forget, Learn, parse_event
from unbasket.domain.ids import Id
from unbasket.domain.rejection import FAULTS, Reason, reason_of
from unbasket.errors import UnbasketError


class RejectedError(UnbasketError):
    """A message that is not an event."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


class _LearnMessage(msgspec.Struct, tag_field="event", tag="learn", forbid_unknown_fields=True, gc=False):
    user: Id
    basket: Id
    items: list[Id]
    time: int | None = None


class _ForgetMessage(msgspec.Struct, tag_field="event", tag="forget", forbid_unknown_fields=True, gc=False):
    user: Id
    basket: Id | None = None
    item: Id | None = None


_decoder = msgspec.json.Decoder(_LearnMessage | _ForgetMessage)


def parse_message(key: bytes | None, value: bytes) -> Event:
    """Return the event in a message.

    >>> parse_message(b"ann", b'{"event": "learn", "user": "ann", "basket": 1, "items": ["milk"]}')
    Learn(user='ann', items=['milk'], basket=1, time=None)
    >>> parse_message(b"ann", b'{"event": "learn", "user": "ann", "basket": 1, "items": []}')
    Traceback (most recent call last):
    unbasket.kafka.messages.RejectedError: its items or its time are not those of a basket
    """
    if key is None:
        raise RejectedError(Reason.NO_KEY)
    try:
        return _parse(value)
    except FAULTS as error:
        raise RejectedError(reason_of(error)) from None  # without the error, which names the values


def _parse(value: bytes) -> Event:
    try:
        message = _decoder.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):  # decide by the rules of all other events
        fields: Any = decode_json(value, object)
        return parse_event(fields)
    if isinstance(message, _LearnMessage):
        return Learn.checked(message.user, message.items, message.basket, message.time)
    return Forget.checked(message.user, message.basket, message.item)
