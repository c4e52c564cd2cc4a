"""Fork and join in a search: who is woken, errors and interrupts."""

import random
import signal
import threading
import time
from collections.abc import Iterable

import pytest

from unbasket.core.util import Task
from unbasket.domain.ids import Id
from unbasket.engine.recommender import Recommender
from unbasket.engine.workspaces import ThreadPool, Work
from unbasket.params import Params


class BusyPool(ThreadPool):
    """A pool whose threads never find the time."""

    def __init__(self, size: int, users_per_thread: int) -> None:
        super().__init__(size, users_per_thread)
        self.tasks: list[Task] = []

    def submit(self, task: Task) -> None:
        self.tasks.append(task)


@pytest.mark.parametrize(
    ("queries", "users_per_thread", "expected"),
    [(0, 1, 0), (2, 1, 1), (30, 1, 3), (30, 300, 3), (30, 301, 2), (30, 901, 0)],
)
def test_only_threads_with_enough_to_do_are_woken(
    queries: int, users_per_thread: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each query is compared with all 30 users."""
    rec = Recommender(Params(neighbors=5))
    for user in range(30):
        rec.learn(user, [user % 4, user % 7], basket=1)
    pool = BusyPool(3, users_per_thread)
    monkeypatch.setattr("unbasket.engine.workspaces.THREAD_POOL", pool)
    rec.recommend_many(range(queries))
    assert len(pool.tasks) == expected


class InterruptingPool(ThreadPool):
    """A pool that interrupts the main thread (Ctrl-C) while that waits for a running task."""

    ended = False

    def __init__(self) -> None:
        super().__init__(1, users_per_thread=1)
        self._begun = threading.Event()

    def task(self, work: Work) -> Task:
        def interrupted() -> None:
            self._begun.set()
            time.sleep(0.05)
            self.interrupt()
            time.sleep(0.05)
            work()
            self.ended = True

        return super().task(interrupted)

    def submit(self, task: Task) -> None:
        super().submit(task)
        self._begun.wait()

    def interrupt(self) -> None:
        """Interrupt the main thread."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class PoolInterruptedInSubmit(InterruptingPool):
    """The same, but the main thread has not yet returned from `submit`."""

    def submit(self, task: Task) -> None:
        super().submit(task)
        raise KeyboardInterrupt

    def interrupt(self) -> None:
        """Do nothing: `submit` was interrupted."""


class FailingPool(ThreadPool):
    """A pool whose tasks end with an error."""

    def task(self, work: Work) -> Task:
        def fail() -> None:
            work()
            raise MemoryError("too much")

        return super().task(fail)

    def submit(self, task: Task) -> None:
        super().submit(task)
        task.wait()


def shop() -> Recommender:
    chance, rec = random.Random(1), Recommender(Params(neighbors=5, alpha=0.3))
    for user in range(30):
        rec.learn(user, chance.sample(range(30), 4), basket=1)
    return rec


@pytest.mark.parametrize("users", [[7], range(30)], ids=["one query", "many queries"])
@pytest.mark.parametrize("kind", [InterruptingPool, PoolInterruptedInSubmit])
def test_an_interrupt_waits_for_threads_and_leaves_no_residue_to_the_next_query(
    monkeypatch: pytest.MonkeyPatch, kind: type[InterruptingPool], users: Iterable[Id]
) -> None:
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", 16)
    rec = shop()
    expected = rec.recommend_many()
    pool = kind()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, it may be ignored
    try:
        with monkeypatch.context() as patch:
            patch.setattr("unbasket.engine.workspaces.THREAD_POOL", pool)
            with pytest.raises(KeyboardInterrupt):
                rec.recommend_many(users)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert pool.ended
    assert rec.recommend_many() == expected


@pytest.mark.parametrize("users", [[7], range(30)], ids=["one query", "many queries"])
def test_an_error_in_a_thread_is_raised_and_leaves_no_residue_to_the_next_query(
    monkeypatch: pytest.MonkeyPatch, users: Iterable[Id]
) -> None:
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", 16)
    rec = shop()
    expected = rec.recommend_many()
    with monkeypatch.context() as patch:
        patch.setattr("unbasket.engine.workspaces.THREAD_POOL", FailingPool(1, users_per_thread=1))
        with pytest.raises(MemoryError, match="too much"):
            rec.recommend_many(users)
    assert rec.recommend_many() == expected
    rec.learn(10**6, [1], basket=1)
