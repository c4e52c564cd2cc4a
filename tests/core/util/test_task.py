"""Tasks: results, errors, cancellation, and the end of a block. See also engine/test_workspaces.py."""

import threading
import weakref
from contextlib import suppress

import pytest

from unbasket.core.util import Task


class Data:
    """Data that must not be kept alive."""

    def use(self) -> None:
        """Work with the data."""


def test_a_task_that_was_cancelled_or_run_keeps_nothing_alive() -> None:
    """A cancelled task may stay in the queue for long."""
    cancelled, done = Data(), Data()
    tasks, kept = [Task(cancelled.use), Task(done.use)], [weakref.ref(cancelled), weakref.ref(done)]
    del cancelled, done
    assert all(ref() for ref in kept)
    tasks[0].cancel()
    tasks[1].run()
    assert [ref() for ref in kept] == [None, None]


def test_a_task_that_no_thread_starts_runs_where_its_result_is_asked_for() -> None:
    assert Task(threading.get_ident).result() == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        Task(lambda: 1 // 0).result()


def test_a_thread_starts_a_task_once() -> None:
    calls = list[int]()
    task = Task(lambda: calls.append(1))
    threads = [threading.Thread(target=task.run) for _ in range(4)]
    for thread in threads:
        thread.start()
    task.result()
    for thread in threads:
        thread.join(60)
    assert calls == [1]


def test_at_the_end_of_a_block_no_thread_runs_the_task() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), list[bool]()

    def work() -> None:
        begun.set()
        done.append(go_on.wait(60))

    with suppress(KeyboardInterrupt), Task(work) as task:
        threading.Thread(target=task.run).start()
        assert begun.wait(60)
        threading.Timer(0.05, go_on.set).start()
        raise KeyboardInterrupt
    assert done == [True]


def test_at_the_end_of_a_block_a_task_that_waits_is_cancelled() -> None:
    with Task(lambda: pytest.fail("a cancelled task ran")) as task:
        pass
    task.run()
