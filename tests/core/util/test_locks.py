"""Locks under interrupts: recovery before the next use, and locks without waiting. See also engine/test_locks.py."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from unbasket.core.util import RecoveringLock, TryLock
from unbasket.errors import BusyError, UnbasketError


def interrupted() -> None:
    raise KeyboardInterrupt


def noted(calls: list[str]) -> Callable[[], None]:
    return lambda: calls.append("recovered")


def test_data_is_recovered_once_before_its_next_use() -> None:
    lock, calls = RecoveringLock(UnbasketError), list[str]()
    with lock.after(noted(calls)):
        pass
    with pytest.raises(KeyboardInterrupt), lock.after(noted(calls)):
        interrupted()
    assert lock.is_torn
    assert calls == []
    for _ in range(2):
        with lock.after(noted(calls)):
            assert calls == ["recovered"]
    assert not lock.is_torn


def test_a_clean_error_tears_nothing() -> None:
    lock, calls = RecoveringLock(UnbasketError), list[str]()
    with pytest.raises(BusyError), lock.after(noted(calls)):
        raise BusyError
    with lock.after(noted(calls)):
        pass
    assert calls == []


def test_an_interrupted_recovery_is_repeated() -> None:
    lock, calls = RecoveringLock(UnbasketError), list[str]()
    with pytest.raises(KeyboardInterrupt), lock.after(noted(calls)):
        interrupted()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), lock.after(interrupted):
            raise AssertionError("torn data was reached")
    with lock.after(noted(calls)):
        assert calls == ["recovered"]


def test_a_lock_without_waiting() -> None:
    lock = TryLock(BusyError, "try again")
    with suppress(KeyboardInterrupt), lock:
        with pytest.raises(BusyError, match="try again"), lock:
            raise AssertionError("two callers came in")
        assert lock.is_held
        interrupted()
    with lock:
        pass
    assert not lock.is_held
