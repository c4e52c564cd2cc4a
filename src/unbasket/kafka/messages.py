"""Messages of a topic: the event in a message, or the reason why there is none."""

from unbasket.domain.events import Event, Forget, Learn, decode_change
from unbasket.domain.rejection import FAULTS, Reason, reason_of
from unbasket.errors import UnbasketError


class RejectedError(UnbasketError):
    """A message that is not an event."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


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
        event = decode_change(value)
    except FAULTS as error:
        raise RejectedError(reason_of(error)) from None  # without the error, which names the values
    if not isinstance(event, Learn | Forget):
        raise RejectedError(Reason.NO_EVENT)
    return event
