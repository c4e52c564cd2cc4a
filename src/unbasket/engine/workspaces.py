"""The workspaces of readers, and the threads that share the work of a search.

A search of the only reader is shared by one thread fewer than there are cores, started when first needed.

Why not `concurrent.futures.ThreadPoolExecutor`: a KeyboardInterrupt inside `submit` or `Future.cancel` can leave a
`threading.Condition` locked, and the next search waits forever. Interrupted at random moments, the executor hung
within 400 interrupts in six runs of six, this pool in none of 20,000. A `with` on a plain lock can't be interrupted
in that way. A fork and join of two small tasks takes 9 µs here and 37 µs there.
"""

import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread

from unbasket.core.model import FoldWorkspace
from unbasket.core.search import SearchWorkspace
from unbasket.core.util import ReadWriteLock, Task
from unbasket.engine.cores import usable_cores
from unbasket.errors import UnbasketError

Work = Callable[[], object]


class ThreadPool:
    """Daemon threads that run tasks; the process exits without waiting for them.

    `users_per_thread` is the number of users that a thread must scan to be worth waking.
    """

    def __init__(self, size: int, users_per_thread: int = 1 << 17) -> None:
        self.size, self.users_per_thread = size, users_per_thread
        self.reset()

    def reset(self) -> None:
        """Start over without threads: a forked process has none."""
        self._tasks: SimpleQueue[Task] = SimpleQueue()
        self._starting = Lock()
        self._started = 0

    def task(self, work: Work) -> Task:
        """Return a task that no thread knows yet."""
        return Task(work)

    def submit(self, task: Task) -> None:
        """Queue a task; a thread runs it, if there is one, unless it is cancelled first."""
        with self._starting:
            while self._started < self.size and self._start_thread():
                pass
            has_threads = self._started > 0
        if has_threads:
            self._tasks.put(task)

    def _start_thread(self) -> bool:
        """Start a thread; return False if the system allows no more: then the caller of the search works alone."""
        self._started += 1
        try:
            Thread(target=self._run_tasks, name=f"unbasket search {self._started}", daemon=True).start()
        except RuntimeError:
            self._started -= 1
            return False
        return True

    def _run_tasks(self) -> None:
        while True:
            self._tasks.get().run()


THREAD_POOL = ThreadPool(usable_cores() - 1)
os.register_at_fork(after_in_child=THREAD_POOL.reset)


class Workspace:
    """The workspaces of one reader at a time: of a search, and of a fold."""

    def __init__(self, free: "list[Workspace]") -> None:
        self.search, self.fold = SearchWorkspace(), FoldWorkspace()
        self._free = free

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or issubclass(kind, UnbasketError):
            self._free.append(self)  # not after an interrupt: its residue would get into the next answer


class WorkspacePool:
    """The workspaces that are free. A list's append and pop need no lock."""

    def __init__(self, lock: ReadWriteLock) -> None:
        self._lock = lock
        self._free: list[Workspace] = []

    def take(self) -> Workspace:
        """Return a free workspace to a reader. The thread pool shares the searches of an only reader."""
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = Workspace(self._free)
        workspace.search.thread_pool = THREAD_POOL if self._lock.readers == 1 else None
        return workspace
