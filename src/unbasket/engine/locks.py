"""The lock of a model: many readers or one writer."""

from typing import NoReturn

from unbasket.core.util import ReadWriteLock
from unbasket.errors import BusyError, ClosedError, UnbasketError


def model_lock() -> ReadWriteLock:
    """Return a lock that raises a `BusyError` to a reader that waited too long."""
    return ReadWriteLock(BusyError, UnbasketError)


class ClosedLock:
    """The lock of a closed engine: it can't be acquired."""

    def __init__(self, message: str) -> None:
        self._message = message

    @property
    def reading(self) -> NoReturn:
        """Raise a `ClosedError`."""
        raise ClosedError(self._message)

    writing = reading

    def reading_within(self, _: float | None) -> NoReturn:
        """Raise a `ClosedError`."""
        raise ClosedError(self._message)
