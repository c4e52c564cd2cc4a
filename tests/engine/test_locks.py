"""The lock of a model: readers share, a writer excludes, none starves, errors release, interrupts tear."""

from collections.abc import Callable
from signal import SIGINT, default_int_handler, pthread_kill, signal
from threading import Event, Thread, Timer, get_ident
from time import monotonic, sleep

import pytest

from unbasket.core.util import ReadWriteLock
from unbasket.engine.locks import model_lock
from unbasket.errors import BusyError

LONG = 5.0  # seconds that only a failing test waits
SHORT = 0.05  # seconds in which something that must not happen would have happened


def started(work: Callable[[], object]) -> Thread:
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


class Holder:
    """A thread that holds the lock until it may leave."""

    def __init__(self, lock: ReadWriteLock, *, writes: bool) -> None:
        self._guard = lock.writing if writes else lock.reading
        self.may_leave = Event()
        self.inside = Event()
        self._thread = started(self._hold)

    def _hold(self) -> None:
        with self._guard:
            self.inside.set()
            self.may_leave.wait(LONG)

    def leave(self) -> None:
        self.may_leave.set()
        self._thread.join(LONG)
        assert not self._thread.is_alive()


def wait_until(condition: Callable[[], bool]) -> None:
    end = monotonic() + LONG
    while not condition():
        assert monotonic() < end
        sleep(0.001)


def is_free(lock: ReadWriteLock) -> bool:
    holder = Holder(lock, writes=True)
    entered = holder.inside.wait(1.0)
    holder.leave()
    return entered


def test_readers_share() -> None:
    lock = model_lock()
    readers = [Holder(lock, writes=False) for _ in range(5)]
    assert all(reader.inside.wait(LONG) for reader in readers)
    for reader in readers:
        reader.leave()
    assert is_free(lock)


def test_a_writer_excludes_readers_and_writers() -> None:
    lock = model_lock()
    writer = Holder(lock, writes=True)
    assert writer.inside.wait(LONG)
    others = [Holder(lock, writes=False), Holder(lock, writes=True)]
    assert not others[0].inside.wait(SHORT)
    assert not others[1].inside.wait(SHORT)
    for other in others:
        other.may_leave.set()  # at once, since either may come first
    writer.leave()
    for other in others:
        other.leave()
        assert other.inside.is_set()
    assert is_free(lock)


def test_a_writer_waits_for_all_readers() -> None:
    lock = model_lock()
    readers = [Holder(lock, writes=False) for _ in range(3)]
    assert all(reader.inside.wait(LONG) for reader in readers)
    writer = Holder(lock, writes=True)
    for reader in readers:
        assert not writer.inside.wait(SHORT / 2)
        reader.leave()
    assert writer.inside.wait(LONG)
    writer.leave()


def test_a_waiting_writer_goes_before_later_readers() -> None:
    lock = model_lock()
    early = Holder(lock, writes=False)
    assert early.inside.wait(LONG)
    writer = Holder(lock, writes=True)
    wait_until(lambda: lock.is_shut)
    late = Holder(lock, writes=False)
    assert not late.inside.wait(SHORT)
    early.leave()
    assert writer.inside.wait(LONG)
    assert not late.inside.is_set()
    writer.leave()
    assert late.inside.wait(LONG)
    late.leave()


def test_a_stream_of_readers_does_not_starve_a_writer() -> None:
    lock, stop = model_lock(), Event()

    def read() -> None:
        while not stop.is_set():
            with lock.reading:
                sleep(0.002)

    readers = [started(read) for _ in range(4)]
    writer = Holder(lock, writes=True)
    entered = writer.inside.wait(LONG)
    stop.set()
    writer.leave()
    for reader in readers:
        reader.join(LONG)
    assert entered


@pytest.mark.parametrize("writes", [False, True])
def test_an_error_that_changes_nothing_releases(writes: bool) -> None:
    lock = model_lock()
    with pytest.raises(BusyError), lock.writing if writes else lock.reading:
        raise BusyError
    assert is_free(lock)
    with lock.reading:
        assert lock.readers == 1
    assert lock.readers == 0


