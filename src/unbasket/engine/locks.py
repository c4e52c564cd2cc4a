"""Many readers or one writer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn

from unbasket.errors import BusyError, ClosedError


class _Thread(threading.local):
    patience = -1.0  # seconds; below 0, it waits as long as it takes


_thread = _Thread()


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Meanwhile, this thread waits no longer for a writer: where it would have to, it gets a `BusyError`."""
    _thread.patience = seconds
    try:
        yield
    finally:
        _thread.patience = -1.0


class _Reading:
    def __init__(self, lock: "ReadWriteLock") -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        if not lock.gate.acquire(timeout=_thread.patience):
            raise BusyError("the engine is being changed; ask again in a moment")
        try:
            with lock.counting:
                lock.readers += 1
                if lock.readers == 1:
                    lock.room.acquire()
        finally:
            lock.gate.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock = self._lock
        with lock.counting:
            lock.readers -= 1
            if lock.readers == 0:
                lock.room.release()


class _Writing:
    def __init__(self, lock: "ReadWriteLock") -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.gate.acquire()
        try:
            self._lock.room.acquire()
        except BaseException:  # an interrupt while waiting must not leave the gate shut
            self._lock.gate.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.room.release()
        self._lock.gate.release()


class ReadWriteLock:
    """`with lock.reading:` shares, `with lock.writing:` excludes. Neither nests.

    Readers pass a gate that a waiting writer holds shut, so a stream of readers cannot starve it.
    """

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.counting = threading.Lock()
        self.room = threading.Lock()
        self.readers = 0
        self.reading = _Reading(self)
        self.writing = _Writing(self)


class ClosedLock:
    """The lock of what was closed: nobody passes."""

    def __init__(self, message: str) -> None:
        self._message = message

    @property
    def reading(self) -> NoReturn:
        raise ClosedError(self._message)

    @property
    def writing(self) -> NoReturn:
        raise ClosedError(self._message)
