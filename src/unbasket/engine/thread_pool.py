"""Threads that help the one that has something to do: one fewer than there are cores, started when first needed."""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

Work = Callable[[], object]


class Task:
    """Something to do, which is begun by a helper or given up by the one who asked."""

    def __init__(self, work: Work) -> None:
        self._work: Work | None = work  # until it is begun or given up: who holds the task holds nothing else then
        self._choosing, self._ended = Lock(), Lock()
        self._is_begun = False
        self._ended.acquire()
        self.error: BaseException | None = None

    def begin(self) -> None:
        """Do it, unless it was given up."""
        with self._choosing:
            work, self._work = self._work, None
            self._is_begun = work is not None
        if work is not None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the end gets it
                self.error = error
            finally:
                self._ended.release()

    def give_up(self) -> bool:
        """Let nobody begin it; False if somebody has. Whoever is interrupted here may ask again."""
        with self._choosing:
            self._work = None
            return not self._is_begun

    def wait(self) -> None:
        """Wait for the end of what somebody has begun. Whoever is interrupted here may wait again."""
        with self._ended:
            pass


class Helpers:
    """Threads that wait for tasks. They end with the process, which does not wait for them.

    `worth` is how many users a thread has to look at for it to be worth waking.
    """

    def __init__(self, count: int, worth: int = 1 << 17) -> None:
        self.count, self.worth = count, worth
        self.forget()

    def forget(self) -> None:
        """Have no threads: they do not follow into a process that is forked."""
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._starting = Lock()
        self._started = 0

    def task(self, work: Work) -> Task:
        """Something to do, of which no thread knows yet."""
        return Task(work)

    def ask(self, task: Task) -> None:
        """Let a thread do a task, if one finds the time before it is given up."""
        with self._starting:
            while self._started < self.count:
                self._started += 1
                Thread(target=self._help, name=f"unbasket helper {self._started}", daemon=True).start()
        self._tasks.put(task)

    def _help(self) -> None:
        while True:
            self._tasks.get().begin()


HELPERS = Helpers((os.cpu_count() or 1) - 1)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HELPERS.forget)
