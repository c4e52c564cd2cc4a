"""Reasons why a message from outside holds no event, for logs and dead-letter topics."""

from enum import StrEnum

import msgspec

from unbasket.errors import InvalidBasketError, InvalidEventError, InvalidIdError


class Reason(StrEnum):
    """Why a message was rejected. A reason holds nothing of the message: it may be logged and kept."""

    NO_KEY = "it has no key, so the order of its user's events is unknown"
    NOT_JSON = "it is not JSON"
    NO_EVENT = "it is not an event: a field is missing, unknown or wrong"
    INVALID_ID = "a user, basket or item is not an id: a nonempty text, or a whole number of 64 bits"
    INVALID_BASKET = "its items or its time are not those of a basket"
    OTHER_TYPE = "an id is of another type than those in the database"


_REASONS: dict[type[Exception], Reason] = {
    InvalidEventError: Reason.NO_EVENT,
    InvalidIdError: Reason.INVALID_ID,
    InvalidBasketError: Reason.INVALID_BASKET,
    msgspec.DecodeError: Reason.NOT_JSON,
}

FAULTS = tuple(_REASONS)
"""The errors that parsing a message raises."""


def reason_of(error: Exception) -> Reason:
    """Return the reason for one of the `FAULTS`, without the values that the error names.

    >>> reason_of(InvalidIdError("user id 1.5 is neither a text nor a number"))
    <Reason.INVALID_ID: 'a user, basket or item is not an id: a nonempty text, or a whole number of 64 bits'>
    """
    return next(reason for kind, reason in _REASONS.items() if isinstance(error, kind))
