"""The lock of a model: many readers or one writer, with a limit to the time that a reader waits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from unbasket.core.util import ReadWriteLock
from unbasket.errors import BusyError, ClosedError, UnbasketError


class _Thread(threading.local):
    timeout = -1.0  # seconds left to wait for writers; negative: no limit


_thread = _Thread()


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Limit the time that this thread waits for writers, in all; then reading raises a `BusyError`."""
    _thread.timeout = seconds
    try:
        yield
    finally:
        _thread.timeout = -1.0


def model_lock() -> ReadWriteLock:
    """Return a lock whose readers wait no longer than `waiting_at_most` allows."""
    return ReadWriteLock(_thread, BusyError, UnbasketError)


class ClosedLock:
    """The lock of a closed engine: it can't be acquired."""

    def __init__(self, message: str) -> None:
        self._message = message

    @property
    def reading(self) -> NoReturn:
        """Raise a `ClosedError`."""
        raise ClosedError(self._message)

    writing = reading