def test_an_interrupted_reader_releases() -> None:
    lock = model_lock()
    with pytest.raises(KeyboardInterrupt), lock.reading:
        raise KeyboardInterrupt
    assert is_free(lock)


def test_after_an_interrupted_writer_the_lock_is_torn_and_refuses() -> None:
    lock = model_lock()
    with pytest.raises(KeyboardInterrupt), lock.writing:
        raise KeyboardInterrupt
    assert lock.is_torn
    for guard in (lock.reading, lock.writing):
        with pytest.raises(BusyError, match="was interrupted"), guard:
            raise AssertionError("torn data was reached")
    assert not lock.is_shut
    assert lock.readers == 0


def test_writers_do_not_mix() -> None:
    lock, total = model_lock(), [0]

    def count() -> None:
        for _ in range(200):
            with lock.writing:
                seen = total[0]
                sleep(0)
                total[0] = seen + 1

    threads = [started(count) for _ in range(4)]
    for thread in threads:
        thread.join(LONG)
    assert total == [800]


def test_an_interrupt_while_a_writer_waits_leaves_the_gate_open() -> None:
    lock = model_lock()
    reader = Holder(lock, writes=False)
    assert reader.inside.wait(LONG)
    signal(SIGINT, default_int_handler)  # Polars restarts waits, a shell's background job ignores it
    waiting = get_ident()

    def interrupt() -> None:
        wait_until(lambda: lock.is_shut)
        sleep(SHORT)  # a signal that comes before the wait would not end it
        pthread_kill(waiting, SIGINT)

    interrupting = started(interrupt)
    with pytest.raises(KeyboardInterrupt), lock.writing:
        raise AssertionError("a writer came in beside a reader")
    interrupting.join(LONG)
    with lock.reading:
        pass
    reader.leave()
    assert is_free(lock)


def test_readers_and_writers_alternate() -> None:
    """No writer shares the lock, and none is left waiting."""
    lock, inside, wrong = model_lock(), list[str](), list[object]()

    def work(kind: str) -> None:
        for _ in range(500):
            with lock.writing if kind == "writer" else lock.reading:
                inside.append(kind)
                if "writer" in inside and len(inside) > 1:
                    wrong.append(list(inside))
                sleep(0)
                inside.remove(kind)

    threads = [started(lambda kind=kind: work(kind)) for kind in ["writer", "reader"] * 4]  # type: ignore[misc]
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    assert not wrong
    assert is_free(lock)


def test_a_reader_without_time_is_refused_while_a_writer_holds_the_lock() -> None:
    lock = model_lock()
    writer = Holder(lock, writes=True)
    assert writer.inside.wait(LONG)
    with pytest.raises(BusyError), lock.reading_within(0):
        raise AssertionError("a reader came in beside a writer")
    other = Holder(lock, writes=False)  # without a timeout
    assert not other.inside.wait(SHORT)
    writer.leave()
    assert other.inside.wait(LONG)
    with lock.reading_within(0):
        pass
    other.leave()
    assert is_free(lock)


def test_a_reader_waits_no_longer_than_its_timeout() -> None:
    lock = model_lock()
    writer = Holder(lock, writes=True)
    assert writer.inside.wait(LONG)
    with pytest.raises(BusyError), lock.reading_within(SHORT):
        raise AssertionError("a reader came in beside a writer")
    timer = Timer(SHORT, writer.leave)
    timer.start()
    with lock.reading_within(LONG):
        assert lock.readers == 1
    timer.join()
    with lock.reading_within(None):
        assert lock.readers == 1
    assert is_free(lock)


def test_a_reader_without_time_is_refused_while_a_writer_waits() -> None:
    lock = model_lock()
    reader = Holder(lock, writes=False)
    assert reader.inside.wait(LONG)
    writer = Holder(lock, writes=True)
    wait_until(lambda: lock.is_shut)
    with pytest.raises(BusyError), lock.reading_within(0):
        raise AssertionError("a reader overtook a writer")
    reader.leave()
    writer.leave()
    assert is_free(lock)
