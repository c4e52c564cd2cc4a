"""Many readers or one writer."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from unbasket.errors import BusyError, ClosedError


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


def _acquired_in_time(gate: threading.Lock) -> bool:
    """Wait for the gate until this thread's timeout, and subtract the time waited from it."""
    start = time.monotonic()
    is_acquired = gate.acquire(timeout=_thread.timeout)
    if _thread.timeout > 0:
        _thread.timeout = max(0.0, _thread.timeout - (time.monotonic() - start))
    return is_acquired


class _Reading:
    def __init__(self, lock: "ReadWriteLock") -> None:
        self._lock = lock

    def __enter__(self) -> None:
        gate = self._lock.gate
        if not gate.acquire(False) and not _acquired_in_time(gate):
            raise BusyError("the engine is being changed; ask again in a moment")
        try:
            self._lock.readers.append(None)
        finally:
            gate.release()

    def __exit__(self, *_: object) -> None:
        readers = self._lock.readers
        readers.pop()
        if self._lock.is_shut and not readers:
            self._lock.is_empty.set()


class _Writing:
    def __init__(self, lock: "ReadWriteLock") -> None:
        self._lock = lock

    def __enter__(self) -> None:
        lock = self._lock
        lock.gate.acquire()
        try:
            lock.is_shut = True  # before the readers are counted: a reader that leaves later sees it
            while lock.readers:
                lock.is_empty.wait()
                lock.is_empty.clear()
        except BaseException:  # an interrupt while waiting must not leave the gate shut
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.is_shut = False
        self._lock.gate.release()


class ReadWriteLock:
    """A lock that `with lock.reading:` shares and `with lock.writing:` does not. Neither nests.

    Readers pass a gate that a waiting writer holds shut, so a stream of readers cannot starve it. The readers inside
    are a list because its append and pop need no lock: every query passes here.
    """

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.is_shut = False  # by a writer, not by a passing reader
        self.is_empty = threading.Event()
        self.readers: list[None] = []
        self.reading = _Reading(self)
        self.writing = _Writing(self)


class ClosedLock:
    """The lock of a closed engine: it can't be acquired."""

    def __init__(self, message: str) -> None:
        self._message = message

    @property
    def reading(self) -> NoReturn:
        """Raise a `ClosedError`."""
        raise ClosedError(self._message)

    writing = reading
