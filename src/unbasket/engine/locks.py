"""Many readers or one writer."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn

from unbasket.errors import BusyError, ClosedError


class _Thread(threading.local):
    patience = -1.0  # seconds that are left to wait; below 0, it waits as long as it takes


_thread = _Thread()


@contextmanager
def waiting_at_most(seconds: float) -> Iterator[None]:
    """Meanwhile, this thread waits no longer for writers, in all: where it would have to, it gets a `BusyError`."""
    _thread.patience = seconds
    try:
        yield
    finally:
        _thread.patience = -1.0


def _acquired_in_time(gate: threading.Lock) -> bool:
    """Wait for the gate as long as this thread may, and then it may wait for less."""
    start = time.monotonic()
    is_acquired = gate.acquire(timeout=_thread.patience)
    if _thread.patience > 0:
        _thread.patience = max(0.0, _thread.patience - (time.monotonic() - start))
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            lock.is_shut = True  # before readers are looked for: whoever leaves later sees it
            while lock.readers:
                lock.is_empty.wait()
                lock.is_empty.clear()
        except BaseException:  # an interrupt while waiting must not leave the gate shut
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._lock.is_shut = False
        self._lock.gate.release()


class ReadWriteLock:
    """`with lock.reading:` shares, `with lock.writing:` excludes. Neither nests.

    Readers pass a gate that a waiting writer holds shut, so a stream of readers cannot starve it. Those inside are a
    list, since adding to it and taking from it need no lock: each question passes here.
    """

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.is_shut = False  # by a writer, not by a reader who passes
        self.is_empty = threading.Event()
        self.readers: list[None] = []
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
